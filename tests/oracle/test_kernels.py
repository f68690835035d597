"""Kernels in the public language, CPU against interpreter: products, stencils, moves, loops.

Equal bits everywhere, but where a test says which freedom the language grants. Where NumPy knows
the answer too, it is asked as well.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import LAYOUTS, Array, normal, whole
from tests.oracle.compare import In, InOut, Out, check, tn

# Matrix products ---------------------------------------------------------------------------------


@tn.kernel
def gemm(A: Any, B: Any, C: Any, *, bm: int = 96, bn: int = 256, bk: int = 256) -> None:
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)


EXTENTS = [(1, 1, 1), (97, 131, 61), (5, 0, 3), (0, 4, 3), (4, 3, 0), (64, 17, 33), (3, 257, 2)]


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
def test_gemm(extents: tuple[int, int, int]) -> None:
    m, k, n = extents
    a, b = normal((m, k), seed=1), normal((k, n), seed=2)
    (c,) = check(gemm, a, b, Out((m, n)))
    # A chain of k fused steps rounds k times, each at most half an epsilon of |a| @ |b|.
    bound = (k + 1) * np.finfo(np.float32).eps / 2 * (np.abs(a) @ np.abs(b)).astype(np.float64)
    assert (np.abs(c - a.astype(np.float64) @ b) <= bound).all()


@pytest.mark.parametrize("blocks", [(1, 1, 1), (7, 5, 3), (33, 17, 13), (6, 16, 131), (128, 64, 1)])
def test_gemm_of_any_blocks(blocks: tuple[int, int, int]) -> None:
    bm, bn, bk = blocks
    m, k, n = (5, 4, 6) if blocks == (1, 1, 1) else (33, 29, 37)
    a, b = normal((m, k), seed=1), normal((k, n), seed=2)
    results = check(gemm, a, b, Out((m, n)), bm=bm, bn=bn, bk=bk)
    # k runs upwards in one chain whatever the blocks are.
    np.testing.assert_array_equal(results[0], check(gemm, a, b, Out((m, n)))[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gemm_of_layouts(layout: str) -> None:
    a, b = normal((33, 29), seed=1), normal((29, 37), seed=2)
    check(gemm, In(a, layout), In(b, layout), Out((33, 37), layout=layout), bm=16, bn=32, bk=8)


@tn.kernel
def batched(A: Any, B: Any, C: Any) -> None:
    batch, rows, depth = (
        tn.axis(name, extent) for name, extent in zip("bmk", A.shape, strict=True)
    )
    columns = tn.axis("n", B.shape[2])
    acc = tn.zeros((batch, rows, columns), C.dtype)
    a = A[(0, 0, 0), (batch, rows, depth)]
    b = B[(0, 0, 0), (batch, depth, columns)]
    C((0, 0, 0), (batch, rows, columns)).store(tn.mma(a, b, acc))


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (np.int8, np.int32),
        (np.int32, np.int32),
    ],
    ids=str,
)
def test_batched_products_of_dtypes(inputs: Any, output: Any) -> None:
    a, b = whole((3, 5, 17), inputs, 1), whole((3, 17, 19), inputs, 2)
    (c,) = check(batched, a, b, Out((3, 5, 19), output))
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@tn.kernel
def transposed_operands(A: Any, B: Any, C: Any, bias: Any) -> None:
    k, m = tn.axis("k", A.shape[0]), tn.axis("m", A.shape[1])
    n = tn.axis("n", B.shape[0])
    start = tn.broadcast(bias[0, n], (m, n))
    product = tn.mma(A[(0, 0), (k, m)].T, B[(0, 0), (n, k)].T, start)
    C((0, 0), (m, n)).store(tn.maximum(product, 0.0) * 0.5)


def test_transposed_operands_and_a_start_value() -> None:
    a, b, bias = whole((19, 33), seed=1), whole((21, 19), seed=2), whole((21,), seed=3)
    (c,) = check(transposed_operands, a, b, Out((33, 21)), bias)
    np.testing.assert_array_equal(c, np.maximum(a.T @ b.T + bias, 0) / 2)


@tn.kernel
def two_products(A: Any, B: Any, C: Any) -> None:
    m, k, n, p = (
        tn.axis(name, extent) for name, extent in zip("mknp", (13, 7, 9, 11), strict=True)
    )
    first = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (k, n)], tn.zeros((m, n), tn.float32))
    second = tn.mma(first, B[(0, 2), (n, p)], tn.zeros((m, p), tn.float32))
    C((0, 0), (m, p)).store(second - tn.reduce(second, p, tn.maximum))


def test_a_product_of_a_product() -> None:
    a, b = whole((13, 7), seed=1), whole((9, 13), seed=2)
    (c,) = check(two_products, a, b, Out((13, 11)))
    y = (a @ b[:7, :9]) @ b[:9, 2:13]
    np.testing.assert_array_equal(c, y - y.max(1, keepdims=True))


# Stencils and moves ------------------------------------------------------------------------------


@tn.kernel
def stencil(X: Any, Y: Any, *, bm: int, bn: int, other: float) -> None:
    m, n = tn.axis("m", bm), tn.axis("n", bn)
    for block in tn.parallel(tn.cdiv(X.extent(0), bm), tn.cdiv(X.extent(1), bn)):
        i, j = block.index()
        total = tn.zeros((m, n), tn.float32)
        for di in range(-1, 2):
            for dj in range(-2, 3):
                total = total + X((i * bm + di, j * bn + dj), (m, n)).load(other=other) * (di - dj)
        Y((i * bm, j * bn), (m, n)).store(total)


@pytest.mark.parametrize("blocks", [(2, 3), (4, 16), (64, 64)], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (0, 5)], ids=str)
def test_a_stencil_reads_other_outside(blocks: tuple[int, int], shape: tuple[int, int]) -> None:
    x = whole(shape, seed=1)
    (y,) = check(stencil, x, Out(shape), bm=blocks[0], bn=blocks[1], other=3.0)
    padded = np.pad(x, ((1, 1), (2, 2)), constant_values=3)
    expected = np.zeros(shape, np.float32)
    for di in range(-1, 2):
        for dj in range(-2, 3):
            part = padded[1 + di : 1 + di + shape[0], 2 + dj : 2 + dj + shape[1]]
            expected += part * (di - dj)
    np.testing.assert_array_equal(y, expected)


def test_a_stencil_among_nan() -> None:
    # `other` multiplies into the sum, so a NaN in it shows every element read outside.
    (y,) = check(stencil, whole((6, 8)), Out((6, 8)), bm=4, bn=4, other=float("nan"))
    assert np.isnan(y).sum() == 6 * 8 - 4 * 4


@tn.kernel
def transpose_blocks(X: Any, Y: Any, *, block: int) -> None:
    m, n = tn.axis("m", block), tn.axis("n", block + 1)
    for part in tn.parallel(tn.cdiv(X.shape[0], block), tn.cdiv(X.shape[1], block + 1)):
        i, j = part.index()
        x = X[(i * block, j * (block + 1)), (m, n)]
        Y((j * (block + 1), i * block), (n, m)).store(x.T)


@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (0, 3), (65, 5)], ids=str)
@pytest.mark.parametrize("block", [1, 8, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64], ids=str)
def test_transposes(shape: tuple[int, int], block: int, dtype: Any) -> None:
    x = whole(shape, dtype, 1)
    (y,) = check(transpose_blocks, x, Out(shape[::-1], dtype), block=block)
    np.testing.assert_array_equal(y, x.T)


@tn.kernel
def moves(X: Any, R: Any, S: Any, P: Any, Q: Any) -> None:
    x = X[(0, 0), (6, 10)]
    R((0, 0), (4, 15)).store(tn.reshape(x, (4, 15)))
    S((0, 0), (10, 6)).store(tn.reindex(x, (10, 6), lambda i, j: (5 - j, (i * 3 + 1) % 10)))
    P((0, 0, 0), (10, 2, 3)).store(tn.transpose(tn.reshape(x, (2, 3, 10)), (2, 0, 1)))
    Q((0, 0), (6, 10)).store(x[(-1, 2), (6, 10)] + tn.reshape(x, 60)[7, 60].at(3))


def test_moves_of_elements() -> None:
    x = whole((6, 10), seed=1)
    outs = (Out((4, 15)), Out((10, 6)), Out((10, 2, 3)), Out((6, 10)))
    reshaped, indexed, turned, sliced = check(moves, x, *outs)
    np.testing.assert_array_equal(reshaped, x.reshape(4, 15))
    rows, columns = np.indices((10, 6))
    np.testing.assert_array_equal(indexed, x[5 - columns, (rows * 3 + 1) % 10])
    np.testing.assert_array_equal(turned, x.reshape(2, 3, 10).transpose(2, 0, 1))
    expected = np.zeros_like(x)
    expected[1:, :8] = x[:5, 2:]
    np.testing.assert_array_equal(sliced, expected + x.reshape(-1)[10])


# Loops -------------------------------------------------------------------------------------------


@tn.kernel
def carried(X: Any, Y: Any, Z: Any, n: Any) -> None:
    w = tn.axis("w", X.shape[1])
    a, b = X[(0, 0), (1, w)], X[(1, 0), (1, w)]
    count, previous = 0, a
    for step in tn.serial(n):
        old = a
        a = a * 0.5 + b
        b = old
        previous = a if step.index() % 2 == 0 else previous
        count = count + step.index() * 3
    Y((0, 0), (1, w)).store(a - b)
    Y((1, 0), (1, w)).store(previous)
    Z.at(0).store(count)


@pytest.mark.parametrize("trips", [0, 1, 2, 7])
@pytest.mark.parametrize("width", [1, 17, 300])
def test_carried_state(trips: int, width: int) -> None:
    x = normal((2, width))
    y, z = check(carried, x, Out((2, width)), Out((1,), np.int64), np.int64(trips))
    a, b, previous = x[0], x[1], x[0]
    for step in range(trips):
        a, b = a * np.float32(0.5) + b, a
        previous = a if step % 2 == 0 else previous
    np.testing.assert_array_equal(y, np.stack([a - b, previous]))
    assert z[0] == sum(3 * step for step in range(trips))


@tn.kernel
def dead_recurrence(X: Any, Y: Any, n: Any) -> None:
    w = tn.axis("w", X.shape[0])
    x, count, factor = X[0, w], 1, tn.zeros(w, tn.float32)
    for step in tn.serial(n):
        x = x + 1
        count = count * 2 + step.index()
        factor = factor * 0.5 + x
    Y(0, w).store(x)


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_states_that_nobody_reads_after_the_loop(trips: int) -> None:
    x = whole((19,), seed=1)
    (y,) = check(dead_recurrence, x, Out((19,)), trips)
    np.testing.assert_array_equal(y, x + trips)


@tn.kernel
def staged(X: Any, Y: Any, n: Any, *, window: int) -> None:
    w = tn.axis("w", 33)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        total = tn.zeros((1, w), X.dtype)
        last = total
        for step in row.pipeline(range(1, n, 2), window=window):
            step.stage("load")
            x = X[(i, step.index()), (1, w)]
            step.stage("square")
            squared = x * x
            step.stage("sum")
            total = total + squared - last
            last = x
        Y((i, 0), (1, w)).store(total * 2 + last)


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("stop", [0, 1, 2, 9])
def test_pipelines_with_stages(window: int, stop: int) -> None:
    x = whole((3, 40), seed=1)
    (y,) = check(staged, x, Out((3, 33)), stop, window=window)
    padded = np.pad(x, ((0, 0), (0, 40)))
    total, last = np.zeros((3, 33), np.float32), np.zeros((3, 33), np.float32)
    for start in range(1, stop, 2):
        part = padded[:, start : start + 33]
        total, last = total + part * part - last, part
    np.testing.assert_array_equal(y, total * 2 + last)


@tn.kernel
def choosing(X: Any, Y: Any, Z: Any, n: Any, t: Any) -> None:
    w = tn.axis("w", X.shape[0])
    x = X[0, w]
    if n > 3 and t < 0.5:
        y, kind = x + t, 1
    elif n == 2 or not t < 1.5:
        y, kind = x * 2.0, 2
    else:
        y, kind = x, 3
        if 0 <= n < 2:
            y = -y
            Z.at(1).store(n)
    Y(0, w).store(y)
    Z.at(0).store(kind if t > 0.0 else -kind)


@pytest.mark.parametrize("n", [-1, 0, 1, 2, 3, 4])
@pytest.mark.parametrize("t", [-0.5, 0.25, 1.0, 2.0])
def test_staged_conditions(n: int, t: float) -> None:
    x = whole((19,), seed=1)
    y, z = check(choosing, x, Out((19,)), InOut(np.asarray([7, 7])), n, np.float32(t))
    kind = 1 if n > 3 and t < 0.5 else 2 if n == 2 or t >= 1.5 else 3
    kept = -x if 0 <= n < 2 else x
    np.testing.assert_array_equal(y, {1: x + np.float32(t), 2: x * 2, 3: kept}[kind])
    assert z.tolist() == [kind if t > 0 else -kind, n if kind == 3 and 0 <= n < 2 else 7]


@tn.kernel
def phases(X: Any, T: Any, Y: Any, *, block: int) -> None:
    n = tn.axis("n", block)
    for part in tn.parallel(tn.cdiv(X.extent(0), block)):
        start = part.index() * block
        T(start, n).store(X[start, n] * 2.0)
    for part in tn.parallel(tn.cdiv(X.extent(0), block)):
        start = part.index() * block
        Y(start, n).store(T[start + 1, n] + T[start - 1, n])
    for part in tn.parallel(1):
        T.at(part.index()).store(-1.0)


@pytest.mark.parametrize("count", [1, 2, 33, 1000])
@pytest.mark.parametrize("block", [1, 16, 100])
def test_several_root_nests_run_in_order(count: int, block: int) -> None:
    x = whole((count,), seed=1)
    t, y = check(phases, x, Out((count,)), Out((count,)), block=block)
    doubled = np.pad(x * 2, 1)
    np.testing.assert_array_equal(y, doubled[2:] + doubled[:-2])
    np.testing.assert_array_equal(t[1:], doubled[2:-1])
    assert t[0] == -1


@tn.kernel
def nested(X: Any, Y: Any) -> None:
    w = tn.axis("w", 16)
    for plane in tn.parallel(X.extent(0)):
        p = plane.index()
        scale = X.at(p, 0, 0).load()
        for row in plane.parallel(X.extent(1)):
            r = row.index()
            total = tn.zeros((1, 1, w), X.dtype)
            for piece in row.serial(tn.cdiv(X.extent(2), 16)):
                total = total + X[(p, r, piece.index() * 16), (1, 1, w)]
            for piece in row.parallel(2, 8):
                q, c = piece.index()
                Y.at(p, r, q * 8 + c).store(total.at(0, 0, q * 8 + c) * scale)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 33), (0, 2, 3), (2, 0, 3), (7, 3, 16)])
def test_nested_parallel(shape: tuple[int, int, int]) -> None:
    x = whole(shape, seed=1)
    (y,) = check(nested, x, Out((*shape[:2], 16)))
    padded = np.pad(x, ((0, 0), (0, 0), (0, -shape[2] % 16)))
    pieces = padded.shape[2] // 16
    total = padded.reshape(*shape[:2], pieces, 16).sum(2)
    np.testing.assert_array_equal(y, total * x[:, :1, :1])


@tn.kernel
def along_axes(X: Any, Y: Any, Z: Any) -> None:
    m, n = tn.axis("m", X.shape[0]), tn.axis("n", X.shape[1])
    x = X[(0, 0), (m, n)]
    total = tn.zeros(n, X.dtype)
    for row in tn.serial(m):
        total = total * 2 + x.at(row)
    Y(0, n).store(total)
    best = tn.full(m, -100, X.dtype)
    for column in tn.root().reduce(n):
        best = tn.maximum(best, x.at(column))
    Z(0, m).store(best)


@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (17, 5), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=str)
def test_nests_over_axes(shape: tuple[int, int], dtype: Any) -> None:
    x = whole(shape, dtype, 1)
    y, z = check(along_axes, x, Out(shape[1:], dtype), Out(shape[:1], dtype))
    total = np.zeros(shape[1], dtype)
    for row in x:
        total = total * 2 + row
    np.testing.assert_array_equal(y, total)
    np.testing.assert_array_equal(z, x.max(1, initial=-100))


@tn.kernel
def in_place(X: Any, Y: Any) -> None:
    n = tn.axis("n", 16)
    for part in tn.parallel(tn.cdiv(X.extent(0), 16)):
        start = part.index() * 16
        x = X[start, n]
        X(start, n).store(x + 1)
        Y(start, n).store(X[start, n] * x)


@pytest.mark.parametrize("count", [1, 16, 33, 257])
def test_a_load_is_a_snapshot(count: int) -> None:
    x = whole((count,), seed=1)
    updated, y = check(in_place, InOut(x), Out((count,)))
    np.testing.assert_array_equal(updated, x + 1)
    np.testing.assert_array_equal(y, (x + 1) * x)


@tn.kernel
def shifted(X: Any, *, block: int) -> None:
    n = tn.axis("n", block)
    for step in tn.serial(tn.cdiv(X.extent(0), block)):
        start = step.index() * block
        x = X[start, n]
        X(start + 1, n).store(x)


@pytest.mark.parametrize("block", [1, 4, 16, 64])
def test_an_array_read_and_written_at_shifted_places(block: int) -> None:
    x = whole((50,), np.int32, 1)
    (y,) = check(shifted, InOut(x), block=block)
    expected = x.copy()
    for start in range(0, 50, block):
        part = expected[start : start + block].copy()
        room = expected[start + 1 : start + 1 + block]
        room[...] = np.pad(part, (0, block - part.size))[: room.size]
    np.testing.assert_array_equal(y, expected)


def test_arguments_that_are_one_array() -> None:
    @tn.kernel
    def both(X: Any, Y: Any) -> None:
        n = tn.axis("n", 33)
        x = X[0, n]
        Y(0, n).store(x * 2)
        Y(40, n).store(X[0, n] + x)

    x = whole((80,))
    results: list[Array] = []
    for target in ("interpret", "cpu"):
        one = x.copy()
        both.compile(one, one, target=target)(one, one)
        results.append(one)
    expected = x.copy()
    expected[:33] *= 2
    expected[40:73] = expected[:33] + x[:33]
    for one in results:
        np.testing.assert_array_equal(one, expected)
