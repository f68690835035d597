"""What a kernel holds used as what it is not: the error points at the use and says what to write.

Python would end each of these with an error of its own, which knows neither the kernel's line nor a
way out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import refused
from tests.oracle.arrays import Array, Placed


@tn.kernel
def extent_by_name(X: Any, Y: Any) -> None:
    n = X.shape["x"]  # wrong
    Y((0, 0), (1, 1)).store(X[(0, 0), (1, n)])


@tn.kernel
def range_of_floats(X: Any, Y: Any) -> None:
    for i in range(0, 4, 0.5):  # type: ignore[call-overload]  # wrong
        Y((i, 0), (1, 1)).store(X[(0, 0), (1, 1)])


@tn.kernel
def range_without_end(X: Any, Y: Any) -> None:
    for i in range(0, 4, 0):  # wrong
        Y((i, 0), (1, 1)).store(X[(0, 0), (1, 1)])


@tn.kernel
def stage_by_number(X: Any, Y: Any) -> None:
    for step in tn.pipeline(4):
        step.stage(1)  # type: ignore[arg-type]  # wrong
        Y.at(step.index(), 0).store(X.at(0, 0).load())


@tn.kernel
def function_of_numpy(X: Any, Y: Any) -> None:
    x = np.exp(X[(0, 0), (4, 16)])  # wrong
    Y((0, 0), (4, 16)).store(x)


@tn.kernel
def reduction_of_numpy(X: Any, Y: Any) -> None:
    total = np.sum(X[(0, 0), (4, 16)])  # wrong
    Y.at(0, 0).store(total)


@tn.kernel
def axis_as_a_number(X: Any, Y: Any) -> None:
    n = tn.axis("n", 4)
    i: Any = n * 2  # type: ignore[operator]  # wrong
    Y((i, 0), (1, 1)).store(X[(0, 0), (1, 1)])


@tn.kernel
def length_of_a_tile(X: Any, Y: Any) -> None:
    x = X[(0, 0), (4, 16)]
    Y.at(len(x), 0).store(0)  # wrong


@tn.kernel
def rounded(X: Any, Y: Any) -> None:
    x = X.at(0, 0).load()
    Y.at(0, 0).store(round(x))  # wrong


@tn.kernel
def power_of_two(X: Any, Y: Any) -> None:
    x = X.at(0, 0).load()
    Y.at(0, 0).store(2**x)  # wrong


@tn.kernel
def part_as_a_value(X: Any, Y: Any) -> None:
    x = X((0, 0), (1, 16))
    Y((0, 0), (1, 16)).store(x & 1)  # wrong


@tn.kernel
def view_shifted(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X << 1)  # wrong


@tn.kernel
def handle_as_an_index(X: Any, Y: Any) -> None:
    rows = [0, 1, 2, 3]
    for block in tn.parallel(4):
        row = rows[block]  # type: ignore[call-overload]  # wrong
        Y.at(row, 0).store(X.at(0, 0).load())


@tn.kernel
def attribute_of_a_tile(X: Any, Y: Any) -> None:
    x = X[(0, 0), (4, 16)]
    Y.at(0, 0).store(x.sum())  # wrong


@tn.kernel
def floor_of_a_view(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(math.floor(X))  # wrong


@tn.kernel
def digits_of_a_view(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(float(format(X, ".2f")))  # wrong


@tn.kernel
def digits_of_a_memory(X: Any, Y: Any) -> None:
    m = tn.memory(X.dtype, (4,))
    Y.at(0, 0).store(float(format(m, ".2f")))  # wrong


@tn.kernel
def view_compared(X: Any, Y: Any) -> None:
    if X == 0:  # wrong
        Y.at(0, 0).store(1)
    else:
        Y.at(0, 0).store(X.at(0, 0).load())


@tn.kernel
def memory_compared(X: Any, Y: Any) -> None:
    m: Any = tn.memory(X.dtype, (4,))
    Y.at(0, 0).store(2 if m != 0 else 5)  # wrong


@tn.kernel
def view_in_a_tuple(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(1 if X in (0, Y) else 2)  # wrong


@tn.kernel
def handle_compared(X: Any, Y: Any) -> None:
    for block in tn.parallel(4):
        index: Any = block
        if index == 0:  # wrong
            Y.at(0, 0).store(X.at(0, 0).load())


@tn.kernel
def item_in_a_nest(X: Any, Y: Any) -> None:
    x = X.at(0, 0).load()
    Y.at(0, 0).store(x if 3 in tn.parallel(4) else 2)  # type: ignore[operator]  # wrong


@tn.kernel
def next_of_a_view(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(next(X))  # wrong


USES = {
    extent_by_name: (tn.RankError, 'X.shape["x"]', "count its axes"),
    range_of_floats: (tn.DTypeError, "range(0, 4, 0.5)", "use ints"),
    range_without_end: (tn.ShapeError, "range(0, 4, 0)", "step other than 0"),
    stage_by_number: (tn.ArgumentTypeError, "step.stage(1)", "str"),
    function_of_numpy: (tn.CaptureError, "np.exp(X[(0, 0), (4, 16)])", "tn functions"),
    reduction_of_numpy: (tn.CaptureError, "np.sum(X[(0, 0), (4, 16)])", "tn functions"),
    axis_as_a_number: (tn.CaptureError, "n * 2", "axis.extent"),
    length_of_a_tile: (tn.CaptureError, "len(x)", "x.shape"),
    rounded: (tn.CaptureError, "round(x)", "tn.rint"),
    power_of_two: (tn.CaptureError, "2**x", "tn.exp2"),
    part_as_a_value: (tn.CaptureError, "x & 1", "load"),
    view_shifted: (tn.CaptureError, "X << 1", "load a tile"),
    handle_as_an_index: (tn.CaptureError, "rows[block]", "handle.index()"),
    attribute_of_a_tile: (tn.MissingAttributeError, "x.sum", "astype"),
    floor_of_a_view: (tn.CaptureError, "math.floor(X)", "load a tile"),
    digits_of_a_view: (tn.CaptureError, 'format(X, ".2f")', "load a tile"),
    digits_of_a_memory: (tn.CaptureError, 'format(m, ".2f")', "memory.load()"),
    view_compared: (tn.CaptureError, "X == 0", "`X is None`"),
    memory_compared: (tn.CaptureError, "m != 0", "memory.load()"),
    view_in_a_tuple: (tn.CaptureError, "X in (0, Y)", "load a tile"),
    handle_compared: (tn.CaptureError, "index == 0", "handle.index()"),
    item_in_a_nest: (tn.CaptureError, "3 in tn.parallel(4)", "loop over it"),
    next_of_a_view: (tn.CaptureError, "next(X)", "load a tile"),
}


@pytest.mark.parametrize("kernel", USES, ids=lambda kernel: kernel.__name__)
def test_a_use_that_has_no_meaning(kernel: tn.Kernel, x: Array, y: Placed) -> None:
    error, caret, remedy = USES[kernel]
    refused(kernel, error, caret, x, y, remedy=remedy)


@tn.kernel
def told_apart(X: Any, Y: Any) -> None:
    m = tn.memory(X.dtype, (4,))
    places = {X: 1, Y: 2, m: 4}
    is_known = X is not None and X is not Y and m is not X
    Y.at(0, 0).store(places[X] + places[Y] + places[m] if is_known else 0)


def test_identity_is_what_tells_objects_apart(x: Array, y: Placed) -> None:
    told_apart(x, y.array)
    assert y.array[0, 0] == 7


@tn.kernel
def extent_of(X: Any, Y: Any) -> None:
    n = X.extent(0)  # wrong
    Y.at(0, 0).store(n.cast(tn.float32))


@tn.kernel
def called(X: Any, Y: Any) -> None:
    x = X((0, 0), (1, 1)).load()  # wrong
    Y((0, 0), (1, 1)).store(x)


@tn.kernel
def subscripted(X: Any, Y: Any) -> None:
    x = X[(0, 0), (1, 1)]  # wrong
    Y((0, 0), (1, 1)).store(x)


@pytest.mark.parametrize("kernel", [extent_of, called, subscripted], ids=lambda k: k.__name__)
def test_none_and_numbers_where_arrays_are_needed(kernel: tn.Kernel, y: Placed) -> None:
    where = {extent_of: "X.extent", called: "X((0, 0), (1, 1))", subscripted: "X[(0, 0), (1, 1)]"}
    found = refused(kernel, tn.CaptureError, where[kernel], None, y, remedy="is not None")
    assert found.message == "X is None here"
    error = tn.MissingAttributeError if kernel is extent_of else tn.CaptureError
    for number in (3, 2.5, np.float32(1), True):
        refused(kernel, error, where[kernel], number, y, remedy="")


def test_what_is_not_there_is_an_attribute_error() -> None:
    axis: Any = tn.axis("n", 4)
    assert not hasattr(axis, "size") and getattr(axis, "size", 3) == 3
    assert f"{axis}" == format(axis) == str(axis)
    with pytest.raises(tn.CaptureError, match="axis"):
        f"{axis:>5}"
    with pytest.raises(AttributeError, match="a Dim has no attribute 'size'"):
        axis.size  # noqa: B018 - what is refused


@pytest.mark.parametrize("name", ["View", "ConstView", "Tile", "Scalar", "Memory"])
def test_what_a_kernel_holds_is_not_made_by_its_class(name: str) -> None:
    kind: Any = getattr(tn, name)
    for count in (2, 4):
        with pytest.raises((tn.CaptureError, TypeError)) as caught:
            kind(*range(count))
        found = caught.value
        assert isinstance(found, tn.CaptureError) or "argument" in str(found)


def nothing() -> None:
    pass


def test_a_kernel_is_made_of_a_function() -> None:
    kind: Any = tn.Kernel
    for wrong in (3, "a", None, len, tn.Kernel):
        with pytest.raises(tn.CaptureError, match="not a function"):
            kind(wrong)
    with pytest.raises(tn.CaptureError, match="bounds"):
        kind(nothing, bounds=3)
    with pytest.raises(tn.ArgumentTypeError, match=r"tn\.Compiled is called"):
        tn.Compiled(1, 2, "cpu")  # type: ignore[arg-type]  # what is refused
