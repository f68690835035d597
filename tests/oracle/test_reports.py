"""Mistakes that users of other compilers reported, each as a kernel that must be right here.

The names and numbers say which project and report a case comes from; the texts are our own.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import bfloat16, normal, placed, poisoned, whole
from tests.oracle.compare import InOut, Out, assert_same, check, tn

REPOSITORY = Path(__file__).resolve().parents[2]

# Reductions, ties, NaN ---------------------------------------------------------------------------

SMALL = [5, 1, 100, 3, 7, 8, 9, 13, 100, 120, 127, 2, 6, 4, 11, 12, 90, 80]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("count", [15, 16, 17, 18])
def test_lanes_do_not_start_at_zero(dtype: Any, count: int) -> None:
    """pytorch 191499: min, max, argmin, argmax of small integers, a lane's width or more."""
    for values in [SMALL[:count], [-v if dtype is np.int8 else v for v in SMALL[:count]]]:
        x = np.asarray(values, dtype)
        for name in ("min", "max", "argmin", "argmax"):
            assert getattr(tn.ops, name)(x) == getattr(np, name)(x)


def test_the_first_of_equal_maxima() -> None:
    """pytorch 93630: argmax along axis 0 with many ties."""
    x = np.random.default_rng(0).integers(1, 5, (10, 10)).astype(np.int32)
    np.testing.assert_array_equal(tn.ops.argmax(x, 0), np.argmax(x, 0))
    np.testing.assert_array_equal(tn.ops.argmin(x, 0), np.argmin(x, 0))


@tn.kernel
def argmax_of_exp(X: Any, Y: Any) -> None:
    Y.at(0).store(tn.argmax(tn.exp(X[0, tn.axis("n", X.shape[0])])))


def test_the_maximum_is_not_computed_twice_differently() -> None:
    """tinygrad 3552: argmax of exp compares each element with a maximum computed elsewhere."""
    (y,) = check(argmax_of_exp, np.asarray([4, 3, 2, 1], np.float32), Out((1,), np.int64))
    assert y[0] == 0
    for seed in range(3):
        x = normal((67,), seed=seed)
        (y,) = check(argmax_of_exp, x, Out((1,), np.int64))
        assert y[0] == np.argmax(x)


@pytest.mark.parametrize(
    "values", [[np.nan, 6, 8], [np.nan, np.inf], [np.inf, np.nan], [1, np.nan, np.nan]]
)
def test_argmax_of_nan(values: list[float]) -> None:
    """triton 9022, 10291: one rule for NaN, in compiled code as in the interpreter."""
    for dtype in (np.float32, np.float64):
        x = np.asarray(values, dtype)
        assert tn.ops.argmax(x) == tn.ops.argmin(x) == np.argmax(np.isnan(x))


@tn.kernel
def running_maximum(X: Any, Y: Any) -> None:
    n = tn.axis("n", 20)
    best = Y[0, n]
    for step in tn.root().reduce(X.extent(0)):
        best = tn.maximum(best, X[(step.index(), 0), (1, n)].at(0, axis=0))
    Y(0, n).store(best)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, bfloat16], ids=str)
def test_a_maximum_into_existing_values_keeps_nan(dtype: Any) -> None:
    """tilelang 2697, 3270: NaN is lost where the reduction merges with what was there."""
    x, y = normal((3, 20), dtype, 1), normal((20,), dtype, 2)
    x[1, 4], y[7], x[2, 7], x[0, 9] = np.nan, np.nan, np.inf, -np.inf
    (z,) = check(running_maximum, x, InOut(y))
    assert_same(z, np.maximum(x.max(0), y))


