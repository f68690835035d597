"""Mistakes in kernels: the class, the line and column, and the remedy of each."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, poisoned, tn
from tilenest.errors import (
    AncestorUpdateError,
    CaptureError,
    CarriedTypeError,
    InternalError,
    ScopeError,
    SourceUnavailableError,
    TileError,
    UndefinedVariableError,
    ViewAssignmentError,
)


def refused(
    error: type[TileError], text: str, kernel: Callable[..., None], *arguments: Any
) -> TileError:
    """The error of capturing the kernel, which points at `text` in the source and has a remedy."""
    with pytest.raises(error) as caught:
        captured(kernel, *arguments)
    assert type(caught.value) is error, caught.value
    location = caught.value.location
    assert location is not None
    assert location.file == __file__
    line = linecache.getline(__file__, location.line).rstrip("\n")
    assert location.source == line
    assert line[location.column - 1 : location.end_column - 1] == text
    assert caught.value.remedy
    assert text.splitlines()[0] in str(caught.value)
    return caught.value


def test_a_body_local_tile_ends_with_its_region() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for step in tn.serial(3):
            part = X[step.index(), 4]
        Y(0, 4).store(part)  # type: ignore[possibly-undefined]  # the mistake

    error = refused(ScopeError, "part", kernel, numbers(4), poisoned(4))
    assert "'part' is local to the serial region" in error.message


def test_a_handle_ends_with_its_region() -> None:
    def kernel(Y: Any) -> None:
        for block in tn.parallel(3):
            Y.at(block.index()).store(0.0)
        Y.at(block.index()).store(1.0)

    refused(ScopeError, "block", kernel, poisoned(4))


def test_a_handle_kept_in_a_list_has_ended_too() -> None:
    def kernel(Y: Any) -> None:
        kept: list[Any] = [None]
        for block in tn.parallel(3):
            kept[0] = block
        Y.at(kept[0].index()).store(1.0)

    refused(CaptureError, "kept[0]", kernel, poisoned(4))


def test_a_nest_belongs_to_the_region_it_was_made_in() -> None:
    def kernel() -> None:
        for block in tn.parallel(3):
            inner = block.serial(2)
            for _ in block.serial(4):
                for _ in inner:
                    pass

    with pytest.raises(ScopeError, match="outside the region"):
        captured(kernel)


def test_a_loop_inside_an_element_function() -> None:
    def kernel(n: Any, Y: Any) -> None:
        def element(i: Any) -> Any:
            for _ in range(n):
                i = i + 1
            return i

        Y(0, 4).store(tn.map(4, element, tn.int64))

    refused(CaptureError, "for _ in range(n):", kernel, np.int64(3), np.zeros(4, np.int64))


def test_a_changing_shape_names_both() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, 4]
        for step in tn.serial(3):
            part = X[step.index(), 8]
        Y(0, 8).store(part)

    error = refused(CarriedTypeError, "part", kernel, numbers(8), poisoned(8))
    assert "shape 4" in error.message
    assert "shape 8" in error.message


def test_a_changing_dtype_names_both() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.int32)
        for step in tn.serial(3):
            total = total.cast(tn.float32) + X[step.index(), 4]
        Y(0, 4).store(total)

    error = refused(CarriedTypeError, "total", kernel, numbers(8), poisoned(8))
    assert "int32" in error.message
    assert "float32" in error.message


def test_axes_of_equal_extent_are_different_types() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, tn.axis("a", 4)]
        for step in tn.serial(3):
            part = X[step.index(), tn.axis("b", 4)]
        Y(0, 4).store(part)

    error = refused(CarriedTypeError, "part", kernel, numbers(8), poisoned(8))
    assert "over a" in error.message
    assert "over b" in error.message


def test_a_number_does_not_become_a_tile() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = 0.0
        for step in tn.serial(3):
            total = total + X[step.index(), 4]
        Y(0, 4).store(total)

    error = refused(CarriedTypeError, "total", kernel, numbers(8), poisoned(8))
    assert "tn.zeros" in (error.remedy or "")


def test_none_does_not_become_a_tile() -> None:
    def kernel(X: Any, Y: Any) -> None:
        best = None
        for step in tn.serial(3):
            part = X[step.index(), 4]
            best = part if best is None else tn.maximum(best, part)
        Y(0, 4).store(best)

    refused(CarriedTypeError, "best", kernel, numbers(8), poisoned(8))


def test_host_objects_do_not_change() -> None:
    def kernel(Y: Any) -> None:
        mode = "first"
        for step in tn.serial(3):
            if mode == "first":
                Y.at(step.index()).store(0.0)
            mode = "later"

    error = refused(CaptureError, "mode", kernel, poisoned(8))
    assert "'first'" in error.message


def test_an_update_of_an_outer_tile_in_parallel_is_refused() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for block in tn.parallel(3):
            total += X[block.index() * 4, 4]
        Y(0, 4).store(total)

    error = refused(AncestorUpdateError, "total", kernel, numbers(12), poisoned(4))
    assert "'total'" in error.message
    assert "serial" in (error.remedy or "")


def test_an_assignment_without_a_read_is_an_update_too() -> None:
    def kernel(X: Any, Y: Any) -> None:
        last = X[0, 4]
        for block in tn.parallel(3):
            last = X[block.index() * 4, 4]
        Y(0, 4).store(last)

    refused(AncestorUpdateError, "last", kernel, numbers(12), poisoned(4))


def test_an_update_through_a_list_slot_is_refused() -> None:
    def kernel(X: Any, Y: Any) -> None:
        totals = [tn.zeros(4, tn.float32)]
        for block in tn.parallel(3):
            totals[0] = totals[0] + X[block.index() * 4, 4]
        Y(0, 4).store(totals[0])

    refused(AncestorUpdateError, "totals[0]", kernel, numbers(12), poisoned(4))


def test_a_number_counted_in_parallel_is_refused() -> None:
    def kernel(Y: Any) -> None:
        count = 0
        for block in tn.parallel(3):
            Y.at(block.index() + count).store(0.0)
            count = count + 1

    refused(AncestorUpdateError, "count", kernel, poisoned(4))


def test_an_inner_loop_cannot_hide_an_update() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for block in tn.parallel(3):
            for step in block.serial(2):
                total += X[step.index() * 4, 4]
        Y(0, 4).store(total)

    with pytest.raises(AncestorUpdateError, match="'total'"):
        captured(kernel, numbers(12), poisoned(4))


def test_a_name_that_is_never_assigned() -> None:
    def kernel(Y: Any) -> None:
        Y.at(0).store(nothing)  # type: ignore[name-defined]  # noqa: F821 - the mistake

    refused(UndefinedVariableError, "nothing", kernel, poisoned(4))


def test_a_name_that_is_read_too_early() -> None:
    def kernel(Y: Any) -> None:
        Y.at(0).store(value)  # type: ignore[has-type, used-before-def]  # noqa: F821 - the mistake
        value = 1.0
        Y.at(1).store(value)

    error = refused(UndefinedVariableError, "value", kernel, poisoned(4))
    assert isinstance(error, NameError)


def test_assigning_through_a_view() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y[0, 4] = X[0, 4]

    refused(ViewAssignmentError, "Y[0, 4]", kernel, numbers(4), poisoned(4))


def test_assigning_a_part_of_a_tile() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, 4]
        part[0, 2] = X[4, 2]
        Y(0, 4).store(part)

    refused(CaptureError, "part[0, 2]", kernel, numbers(8), poisoned(4))


def test_jumps_out_of_regions() -> None:
    def with_break() -> None:
        for _ in tn.serial(3):
            break

    def with_continue() -> None:
        for _ in tn.parallel(3):
            continue

    def with_return() -> None:
        for _ in tn.pipeline(3):
            for _ in range(2):
                return

    refused(CaptureError, "break", with_break)
    refused(CaptureError, "continue", with_continue)
    refused(CaptureError, "return", with_return)


def test_while_on_a_run_time_condition() -> None:
    def kernel(n: Any) -> None:
        while n > 0:
            n = n - 1

    error = refused(CaptureError, "n > 0", kernel, np.int64(3))
    assert "range" in (error.remedy or "")


def test_else_of_a_region() -> None:
    def kernel() -> None:
        for _ in tn.serial(3):
            pass
        else:  # noqa: PLW0120 - the mistake
            pass

    with pytest.raises(CaptureError, match="has an `else`"):
        captured(kernel)


def test_a_list_that_grows_in_a_region() -> None:
    def kernel(X: Any) -> None:
        parts: list[Any] = []
        for step in tn.serial(3):
            parts.append(X[step.index(), 4])  # noqa: PERF401 - the mistake

    error = refused(CaptureError, "parts.append(X[step.index(), 4])", kernel, numbers(8))
    assert "full length" in (error.remedy or "")


def test_a_dict_or_attribute_changed_in_a_region() -> None:
    class Record:
        value: Any = 0

    def with_item(X: Any) -> None:
        table = {"a": X[0, 4]}
        for _ in tn.serial(3):
            table["a"] = X[0, 4]

    def with_method(X: Any) -> None:
        table = {"a": X[0, 4]}
        for _ in tn.serial(3):
            table.update(a=X[0, 4])

    def with_attribute(X: Any) -> None:
        record = Record()
        for _ in tn.serial(3):
            record.value = X[0, 4]

    refused(CaptureError, 'table["a"]', with_item, numbers(4))
    refused(CaptureError, "table.update(a=X[0, 4])", with_method, numbers(4))
    refused(CaptureError, "record.value", with_attribute, numbers(4))


OUTSIDE: list[Any] = [0]


def test_what_lies_outside_the_kernel_is_not_changed() -> None:
    def kernel(X: Any) -> None:
        OUTSIDE[0] = X[0, 4]

    refused(CaptureError, "OUTSIDE[0]", kernel, numbers(4))
    assert OUTSIDE == [0]


def test_a_kernel_returns_nothing() -> None:
    def kernel(X: Any) -> Any:
        return X[0, 4]

    with pytest.raises(CaptureError, match="returns a value"):
        captured(kernel, numbers(4))


def test_starred_parameters_of_a_kernel() -> None:
    def kernel(*arrays: Any) -> None:
        assert arrays

    with pytest.raises(CaptureError, match=r"\*arrays"):
        captured(kernel, numbers(4))


UNSUPPORTED = {
    "with": "with open('f') as f:\n        pass",
    "try": "try:\n        pass\n    except ValueError:\n        pass",
    "a class definition": "class Inner:\n        pass",
    "import": "import math",
    "yield": "x = yield",
    "match": "match X:\n        case _:\n            pass",
    "nonlocal": None,
    "global": "global OUTSIDE",
    "an async function": "async def inner() -> None:\n        pass",
}


@pytest.mark.parametrize("name", [name for name, text in UNSUPPORTED.items() if text])
def test_unsupported_python_is_named_with_a_remedy(name: str, tmp_path: Any) -> None:
    kernel = from_file(tmp_path, f"def kernel(X):\n    {UNSUPPORTED[name]}\n")
    with pytest.raises(CaptureError, match=f"`{name}` is not supported") as caught:
        captured(kernel, numbers(4))
    assert caught.value.remedy
    assert caught.value.location is not None
    assert caught.value.location.line == 2


def test_an_async_function_is_not_taken_for_a_plain_one() -> None:
    async def helper(part: Any) -> Any:
        return part + part

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(helper(X[0, 4]))

    with pytest.raises(CaptureError, match="`an async function` is not supported") as caught:
        captured(kernel, numbers(4), poisoned(4))
    assert caught.value.location is not None
    assert caught.value.location.source.strip() == "Y(0, 4).store(helper(X[0, 4]))"


def from_file(folder: Any, text: str) -> Callable[..., None]:
    """The function `kernel` of a module with this text."""
    path = folder / "module.py"
    path.write_text(text)
    linecache.checkcache()
    scope: dict[str, Any] = {"tn": tn}
    exec(compile(text, str(path), "exec"), scope)
    kernel: Callable[..., None] = scope["kernel"]
    return kernel


@pytest.mark.parametrize("word", ["eval", "exec", "locals", "globals", "super"])
def test_forbidden_builtins(word: str, tmp_path: Any) -> None:
    kernel = from_file(tmp_path, f"def kernel(X):\n    {word}('1')\n")
    with pytest.raises(CaptureError, match=f"`{word}` is not supported"):
        captured(kernel, numbers(4))


def test_a_function_without_source() -> None:
    scope: dict[str, Any] = {}
    exec("def kernel(X):\n    pass\n", scope)
    with pytest.raises(SourceUnavailableError, match="'kernel' cannot be read") as caught:
        captured(scope["kernel"], numbers(4))
    assert "file or a notebook cell" in (caught.value.remedy or "")


def test_a_file_that_changed_since_it_was_loaded(tmp_path: Any) -> None:
    kernel = from_file(tmp_path, "def kernel(X):\n    pass\n")
    (tmp_path / "module.py").write_text("# moved\n\n\ndef other(A, B):\n    pass\n")
    linecache.checkcache()
    with pytest.raises(SourceUnavailableError, match="its definition is not in"):
        captured(kernel, numbers(4))


def test_endless_recursion() -> None:
    def again(part: Any) -> Any:
        return again(part)

    def kernel(X: Any) -> None:
        again(X[0, 4])

    with pytest.raises(CaptureError, match=r"nested (64 deep|too deeply)") as caught:
        captured(kernel, numbers(4))
    assert "host value" in (caught.value.remedy or "")


def helper(part: Any) -> Any:
    return part + missing  # type: ignore[name-defined]  # noqa: F821 - the mistake


def test_the_chain_of_inlined_calls_is_shown() -> None:
    def kernel(X: Any) -> None:
        helper(X[0, 4])

    error = refused(UndefinedVariableError, "missing", kernel, numbers(4))
    assert error.location is not None
    assert error.location.function == "helper"
    assert error.location.caller is not None
    assert error.location.caller.function == "kernel"
    assert "helper(X[0, 4])" in str(error)


def test_a_stage_error_of_the_language_gets_the_innermost_place() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(1.0 + (X[0, (2, 2)]))

    with pytest.raises(TileError) as caught:
        captured(kernel, numbers(4), poisoned(4))
    location = caught.value.location
    assert location is not None
    assert location.source[location.column - 1 : location.end_column - 1] == "X[0, (2, 2)]"


def test_columns_count_characters() -> None:
    def kernel(X: Any) -> None:
        X.at("größer", nothing)  # type: ignore[name-defined]  # noqa: F821 - the mistake

    refused(UndefinedVariableError, "nothing", kernel, numbers(4))


def test_an_assertion_of_ours_is_an_internal_error() -> None:
    # The file of the code object decides whose assertion it is.
    file = str(sys.modules["tilenest.capture"].__file__)
    text = "def broken(*_): raise AssertionError('broken invariant')"
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), scope)

    def kernel(X: Any) -> None:
        scope["broken"](X)

    with pytest.raises(InternalError, match="broken invariant") as caught:
        captured(kernel, numbers(4))
    assert "bug in tilenest" in (caught.value.remedy or "")
    assert caught.value.location is not None
