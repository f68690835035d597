"""Views whose run-time extents and starts, and whose steps, are as large as 64 bits hold.

What a map adds is made up for by coordinates that are as far away, so that elements are met in
spite of both. The judge evaluates the formulas with Python's integers. The interpreter computes all
of them; compiled, a map is right for all numbers, or refused.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array
from tilenest.ir import LARGEST_EXTENT

LOW, HIGH = -(2**63), 2**63 - 1
OTHER = 99.0
SOURCE = np.arange(16, dtype=np.float32) + 1
Numbers = tuple[int, ...]
Sum = Callable[..., Any]


@tn.kernel
def plane(
    A: Any, Y: Any, i: Any, j: Any, n: Any, m: Any, s: Any, t: Any, *, a: int, b: int, add: Sum
) -> None:
    x, y = tn.axis("x", 2), tn.axis("y", 2)
    view = A.remap(tn.index_map((n, m), (16,), lambda i, j: add(i * a + j * b, s, t)))
    for _ in tn.parallel(1):
        Y((0, 0), (x, y)).store(view((i, j), (x, y)).load(other=OTHER))


@tn.kernel
def twice(A: Any, Y: Any, i: Any, n: Any, m: Any, s: Any, t: Any, *, a: int, b: int) -> None:
    x = tn.axis("x", 4)
    view = A.slice(t, m, b).slice(s, n, a)
    for _ in tn.parallel(1):
        Y(0, x).store(view(i, x).load(other=OTHER))


def one(place: Any, s: Any, _: Any) -> Any:
    return place + s


def difference(place: Any, s: Any, t: Any) -> Any:
    return place + s - t


def element(place: int) -> float:
    return float(SOURCE[place]) if 0 <= place < 16 else OTHER


def of_plane(numbers: Numbers, a: int, b: int, add: Sum) -> list[float]:
    i, j, n, m, s, t = numbers
    return [
        element(add(row * a + column * b, s, t)) if 0 <= row < n and 0 <= column < m else OTHER
        for row in (i, i + 1)
        for column in (j, j + 1)
    ]


def of_twice(numbers: Numbers, a: int, b: int) -> list[float]:
    i, n, m, s, t = numbers
    middle = [(at, at * a + s) for at in range(i, i + 4)]
    return [
        element(place * b + t) if 0 <= at < n and 0 <= place < m else OTHER for at, place in middle
    ]


# Drawn numbers ---------------------------------------------------------------------------------


def drawn_step(draw: random.Random) -> int:
    size = draw.choice([1, 2, 3, 8, 64, 1 << draw.randrange(14), 1 << draw.randrange(40)])
    return size if draw.randrange(3) else -size


def drawn_extent(draw: random.Random) -> int:
    return draw.choice([5, 1 << draw.randrange(49), 1 << draw.randrange(49), LARGEST_EXTENT])


def drawn_plane(draw: random.Random, a: int, b: int, add: Sum) -> Numbers:
    n, m = drawn_extent(draw), drawn_extent(draw)
    i, j = draw.randrange(n), draw.randrange(m)
    t = draw.choice([0, draw.randrange(LOW, HIGH), LOW, HIGH])
    return i, j, n, m, draw.randrange(-1, 17) - add(i * a + j * b, 0, t), t


def drawn_twice(draw: random.Random, a: int, b: int) -> Numbers:
    n, m = drawn_extent(draw), drawn_extent(draw)
    i, middle = draw.randrange(n), draw.randrange(m) + draw.choice([0, 0, 0, -1, m])
    at = draw.choice([i, i - 1, i - 3, n, HIGH, LOW])
    return at, n, m, middle - i * a, draw.randrange(-1, 17) - middle * b


def check(
    kernel: tn.Kernel,
    judge: Callable[..., list[float]],
    cases: list[Numbers],
    target: str,
    **statics: Any,
) -> None:
    output = np.zeros((2, 2) if kernel is plane else (4,), np.float32)
    compiled = kernel.compile(SOURCE, output, *cases[0], target=target, **statics)
    for numbers in cases:
        guarded = np.full(4 + 64, np.nan, np.float32)
        inner: Array = guarded[32:-32].reshape(output.shape)
        compiled(SOURCE, inner, *numbers)
        wanted = judge(numbers, **statics)
        np.testing.assert_array_equal(inner.ravel(), wanted, err_msg=f"{statics} {numbers}")
        assert np.isnan(guarded[:32]).all() and np.isnan(guarded[-32:]).all()


def drawn(
    draw: random.Random, make: Callable[..., Numbers], count: int, **statics: Any
) -> list[Numbers]:
    """Only what is no more than 64 bits can be given."""
    cases = [make(draw, **statics) for _ in range(count)]
    return [case for case in cases if all(LOW <= number <= HIGH for number in case)]


# Tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_far_views_move_no_coordinate(seed: int) -> None:
    draw = random.Random(seed)
    accepted = 0
    for _ in range(3):
        steps = {"a": drawn_step(draw), "b": drawn_step(draw)}
        for kernel, judge, make, statics in (
            (plane, of_plane, drawn_plane, {**steps, "add": one}),
            (plane, of_plane, drawn_plane, {**steps, "add": difference}),
            (twice, of_twice, drawn_twice, steps),
        ):
            cases = drawn(draw, make, 40, **statics)
            if not cases:
                continue
            check(kernel, judge, cases[:10], "interpret", **statics)
            try:
                check(kernel, judge, cases, "cpu", **statics)
                accepted += 1
            except tn.TargetError as refusal:
                if not re.search("(may leave|leaves) 64 bits", str(refusal)):
                    raise
    assert accepted >= 3


SMALL = [1, 3, -5, 64, 1024, -4096]


@pytest.mark.parametrize("step", SMALL)
def test_no_view_with_small_steps_is_refused(step: int) -> None:
    draw = random.Random(step)
    for target in ("interpret", "cpu"):
        for add in (one, difference):
            cases = drawn(draw, drawn_plane, 30, a=step, b=1, add=add)
            found = [each for case in cases for each in of_plane(case, step, 1, add)]
            assert found.count(OTHER) < len(found)
            check(plane, of_plane, cases, target, a=step, b=1, add=add)
        check(twice, of_twice, drawn(draw, drawn_twice, 30, a=1, b=step), target, a=1, b=step)


@pytest.mark.parametrize("step", SMALL)
def test_a_symbol_farther_than_all_coordinates_meets_no_element(step: int) -> None:
    last = LARGEST_EXTENT - 1
    reach = last * step
    cases: list[Numbers] = [
        (i, 0, LARGEST_EXTENT, 1, s, 0)
        for i in (0, 1, last - 1, last)
        for s in (LOW, HIGH, -reach, 3 - reach, -2 * reach, 20 - reach, -(2**50) - reach)
    ]
    for target in ("interpret", "cpu"):
        check(plane, of_plane, cases, target, a=step, b=1, add=one)


@pytest.mark.parametrize("bits", [14, 20, 30, 40])
def test_a_symbol_that_long_steps_may_make_up_for_is_refused(bits: int) -> None:
    at = 2 ** max(3, 40 - bits)
    numbers = (at, 0, at + 50, 1, -(2**bits) * at, 0)
    statics = {"a": 2**bits, "b": 1, "add": one}
    check(plane, of_plane, [numbers], "interpret", **statics)
    with pytest.raises(tn.TargetError, match="may leave 64 bits") as caught:
        check(plane, of_plane, [numbers], "cpu", **statics)
    assert caught.value.location is not None


@tn.kernel
def limited(A: Any, Y: Any, i: Any, n: Any, s: Any, *, a: int) -> None:
    x = tn.axis("x", 4)
    start = tn.minimum(tn.maximum(s, -(2**40)), 2**40)
    view = A.slice(start, n, a)
    for _ in tn.parallel(1):
        Y(0, x).store(view(i, x).load(other=OTHER))


@tn.kernel
def short(A: Any, Y: Any, i: Any, n: Any, s: Any, *, a: int) -> None:
    x = tn.axis("x", 4)
    view = A.slice(s, tn.minimum(n, 2**20), a)
    for _ in tn.parallel(1):
        Y(0, x).store(view(i, x).load(other=OTHER))


def of_limited(numbers: Numbers, a: int) -> list[float]:
    i, n, s = numbers
    start = min(max(s, -(2**40)), 2**40)
    return [element(at * a + start) if 0 <= at < n else OTHER for at in range(i, i + 4)]


def of_short(numbers: Numbers, a: int) -> list[float]:
    i, n, s = numbers
    return [element(at * a + s) if 0 <= at < min(n, 2**20) else OTHER for at in range(i, i + 4)]


@pytest.mark.parametrize("bits", [14, 20, 30, 40])
def test_the_remedies_of_the_refusal_are_ones(bits: int) -> None:
    """What is limited, be it the symbol or the extent, cannot be made up for."""
    most: int = 2 ** (40 - bits)
    starts = (0, 5, -3, -(2**40), -(2**40) - 1, 2**40, LOW, HIGH)
    places = (0, 1, most - 1, most, 2**20, 2**47, HIGH, LOW)
    cases: list[Numbers] = [
        (i, n, s) for i in places for n in (0, 3, most + 2, LARGEST_EXTENT) for s in starts
    ]
    for target in ("interpret", "cpu"):
        check(limited, of_limited, cases, target, a=2**bits)
        check(short, of_short, cases, target, a=2**bits)


@tn.kernel
def rows(A: Any, Y: Any, i: Any, n: Any, s: Any, *, width: int) -> None:
    x, y = tn.axis("x", 1), tn.axis("y", 4)
    whole = A.remap(tn.index_map((n, width), (16,), lambda i, j: i * width + j))
    for _ in tn.parallel(1):
        found = whole.slice((s, 0), (8, width))((i, 0), (x, y)).load(other=OTHER)
        Y(0, y).store(tn.reshape(found, (y,)))


def of_rows(numbers: Numbers, width: int) -> list[float]:
    i, n, s = numbers
    is_there = 0 <= i < 8 and 0 <= i + s < n
    return [element((i + s) * width + j) if is_there and j < width else OTHER for j in range(4)]


@pytest.mark.parametrize("width", [3, 2**16, 2**20])
def test_rows_of_a_line_start_anywhere(width: int) -> None:
    """What is far outside of the line is so whether or not the view has that many rows."""
    cases: list[Numbers] = [
        (i, n, s)
        for i in (0, 1, 7, 8, LOW, HIGH)
        for n in (0, 1, 5, 2**40, LARGEST_EXTENT)
        for s in (0, 1, -1, -7, 2**30, 2**45, 2**62, LOW, HIGH)
    ]
    for target in ("interpret", "cpu"):
        check(rows, of_rows, cases, target, width=width)


@tn.kernel
def product(A: Any, Y: Any, i: Any, n: Any, s: Any, *, bits: int) -> None:
    x = tn.axis("x", 4)
    step, extent = tn.minimum(tn.maximum(s, 0), 1 << bits), tn.minimum(n, 2**30)
    view = A.remap(tn.index_map((extent,), (16,), lambda i: i * step + i % 3))
    for _ in tn.parallel(1):
        Y(0, x).store(view(i, x).load(other=OTHER))


def of_product(numbers: Numbers, bits: int) -> list[float]:
    i, n, s = numbers
    step, extent = min(max(s, 0), 1 << bits), min(n, 2**30)
    return [element(at * step + at % 3) if 0 <= at < extent else OTHER for at in range(i, i + 4)]


def test_a_product_that_leaves_64_bits_is_refused() -> None:
    """Near as both of its factors may be."""
    cases: list[Numbers] = [
        (i, n, s)
        for i in (0, 1, 2**24, 2**30 - 2, LOW, HIGH)
        for n in (0, 5, 2**25, HIGH)
        for s in (0, 1, 3, 2**30, 2**40, LOW)
    ]
    check(product, of_product, cases, "interpret", bits=40)
    with pytest.raises(tn.TargetError, match="may leave 64 bits") as caught:
        check(product, of_product, cases, "cpu", bits=40)
    assert "1 << 30" in (caught.value.remedy or "")
    check(product, of_product, cases, "cpu", bits=30)


@tn.kernel
def long(A: Any, Y: Any, i: Any, *, extent: int) -> None:
    x = tn.axis("x", 4)
    view = A.remap(tn.index_map((extent,), (16,), lambda i: i - (extent - 4)))
    for _ in tn.parallel(1):
        Y(0, x).store(view(i, x).load(other=OTHER))


def of_long(numbers: Numbers, extent: int) -> list[float]:
    (i,) = numbers
    return [element(at - extent + 4) if 0 <= at < extent else OTHER for at in range(i, i + 4)]


def test_a_view_is_no_longer_than_an_array() -> None:
    for target in ("interpret", "cpu"):
        for i in (LARGEST_EXTENT - 6, LARGEST_EXTENT, 0):
            check(long, of_long, [(i,)], target, extent=LARGEST_EXTENT)
    with pytest.raises(tn.TargetError, match="axis 0 of a view has extent"):
        check(long, of_long, [(0,)], "cpu", extent=LARGEST_EXTENT + 1)
