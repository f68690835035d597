"""Calls that are refused: class, caret, remedy, and not a byte of any output written.

The line of each mistake ends with the comment `# wrong`. A mistake in a kernel points at it; one in
the arguments of a call has the call in the traceback, and points at a place in the kernel where one
is to blame (the store to what cannot be written).
"""

from __future__ import annotations

import inspect
import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, Placed, normal, placed, poisoned


def refused(
    kernel: tn.Kernel,
    error: type[tn.TileError],
    caret: str | None,
    *arguments: Any,
    remedy: str,
    **configuration: Any,
) -> tn.TileError:
    """The error that both targets raise, which marks `caret` on the line marked `# wrong`."""
    outputs = [one for one in arguments if isinstance(one, Placed)]
    given = [one.array if isinstance(one, Placed) else one for one in arguments]
    found = []
    for target in ("interpret", "cpu", None):
        with pytest.raises(error) as caught:
            if target is None:
                kernel(*given, **configuration)
            else:
                kernel.compile(*given, target=target, **configuration)(*given)
        assert type(caught.value) is error
        assert all(output.is_unchanged for output in outputs)
        found.append(caught.value)
    message = str(found[0])
    assert {str(each) for each in found} == {message}
    assert remedy in (found[0].remedy or "")
    assert f"help: {found[0].remedy}" in message
    if caret is not None:
        assert_points_at(found[0], kernel, caret)
    return found[0]


def assert_points_at(error: tn.TileError, kernel: tn.Kernel, caret: str) -> None:
    lines, first = inspect.getsourcelines(inspect.unwrap(kernel))  # type: ignore[arg-type]  # a kernel wraps a function
    (place,) = [place for place, line in enumerate(lines) if "# wrong" in line]
    location = error.location
    assert location is not None, "no place"
    assert Path(location.file) == Path(inspect.getfile(inspect.unwrap(kernel)))  # type: ignore[arg-type]  # as above
    assert location.line == first + place
    text = lines[place].rstrip("\n")
    assert text[location.column - 1 : location.end_column - 1] == caret
    start = text.index(caret) + 1
    assert location.column == start
    shown = str(error).splitlines()
    row = next(i for i, line in enumerate(shown) if line.strip() == text.strip())
    marks = shown[row + 1]
    assert shown[row][marks.index("^") :].startswith(caret)
    assert marks.count("^") == len(caret)


@pytest.fixture
def x() -> Array:
    return normal((4, 16))


@pytest.fixture
def y() -> Placed:
    return poisoned((4, 16), np.float32)


# Arguments ---------------------------------------------------------------------------------------


@tn.kernel
def doubled(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    Y((0, 0), (r, n)).store(x * 2)  # wrong


@tn.kernel
def wrong_rank(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]  # wrong
    Y((0, 0), (r, n)).store(x)


def test_an_input_of_another_rank(y: Placed) -> None:
    for shape in ((16,), (2, 4, 16)):
        found = refused(
            wrong_rank, tn.RankError, "X[(0, 0), (r, n)]", normal(shape), y, remedy="coordinate"
        )
        assert "X" in found.message


@tn.kernel
def wrong_output_rank(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    Y((0, 0), (r, n)).store(x)  # wrong


def test_an_output_of_another_rank(x: Array) -> None:
    y = poisoned((64,), np.float32)
    refused(wrong_output_rank, tn.RankError, "Y((0, 0), (r, n))", x, y, remedy="coordinate")


@tn.kernel
def annotated(X: tn.View[tn.float32, 2], Y: Any) -> None:  # type: ignore[valid-type]  # wrong
    Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])


def test_arguments_are_blamed_on_the_call_and_on_the_kernel_line(y: Placed) -> None:
    found = refused(doubled, tn.ArgumentTypeError, None, "text", y, remedy="pass")
    assert found.location is not None
    assert found.location.source == "def doubled(X: Any, Y: Any) -> None:"
    assert found.location.function == "doubled"


def test_an_argument_of_another_rank_than_annotated(y: Placed) -> None:
    found = refused(annotated, tn.RankError, None, normal((16,)), y, remedy="reshape")
    assert "'X'" in found.message


def test_an_argument_of_another_dtype_than_annotated(x: Array, y: Placed) -> None:
    found = refused(
        annotated, tn.ArgumentTypeError, None, x.astype(np.float64), y, remedy="float32"
    )
    assert "'X'" in found.message


@tn.kernel
def mixing(X: Any, W: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    total = x + W[(0, 0), (r, n)]  # wrong
    Y((0, 0), (r, n)).store(total)


def test_inputs_of_two_dtypes(x: Array, y: Placed) -> None:
    found = refused(
        mixing, tn.DTypeError, "x + W[(0, 0), (r, n)]", x, x.astype(np.float64), y, remedy="cast"
    )
    assert "float32" in found.message and "float64" in found.message


def test_an_output_of_another_dtype(x: Array) -> None:
    y = poisoned((4, 16), np.float64)
    refused(
        doubled, tn.DTypeError, "Y((0, 0), (r, n)).store(x * 2)", x, y, remedy="cast(tn.float64)"
    )


@pytest.mark.parametrize("dtype", [np.complex64, "U3", "M8[s]", object, ">f4", np.longdouble])
def test_dtypes_that_no_kernel_takes(dtype: Any, y: Placed) -> None:
    error = tn.ArgumentTypeError if dtype == ">f4" else tn.DTypeError
    refused(doubled, error, None, np.zeros((4, 16), dtype), y, remedy="")


def test_an_output_that_is_read_only(x: Array, y: Placed) -> None:
    y.array.flags.writeable = False
    found = refused(
        doubled, tn.ReadOnlyError, "Y((0, 0), (r, n)).store(x * 2)", x, y, remedy="writable"
    )
    assert "'Y'" in found.message


def test_an_output_becomes_read_only_after_a_call(x: Array) -> None:
    y = poisoned((4, 16), np.float32)
    doubled(x, y.array)
    y.before = y.raw.copy()
    y.array.flags.writeable = False
    refused(doubled, tn.ReadOnlyError, None, x, y, remedy="writable")


def test_a_view_annotated_constant_is_stored_to(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: tn.ConstView[tn.float32, 2]) -> None:  # type: ignore[valid-type]  # made at run time
        Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])  # wrong

    caret = "Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])"
    refused(kernel, tn.ReadOnlyError, caret, x, y, remedy="tn.View")


