"""The scalar functions and casts on arrays of any shape, by dtype.

In: a dtype and arrays of it. Out: an array in which every element was rounded once per function.
Half precision is computed in float32, which is wide enough that the second rounding is harmless;
transcendentals are evaluated in at least float64. Nothing traps and nothing warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilenest.interp.rounding import from_integers, fused_multiply_add, narrow, widen
from tilenest.interp.values import Array, numpy_dtype
from tilenest.ir import DType, float64, uint8

Function = Callable[..., Array]

_python_erf = np.frompyfunc(math.erf, 1, 1)


def apply(name: str, dtype: DType, arguments: list[Array]) -> Array:
    """Function `name` of the table; `dtype` is that of the last argument."""
    return np.asarray(FUNCTIONS[name](dtype, *arguments))


def cast(array: Array, source: DType, target: DType) -> Array:
    """Convert as design section 6 says: nearest even, float to int saturating, NaN to 0."""
    if target.is_bool:
        return np.asarray(widen(array) != 0)
    if source.is_bool:
        array, source = array.astype(np.uint8), uint8
    if target.is_float:
        return narrow(widen(array), target) if source.is_float else from_integers(array, target)
    return _saturated(array, target) if source.is_float else _plain(array, target)


def _plain(array: Array, target: DType) -> Array:
    return array.astype(numpy_dtype(target))


def _saturated(array: Array, target: DType) -> Array:
    whole = np.trunc(array.astype(np.float64))
    limits = np.iinfo(numpy_dtype(target))
    # The upper limit plus one is a power of two, so both comparisons are exact.
    above = whole >= float(int(limits.max) + 1)
    below = whole < float(limits.min)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(limits.dtype)
    return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(limits.dtype)


def _rounded(ufunc: Callable[..., Any]) -> Function:
    """Exact to the last bit of the wide dtype; integers wrap."""

    def function(dtype: DType, *arguments: Array) -> Array:
        if not dtype.is_float:
            return np.asarray(ufunc(*arguments))
        return narrow(np.asarray(ufunc(*map(widen, arguments))), dtype)

    return function


def _evaluated(evaluate: Callable[[Array], Any]) -> Function:
    """A function without an exact result: float64 is evaluated in the longest float there is."""

    def function(dtype: DType, x: Array) -> Array:
        wide = x.astype(np.longdouble if dtype is float64 else np.float64)
        return narrow(np.asarray(evaluate(wide)).astype(np.float64), dtype)

    return function


def _compared(ufunc: Callable[..., Any]) -> Function:
    def function(_: DType, x: Array, y: Array) -> Array:
        return np.asarray(ufunc(widen(x), widen(y)))

    return function


def _minimum(dtype: DType, x: Array, y: Array) -> Array:
    x, y = widen(x), widen(y)
    if not dtype.is_float:
        return np.asarray(np.minimum(x, y))
    zeros = (x == 0) & (y == 0)
    return narrow(np.where(zeros, -(-x - y), np.minimum(x, y)), dtype)


def _maximum(dtype: DType, x: Array, y: Array) -> Array:
    x, y = widen(x), widen(y)
    if not dtype.is_float:
        return np.asarray(np.maximum(x, y))
    zeros = (x == 0) & (y == 0)
    return narrow(np.where(zeros, x + y, np.maximum(x, y)), dtype)


def _ignoring_nan(choose: Function) -> Function:
    def function(dtype: DType, x: Array, y: Array) -> Array:
        x_is_nan, y_is_nan = np.isnan(widen(x)), np.isnan(widen(y))
        return np.where(x_is_nan, y, np.where(y_is_nan, x, choose(dtype, x, y)))

    return function


def _floor_divide(dtype: DType, x: Array, y: Array) -> Array:
    plain = (y != 0) & ~_is_minus_one(dtype, y)
    quotient = np.floor_divide(x, np.where(plain, y, y.dtype.type(1)))
    return np.where(plain, quotient, np.where(y == 0, x.dtype.type(0), np.negative(x)))


def _modulo(dtype: DType, x: Array, y: Array) -> Array:
    plain = (y != 0) & ~_is_minus_one(dtype, y)
    return np.where(plain, np.remainder(x, np.where(plain, y, y.dtype.type(1))), x.dtype.type(0))


def _is_minus_one(dtype: DType, y: Array) -> Array:
    return np.asarray(y == -1) if dtype.is_signed else np.zeros_like(y, np.bool_)


def _shift_left(dtype: DType, x: Array, count: Array) -> Array:
    fits = (count >= 0) & (count < dtype.bits)
    return np.where(fits, np.left_shift(x, np.where(fits, count, 0)), 0).astype(x.dtype)


def _shift_right(dtype: DType, x: Array, count: Array) -> Array:
    fits = (count >= 0) & (count < dtype.bits)
    rest = np.right_shift(x, dtype.bits - 1) if dtype.is_signed else np.zeros_like(x)
    return np.where(fits, np.right_shift(x, np.where(fits, count, 0)), rest).astype(x.dtype)


def _where(_: DType, predicate: Array, x: Array, y: Array) -> Array:
    return np.where(predicate, x, y)


def _erf(x: Array) -> Array:
    return np.asarray(_python_erf(x.astype(np.float64))).astype(np.float64)


def _invert(_: DType, x: Array) -> Array:
    return np.asarray(np.invert(x))


FUNCTIONS: dict[str, Function] = {
    "add": _rounded(np.add),
    "sub": _rounded(np.subtract),
    "mul": _rounded(np.multiply),
    "div": _rounded(np.divide),
    "floordiv": _floor_divide,
    "mod": _modulo,
    "neg": _rounded(np.negative),
    "abs": _rounded(np.abs),
    "minimum": _minimum,
    "maximum": _maximum,
    "fmin": _ignoring_nan(_minimum),
    "fmax": _ignoring_nan(_maximum),
    "fma": fused_multiply_add,
    "eq": _compared(np.equal),
    "ne": _compared(np.not_equal),
    "lt": _compared(np.less),
    "le": _compared(np.less_equal),
    "gt": _compared(np.greater),
    "ge": _compared(np.greater_equal),
    "and": _rounded(np.bitwise_and),
    "or": _rounded(np.bitwise_or),
    "xor": _rounded(np.bitwise_xor),
    "not": _invert,
    "shl": _shift_left,
    "shr": _shift_right,
    "where": _where,
    "sqrt": _rounded(np.sqrt),
    "rsqrt": _evaluated(lambda x: 1 / np.sqrt(x)),
    "floor": _rounded(np.floor),
    "ceil": _rounded(np.ceil),
    "trunc": _rounded(np.trunc),
    "rint": _rounded(np.rint),
    "exp": _evaluated(np.exp),
    "exp2": _evaluated(np.exp2),
    "expm1": _evaluated(np.expm1),
    "log": _evaluated(np.log),
    "log2": _evaluated(np.log2),
    "log1p": _evaluated(np.log1p),
    "tanh": _evaluated(np.tanh),
    "erf": _evaluated(_erf),
    "sin": _evaluated(np.sin),
    "cos": _evaluated(np.cos),
}
