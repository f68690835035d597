"""Advice that is followed: each mistake is refused with a remedy, and what the remedy says runs.

The first kernel of a pair has the mistake; the second one is written as the error of the first one
says, and leaves in the output what NumPy says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import refused, run
from tests.oracle.arrays import Array, Placed
from tilenest.records import record

f32 = tn.float32
Places = list[tuple[Any, Any]]
"""indices into the output, and what stands there"""
outside = 3.0


@tn.kernel
def element_by_brackets(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X[1, 2])  # wrong


@tn.kernel
def element_by_at(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X.at(1, 2).load())


@tn.kernel
def bare_origin(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    Y(0, n).store(X[(0, 0), (1, n)])  # wrong


@tn.kernel
def origin_and_shape(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    Y((0, 0), (1, n)).store(X[(0, 0), (1, n)])


@tn.kernel
def element_of_a_tile(X: Any, Y: Any) -> None:
    x = X[(0, 0), (4, 16)]
    Y.at(0, 0).store(x[1, 2])  # wrong


@tn.kernel
def element_of_a_tile_by_at(X: Any, Y: Any) -> None:
    x = X[(0, 0), (4, 16)]
    Y.at(0, 0).store(x.at(1, 2))


@tn.kernel
def rows_by_slice(X: Any, Y: Any) -> None:
    Y((0, 0), (2, 16)).store(X[0:2, :])  # wrong


@tn.kernel
def rows_by_shape(X: Any, Y: Any) -> None:
    Y((0, 0), (2, 16)).store(X[(0, 0), (2, 16)])


@tn.kernel
def one_coordinate(X: Any, Y: Any) -> None:
    Y.at(0).store(X.at(1, 2).load())  # wrong


@tn.kernel
def part_of_a_memory(X: Any, Y: Any) -> None:
    held = tn.memory(f32, (4, 16))
    held.store(X[(0, 0), (4, 16)])
    Y((0, 0), (1, 16)).store(held[0, 16])  # wrong


@tn.kernel
def part_of_a_memory_by_both(X: Any, Y: Any) -> None:
    held = tn.memory(f32, (4, 16))
    held.store(X[(0, 0), (4, 16)])
    Y((0, 0), (1, 16)).store(held[(0, 0), (1, 16)])


@tn.kernel
def reducer_first(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    total: Any = tn.reduce(tn.maximum, X[(0, 0), (4, n)], n)  # type: ignore[arg-type]  # wrong
    Y((0, 0), (4, 1)).store(total)


@tn.kernel
def reducer_before_the_axis(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    total: Any = tn.reduce(X[(0, 0), (4, n)], tn.maximum, n)  # type: ignore[arg-type]  # wrong
    Y((0, 0), (4, 1)).store(total)


@tn.kernel
def function_before_the_axis(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    total: Any = tn.reduce(X[(0, 0), (4, n)], lambda a, b: a + b, n)  # type: ignore[arg-type]  # wrong
    Y((0, 0), (4, 1)).store(total)


@tn.kernel
def reducer_by_name(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    total: Any = tn.reduce(X[(0, 0), (4, n)], n, "max")  # type: ignore[arg-type]  # wrong
    Y((0, 0), (4, 1)).store(total)


@tn.kernel
def reducer_last(X: Any, Y: Any) -> None:
    m, n = tn.axis("m", 4), tn.axis("n", 16)
    greatest = tn.reduce(X[(0, 0), (m, n)], n, tn.maximum)
    Y((0, 0), (m, 1)).store(tn.broadcast(greatest, (m, 1)))


@tn.kernel
def left_early(X: Any, Y: Any) -> None:
    for row in tn.parallel(4):
        i = row.index()
        if X.at(i, 0).load() > 0:
            return  # wrong
        Y.at(i, 0).store(X.at(i, 1).load())


@tn.kernel
def rest_under_an_if(X: Any, Y: Any) -> None:
    for row in tn.parallel(4):
        i = row.index()
        if not X.at(i, 0).load() > 0:
            Y.at(i, 0).store(X.at(i, 1).load())


def first_above(X: Any, least: Any) -> Any:
    for step in tn.serial(16):
        if X.at(0, step.index()).load() > least:
            return X.at(0, step.index()).load()
    return least


def last_above(X: Any, least: Any) -> Any:
    found = tn.scalar(0.0, f32)
    for step in tn.serial(16):
        if X.at(0, step.index()).load() > least:
            found = X.at(0, step.index()).load()
    return found


@tn.kernel
def returned_from_steps(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(first_above(X, 0.0))


@tn.kernel
def assigned_in_steps(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(last_above(X, 0.0))


def one_of_each(X: Any) -> Any:
    for row in tn.parallel(4):
        return X.at(row.index(), 1).load()
    return None


@tn.kernel
def returned_from_instances(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(one_of_each(X))


@tn.kernel
def stored_by_instances(X: Any, Y: Any) -> None:
    for row in tn.parallel(4):
        Y.at(row.index(), 0).store(X.at(row.index(), 1).load())


@tn.kernel
def assigned_globally(X: Any, Y: Any) -> None:
    global outside  # noqa: PLW0603 - the mistake  # wrong
    outside = 4.0
    Y.at(0, 0).store(X.at(1, 2).load() * outside)


@tn.kernel
def read_globally(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X.at(1, 2).load() * outside)


@record
class Advice:
    """What is refused, what it is told, and what that gives."""

    error: type[tn.TileError]
    caret: str | None
    remedy: str
    followed: tn.Kernel
    expected: Callable[[Array], Places]


def element(x: Array) -> Places:
    return [((0, 0), x[1, 2])]


def columns(x: Array) -> Places:
    return [((slice(None), 0), x.max(axis=1))]


PART = "(i, j), (m, n)"
ORDER = "the tile comes first, then the axis: tn.reduce(x, n, tn.maximum)"
ADVICE = {
    element_by_brackets: Advice(
        tn.RankError, "X[1, 2]", "one element is X.at(i, j).load()", element_by_at, element
    ),
    bare_origin: Advice(
        tn.RankError, "Y(0, n)", f"write Y({PART})", origin_and_shape, lambda x: [(0, x[0])]
    ),
    element_of_a_tile: Advice(
        tn.RankError, "x[1, 2]", "one element is x.at(i, j)", element_of_a_tile_by_at, element
    ),
    rows_by_slice: Advice(
        tn.RankError,
        "X[0:2, :]",
        f"write X[{PART}]: where the tile starts",
        rows_by_shape,
        lambda x: [(slice(2), x[:2])],
    ),
    one_coordinate: Advice(
        tn.RankError, "Y.at(0)", "one element is Y.at(i, j)", element_by_at, element
    ),
    part_of_a_memory: Advice(
        tn.RankError,
        "held[0, 16]",
        f"write memory[{PART}]",
        part_of_a_memory_by_both,
        lambda x: [(0, x[0])],
    ),
    reducer_first: Advice(tn.ArgumentTypeError, None, ORDER, reducer_last, columns),
    reducer_before_the_axis: Advice(tn.ArgumentTypeError, None, ORDER, reducer_last, columns),
    function_before_the_axis: Advice(tn.ArgumentTypeError, None, ORDER, reducer_last, columns),
    reducer_by_name: Advice(
        tn.ArgumentTypeError, None, "give it a reducer, as tn.maximum", reducer_last, columns
    ),
    left_early: Advice(
        tn.CaptureError,
        "return",
        "put the rest of the body under an `if`",
        rest_under_an_if,
        lambda x: [((np.flatnonzero(x[:, 0] <= 0), 0), x[x[:, 0] <= 0, 1])],
    ),
    assigned_globally: Advice(
        tn.CaptureError,
        "global outside",
        "leave the line out to read the name",
        read_globally,
        lambda x: [((0, 0), x[1, 2] * np.float32(3))],
    ),
}


def assert_runs(kernel: tn.Kernel, x: Array, expected: Places) -> None:
    for target in ("interpret", "cpu"):
        y = np.full((4, 16), np.nan, np.float32)
        run(kernel, target, (x, y))
        wanted = np.full((4, 16), np.nan, np.float32)
        for place, value in expected:
            wanted[place] = value
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("kernel", ADVICE, ids=lambda kernel: kernel.__name__)
def test_the_advice_runs(kernel: tn.Kernel, x: Array, y: Placed) -> None:
    advice = ADVICE[kernel]
    found = refused(kernel, advice.error, advice.caret, x, y, remedy=advice.remedy)
    assert "Reducer(" not in found.message
    assert_runs(advice.followed, x, advice.expected(x))


def test_a_return_out_of_a_nest_is_followed_too(x: Array, y: Placed) -> None:
    for kernel, remedy in (
        (returned_from_steps, "give a variable its first value before the region"),
        (returned_from_instances, "store the result to a view"),
    ):
        refused(kernel, tn.CaptureError, None, x, y, remedy=remedy)
    assert_runs(assigned_in_steps, x, [((0, 0), x[0][x[0] > 0][-1])])
    assert_runs(stored_by_instances, x, [((slice(None), 0), x[:, 1])])


@tn.kernel
def place_alone(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X[1])  # wrong


@pytest.mark.parametrize(
    ("rank", "part", "element"),
    [
        (0, "X[(), ()]:", "X.at().load()"),
        (1, "X[i, m]:", "X.at(i).load()"),
        (3, "X[(i, j, k), (m, n, p)]:", "X.at(i, j, k).load()"),
        (4, "X[(i0, i1, i2, i3), (m0, m1, m2, m3)]:", "X.at(i0, i1, i2, i3).load()"),
    ],
)
def test_as_many_coordinates_are_named_as_there_are(
    rank: int, part: str, element: str, y: Placed
) -> None:
    x = np.ones((5,) * rank, np.float32)
    found = refused(place_alone, tn.RankError, "X[1]", x, y, remedy=part)
    assert (found.remedy or "").endswith(f"one element is {element}")


@tn.kernel
def multiplied(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store(X.at(1, 2).load() * a)  # wrong


@tn.kernel
def multiplied_as_a_number(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store(X.at(1, 2).load() * a.cast(f32))


@tn.kernel
def multiplied_whole(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store((X.at(1, 2).load().cast(tn.int32) * a).cast(f32))  # wrong


@tn.kernel
def multiplied_in_floats(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store(X.at(1, 2).load().cast(tn.int32).cast(f32) * a)


@tn.kernel
def multiplied_in_integers(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store((X.at(1, 2).load().cast(tn.int32) * a.cast(tn.int32)).cast(f32))


@tn.kernel
def masked(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store(tn.where((X.at(1, 2).load() > -9.0) & a, 1.0, X.at(0, 0).load()))  # wrong


@tn.kernel
def masked_by_a_bool(X: Any, a: Any, Y: Any) -> None:
    Y.at(0, 0).store(tn.where((X.at(1, 2).load() > -9.0) & (a != 0), 1.0, X.at(0, 0).load()))


WEAK = {
    multiplied: (True, "a.cast(tn.float32)", [multiplied_as_a_number]),
    multiplied_whole: (
        2.5,
        "as x.cast(tn.float32), or the number, as a.cast(tn.int32)",
        [multiplied_in_floats, multiplied_in_integers],
    ),
    masked: (2, "as a != 0", [masked_by_a_bool]),
}


@pytest.mark.parametrize("kernel", WEAK, ids=lambda kernel: kernel.__name__)
def test_a_number_of_another_kind_is_cast(kernel: tn.Kernel, y: Placed) -> None:
    given, remedy, followed = WEAK[kernel]
    x = np.full((4, 16), 7, np.float32)
    found = refused(kernel, tn.DTypeError, None, x, given, y, remedy=remedy)
    assert "NumPy scalar" not in (found.remedy or "")
    expected = {
        multiplied_as_a_number: 7,
        multiplied_in_floats: 17.5,
        multiplied_in_integers: 14,
        masked_by_a_bool: 1,
    }
    for other in followed:
        for target in ("interpret", "cpu"):
            result = np.full((4, 16), np.nan, np.float32)
            run(other, target, (x, given, result))
            assert result[0, 0] == expected[other]


@tn.kernel
def axis_of_a_number(X: Any, Y: Any) -> None:
    n = X.shape[1]  # wrong
    Y.at(0, 0).store(n)


@tn.kernel
def axes_of_a_number(X: Any, Y: Any) -> None:
    m, n = X.shape  # wrong
    Y.at(m, n).store(0.0)


@tn.kernel
def third_axis_of_a_tile(_X: Any, Y: Any) -> None:
    y = Y[(0, 0), (4, 16)]
    Y.at(y.shape[2], 0).store(0.0)  # wrong


@tn.kernel
def third_axis_of_a_memory(_X: Any, Y: Any) -> None:
    held = tn.memory(f32, (4, 16))
    Y.at(held.shape["m"], 0).store(0.0)  # type: ignore[call-overload]  # wrong


@tn.kernel
def three_axes_of_two(_X: Any, Y: Any) -> None:
    m, n, _ = Y.shape  # wrong
    Y.at(m, n).store(0.0)


SHAPES = {
    axis_of_a_number: "X.shape[1]",
    axes_of_a_number: "m, n = X.shape",
    third_axis_of_a_tile: "y.shape[2]",
    third_axis_of_a_memory: 'held.shape["m"]',
    three_axes_of_two: "m, n, _ = Y.shape",
}


@pytest.mark.parametrize("kernel", SHAPES, ids=lambda kernel: kernel.__name__)
def test_axes_that_are_not_there(kernel: tn.Kernel, y: Placed) -> None:
    refused(kernel, tn.RankError, SHAPES[kernel], 3.0, y, remedy="pass an array with")


@tn.kernel
def shape_as_a_tuple(Y: Any) -> None:
    shape = Y[(0, 0), (4, 16)].shape
    rows, columns = shape
    Y((0, 0), shape).store(float(rows + columns))
    taken = (shape[0], shape[-1], shape[1:], (*shape, 2), shape + (2,), len(shape))  # noqa: RUF005
    assert taken == (4, 16, (16,), (4, 16, 2), (4, 16, 2), 2)
    assert shape == (4, 16) and hash(shape) == hash((4, 16))


def test_a_shape_in_a_kernel_is_a_tuple_otherwise() -> None:
    y = np.full((4, 16), np.nan, np.float32)
    shape_as_a_tuple(y)
    assert (y == 20).all()


def test_what_is_no_argument_is_named_by_its_type() -> None:
    for given, kind in ((1j, "complex"), (object(), "object"), ("text", "str")):
        with pytest.raises(tn.ArgumentTypeError) as caught:
            axis_of_a_number(given, np.zeros((1, 1), np.float32))
        assert f"is of type {kind}, not an array, a real number or None" in caught.value.message
        assert "a real number" in (caught.value.remedy or "")


def test_options_of_a_kernel_without_any() -> None:
    with pytest.raises(tn.ArgumentTypeError) as caught:
        bare_origin(np.zeros((1, 1)), np.zeros((1, 1)), block=3)
    assert "behind a `*` in def bare_origin(...)" in (caught.value.remedy or "")
