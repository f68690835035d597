"""Explicit memory that is filled and read by parts, against NumPy.

Every kernel runs in the interpreter, which knows of each element whether it was stored, and
compiled; outputs start as NaN between guard bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, placed, poisoned, whole

TARGETS = ("interpret", "cpu")
LAYOUTS: dict[str, Callable[..., Any]] = {
    "dense": lambda m, n, *_: (m, n),
    "columns, padded": lambda m, n, rows, _: tn.layout((m, n), (1, rows + 1)),
    "backwards": lambda m, n, rows, columns: tn.index_map(
        (m, n), (rows, columns), lambda i, j: (rows - 1 - i, columns - 1 - j)
    ),
    "one line": lambda m, n, rows, columns: tn.index_map(
        (m, n), (2 * rows * columns + 1,), lambda i, j: 2 * (i * columns + j) + 1
    ),
    "gray": lambda m, n, rows, _: tn.index_map((m, n), (rows, 64), lambda i, j: (i, j ^ (j >> 1))),
}


def number(nest: Any) -> Any:
    """The index of a nest along its only axis."""
    return nest.index()


def run(kernel: tn.Kernel, inputs: list[Array], shape: tuple[int, ...], *more: int) -> Array:
    """What the kernel writes into its last array, the same from every target."""
    results = []
    for target in TARGETS:
        given = [placed(values) for values in inputs]
        out = poisoned(shape, inputs[0].dtype)
        arguments = [*(each.array for each in given), out.array, *more]
        kernel.compile(*arguments, target=target)(*arguments)
        assert all(each.is_unchanged for each in given) and out.has_intact_guards, target
        results.append(out.array)
    np.testing.assert_array_equal(results[1], results[0])
    return results[0]


# Straight code -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_four_parts_make_a_whole(layout: str) -> None:
    make = LAYOUTS[layout]

    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        m, n = tn.axis("m", 5), tn.axis("n", 7)
        held = tn.memory(tn.float32, make(m, n, 5, 7))
        held((0, 0), (2, 7)).store(A[(0, 0), (2, 7)])
        held((2, 0), (3, 3)).store(A[(2, 0), (3, 3)] * 2.0)
        held((2, 3), (2, 9)).store(A[(2, 3), (2, 9)] * 3.0)
        held((4, 3), (1, 4)).store(4.0)
        B((0, 0), (m, n)).store(held.load())

    a = whole((5, 7), np.float32)
    expected = a.copy()
    expected[2:, :3] *= 2
    expected[2:4, 3:] *= 3
    expected[4, 3:] = 4
    np.testing.assert_array_equal(run(kernel, [a], a.shape), expected)


def test_a_part_is_read_of_memory_that_is_stored_in_part() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (6, 8))
        held((1, 2), (4, 4)).store(A[(1, 2), (4, 4)])
        kept: Any = held((2, 3), (2, 3)).load()
        held((2, 3), (2, 3)).store(0.0)
        B((0, 0), (2, 3)).store(kept)
        B((2, 0), (2, 3)).store(held((1, 3), (2, 3)).load())

    a = whole((6, 8), np.float32)
    changed = a.copy()
    changed[2:4, 3:6] = 0
    expected = np.concatenate([a[2:4, 3:6], changed[1:3, 3:6]])
    np.testing.assert_array_equal(run(kernel, [a], (4, 3)), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("at", [-3, -1, 0, 2, 3, 6, 2**62, -(2**63)])
def test_a_part_at_a_number_of_the_call(layout: str, at: int) -> None:
    make = LAYOUTS[layout]

    @tn.kernel
    def kernel(A: Any, B: Any, at: Any) -> None:
        m, n = tn.axis("m", 5), tn.axis("n", 7)
        held = tn.memory(tn.float32, make(m, n, 5, 7))
        held((at, at + 1), (3, 2)).store(A[(0, 0), (3, 2)])
        B((0, 0), (2, 2)).store(held((at, at + 1), (2, 2)).load())

    a = whole((3, 2), np.float32)
    expected = np.zeros((2, 2), np.float32)
    for i in range(2):
        for j in range(2):
            if 0 <= at + i < 5 and 0 <= at + 1 + j < 7:
                expected[i, j] = a[i, j]
    np.testing.assert_array_equal(run(kernel, [a], (2, 2), at), expected)


@pytest.mark.parametrize("at", [8, 9, 2**62, 2**63 - 1, -4, -(2**63)])
def test_a_part_that_is_known_to_lie_outside(at: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (8,))
        held((0,), (2,)).store(A[0, 2])
        held((at,), (4,)).store(1.0)
        B(0, 4).store(held((at,), (4,)).load())

    np.testing.assert_array_equal(run(kernel, [whole((2,), np.float32)], (4,)), np.zeros(4))


def test_what_lies_outside_is_0_whatever_is_stored() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (4,))
        held((3,), (5,)).store(A[0, 5])
        B(0, 3).store(held((3,), (3,)).load())
        B(3, 2).store(held((-2,), (2,)).load())

    a = whole((5,), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], (5,)), [a[0], 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("n", "k", "at"), [(4, 5, 0), (8, 9, 2), (4, 9, 1), (0, 12, -1), (9, 0, 3)]
)
def test_boxes_that_hold_a_part_together(n: int, k: int, at: int) -> None:
    """Which of two ends comes last is not known, so that they do not become one."""

    @tn.kernel
    def kernel(A: Any, B: Any, n: Any, k: Any, at: Any) -> None:
        held = tn.memory(tn.float32, (9,))
        for i in tn.serial(tn.minimum(tn.maximum(n, 4), 8)):
            held((number(i),), (1,)).store(A[number(i), 1])
        for i in tn.serial(range(3, tn.minimum(tn.maximum(k, 5), 9))):
            held((number(i),), (1,)).store(A[number(i), 1])
        B(0, 3).store(held((tn.minimum(tn.maximum(at, 0), 2),), (3,)).load())

    a = whole((9,), np.float32)
    start = min(max(at, 0), 2)
    np.testing.assert_array_equal(run(kernel, [a], (3,), n, k, at), a[start : start + 3])


# Branches, loops and stages ----------------------------------------------------------------------


def test_branches_store_what_both_do() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        n = tn.axis("n", 8)
        for row in tn.parallel(A.extent(0)):
            own = number(row)
            held = tn.memory(tn.float32, n)
            taken: Any = tn.reshape(A[(row, 0), (1, n)], n)
            if own > 1:
                held.store(taken)
            else:
                held((0,), (3,)).store(taken[0, 3] * 2.0)
                held((2,), (4,)).store(taken[2, 4] * 3.0)
            held((6,), (2,)).store(5.0)
            stored: Any = held.load()
            B((row, 0), (1, n)).store(tn.reshape(stored, (1, n)))

    a = whole((4, 8), np.float32)
    expected = a.copy()
    expected[:2, :2] *= 2
    expected[:2, 2:6] *= 3
    expected[:, 6:] = 5
    np.testing.assert_array_equal(run(kernel, [a], a.shape), expected)


@pytest.mark.parametrize("n", [-1, 4, 6, 9])
def test_branches_store_what_is_below_a_number_of_one_of_them(n: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any, n: Any) -> None:
        held = tn.memory(tn.float32, (8,))
        if n > 0:
            for i in tn.serial(tn.minimum(tn.maximum(n, 4), 8)):
                held((number(i),), (1,)).store(A[number(i), 1])
        else:
            held.store(A[0, 8] * 2.0)
        B(0, 4).store(held((0,), (4,)).load())

    a = whole((8,), np.float32)
    expected = a[:4] if n > 0 else a[:4] * 2
    np.testing.assert_array_equal(run(kernel, [a], (4,), n), expected)


FILLS: dict[str, Callable[[Any, Any], None]] = {}


def fill(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """A way to fill a memory of 8 x 12 with what a view holds there."""
    FILLS[function.__name__.removeprefix("by_")] = function
    return function


@fill
def by_rows(held: Any, A: Any) -> None:
    for i in tn.serial(4):
        at = number(i) * 2
        held((at, 0), (2, 12)).store(A[(at, 0), (2, 12)])


@fill
def by_rows_from_the_last(held: Any, A: Any) -> None:
    for i in tn.serial(4):
        at = 6 - number(i) * 2
        held((at, 0), (2, 12)).store(A[(at, 0), (2, 12)])


@fill
def by_tiles(held: Any, A: Any) -> None:
    for i in tn.serial(2):
        for j in i.serial(3):
            row = number(i) * 4
            column = number(j) * 4
            held((row, column), (4, 4)).store(A[(row, column), (4, 4)])


@fill
def by_tiles_of_one_nest(held: Any, A: Any) -> None:
    for step in tn.serial(2, 3):
        i, j = step.index()
        held((i * 4, j * 4), (4, 4)).store(A[(i * 4, j * 4), (4, 4)])


@fill
def by_halves_of_a_step(held: Any, A: Any) -> None:
    for i in tn.serial(4):
        at = number(i) * 2
        held((at + 1, 0), (1, 12)).store(A[(at + 1, 0), (1, 12)])
        held((at, 0), (1, 12)).store(A[(at, 0), (1, 12)])


@fill
def by_even_and_odd_rows(held: Any, A: Any) -> None:
    for i in tn.serial(4):
        held((number(i) * 2, 0), (1, 12)).store(A[(number(i) * 2, 0), (1, 12)])
    for i in tn.serial(4):
        at = number(i) * 2 + 1
        held((at, 0), (1, 12)).store(A[(at, 0), (1, 12)])


@fill
def by_overlapping_rows(held: Any, A: Any) -> None:
    for i in tn.serial(6):
        at = number(i)
        held((at, 0), (3, 12)).store(A[(at, 0), (3, 12)])


@fill
def by_stages(held: Any, A: Any) -> None:
    for step in tn.root().pipeline(4, window=2):
        step.stage("first")
        at = number(step) * 2
        held((at, 0), (1, 12)).store(A[(at, 0), (1, 12)])
        step.stage("second")
        held((at + 1, 0), (1, 12)).store(A[(at + 1, 0), (1, 12)])


@fill
def by_a_fold(held: Any, A: Any) -> None:
    for i in tn.root().reduce(8, policy=tn.reduction.fold_left):
        held((i, 0), (1, 12)).store(A[(i, 0), (1, 12)])


@pytest.mark.parametrize("name", FILLS)
def test_loops_fill_a_memory(name: str) -> None:
    way = FILLS[name]

    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (8, 12))
        way(held, A)
        B((0, 0), (8, 12)).store(held.load())

    a = whole((8, 12), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], a.shape), a)


@pytest.mark.parametrize("columns", [1, 2, 7, 9])
def test_a_step_reads_what_the_steps_before_it_stored(columns: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        sums = tn.memory(tn.float32, (9,))
        sums((0,), (1,)).store(A[0, 1])
        for i in tn.serial(A.extent(0) - 1):
            at = number(i) + 1
            sums((at,), (1,)).store(sums((at - 1,), (1,)).load() + A[at, 1])
            B(at, 1).store(sums((at,), (1,)).load())
        B(0, 1).store(sums((0,), (1,)).load())

    a = whole((columns,), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], a.shape), np.cumsum(a))


def test_steps_from_the_last_to_the_first() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        sums = tn.memory(tn.float32, (9,))
        sums((8,), (1,)).store(A[8, 1])
        for i in tn.serial(8):
            at = 7 - number(i)
            sums((at,), (1,)).store(sums((at + 1,), (1,)).load() + A[at, 1])
        B(0, 9).store(sums.load())

    a = whole((9,), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], a.shape), np.cumsum(a[::-1])[::-1])


@pytest.mark.parametrize("columns", [0, 3, 8])
def test_a_loop_of_unknown_length_reads_its_own_part(columns: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (4, 2))
        for i in tn.serial(A.extent(0)):
            at = number(i) % 4
            held((at, 0), (1, 2)).store(A[(i, 0), (1, 2)] * 2.0)
            B((i, 0), (1, 2)).store(held((number(i) % 4, 0), (1, 2)).load())

    a = whole((columns, 2), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], a.shape), a * 2)


def test_stages_read_the_parts_of_their_step() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        for block in tn.parallel(2):
            held = tn.memory(tn.float32, (4, 6))
            for step in block.pipeline(4, window=2):
                step.stage("load")
                at = number(step)
                held((at, 0), (1, 6)).store(A[(at, 0), (1, 6)])
                step.stage("use")
                row: Any = held((number(step), 0), (1, 6)).load()
                B((number(block) * 4 + number(step), 0), (1, 6)).store(row * 2.0)

    a = whole((4, 6), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], (8, 6)), np.concatenate([a, a]) * 2)


def test_instances_read_parts_of_what_was_stored_around_them() -> None:
    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        held = tn.memory(tn.float32, (8, 3))
        held((0, 0), (4, 3)).store(A[(4, 0), (4, 3)])
        for row in tn.parallel(4):
            B((row, 0), (1, 3)).store(held((3 - number(row), 0), (1, 3)).load())

    a = whole((8, 3), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], (4, 3)), a[7:3:-1])


@pytest.mark.parametrize("at", [-1, 0, 2, 3])
def test_instances_keep_parts_while_they_wait(at: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any, at: Any) -> None:
        for row in tn.parallel(3):
            held = tn.memory(tn.float32, tn.layout((2, 4), (1, 3)))
            held((0, at), (2, 2)).store(A[(number(row) * 2, 0), (2, 2)])
            B((number(row), 0), (1, 2)).store(0.0)
            tn.sync(row)
            B((number(row), 0), (1, 2)).store(held((1, at), (1, 2)).load())

    a = whole((6, 2), np.float32)
    expected = a[1::2].copy()
    for column in range(2):
        if not 0 <= at + column < 4:
            expected[:, column] = 0
    np.testing.assert_array_equal(run(kernel, [a], (3, 2), at), expected)


@pytest.mark.parametrize("turns", [-3, 0, 1, 2, 64, 70])
def test_scaled_steps_of_a_number_of_the_call_that_is_limited(turns: int) -> None:
    @tn.kernel
    def kernel(A: Any, B: Any, n: Any) -> None:
        held = tn.memory(tn.float32, (9,))
        for i in tn.serial(tn.minimum(tn.maximum(n, 1), 64)):
            held((number(i) * 2,), (2,)).store(A[number(i) * 2, 2])
        B(0, 2).store(held((0,), (2,)).load())

    a = whole((6,), np.float32)
    np.testing.assert_array_equal(run(kernel, [a], (2,), turns), a[:2])


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int64, np.bool_])
def test_parts_of_any_dtype(dtype: type) -> None:
    name = {"bool": "bool_"}.get(np.dtype(dtype).name, np.dtype(dtype).name)

    @tn.kernel
    def kernel(A: Any, B: Any, at: Any) -> None:
        held = tn.memory(getattr(tn, name), tn.layout((37,), (2,)))
        held((0,), (20,)).store(A[0, 20])
        held((20,), (17,)).store(A[20, 17])
        B(0, 37).store(held((at,), (37,)).load())

    a: Array = whole((37,), np.int8).astype(dtype)
    expected = np.append(a[3:], np.zeros(3, dtype))
    np.testing.assert_array_equal(run(kernel, [a], (37,), 3), expected)
