"""Kernels that cannot be captured: their source, their variables, their nests and views."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest

import tilenest as tn
from tests.errors.refusals import assert_points_at, refused
from tests.oracle.arrays import Array, Placed

# Sources -----------------------------------------------------------------------------------------


def test_source_that_cannot_be_read(x: Array, y: Placed) -> None:
    scope: dict[str, Any] = {"tn": tn}
    exec("def kernel(X, Y):\n    Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])\n", scope)
    found = refused(
        tn.kernel(scope["kernel"]), tn.SourceUnavailableError, None, x, y, remedy="file"
    )
    assert "kernel" in found.message
    assert isinstance(found, OSError)


def test_source_of_a_called_function_that_cannot_be_read(x: Array, y: Placed) -> None:
    scope: dict[str, Any] = {"tn": tn}
    exec("@tn.function\ndef helper(x):\n    return x * 2\n", scope)
    helper = scope["helper"]

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        value = helper(X[(0, 0), (4, 16)])  # wrong
        Y((0, 0), (4, 16)).store(value)

    caret = "helper(X[(0, 0), (4, 16)])"
    refused(kernel, tn.SourceUnavailableError, caret, x, y, remedy="file")


UNSUPPORTED = {
    "with": "with open('f') as f:\n        pass",
    "try": "try:\n        pass\n    finally:\n        pass",
    "class": "class Inner:\n        pass",
    "import": "import math",
    "match": "match X:\n        case _:\n            pass",
    "global": "global outside",
    "await": "x = [each async for each in X]",
    "while": "while Y.extent(0) > 3:\n        pass",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_python_that_has_no_meaning_in_a_kernel(
    name: str, tmp_path: Path, x: Array, y: Placed
) -> None:
    path = tmp_path / "module.py"
    prefix = "async " if name == "await" else ""
    text = f"{prefix}def kernel(X, Y):\n    Y.at(0, 0).store(1.0)\n    {UNSUPPORTED[name]}\n"
    path.write_text(text)
    linecache.checkcache()
    scope: dict[str, Any] = {"tn": tn}
    exec(compile(text, str(path), "exec"), scope)
    found = None
    with pytest.raises(tn.CaptureError) as caught:
        tn.kernel(scope["kernel"])(x, y.array)
    found = caught.value
    assert y.is_unchanged
    assert found.remedy
    if prefix:
        return
    assert found.location is not None
    assert found.location.file == str(path)
    assert found.location.line == 3
    assert found.location.column == (11 if name == "while" else 5)


# Variables ---------------------------------------------------------------------------------------


def test_a_carried_variable_changes_its_shape(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        part = X[(0, 0), (1, 16)]
        for step in tn.serial(3):
            part = X[(step.index(), 0), (1, 8)]  # wrong
        Y((0, 0), (1, 8)).store(part)

    found = refused(kernel, tn.CarriedTypeError, "part", x, y, remedy="shape")
    assert "'part'" in found.message
    assert "1x16" in found.message and "1x8" in found.message


def test_a_carried_variable_changes_its_dtype(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros((1, 16), tn.int32)
        for step in tn.serial(3):
            total = total.cast(tn.float32) + X[(step.index(), 0), (1, 16)]  # wrong
        Y((0, 0), (1, 16)).store(total)

    found = refused(kernel, tn.CarriedTypeError, "total", x, y, remedy="dtype")
    assert "int32" in found.message and "float32" in found.message


def test_a_carried_number_becomes_a_tile(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        total = 0.0
        for step in tn.serial(3):
            total = total + X[(step.index(), 0), (1, 16)]  # wrong
        Y((0, 0), (1, 16)).store(total)

    refused(kernel, tn.CarriedTypeError, "total", x, y, remedy="tn.zeros")


def test_a_variable_defined_in_one_branch(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        if n > 0:
            value = X[(0, 0), (4, 16)]
        Y((0, 0), (4, 16)).store(value)  # type: ignore[possibly-undefined]  # wrong

    for n in (0, 1):
        found = refused(kernel, tn.UndefinedVariableError, "value", x, y, n, remedy="before the")
        assert "'value'" in found.message
        assert isinstance(found, NameError)


def test_a_variable_defined_in_a_loop_that_may_not_run(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        for step in range(n):
            value = X[(step, 0), (1, 16)]
        Y((0, 0), (1, 16)).store(value)  # type: ignore[possibly-undefined]  # wrong

    with pytest.raises(tn.TileError) as caught:
        kernel(x, y.array, 2)
    assert type(caught.value) in (tn.UndefinedVariableError, tn.ScopeError)
    assert_points_at(caught.value, kernel, "value")
    assert caught.value.remedy
    assert y.is_unchanged


def test_branches_of_different_types(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        if n > 0:  # noqa: SIM108 - the statement is the subject
            value = X[(0, 0), (4, 16)]
        else:
            value = X[(0, 0), (4, 8)]
        Y((0, 0), (4, 16)).store(value)

    with pytest.raises(tn.TileError) as caught:
        kernel(x, y.array, 1)
    assert caught.value.location is not None
    assert caught.value.remedy
    assert "value" in caught.value.message
    assert y.is_unchanged


def test_a_handle_after_its_nest(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for block in tn.parallel(4):
            i = block.index()
            Y((i, 0), (1, 16)).store(X[(i, 0), (1, 16)])
        Y((block.index(), 0), (1, 16)).store(0.0)  # wrong

    refused(kernel, tn.ScopeError, "block", x, y, remedy="into it")


def test_a_body_local_tile_after_its_nest(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for step in tn.serial(4):
            part = X[(step.index(), 0), (1, 16)]
        Y((0, 0), (1, 16)).store(part)  # type: ignore[possibly-undefined]  # wrong

    found = refused(kernel, tn.ScopeError, "part", x, y, remedy="before the")
    assert "'part'" in found.message


def test_a_nest_opened_through_an_outer_handle(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for block in tn.parallel(4):
            for _ in block.serial(2):
                for step in block.serial(2):  # wrong
                    Y.at(block, step).store(X.at(0, 0).load())

    refused(kernel, tn.ScopeError, "block.serial(2)", x, y, remedy="innermost")


def test_an_update_of_an_outer_tile_in_parallel(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros((1, 16), tn.float32)
        for block in tn.parallel(4):
            total = total + X[(block.index(), 0), (1, 16)]  # wrong
        Y((0, 0), (1, 16)).store(total)

    refused(kernel, tn.AncestorUpdateError, "total", x, y, remedy="serial")


def test_arithmetic_on_the_handle_of_a_nest(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(4):
            at: Any = 2 * row  # type: ignore[operator]  # wrong
            Y((at, 0), (1, 16)).store(X[(0, 0), (1, 16)])

    refused(kernel, tn.CaptureError, "2 * row", x, y, remedy="index()")


def test_a_tree_over_a_body_that_is_no_merge(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros((1, 16), tn.float32)
        for step in tn.root().reduce(4):  # wrong
            total = total * 0.5 + X[(step.index(), 0), (1, 16)]
        Y((0, 0), (1, 16)).store(total)

    refused(kernel, tn.ReductionPolicyError, "tn.root().reduce(4)", x, y, remedy="fold_left")


# Views -------------------------------------------------------------------------------------------


def test_an_assignment_through_a_view(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y[(0, 0), (4, 16)] = X[(0, 0), (4, 16)]  # wrong

    found = refused(kernel, tn.ViewAssignmentError, "Y[(0, 0), (4, 16)]", x, y, remedy="store(")
    assert "Y" in found.message


def test_an_assignment_through_a_slice_of_a_view(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        x = X[(0, 0), (4, 16)]
        Y[0:4, :] = x  # wrong

    refused(kernel, tn.ViewAssignmentError, "Y[0:4, :]", x, y, remedy="store(")


def test_an_augmented_assignment_through_a_view(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y[(0, 0), (4, 16)] += X[(0, 0), (4, 16)]  # wrong

    caret = "Y[(0, 0), (4, 16)] += X[(0, 0), (4, 16)]"
    refused(kernel, tn.ViewAssignmentError, caret, x, y, remedy="store(")


def test_the_chain_of_inlined_calls(x: Array, y: Placed) -> None:
    def inner(value: Any) -> Any:
        return value + 2.5

    def outer(value: Any) -> Any:
        return inner(value.cast(tn.int32))

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y((0, 0), (4, 16)).store(outer(X[(0, 0), (4, 16)]))

    with pytest.raises(tn.DTypeError) as caught:
        kernel(x, y.array)
    text = str(caught.value)
    places = [text.index(each) for each in ("in inner", "in outer", "in kernel")]
    assert places == sorted(places)
    assert text.count("called from") == 2
    assert y.is_unchanged
