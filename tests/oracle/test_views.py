"""Views of views against NumPy: read and written, in the interpreter and compiled.

Each case is a view of an array as the kernel makes it and the same as NumPy makes it. A kernel
copies the view out, or a tile into it, in blocks that do not divide it; elements outside are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, placed, poisoned, whole

MakeView = Callable[[Any], Any]
TARGETS = ("interpret", "cpu")


def outer(view: Any) -> Any:
    return tn.parallel(*(tn.cdiv(view.extent(axis), 3) for axis in range(view.rank)))


def origin_of(block: Any) -> tuple[Any, ...]:
    index = block.index()
    return tuple(each * 3 for each in (index if isinstance(index, tuple) else (index,)))


@tn.kernel
def copy_out(A: Any, B: Any, *, make: MakeView) -> None:
    view = make(A)
    dims = tuple(tn.axis(f"d{axis}", 3) for axis in range(view.rank))
    for block in outer(B):
        at = origin_of(block)
        B(at, dims).store(view[at, dims])


@tn.kernel
def copy_in(A: Any, B: Any, *, make: MakeView) -> None:
    view = make(B)
    dims = tuple(tn.axis(f"d{axis}", 3) for axis in range(view.rank))
    for block in outer(A):
        at = origin_of(block)
        view(at, dims).store(A[at, dims])


@tn.kernel
def elements_out(A: Any, B: Any, *, make: MakeView) -> None:
    view = make(A)
    for block in tn.parallel(B.extent(0), B.extent(1)):
        i, j = block.index()
        B.at(i, j).store(view.at(i, j).load(other=9.0))


def both(kernel: tn.Kernel, a: Array, shape: tuple[int, ...], **options: Any) -> Array:
    """What the kernel writes into an output of this shape, the same from every target."""
    results = []
    for target in TARGETS:
        given, out = placed(a), poisoned(shape, a.dtype)
        kernel.compile(given.array, out.array, target=target, **options)(given.array, out.array)
        assert given.is_unchanged and out.has_intact_guards, target
        results.append(out.array)
    np.testing.assert_array_equal(results[1], results[0])
    return results[0]


def wave(i: Any, j: Any) -> Any:
    return (i + j) % 5, j * 2


def padded(a: Array) -> Array:
    return np.pad(a, ((2, 3), (1, 4)))


def twisted(i: Any, j: Any) -> Any:
    return i, j ^ (i & 1)


VIEWS: dict[str, tuple[MakeView, Callable[[Array], Array], bool]] = {
    "T": (lambda A: A.T, lambda a: a.T, True),
    "T.T": (lambda A: A.T.T, lambda a: a, True),
    "permute": (lambda A: A.permute(1, 0), lambda a: a.transpose(1, 0), True),
    "slice": (lambda A: A.slice((1, 2), (3, 4)), lambda a: a[1:4, 2:6], True),
    "steps": (lambda A: A.slice((0, 1), (3, 3), (2, 2)), lambda a: a[::2, 1:7:2], True),
    "backwards": (lambda A: A.slice((4, 6), (5, 7), -1), lambda a: a[::-1, ::-1], True),
    "back by two": (lambda A: A.slice((4, 6), (5, 4), (-1, -2)), lambda a: a[::-1, ::-2], True),
    "slice of T": (lambda A: A.T.slice((2, 1), (4, 3)), lambda a: a.T[2:6, 1:4], True),
    "T of slice": (lambda A: A.slice((1, 2), (3, 4)).T, lambda a: a[1:4, 2:6].T, True),
    "slice of slice": (
        lambda A: A.slice((1, 1), (4, 5)).slice((1, 0), (2, 2), (1, 3)),
        lambda a: a[1:5, 1:6][1:3, 0:4:3],
        True,
    ),
    "flat": (lambda A: A.reshape(-1), lambda a: a.reshape(-1), True),
    "reshape": (lambda A: A.reshape(7, 5), lambda a: a.reshape(7, 5), True),
    "reshape of T": (lambda A: A.T.reshape(5, 7), lambda a: a.T.reshape(5, 7), True),
    "T of reshape": (lambda A: A.reshape(7, 5).T, lambda a: a.reshape(7, 5).T, True),
    "reshape to fewer axes": (
        lambda A: A.reshape(5, 7, 1, 1).permute(2, 0, 3, 1).reshape(5, 7),
        lambda a: a,
        True,
    ),
    "more axes": (lambda A: A.reshape(5, 7, 1), lambda a: a.reshape(5, 7, 1), True),
    "broadcast": (
        lambda A: A.slice((2, 0), (1, 7)).broadcast_to(4, 7),
        lambda a: np.broadcast_to(a[2:3], (4, 7)),
        False,
    ),
    "new axes": (
        lambda A: A.broadcast_to((2, 5, 7)),
        lambda a: np.broadcast_to(a, (2, 5, 7)),
        False,
    ),
    "nothing": (lambda A: A.slice((1, 2), (0, 4)), lambda a: a[1:1, 2:6], True),
    "past the end": (
        lambda A: A.slice((-2, -1), (10, 12)),
        padded,
        True,
    ),
    "slice of what is past": (
        lambda A: A.slice((-2, -1), (10, 12)).slice((1, 0), (5, 6)),
        lambda a: padded(a)[1:6, :6],
        True,
    ),
    "remap": (
        lambda A: A.remap(tn.index_map((4, 3), (5, 7), wave)),
        lambda a: np.array([[a[wave(i, j)] for j in range(3)] for i in range(4)]),
        True,
    ),
    "swizzle": (
        lambda A: A.slice((0, 0), (5, 6)).remap(tn.index_map((5, 6), (5, 6), twisted)),
        lambda a: np.array([[a[twisted(i, j)] for j in range(6)] for i in range(5)]),
        True,
    ),
    "run-time extents": (
        lambda A: A.slice((1, 0), (A.extent(0) - 1, A.extent(1))),
        lambda a: a[1:],
        True,
    ),
    "run-time origin": (
        lambda A: A.slice((A.extent(0) - 1, 0), (A.extent(0), 7), (-1, 1)),
        lambda a: a[::-1],
        True,
    ),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_views_are_read(name: str, dtype: type) -> None:
    make, expected, _ = VIEWS[name]
    a = whole((5, 7), dtype)
    view = expected(a)
    np.testing.assert_array_equal(both(copy_out, a, view.shape, make=make), view)


@pytest.mark.parametrize("name", VIEWS)
def test_more_than_a_view_is_read_as_zero(name: str) -> None:
    make, expected, _ = VIEWS[name]
    a = whole((5, 7), np.float32) + 10
    view = expected(a)
    larger = tuple(extent + 2 for extent in view.shape)
    wanted = np.zeros(larger, np.float32)
    wanted[tuple(map(slice, view.shape))] = view
    np.testing.assert_array_equal(both(copy_out, a, larger, make=make), wanted)


@pytest.mark.parametrize("name", [name for name in VIEWS if VIEWS[name][2]])
def test_views_are_written(name: str) -> None:
    make, expected, _ = VIEWS[name]
    places = expected(np.arange(1, 36).reshape(5, 7))
    source = whole(places.shape, np.float32, seed=1) + 10
    wanted = np.full((5, 7), np.nan, np.float32)
    hit = places > 0
    wanted.reshape(-1)[places[hit] - 1] = source[hit]
    np.testing.assert_array_equal(both(copy_in, source, (5, 7), make=make), wanted)


@pytest.mark.parametrize("name", ["T", "steps", "slice of T", "past the end", "remap"])
def test_single_elements_are_read(name: str) -> None:
    make, expected, _ = VIEWS[name]
    a = whole((5, 7), np.float32) + 10
    view = expected(a)
    wanted = np.full(tuple(extent + 1 for extent in view.shape), 9, np.float32)
    wanted[tuple(map(slice, view.shape))] = np.where(view == 0, 9, view)
    np.testing.assert_array_equal(both(elements_out, a, wanted.shape, make=make), wanted)


@pytest.mark.parametrize("layout", ["fortran", "steps", "backwards"])
def test_views_of_any_array(layout: str) -> None:
    make, expected, _ = VIEWS["slice of T"]
    a = placed(whole((5, 7), np.float32), layout)
    wanted = expected(a.array)
    for target in TARGETS:
        out = poisoned(wanted.shape, np.float32)
        copy_out.compile(a.array, out.array, make=make, target=target)(a.array, out.array)
        np.testing.assert_array_equal(out.array, wanted)


@tn.kernel
def facts(A: Any, B: Any) -> None:
    view = A.slice((0, 1), (3, 2), (1, 3)).T
    B.at(0).store(tn.scalar(view.extent(0), tn.int64))
    B.at(1).store(tn.scalar(view.extent(1), tn.int64))
    B.at(2).store(tn.scalar(view.stride(0), tn.int64))
    B.at(3).store(tn.scalar(view.stride(1), tn.int64))


@pytest.mark.parametrize("target", TARGETS)
def test_extents_and_strides_of_views(target: str) -> None:
    a, b = np.zeros((5, 7), np.int64), np.full(4, -1, np.int64)
    facts.compile(a, b, target=target)(a, b)
    assert b.tolist() == [2, 3, 3, 7]


def test_a_view_specialises_only_on_what_is_read() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        n = tn.axis("n", 4)
        width = A.T.shape[0]
        for row in tn.parallel(B.extent(0)):
            B((row, 0), (1, n)).store(A.T.slice((0, row), (width, 1)).T[(0, 0), (1, n)])

    for rows in (2, 3):
        a = whole((rows, 4), np.float32)
        b = np.full((rows, 4), np.nan, np.float32)
        kernel(a, b)
        np.testing.assert_array_equal(b, a)
    assert len(kernel.variants) == 1
    kernel(whole((2, 3), np.float32), np.empty((2, 4), np.float32))
    assert len(kernel.variants) == 2


def test_checked_accesses_name_the_array_and_the_place_in_the_view() -> None:
    @tn.kernel(bounds="check")
    def kernel(A: Any, B: Any) -> None:
        n = tn.axis("n", 4)
        B(0, n).store(A.slice(2, 3)[0, n])

    a, b = np.zeros(9, np.float32), np.zeros(4, np.float32)
    for target in TARGETS:
        with pytest.raises(tn.OutOfBounds, match=r"A.*axis 0 has extent 3, the index is 3"):
            kernel.compile(a, b, target=target)(a, b)


@pytest.mark.parametrize("target", TARGETS)
def test_a_view_of_what_is_stored_to_is_a_snapshot(target: str) -> None:
    @tn.kernel
    def kernel(A: Any) -> None:
        m, n = tn.axis("m", 6), tn.axis("n", 6)
        A((0, 0), (m, n)).store(A.T[(0, 0), (m, n)])
        lower = A.slice((3, 0), (3, 6))
        lower((0, 0), (3, 6)).store(A.slice((2, 0), (3, 6))[(0, 0), (3, 6)])

    a = placed(whole((6, 6), np.float32))
    expected = a.array.T.copy()
    expected[3:] = expected[2:5].copy()
    kernel.compile(a.array, target=target)(a.array)
    np.testing.assert_array_equal(a.array, expected)
    assert a.has_intact_guards


@tn.kernel
def far_slice(A: Any, B: Any, start: Any, at: Any, *, step: int) -> None:
    n = tn.axis("n", 8)
    B(0, n).store(A.slice(start, 8, step)[at, n])


@pytest.mark.parametrize("step", [1, -1, 64])
def test_slices_far_outside_show_nothing(step: int) -> None:
    a = whole((8,), np.float32) + 10
    far = [2**62, -(2**62), 2**63 - 1, -(2**63), 2**57, 2**58, 0, 3, -3]
    for start in far:
        for at in (0, 2**62, -(2**63), 2**57, 2, -2):
            places = [start + step * (at + d) if 0 <= at + d < 8 else -1 for d in range(8)]
            expected = [a[place] if 0 <= place < 8 else 0 for place in places]
            for target in TARGETS:
                out = poisoned((8,), np.float32)
                far_slice.compile(a, out.array, start, at, step=step, target=target)(
                    a, out.array, start, at
                )
                assert out.array.tolist() == expected, (target, start, at)


@tn.kernel
def one_element(A: Any, B: Any, *, make: MakeView) -> None:
    n = tn.axis("n", 8)
    for _ in tn.parallel(1):
        make(B)(0, n).store(A[0, n])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_wide_tile_is_stored_to_one_element(dtype: type) -> None:
    """Lanes beyond the view are dropped, also where the view is at one place only."""
    a = whole((8,), dtype)
    for make in (
        lambda B: B.slice(3, 1).reshape(1),
        lambda B: B.remap(tn.index_map((1,), (5,), lambda _: 3)),
    ):
        for target in TARGETS:
            out = poisoned((5,), dtype)
            expected = out.array.copy()
            expected[3] = a[0]
            one_element.compile(a, out.array, make=make, target=target)(a, out.array)
            np.testing.assert_array_equal(out.array, expected)
            assert out.has_intact_guards


@tn.kernel
def shorter(A: Any, B: Any, *, less: int) -> None:
    n = tn.axis("n", 3)
    view = A.slice(0, A.extent(0) - less)
    for block in tn.parallel(tn.cdiv(B.extent(0), 3)):
        B(block.index() * 3, n).store(view[block.index() * 3, n])
    B.at(0).store(tn.cast(tn.cdiv(view.extent(0), 3), tn.float32))


@pytest.mark.parametrize("less", [2, 5, 6, 9])
def test_run_time_extents_below_0_show_nothing(less: int) -> None:
    a = whole((5,), np.float32) + 1
    expected = np.where(np.arange(5) < 5 - less, a, np.float32(0))
    expected[0] = -((less - 5) // 3)
    for target in TARGETS:
        out = poisoned((5,), np.float32)
        shorter.compile(a, out.array, less=less, target=target)(a, out.array)
        np.testing.assert_array_equal(out.array, expected)


def test_views_in_reductions_and_branches() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        for column in tn.parallel(B.extent(0)):
            total: Any = tn.scalar(0.0, tn.float32)
            back = A.T.slice((0, 4), (7, 5), (1, -1))
            for row in column.reduce(5, policy=tn.reduction.fold_left):
                total = total * 2.0 + back.at(column, row).load()
            if column.index() > 2:  # type: ignore[operator]  # a nest of one axis
                total = total + A.slice((1, 1), (3, 3)).at(1, 1).load()
            B.at(column).store(total)

    a = whole((5, 7), np.float32)
    expected = []
    for column in range(7):
        total = 0.0
        for row in range(5):
            total = total * 2 + a[4 - row, column]
        expected.append(total + (a[2, 2] if column > 2 else 0))
    for target in TARGETS:
        out = poisoned((7,), np.float32)
        kernel.compile(a, out.array, target=target)(a, out.array)
        assert out.array.tolist() == expected, target
