"""Products and elementwise work in every dtype the form admits keep their meaning."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, run_stepwise
from tilenest import language
from tilenest.ir import DType, bfloat16, float16, float32, float64, int8, int32, int64

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language


def product(A: Any, B: Any, C: Any, *, accumulator: DType) -> None:
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", 8), tn.axis("n", 32), tn.axis("k", 4)
    for block in tn.parallel(tn.cdiv(M, 8), tn.cdiv(N, 32)):
        i, j = block.index()
        acc = tn.zeros((m, n), accumulator)
        for step in block.serial(tn.cdiv(K, 4)):
            k0 = step.index() * 4
            acc = tn.mma(A[(i * 8, k0), (m, k)], B[(k0, j * 32), (k, n)], acc)
        C((i * 8, j * 32), (m, n)).store(acc)


NUMPY = {
    bfloat16: np.dtype(ml_dtypes.bfloat16),
    float16: np.dtype(np.float16),
    float32: np.dtype(np.float32),
    float64: np.dtype(np.float64),
    int8: np.dtype(np.int8),
    int32: np.dtype(np.int32),
    int64: np.dtype(np.int64),
}


def numbers(dtype: DType, *shape: int) -> Array:
    values = np.random.default_rng(len(shape)).integers(-4, 5, shape)
    return values.astype(NUMPY[dtype])


@pytest.mark.parametrize(
    ("operand", "accumulator"),
    [
        (float32, float32),
        (float64, float64),
        (float16, float32),
        (bfloat16, float32),
        (int8, int32),
        (int32, int32),
    ],
    ids=lambda dtype: dtype.name,
)
def test_products_are_blocked_in_every_dtype(operand: DType, accumulator: DType) -> None:
    a, b = numbers(operand, 11, 9), numbers(operand, 9, 37)
    c = np.full((11, 37), 77, NUMPY[accumulator])
    found = run_stepwise(product, [a, b, c], {"accumulator": accumulator})
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(found.arguments[2].astype(np.float64), wanted)
    assert any(op.schedule().preset == "register_blocked" for op in found.work)


def test_products_convert_each_integer_dtype() -> None:
    a = numbers(int8, 11, 9)
    b = np.random.default_rng(0).integers(0, 256, (9, 37)).astype(np.uint8)
    found = run_stepwise(product, [a, b, np.full((11, 37), 77, np.int32)], {"accumulator": int32})
    np.testing.assert_array_equal(found.arguments[2], a.astype(np.int64) @ b.astype(np.int64))


def integer_sum(X: Any, Y: Any, *, policy: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y(0, m).store(tn.reduce(X[(0, 0), (m, n)], n, tn.add, policy=policy))


def test_exact_chains_may_be_split() -> None:
    x, y = numbers(int32, 3, 50), np.zeros(3, np.int32)
    found = run_stepwise(integer_sum, [x, y], {"policy": tn.reduction.fold_left})
    assert [op.schedule().preset for op in found.work] == ["reduction_vectorized"]
    found = run_stepwise(
        integer_sum,
        [x.astype(np.float32), y.astype(np.float32)],
        {"policy": tn.reduction.fold_left},
    )
    assert [op.schedule().preset for op in found.work] == ["vectorized"]
