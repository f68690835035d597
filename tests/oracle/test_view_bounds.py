"""Accesses that leave a view of views, address by address.

A chain of views is made in a kernel, and once more as plain Python (`view_chains`). What is outside
is read as `other`, is not written, or raises: in the interpreter and compiled, for whole windows,
masked ones and single elements, and what the error names is really asked for and really outside.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilenest as tn
from tests.oracle.arrays import Array, placed, poisoned, whole
from tests.oracle.view_chains import (
    ARRAY,
    READABLE,
    WRITABLE,
    Chain,
    Place,
    chains,
    reshape_step,
    slice_step,
    swizzle_step,
)

TARGETS = ("interpret", "cpu")
WINDOW = (3, 4)
OTHER = 9.0


def windows(chain: Chain) -> list[Place]:
    """Origins around the view: some windows are inside of it, some leave it at each side."""
    rows, columns = chain.shapes[0]
    return [(0, 0), (-1, 0), (rows - WINDOW[0], columns - WINDOW[1]), (rows - 1, 1), (1, -2)]


# Kernels ---------------------------------------------------------------------------------------


def wanted(kind: str, rows: Any, columns: Any) -> Any:
    """The mask of a window in a kernel."""
    if kind == "elements":
        number: Any = tn.iota(rows, tn.int32) * WINDOW[1] + tn.iota(columns, tn.int32)
        return number % 3 != 1
    return None


def is_asked(kind: str, i: int, j: int) -> bool:
    return kind != "elements" or (i * WINDOW[1] + j) % 3 != 1


@tn.kernel
def reads(A: Any, B: Any, i: Any, j: Any, zero: Any, *, chain: Chain, how: str, mask: str) -> None:
    dims = tn.axis("m", WINDOW[0]), tn.axis("n", WINDOW[1])
    view = chain.make(A, zero)
    other: Any = tn.iota(dims[1], tn.float32) + OTHER if how == "tile" else OTHER
    bounds = "check" if how == "check" else "zero"
    for _ in tn.parallel(1):
        x = view((i, j), dims, bounds=bounds, mask=wanted(mask, *dims)).load(other=other)
        B((0, 0), dims).store(x)


@tn.kernel
def writes(A: Any, B: Any, i: Any, j: Any, zero: Any, *, chain: Chain, how: str, mask: str) -> None:
    dims = tn.axis("m", WINDOW[0]), tn.axis("n", WINDOW[1])
    view = chain.make(B, zero)
    for _ in tn.parallel(1):
        view((i, j), dims, bounds=how, mask=wanted(mask, *dims)).store(A[(0, 0), dims])


@tn.kernel
def adds(A: Any, B: Any, i: Any, j: Any, zero: Any, *, chain: Chain, how: str, mask: str) -> None:
    dims = tn.axis("m", WINDOW[0]), tn.axis("n", WINDOW[1])
    view = chain.make(B, zero)
    for _ in tn.parallel(1):
        view((i, j), dims, bounds=how, mask=wanted(mask, *dims)).atomic_add(A[(0, 0), dims])


@tn.kernel
def elements(
    A: Any, B: Any, i: Any, j: Any, zero: Any, *, chain: Chain, how: str, mask: str
) -> None:
    view = chain.make(A, zero)
    for part in tn.parallel(1):
        for step in part.serial(*WINDOW):
            k, l = step.index()  # noqa: E741  # the columns
            other = 8.0 if mask == "none" else tn.cast(l, tn.float32)
            x: Any = view.at(i + k, j + l, bounds=how).load(other=other)
            B.at(k, l).store(x)


# Judges ----------------------------------------------------------------------------------------


def points(origin: Place, mask: str) -> Iterator[tuple[Place, Place]]:
    """What a window asks for: its own places, and those in the view."""
    for i, j in itertools.product(*map(range, WINDOW)):
        if is_asked(mask, i, j):
            yield (i, j), (origin[0] + i, origin[1] + j)


MESSAGE = re.compile(
    r"(load|store|atomic update) of ((?:a view of )*)([AB])(?: at index \(.*\))?: "
    r"axis (\d) has extent (-?\d+), the index is (-?\d+) \(bounds=\"check\"\)"
)


def judge_message(message: str, chain: Chain, origin: Place, mask: str) -> None:
    """What it names is a place that the window asks for, in the view it says and outside of it."""
    match = MESSAGE.fullmatch(message)
    assert match is not None, message
    depth = len(chain.steps) - match[2].count("a view of ")
    axis, extent, index = map(int, match.groups()[3:])
    assert chain.shapes[depth][axis] == extent, message
    assert not 0 <= index < extent, message
    reached = [list(chain.ways(place)) for _, place in points(origin, mask)]
    assert any(len(way) == depth + 1 and way[depth][0][axis] == index for way in reached), message


def outcomes(
    kernel: tn.Kernel,
    chain: Chain,
    mask: str,
    how: str,
    given: Array,
    shape: Place,
    at: Sequence[Place] = (),
) -> Iterator[tuple[Place, list[tuple[str, Array]]]]:
    """For each window what every target raised, or nothing, and left in the output."""
    at = at or windows(chain)
    results: dict[Place, list[tuple[str, Array]]] = {origin: [] for origin in at}
    for target in TARGETS:
        a, b = placed(given), poisoned(shape, given.dtype)
        options = {"chain": chain, "how": how, "mask": mask}
        compiled = kernel.compile(a.array, b.array, 0, 0, 0, target=target, **options)
        for origin in at:
            b.array[...] = 1
            raised, place = "", None
            try:
                compiled(a.array, b.array, *origin, 0)
            except tn.OutOfBounds as error:
                raised, place = error.message, error.location
            assert not raised or (place is not None and "view" in place.source)
            assert a.is_unchanged and b.has_intact_guards, target
            results[origin].append((raised, b.array.copy()))
    yield from results.items()


def judge(
    chain: Chain,
    mask: str,
    how: str,
    expected: Callable[[Place], Array],
    found: Iterator[tuple[Place, list[tuple[str, Array]]]],
) -> None:
    """Every target raises where something asked for is outside, and otherwise leaves what is
    expected; where it raises it has written nothing."""
    for origin, results in found:
        is_outside = [chain.landing(place) is None for _, place in points(origin, mask)]
        for message, left in results:
            assert bool(message) == (how == "check" and any(is_outside)), (origin, message)
            if message:
                judge_message(message, chain, origin, mask)
                np.testing.assert_array_equal(left, 1)
            else:
                np.testing.assert_array_equal(left, expected(origin), err_msg=str(origin))


MASKS = st.sampled_from(["none", "elements"])


@settings(max_examples=12)
@given(chains(READABLE), st.sampled_from(["zero", "tile", "check"]), MASKS)
def test_windows_are_read(chain: Chain, how: str, mask: str) -> None:
    a = whole(ARRAY, np.float32) + 20

    def expected(origin: Place) -> Array:
        other = OTHER + (np.arange(WINDOW[1]) if how == "tile" else np.zeros(WINDOW[1]))
        result = np.broadcast_to(other, WINDOW).astype(np.float32)
        for own, place in points(origin, mask):
            if (landing := chain.landing(place)) is not None:
                result[own] = a[landing]
        return result

    judge(chain, mask, how, expected, outcomes(reads, chain, mask, how, a, WINDOW))


@settings(max_examples=12)
@given(chains(WRITABLE), st.sampled_from(["zero", "check", "check"]), MASKS, st.booleans())
def test_windows_are_written(chain: Chain, how: str, mask: str, adding: bool) -> None:
    a = whole(WINDOW, np.float32) + 20

    def expected(origin: Place) -> Array:
        result = np.ones(ARRAY, np.float32)
        for own, place in points(origin, mask):
            if (landing := chain.landing(place)) is not None:
                result[landing] = a[own] + (1 if adding else 0)
        return result

    kernel = adds if adding else writes
    judge(chain, mask, how, expected, outcomes(kernel, chain, mask, how, a, ARRAY))


@settings(max_examples=12)
@given(chains(READABLE), st.sampled_from(["zero", "check"]), MASKS)
def test_elements_are_read(chain: Chain, how: str, other: str) -> None:
    """One after the other, those before the first outside are written."""
    a = whole(ARRAY, np.float32) + 20
    for origin, results in outcomes(elements, chain, other, how, a, WINDOW):
        expected, is_ended = np.ones(WINDOW, np.float32), False
        for own, wanted_place in points(origin, "none"):
            landing = chain.landing(wanted_place)
            is_ended = is_ended or (how == "check" and landing is None)
            if not is_ended:
                instead = 8 if other == "none" else own[1]
                expected[own] = instead if landing is None else a[landing]
        for message, left in results:
            assert bool(message) == is_ended
            np.testing.assert_array_equal(left, expected)
            if message:
                judge_message(message, chain, origin, "none")


LEAVING = {
    "rows below": (slice_step((1, 0), (5, 6), (1, 1)), reshape_step((5, 6), (6, 5))),
    "rows above": (slice_step((-1, 0), (5, 6), (1, 1)), reshape_step((5, 6), (6, 5))),
    "columns": (slice_step((0, 2), (5, 6), (1, 1)), reshape_step((5, 6), (10, 3))),
    "every other row": (slice_step((0, 0), (4, 6), (2, 1)),),
    "backwards": (slice_step((4, 5), (6, 6), (-1, -1), is_open=True),),
    "last row": (slice_step((2, 0), (4, 6), (1, 1), is_open=True, is_moved=True),),
    "odd columns": (slice_step((0, 0), (5, 5), (1, 1)), swizzle_step((5, 5), (5, 5))),
}


@pytest.mark.parametrize("mask", ["none", "elements"])
@pytest.mark.parametrize("name", LEAVING)
def test_what_is_left_on_the_way_is_found(name: str, mask: str) -> None:
    chain, a = Chain(LEAVING[name]), whole(ARRAY, np.float32) + 20

    def expected(origin: Place) -> Array:
        result = np.full(WINDOW, OTHER, np.float32)
        for own, place in points(origin, mask):
            landing = chain.landing(place)
            assert landing is not None, "what is outside raises"
            result[own] = a[landing]
        return result

    rows, columns = (extent - size for extent, size in zip(chain.shapes[0], WINDOW, strict=True))
    at = list(itertools.product(range(-1, rows + 2), range(-1, columns + 2)))
    judge(chain, mask, "check", expected, outcomes(reads, chain, mask, "check", a, WINDOW, at))


# Single cases ----------------------------------------------------------------------------------


@tn.kernel(bounds="check")
def one(A: Any, B: Any, i: Any) -> None:
    B.at(0).store(A.slice(-1, 6).at(i).load())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("i", "size", "meant"),
    [
        (1, 5, ""),
        (4, 5, ""),
        (0, 5, "load of A: axis 0 has extent 5, the index is -1"),
        (5, 4, "load of A: axis 0 has extent 4, the index is 4"),
        (6, 5, "load of a view of A{}: axis 0 has extent 6, the index is 6"),
        (-1, 5, "load of a view of A{}: axis 0 has extent 6, the index is -1"),
    ],
)
def test_errors_say_whether_the_view_or_the_array_is_left(
    target: str, i: int, size: int, meant: str
) -> None:
    a, b = whole((size,), np.float32), np.ones(1, np.float32)
    compiled = one.compile(a, b, i, target=target)
    if not meant:
        compiled(a, b, i)
        assert b[0] == a[i - 1]
        return
    with pytest.raises(tn.OutOfBounds) as caught:
        compiled(a, b, i)
    at = f" at index ({i},)" if target == "interpret" else ""
    assert caught.value.message == f'{meant.format(at)} (bounds="check")'
    assert b[0] == 1


@tn.kernel
def far_slice(A: Any, B: Any, start: Any, at: Any, *, step: int) -> None:
    n = tn.axis("n", 8)
    B(0, n).store(A.slice(start, 12, step)(at, n, bounds="check").load())


@pytest.mark.parametrize("step", [1, -1, 64])
@pytest.mark.parametrize("target", TARGETS)
def test_slices_far_outside_are_refused(step: int, target: str) -> None:
    a, out = whole((8,), np.float32) + 10, np.zeros(8, np.float32)
    compiled = far_slice.compile(a, out, 0, 0, step=step, target=target)
    for start in (2**62, -(2**62), 2**63 - 1, -(2**63), 2**57, 2**58, 0, 3, 7, -2):
        for at in (0, 2**62, 2**63 - 1, -(2**63), 2**57, 2, -2):
            in_view = [at + d for d in range(8)]
            places = [start + step * place for place in in_view]
            if all(0 <= place < 12 for place in in_view) and all(0 <= p < 8 for p in places):
                compiled(a, out, start, at)
                np.testing.assert_array_equal(out, a[places])
                continue
            with pytest.raises(tn.OutOfBounds) as caught:
                compiled(a, out, start, at)
            match = MESSAGE.fullmatch(caught.value.message)
            assert match is not None and not 0 <= int(match[6]) < int(match[5]), match


@tn.kernel
def far_masks(A: Any, B: Any, i: Any, j: Any, count: Any, *, make: Any, is_read: bool) -> None:
    m, n = tn.axis("m", 3), tn.axis("n", 37)
    for _ in tn.parallel(1):
        number: Any = tn.iota(m, tn.int32) * 100 + tn.iota(n, tn.int32)
        window = make(A if is_read else B)(
            (i, j), (m, n), mask=number < tn.scalar(count, tn.int32), bounds="check"
        )
        if is_read:
            B((0, 0), (m, n)).store(window.load(other=7.0))
        else:
            window.store(A[(0, 0), (m, n)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize(
    "make",
    [lambda A: A, lambda A: A.T.T, lambda A: A.slice((0, 0), (6, 40), (1, 64))],
    ids=["array", "view", "steps"],
)
def test_windows_far_outside_of_which_nothing_is_asked(
    make: Any, is_read: bool, target: str
) -> None:
    a = whole((6, 40) if is_read else (3, 37), np.float32) + 20
    given, out = placed(a), poisoned((3, 37) if is_read else (6, 40), np.float32)
    options = {"make": make, "is_read": is_read, "target": target}
    compiled = far_masks.compile(given.array, out.array, 0, 0, 0, **options)
    far = [0, -(2**63), 2**63 - 1, -(2**63) + 5, 2**62, 2**57, 2**58, -(2**58)]
    for i, j in itertools.product(far, far):
        out.array[...] = 1
        compiled(given.array, out.array, i, j, 0)
        np.testing.assert_array_equal(out.array, 7 if is_read else 1, err_msg=str((i, j)))
        if max(abs(i), abs(j)) > 0:
            with pytest.raises(tn.OutOfBounds):
                compiled(given.array, out.array, i, j, 1)
    assert given.is_unchanged and out.has_intact_guards


@tn.kernel(bounds="check")
def folded(A: Any, B: Any, start: Any, zero: Any, *, chain: Chain) -> None:
    m = tn.axis("m", WINDOW[0])
    view = chain.make(A, zero)
    for part in tn.parallel(1):
        total: Any = tn.zeros((m,), tn.float32)
        for step in part.reduce(WINDOW[1]):
            place: Any = step.index()
            column: Any = view((start, place), (m, 1)).load()
            total = total + tn.reshape(column, (m,))
        B(0, m).store(total)


@settings(max_examples=8)
@given(chains(READABLE))
def test_reductions_over_what_is_partly_outside(chain: Chain) -> None:
    a = whole(ARRAY, np.float32) + 20
    for target in TARGETS:
        given, out = placed(a), poisoned(WINDOW[:1], np.float32)
        compiled = folded.compile(given.array, out.array, 0, 0, chain=chain, target=target)
        for start in (0, 1, -1, chain.shapes[0][0] - WINDOW[0]):
            landings = [chain.landing(place) for _, place in points((start, 0), "none")]
            inside = [landing for landing in landings if landing is not None]
            out.array[...] = 1
            if len(inside) == len(landings):
                compiled(given.array, out.array, start, 0)
                values = np.array([a[landing] for landing in inside], np.float64)
                expected = values.reshape(WINDOW).sum(axis=1)
                np.testing.assert_allclose(out.array, expected, rtol=1e-6)
                continue
            with pytest.raises(tn.OutOfBounds) as caught:
                compiled(given.array, out.array, start, 0)
            judge_message(caught.value.message, chain, (start, 0), "none")
            np.testing.assert_array_equal(out.array, 1)
