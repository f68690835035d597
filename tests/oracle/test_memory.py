"""Explicit memory against NumPy: snapshots, states through loops, layouts, owners.

Every kernel runs in the interpreter, whose memories are poison where nothing was stored, and
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
    "padded": lambda m, n, _, columns: tn.layout((m, n), (columns + 3, 1)),
    "columns": lambda m, n, rows, _: tn.layout((m, n), (1, rows)),
    "columns, padded": lambda m, n, rows, _: tn.layout((m, n), (1, rows + 1)),
    "backwards": lambda m, n, rows, columns: tn.index_map(
        (m, n), (rows, columns), lambda i, j: (rows - 1 - i, columns - 1 - j)
    ),
    "interleaved": lambda m, n, rows, columns: tn.index_map(
        (m, n), (2 * rows * columns + 1,), lambda i, j: 2 * (i * columns + j) + 1
    ),
    "rotated rows": lambda m, n, rows, columns: tn.index_map(
        (m, n), (rows, columns), lambda i, j: (i, (j + i) % columns)
    ),
    "swizzled": lambda m, n, rows, _: tn.index_map(
        (m, n), (rows, 64), lambda i, j: (i, j ^ (i & 3) ^ ((j >> 2) & 1) * 8)
    ),
    "gray": lambda m, n, rows, _: tn.index_map((m, n), (rows, 64), lambda i, j: (i, j ^ (j >> 1))),
}


def run(kernel: tn.Kernel, inputs: list[Array], shape: tuple[int, ...], **options: Any) -> Array:
    """What the kernel writes into its last argument, the same from every target."""
    results = []
    for target in TARGETS:
        given = [placed(values) for values in inputs]
        out = poisoned(shape, inputs[0].dtype)
        arguments = [*(each.array for each in given), out.array]
        kernel.compile(*arguments, target=target, **options)(*arguments)
        assert all(each.is_unchanged for each in given) and out.has_intact_guards, target
        results.append(out.array)
    np.testing.assert_array_equal(results[1], results[0])
    return results[0]


@tn.kernel
def two_memories(A: Any, B: Any, *, columns: int, trips: int, layout: Any, other: Any) -> None:
    m, n = tn.axis("m", 4), tn.axis("n", columns)
    for block in tn.parallel(tn.cdiv(A.extent(0), 4)):
        at = block.index() * 4
        first = tn.memory(tn.float32, layout(m, n, 4, columns))
        second = tn.memory(tn.float32, other(m, n, 4, columns))
        first.store(A[(at, 0), (m, n)])
        before = first.load()
        for _ in block.serial(trips):
            second.store(first.load() * 2.0)
            first.store(second.load() + 1.0)
        B((at, 0), (m, n)).store(first.load() * 100.0 + before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_snapshots_and_carried_states(layout: str, trips: int) -> None:
    for columns in (1, 7, 37):
        a = whole((9, columns), np.float32)
        expected = a.copy()
        for _ in range(trips):
            expected = expected * 2 + 1
        options = {"columns": columns, "trips": trips, "layout": LAYOUTS[layout]}
        found = run(two_memories, [a], a.shape, **options, other=LAYOUTS["columns"])
        np.testing.assert_array_equal(found, expected * 100 + a)


@tn.kernel
def gemm(A: Any, B: Any, C: Any, *, strides: Any) -> None:
    block_m = block_n = block_k = 8
    m, n, k = tn.axis("m", block_m), tn.axis("n", block_n), tn.axis("k", block_k)
    for nest in tn.parallel(tn.cdiv(C.extent(0), block_m), tn.cdiv(C.extent(1), block_n)):
        i, j = nest.index()
        a_memory = tn.memory(tn.float32, tn.layout((m, k), strides[0]))
        b_memory = tn.memory(tn.float32, tn.layout((k, n), strides[1]), tn.mem.private)
        acc: Any = tn.zeros((m, n), tn.float32)
        for step in nest.pipeline(tn.cdiv(A.extent(1), block_k), window=2):
            k0 = step.index() * block_k
            step.stage("load")
            a_memory.store(A[(i * block_m, k0), (m, k)])
            b_memory.store(B[(k0, j * block_n), (k, n)])
            step.stage("compute")
            left: Any = a_memory.load()
            right: Any = b_memory.load()
            acc = tn.mma(left, right, acc)
        C((i * block_m, j * block_n), (m, n)).store(acc)


@pytest.mark.parametrize("sizes", [(1, 3, 5), (7, 13, 19), (17, 21, 23), (37, 41, 29)])
@pytest.mark.parametrize("strides", [((9, 1), (1, 10)), ((1, 8), (8, 1))])
def test_a_product_through_memories(sizes: tuple[int, int, int], strides: Any) -> None:
    rows, columns, inner = sizes
    a, b = whole((rows, inner), np.float32), whole((inner, columns), np.float32, seed=1)
    found = run(gemm, [a, b], (rows, columns), strides=strides)
    np.testing.assert_array_equal(found, a @ b)


@tn.kernel
def shared_row(A: Any, B: Any, *, resource: Any) -> None:
    n = tn.axis("n", 37)
    row = tn.memory(tn.float32, tn.layout((1, n), (0, 2)), resource)
    row.store(A[(0, 0), (1, n)])
    for worker in tn.parallel(B.extent(0)):
        B((worker, 0), (1, n)).store(row.load() * A[(worker, 0), (1, n)])


@pytest.mark.parametrize("resource", [tn.mem.auto, tn.mem.shared])
def test_instances_read_what_was_stored_around_them(resource: Any) -> None:
    a = whole((7, 37), np.float32)
    np.testing.assert_array_equal(run(shared_row, [a], a.shape, resource=resource), a[:1] * a)


@tn.kernel
def branches(A: Any, B: Any) -> None:
    n = tn.axis("n", 5)
    for row in tn.parallel(B.extent(0)):
        index: Any = row.index()
        kept = tn.memory(tn.float32, n)
        taken: Any = A[(row, 0), (1, n)]
        kept.store(tn.reshape(taken, n))
        if index > 2:
            kept.store(kept.load() + 1.0)
        if index > 4:
            other = tn.memory(tn.float32, n)
            other.store(kept.load() * 3.0)
            kept.store(other.load())
        else:
            kept.store(kept.load() - 7.0)
        result: Any = kept.load()
        B((row, 0), (1, n)).store(tn.reshape(result, (1, n)))


def test_branches_hand_on_what_they_store() -> None:
    a = whole((8, 5), np.float32)
    rows = np.arange(8)[:, None]
    expected = a + (rows > 2)
    expected = np.where(rows > 4, expected * 3, expected - 7).astype(np.float32)
    np.testing.assert_array_equal(run(branches, [a], a.shape), expected)


@tn.kernel
def per_iteration(A: Any, B: Any) -> None:
    n = tn.axis("n", 6)
    total = tn.memory(tn.float32, n)
    total.store(0.0)
    for row in tn.serial(A.extent(0)):
        mine = tn.memory(tn.float32, tn.layout(n, 3))
        mine.store(tn.reshape(A[(row, 0), (1, n)], n) * 2.0)
        total.store(total.load() + mine.load())
    B(0, n).store(total.load())


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_memory_of_an_iteration_and_of_the_kernel(rows: int) -> None:
    a = whole((rows, 6), np.float32)
    np.testing.assert_array_equal(run(per_iteration, [a], (6,)), (a * 2).sum(0))


@tn.kernel
def fold(A: Any, B: Any, *, policy: Any) -> None:
    n = tn.axis("n", 6)
    held = tn.memory(tn.float32, n)
    held.store(1.0)
    for row in tn.root().reduce(3, policy=policy):
        held.store(held.load() * 2.0 + tn.reshape(A[(row, 0), (1, n)], n))
    B(0, n).store(held.load())


def test_folds_store_in_their_order() -> None:
    a = whole((3, 6), np.float32)
    expected = ((2 + a[0]) * 2 + a[1]) * 2 + a[2]
    np.testing.assert_array_equal(run(fold, [a], (6,), policy=tn.reduction.fold_left), expected)
    with pytest.raises(tn.ReductionPolicyError, match="stores to a memory"):
        run(fold, [a], (6,), policy=tn.reduction.unordered_tree)


@tn.kernel
def one_element(A: Any, B: Any) -> None:
    cell = tn.memory(tn.float32, ())
    cell.store(A.at(0).load())
    for i in tn.serial(3):
        cell.store(cell.load() + A.at(i.index()).load())
    B.at(0).store(cell.load())


def test_memory_of_one_element() -> None:
    a = whole((4,), np.float32)
    np.testing.assert_array_equal(run(one_element, [a], (1,)), [a[0] + a[:3].sum()])


@tn.kernel
def nothing(A: Any, B: Any) -> None:
    m, n = tn.axis("m", 0), tn.axis("n", 4)
    empty = tn.memory(tn.float32, tn.index_map((m, n), (3,), lambda i, j: (i + j) // (i - i)))
    empty.store(A[(0, 0), (m, n)])
    B((0, 0), (m, n)).store(empty.load())
    B((0, 0), (1, n)).store(A[(0, 0), (1, n)])


def test_memory_without_elements_has_no_places() -> None:
    a = whole((1, 4), np.float32)
    np.testing.assert_array_equal(run(nothing, [a], a.shape), a)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64, np.int64, np.bool_])
def test_memory_of_any_dtype(dtype: type) -> None:
    name = {"bool": "bool_"}.get(np.dtype(dtype).name, np.dtype(dtype).name)

    @tn.kernel
    def kernel(A: Any, B: Any) -> None:
        n = tn.axis("n", 37)
        held = tn.memory(getattr(tn, name), tn.layout(n, 2))
        held.store(A[0, n])
        B(0, n).store(held.load())

    a: Array = whole((37,), np.int8).astype(dtype)
    np.testing.assert_array_equal(run(kernel, [a], a.shape), a)


@tn.kernel
def helped(A: Any, B: Any) -> None:
    n = tn.axis("n", 8)
    held = tn.memory(tn.float32, n)
    fill(held, A[0, n])
    B(0, n).store(held.load())


def fill(memory: Any, tile: Any) -> None:
    memory.store(tile)
    memory.store(memory.load() * 2.0)


def test_helpers_borrow_memory() -> None:
    a = whole((8,), np.float32)
    np.testing.assert_array_equal(run(helped, [a], a.shape), a * 2)


@tn.kernel
def nested(A: Any, B: Any, *, outer: int, inner: int) -> None:
    n = tn.axis("n", 5)
    for row in tn.parallel(A.extent(0)):
        held = tn.memory(tn.float32, tn.layout((1, n), (0, 2)))
        other = tn.memory(tn.float32, (1, n))
        held.store(A[(row, 0), (1, n)])
        other.store(0.0)
        for i in row.serial(outer):
            for j in i.serial(inner):
                count: Any = j.index()
                other.store(other.load() + held.load())
                if count > 0:
                    held.store(held.load() + 1.0)
            for step in i.pipeline(2):
                step.stage("double")
                mine = tn.memory(tn.float32, (1, n))
                mine.store(held.load() * 2.0)
                step.stage("keep")
                held.store(mine.load())
        for part in row.parallel(5):
            total: Any = held.load()
            more: Any = other.load()
            B.at(row, part).store(total.at(0, part) * 1000.0 + more.at(0, part))


@pytest.mark.parametrize("outer", [0, 1, 3])
@pytest.mark.parametrize("inner", [0, 1, 2])
def test_states_go_through_nests_in_nests(outer: int, inner: int) -> None:
    a = whole((3, 5), np.float32)
    held, other = a.copy(), np.zeros_like(a)
    for _ in range(outer):
        for j in range(inner):
            other = other + held
            held = held + (j > 0)
        held = held * 4
    found = run(nested, [a], a.shape, outer=outer, inner=inner)
    np.testing.assert_array_equal(found, held * 1000 + other)


@tn.kernel
def parts(A: Any, B: Any, at: Any) -> None:
    m, n, k = tn.axis("m", 5), tn.axis("n", 7), tn.axis("k", 3)
    held = tn.memory(tn.float32, tn.layout((m, n), (1, 6)))
    held.store(A[(0, 0), (m, n)])
    first: Any = held((at, 1), (2, k)).load()
    held((0, at), (2, k)).store(first * 10.0)
    held((4, 0), (1, n)).store(5.0)
    B((0, 0), (m, n)).store(held.load())


@pytest.mark.parametrize("at", [-1, 0, 2, 4, 2**62, -(2**63)])
def test_parts_of_a_memory(at: int) -> None:
    a = whole((5, 7), np.float32)
    expected = a.copy()
    for i in range(2):
        for j in range(3):
            if 0 <= at + j < 7:
                expected[i, at + j] = a[at + i, 1 + j] * 10 if 0 <= at + i < 5 else 0
    expected[4] = 5
    for target in TARGETS:
        out = poisoned(a.shape, np.float32)
        parts.compile(a, out.array, at, target=target)(a, out.array, at)
        np.testing.assert_array_equal(out.array, expected)
        assert out.has_intact_guards


@tn.kernel
def too_large(_: Any, B: Any) -> None:
    held = tn.memory(tn.float32, (2**31, 2**31))
    held.store(0.0)
    B.at(0).store(tn.sum(held((0, 0), (1, 1)).load()))


@pytest.mark.parametrize("target", TARGETS)
def test_memory_that_64_bits_cannot_address_is_refused(target: str) -> None:
    a, out = np.zeros((2, 1), np.float32)
    with pytest.raises(tn.ShapeError, match="64 bits cannot address"):
        too_large.compile(a, out, target=target)(a, out)