def test_read_only_inputs_are_read(x: Array, y: Placed) -> None:
    expected = x * 2
    x.flags.writeable = False
    for given in (
        x,
        np.broadcast_to(x[:1], (4, 16)),
        np.frombuffer(x.tobytes(), np.float32).reshape(4, 16),
    ):
        for target in ("interpret", "cpu"):
            y = poisoned((4, 16), np.float32)
            doubled.compile(given, y.array, target=target)(given, y.array)
            np.testing.assert_array_equal(y.array, given * 2)
            assert y.has_intact_guards
        doubled(given, y.array)
    np.testing.assert_array_equal(y.array, expected)


def test_an_output_that_overlaps_an_input_in_part() -> None:
    memory = placed(normal((5, 16)))
    before = memory.raw.copy()
    for first, second in ((slice(0, 4), slice(1, 5)), (slice(1, 5), slice(0, 4))):
        x, y = memory.array[first], memory.array[second]
        found = refused(doubled, tn.OverlapError, None, x, y, remedy="copy")
        assert "'X'" in found.message and "'Y'" in found.message
        np.testing.assert_array_equal(memory.raw, before)
    x = memory.array[:4]
    found = refused(doubled, tn.OverlapError, None, x, x[::-1], remedy="copy")
    np.testing.assert_array_equal(memory.raw, before)


@pytest.mark.parametrize("strides", [(4, 4), (0, 4), (0, 0), (12, 8), (16, 8)], ids=str)
def test_an_output_whose_elements_overlap(strides: tuple[int, int], x: Array) -> None:
    # A call that is right comes first, so that the quick way into compiled code is tried as well.
    doubled(x, poisoned((4, 16), np.float32, "steps").array)
    doubled(x, np.empty_like(x))
    memory = poisoned((80,), np.float32)
    y = np.lib.stride_tricks.as_strided(memory.array, (4, 16), strides)
    found = refused(doubled, tn.OverlapError, None, x, y, remedy="copy")
    assert "'Y'" in found.message
    assert memory.is_unchanged


@pytest.mark.parametrize(
    "argument", ["text", [1.0, 2.0], {}, 3 + 4j, object(), lambda: None], ids=repr
)
def test_arguments_that_are_no_arrays(argument: Any, y: Placed) -> None:
    found = refused(doubled, tn.ArgumentTypeError, None, argument, y, remedy="pass")
    assert "'X'" in found.message


def test_a_wrong_number_of_arguments(x: Array, y: Placed) -> None:
    for given in ((x,), (x, x, y)):
        with pytest.raises(tn.ArgumentTypeError, match="takes 2 arguments") as caught:
            doubled(*(one.array if isinstance(one, Placed) else one for one in given))
        assert "doubled(X, Y)" in (caught.value.remedy or "")
        assert y.is_unchanged


def test_mistakes_after_a_call_that_was_right(x: Array, y: Placed) -> None:
    doubled(x, np.empty_like(x))
    refused(doubled, tn.DTypeError, None, x, poisoned((4, 16), np.int32), remedy="cast")
    refused(doubled, tn.RankError, None, x[0], y, remedy="coordinate")
    doubled(x, y.array)
    np.testing.assert_array_equal(y.array, x * 2)


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
        Y((0, 0), (4, 16)).store(value)  # wrong

    for n in (0, 1):
        found = refused(kernel, tn.UndefinedVariableError, "value", x, y, n, remedy="before the")
        assert "'value'" in found.message
        assert isinstance(found, NameError)


def test_a_variable_defined_in_a_loop_that_may_not_run(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        for step in range(n):
            value = X[(step, 0), (1, 16)]
        Y((0, 0), (1, 16)).store(value)  # wrong

    with pytest.raises(tn.TileError) as caught:
        kernel(x, y.array, 2)
    assert type(caught.value) in (tn.UndefinedVariableError, tn.ScopeError)
    assert_points_at(caught.value, kernel, "value")
    assert caught.value.remedy
    assert y.is_unchanged


def test_branches_of_different_types(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        if n > 0:  # wrong
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


def test_a_tree_over_a_body_that_is_no_merge(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros((1, 16), tn.float32)
        for step in tn.root().reduce(4):  # wrong
            total = total * 0.5 + X[(step.index(), 0), (1, 16)]
        Y((0, 0), (1, 16)).store(total)

    with pytest.raises(tn.ReductionPolicyError) as caught:
        kernel(x, y.array)
    assert "fold_left" in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert y.is_unchanged


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
