"""Rounding exactly once: narrowing, integer to float, fused multiply-add.

In: arrays. Out: the float nearest to the exact result, ties to even, in every float dtype. The
idea is rounding to odd: an inexact intermediate takes the neighbour whose last bit is 1, which
records that something was lost, so that a second rounding to fewer bits cannot go wrong.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tilenest.interp.values import Array, numpy_dtype
from tilenest.ir import DType, bfloat16, float16, float64

_SPLIT = float(2**27 + 1)
_HALVES = (numpy_dtype(float16), numpy_dtype(bfloat16))


def widen(array: Array) -> Array:
    """Half precision as float32, all else as it is; exact."""
    return array.astype(np.float32) if array.dtype in _HALVES else array


def narrow(array: Array, dtype: DType) -> Array:
    """Floats rounded once to `dtype`."""
    if dtype is bfloat16 and array.dtype == np.float64:
        array = _single_to_odd(array)
    return np.asarray(array).astype(numpy_dtype(dtype))


def from_integers(array: Array, dtype: DType) -> Array:
    """Integers of at most 64 bits rounded once to the float `dtype`."""
    half_word = array.dtype.type((1 << 4 * array.dtype.itemsize) - 1)
    low_bits = array & half_word
    # Either half is exact in float64, and the difference cannot wrap.
    high, low = (array - low_bits).astype(np.float64), low_bits.astype(np.float64)
    if dtype is float64:
        return np.asarray(high + low)
    return narrow(sum_to_odd(high, low), dtype)


def sum_to_odd(x: Array, y: Array) -> Array:
    """x + y in float64, rounded to odd."""
    total, error = _two_sum(x, y)
    even = (np.ascontiguousarray(total).view(np.int64).reshape(total.shape) & 1) == 0
    moves = np.isfinite(total) & np.isfinite(error) & (error != 0) & even
    return np.where(moves, np.nextafter(total, np.copysign(np.inf, error)), total)


def fused_multiply_add(dtype: DType, x: Array, y: Array, z: Array) -> Array:
    """x * y + z rounded once, in a float dtype."""
    if dtype is float64:
        return _fma_double(*np.broadcast_arrays(x, y, z))
    # The product of two floats of at most 24 bits is exact in 53.
    product = x.astype(np.float64) * y.astype(np.float64)
    return narrow(sum_to_odd(product, z.astype(np.float64)), dtype)


def _single_to_odd(array: Array) -> Array:
    """float64 to float32, rounded to odd."""
    nearest = np.asarray(array.astype(np.float32))
    bits = np.ascontiguousarray(nearest).view(np.uint32).reshape(nearest.shape)
    inexact = np.isfinite(array) & (nearest.astype(np.float64) != array)
    beyond = inexact & (np.abs(nearest.astype(np.float64)) > np.abs(array))
    towards_zero = bits - beyond.astype(np.uint32)
    odd = np.asarray(np.where(inexact, towards_zero | np.uint32(1), bits))
    return odd.view(np.float32).reshape(nearest.shape)


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded sum and what it lost, exactly."""
    total = np.asarray(x + y)
    back = total - x
    return total, np.asarray((x - (total - back)) + (y - back))


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded product and what it lost, exactly unless an exponent leaves the range."""
    product = x * y
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    error = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
    return product, error


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _fma_double(x: Array, y: Array, z: Array) -> Array:
    # Exact as it stands where a factor is zero or anything is not finite.
    result = np.array(x * y + z)
    pending = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (x != 0) & (y != 0)
    far = ~_within(x, 400) | ~_within(y, 400) | ((z != 0) & ~_within(z, 800))
    near = pending & ~far
    result[near] = _fma_near(x[near], y[near], z[near])
    hard = pending & far
    exact = zip(x[hard].tolist(), y[hard].tolist(), z[hard].tolist(), strict=True)
    result[hard] = [_fma_exact(*numbers) for numbers in exact]
    return result


def _within(x: Array, exponent: int) -> Array:
    size = np.abs(x)
    return (size >= 2.0**-exponent) & (size <= 2.0**exponent)


def _fma_near(x: Array, y: Array, z: Array) -> Array:
    """By error-free transformations; every exponent is far from the ends of the range."""
    product, lost = _two_product(x, y)
    rest, tail = _two_sum(z, lost)
    head, carried = _two_sum(product, rest)
    return np.asarray(head + sum_to_odd(tail, carried))


def _fma_exact(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        size = float(abs(exact))
    except OverflowError:
        size = float("inf")
    return -size if exact < 0 else size