def test_nan_differs_from_itself() -> None:
    """cuTile 1.2.0: a comparison of a value with itself is not folded."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 9)
        x = X[0, n]
        results = [x != x, x == x, x <= x, (x - x) == 0.0, x * 0.0 == 0.0]
        for place, result in enumerate(results):
            Y((place, 0), (1, n)).store(result)

    x = np.asarray([np.nan, 1, np.inf, -np.inf, 0, -0.0, 1e-40, 3, -2], np.float32)
    (y,) = check(kernel, x, Out((5, 9), np.bool_))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, [x != x, x == x, x <= x, (x - x) == 0, x * 0 == 0])


@tn.kernel
def repeated_argmax(X: Any, V: Any, P: Any, *, k: int) -> None:
    n = tn.axis("n", X.shape[0])
    x, taken = X[0, n], tn.iota(n) < 0
    for place in range(k):
        open_to = tn.where(taken, -np.inf, x)
        best = tn.max(open_to, n)
        where = tn.min(tn.where((open_to == best) & ~taken, tn.iota(n), 10**6), n)
        V.at(place).store(best)
        P.at(place).store(where)
        taken = taken | (tn.iota(n) == where)


@pytest.mark.parametrize("k", [0, 1, 16])
def test_the_greatest_by_repeated_argmax(k: int) -> None:
    """triton 6635: infinities and zeros among the elements; FlagGems 1578: k = 0 is no error."""
    x = np.where(np.arange(64) % 3 == 0, 0, normal((64,)))
    x[[3, 17, 40, 63]], x[10] = np.inf, 1.4394
    values, places = check(repeated_argmax, x, Out((16,), x.dtype), Out((16,), np.int64), k=k)
    order = np.argsort(-x, kind="stable")[:k]
    np.testing.assert_array_equal(places[:k], order)
    np.testing.assert_array_equal(values[:k], x[order])


# Ragged ends, masks, broadcasting ----------------------------------------------------------------


@tn.kernel
def contributions(X: Any, Y: Any, number: Any, *, block: int) -> None:
    n = tn.axis("n", block)
    total = tn.scalar(0, tn.float32)
    for part in tn.serial(tn.cdiv(X.extent(0), block)):
        start = part.index() * block
        inside = tn.iota(n) + start < X.extent(0)
        total = total + tn.sum(tn.where(inside, X[start, n] * 0.0 + number, 0.0))
    Y.at(0).store(total)
    Y.at(1).store(tn.sum(tn.broadcast(tn.scalar(number, tn.float32), n)))


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 33, 63, 64])
def test_padding_contributes_nothing(count: int) -> None:
    """pytorch 178871: a broadcast number is added once for each element, not for each lane."""
    for block in (count, 16, 64):
        (y,) = check(contributions, normal((count,)), Out((2,)), 2.0, block=block)
        assert y.tolist() == [2 * count, 2 * block]


@pytest.mark.parametrize("count", [1, 9, 17, 64])
def test_the_mean_of_a_part_of_the_lanes(count: int) -> None:
    """torch-spyre 4400: dead lanes hold the identity of the sum."""
    assert tn.ops.mean(np.full((3, count), 8, np.float32), 1).tolist() == [8, 8, 8]

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", count)
        for row in tn.parallel(3):
            Y.at(row).store(tn.mean(X[(row, 0), (1, n)].at(0, axis=0), n))

    (y,) = check(kernel, np.full((3, count), 8, np.float32), Out((3,)))
    assert y.tolist() == [8, 8, 8]


def test_a_mask_over_a_dimension_of_one() -> None:
    """helion 3265: the mask of an axis with one element."""

    @tn.kernel
    def kernel(X: Any, M: Any, Y: Any) -> None:
        r, n = tn.axis("r", X.shape[0]), tn.axis("n", X.shape[1])
        mask = M[0, r] & (X[(0, 0), (r, n)] > 0)
        Y((0, 0), (r, n)).store(X((0, 0), (r, n), mask=mask).load(other=-1))

    for shape in ((1, 33), (33, 1), (1, 1)):
        x, mask = whole(shape, seed=1), np.arange(shape[0]) % 2 == 0
        (y,) = check(kernel, x, mask, Out(shape))
        np.testing.assert_array_equal(y, np.where(mask[:, None] & (x > 0), x, -1))


def test_every_column_is_written() -> None:
    """tilelang 2537: 104 columns in 12 parts."""

    @tn.kernel
    def kernel(A: Any, B: Any, C: Any) -> None:
        m, n, k = tn.axis("m", 16), tn.axis("n", 9), tn.axis("k", 24)
        for part in tn.parallel(12):
            j = part.index() * 9
            acc = tn.mma(A[(0, 0), (m, k)], B[(0, j), (k, n)], tn.zeros((m, n), tn.float32))
            C((0, j), (m, n)).store(acc)

    a, b = whole((16, 24), seed=1), whole((24, 104), seed=2)
    (c,) = check(kernel, a, b, Out((16, 104)))
    np.testing.assert_array_equal(c, a @ b)
    np.testing.assert_array_equal(tn.ops.matmul(a, b), a @ b)


def test_a_load_past_the_end_does_not_shift() -> None:
    """jax 21143: elements stay where they are, those past the end are `other`."""

    @tn.kernel
    def kernel(X: Any, Y: Any, start: Any) -> None:
        Y(0, 16).store(X(start, 16).load(other=-1))

    x = np.arange(8, dtype=np.int32)
    for start in (3, -3, 0, 8, 100, -16):
        (y,) = check(kernel, x, Out((16,), np.int32), start)
        assert y.tolist() == [x[p] if 0 <= p < 8 else -1 for p in range(start, start + 16)]


def test_a_choice_over_an_inlined_sum() -> None:
    """halide 236: where() over a sum of two, clamped."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        dims = tuple(tn.axis(str(n), n) for n in X.shape)
        x = X[(0, 0, 0), dims]
        total = tn.reduce(x, dims[1], tn.add)
        Y((0, 0), (dims[0], dims[2])).store(
            tn.where(total > 255, 255, tn.where(total < 0, 0, total))
        )

    x = np.asarray([[[1, 1, 1, 200], [2, 2, 2, 100]], [[3, 3, 3, 55], [0, 0, -9, 200]]], np.int32)
    (y,) = check(kernel, x, Out((2, 4), np.int32))
    assert y.tolist() == [[3, 3, 3, 255], [3, 3, 0, 255]]


