"""Elementwise functions and reducers as functions, against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import build, evaluate, find, random_array, untyped, whole
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import SCALAR_FUNCTIONS, Apply
from tilenest.errors import DTypeError

ERF = np.vectorize(math.erf)
UNARY: dict[str, Any] = {
    "abs": np.abs,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": ERF,
    "sin": np.sin,
    "cos": np.cos,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
BINARY: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
}
INTEGER: dict[str, Any] = {
    "floor_divide": np.floor_divide,
    "mod": np.mod,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name: str) -> None:
    x = np.abs(random_array(37, dtype=np.float64)) + 0.1
    result = evaluate(getattr(tn, name), x)
    np.testing.assert_allclose(result, UNARY[name](x), rtol=1e-14)
    assert result.dtype == np.float64


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name: str) -> None:
    a, b = random_array(37), random_array(37, seed=1)
    a[3] = b[4] = np.nan
    np.testing.assert_array_equal(evaluate(getattr(tn, name), a, b), BINARY[name](a, b))


@pytest.mark.parametrize("name", INTEGER)
def test_integer_functions(name: str) -> None:
    a = random_array(37, dtype=np.int32)
    b = random_array(37, dtype=np.int32, seed=1) | 1
    np.testing.assert_array_equal(evaluate(getattr(tn, name), a, b), INTEGER[name](a, b))


def test_logical_functions() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name in ("logical_and", "logical_or", "logical_xor"):
        np.testing.assert_array_equal(evaluate(getattr(tn, name), a, b), getattr(np, name)(a, b))
    np.testing.assert_array_equal(evaluate(tn.logical_not, a), ~a)

    def body(x: tn.View) -> None:
        with pytest.raises(DTypeError, match="takes bool operands"):
            tn.logical_and(whole(x), 1)

    build(body, random_array(4, dtype=np.int32))


def test_nan_may_be_ignored() -> None:
    a, b = np.array([1, np.nan, 3]), np.array([2, 2, np.nan])
    ignoring = evaluate(lambda x, y: tn.maximum(x, y, propagate_nan=False), a, b)
    np.testing.assert_array_equal(ignoring, [2, 2, 3])
    ignoring = evaluate(lambda x, y: tn.minimum(x, y, propagate_nan=False), a, b)
    np.testing.assert_array_equal(ignoring, [1, 2, 3])


def test_classification_and_clipping() -> None:
    x = np.array([1, -np.inf, np.nan, np.inf, -0.0], np.float32)
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(evaluate(getattr(tn, name), x), getattr(np, name)(x))
    np.testing.assert_array_equal(evaluate(lambda a: tn.clip(a, -2, 0.5), x), np.clip(x, -2, 0.5))


def test_where_and_fma() -> None:
    x, y = random_array(9), random_array(9, seed=1)
    np.testing.assert_array_equal(
        evaluate(lambda a, b: tn.where(a > 0, a, b), x, y), np.where(x > 0, x, y)
    )
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.where(a > 0, 1, a), x), np.where(x > 0, np.float32(1), x)
    )
    exact = x.astype(np.float64) * y + 1.0
    np.testing.assert_array_equal(
        evaluate(lambda a, b: tn.fma(a, b, 1), x, y), exact.astype(np.float32)
    )


def test_casts_as_functions() -> None:
    x = random_array(4)
    assert evaluate(lambda a: tn.cast(a, ir.float64), x).dtype == np.float64
    bits = evaluate(lambda a: tn.bitcast(a, ir.uint32), x)
    np.testing.assert_array_equal(bits, x.view(np.uint32))


def test_every_scalar_function_can_be_written() -> None:
    """Each entry of the table is emitted by some function or operator."""

    def body(a: tn.View, b: tn.View) -> None:
        x, n = whole(a), whole(b)
        for name in UNARY:
            getattr(untyped, name)(x)
        for name in BINARY:
            getattr(untyped, name)(x, x)
        for name in INTEGER:
            getattr(untyped, name)(n, n)
        for result in (n << 1, n >> 1, ~n, x == x, x != x, x < x, x <= x, x > x, x >= x):
            assert isinstance(result, tn.Tile)
        tn.where(tn.isnan(x), tn.fma(x, x, x), x)

    session = build(body, random_array(4), random_array(4, dtype=np.int32))
    assert {op.function for op in find(session, Apply)} == set(SCALAR_FUNCTIONS)


@pytest.mark.parametrize("dtype", [ir.float32, ir.int8, ir.uint8, ir.int64])
def test_identities(dtype: ir.DType) -> None:
    reducers: list[Any] = [tn.add, tn.multiply, tn.maximum, tn.minimum]
    if not dtype.is_float:
        reducers += [tn.bitwise_and, tn.bitwise_or, tn.bitwise_xor]
    x = random_array(7, dtype=np.dtype(dtype.name))
    for reducer in reducers:
        neutral = reducer.over_nothing(dtype)
        result = evaluate(lambda a, r=reducer, e=neutral: r(a, e), x)
        np.testing.assert_array_equal(result, x)


def test_identities_of_bool() -> None:
    x = np.array([False, True])
    for reducer in (tn.logical_and, tn.logical_or, tn.logical_xor, tn.maximum, tn.minimum):
        neutral = reducer.over_nothing(ir.bool_)
        result = evaluate(lambda a, r=reducer, e=neutral: r(a, e), x)
        np.testing.assert_array_equal(result, x)