# Recurrences -------------------------------------------------------------------------------------


@tn.kernel
def recurrence(F: Any, X: Any, Y: Any, *, reverse: bool) -> None:
    n = X.shape[1]
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        total = tn.scalar(0, X.dtype)
        for step in row.serial(n):
            at = n - 1 - step.index() if reverse else step.index()
            total = total * F.at(i, at).load() + X.at(i, at).load()
            Y.at(i, at).store(total)


@pytest.mark.parametrize("count", [1, 8, 32])
def test_running_sums(count: int) -> None:
    """triton 2361: the sum goes on past the fourth element."""
    ones = np.ones((2, count), np.int64)
    (y,) = check(recurrence, ones, ones, Out((2, count), np.int64), reverse=False)
    assert y.tolist() == [list(range(1, count + 1))] * 2


def test_running_sums_in_reverse() -> None:
    """triton 4362: from the last element to the first, with factors."""
    f = np.asarray([[1, 1.5, 0.8, 2]], np.float32)
    x = np.asarray([[1, -1, 0.5, 2]], np.float32)
    (y,) = check(recurrence, f, x, Out((1, 4)), reverse=True)
    np.testing.assert_allclose(y, [[3.15, 2.15, 2.1, 2]], rtol=1e-6)


def test_sums_over_a_part_of_a_matrix() -> None:
    """tilelang 2620, 2536, 2680: a window whose rows lie further apart than they are long."""
    big = placed(whole((20, 30), seed=1))
    window = big.array[4:9, 2:19]
    ones = np.ones((5, 17), np.float32)
    y = poisoned((20, 30), np.float32)
    recurrence(ones, window, y.array[4:9, 2:19], reverse=False)
    np.testing.assert_array_equal(y.array[4:9, 2:19], window.cumsum(1))
    y.array[4:9, 2:19] = np.nan
    assert np.isnan(y.array).all()
    assert y.has_intact_guards
    np.testing.assert_array_equal(tn.ops.sum(window, 1), window.sum(1))
    np.testing.assert_array_equal(tn.ops.sum(window, 0), window.sum(0))
