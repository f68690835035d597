"""How far the library operators may be from exact arithmetic: bounds from extents and epsilons.

Every function takes the operator's inputs and gives the exact result (in float64, for f64 inputs in
the platform's long double) with a bound for each element. `u` is the unit roundoff of the dtype
that the operator computes in (float32 for 16-bit floats), half its epsilon; exp, tanh, erf are
within 2 ulp, at most 4u relative. Bounds are first order; `_SECOND_ORDER` pays for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from scipy.special import erf

from tests.oracle.arrays import Array, bfloat16

_SECOND_ORDER = 1.01


@dataclass(frozen=True, slots=True)
class Expected:
    """Exact values and the largest errors allowed."""

    values: Array
    bound: Array


def wide(x: Array) -> Array:
    """The same numbers in a dtype that makes the reference's own errors negligible."""
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def roundoff(dtype: np.dtype[Any]) -> float:
    """The unit roundoff of the dtype that is computed in."""
    compute = np.float64 if dtype == np.float64 else np.float32
    return float(np.finfo(compute).eps) / 2


def rounded(values: Array, bound: Array, dtype: np.dtype[Any]) -> Expected:
    """The bound with the last rounding to `dtype`, whose subnormals are evenly spaced."""
    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype)
    last = np.abs(values) * (float(info.eps) / 2) + float(info.smallest_subnormal)
    return Expected(values, (bound + last) * _SECOND_ORDER)


def assert_within(actual: Array, expected: Expected) -> None:
    """NaN where NaN is expected, infinite where that is, else within the bound."""
    values, got = expected.values, wide(actual)
    assert actual.shape == values.shape
    is_special = ~np.isfinite(values)
    np.testing.assert_array_equal(got[is_special], values[is_special])
    error = np.abs(got[~is_special] - values[~is_special])
    bound = np.broadcast_to(expected.bound, values.shape)[~is_special]
    late = ~(error <= bound)
    assert not late.any(), f"error {error[late][0]:.3g} past its bound {bound[late][0]:.3g}"


def summed(x: Array, axis: int | None) -> Expected:
    """In any order, n terms make n - 1 roundings, each of at most u times the sum of magnitudes."""
    n, total = _count(x, axis), wide(x).sum(axis=axis)
    bound = n * roundoff(x.dtype) * np.abs(wide(x)).sum(axis=axis)
    return rounded(np.asarray(total), np.asarray(bound), x.dtype)


def averaged(x: Array, axis: int | None) -> Expected:
    """The sum's bound divided by n; a 16-bit sum is rounded once more before the division, and the
    division rounds."""
    n = _count(x, axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = summed(x, axis)
        return rounded(np.asarray(sums.values / n), np.asarray(sums.bound / n), x.dtype)


def product(
    a: Array,
    b: Array,
    bias: Array | None = None,
    activation: str | None = None,
    residual: Array | None = None,
) -> Expected:
    """A chain of k fused steps: k roundings, each of at most u times |a| @ |b|. Then the bias is
    one rounding, an activation stretches the error by at most 1.13 (the steepest, GELU) and adds
    its own few roundings, the residual one more."""
    u, k = roundoff(a.dtype), a.shape[-1]
    y = np.asarray(wide(a) @ wide(b))
    bound = np.asarray(k * u * (np.abs(wide(a)) @ np.abs(wide(b))))
    if bias is not None:
        y = y + wide(bias)
        bound = bound + u * np.abs(y)
    if activation is not None:
        bound = 1.13 * bound + 10 * u * np.abs(y)
        y = ACTIVATIONS[activation](y)
    if residual is not None:
        y = y + wide(residual)
        bound = bound + u * np.abs(y)
    return rounded(y, bound, a.dtype)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + erf(x.astype(np.float64) * 0.5**0.5)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": _gelu,
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def gelu(x: Array, bias: Array | None, residual: Array | None) -> Expected:
    """x + bias rounds once, and GELU stretches that by at most 1.13. erf is at most 1 and
    within 4u, its argument within 2u (worth less than u after erf's slope), 1 + erf and two
    products round once each: 8u |x| in all, absolutely, for 1 + erf cancels where x is negative.
    The residual's sum rounds once. scipy's erf is float64, so f64 gets twice the bound."""
    u = roundoff(x.dtype)
    total = wide(x) if bias is None else wide(x) + wide(bias)
    y = _gelu(total)
    bound = (1.13 + 8) * u * np.abs(total)
    if residual is not None:
        y = y + wide(residual)
        bound = bound + u * np.abs(y)
    bound = bound * (2 if x.dtype == np.float64 else 1)
    return rounded(y.reshape(x.shape), bound.reshape(x.shape), x.dtype)


def swiglu(gate: Array, up: Array) -> Expected:
    """exp is within 4u, the sum, the quotient and the product round once: 7u of the result. Past
    -gate = 88 (709 in f64) exp overflows and the result is 0 where the exact one is below
    89 * exp(-88) (710 * exp(-709)) times |up|, which is under 2**11 times the least normal one."""
    u = roundoff(gate.dtype)
    y = wide(gate) / (1 + np.exp(-wide(gate))) * wide(up)
    least = float(np.finfo(np.float64 if gate.dtype == np.float64 else np.float32).tiny)
    return rounded(y, 7 * u * np.abs(y) + 2**11 * least * np.abs(wide(up)), gate.dtype)


def softmax(x: Array, axis: int = -1, mask: Array | None = None) -> Expected:
    """With d = max - x: d rounds once, which exp turns into a relative d*u, and exp adds 4u. The
    sum of n such terms is within n*u of theirs, whose worst is max(d)*u + 4u; the reciprocal and
    the product round once each. Terms below the least normal number may vanish."""
    if x.size == 0:
        return Expected(wide(x), np.zeros(x.shape))
    u, n = roundoff(x.dtype), x.shape[axis] if x.ndim else 1
    kept = np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)
    axis = axis if x.ndim else 0
    values = wide(np.where(kept, x, np.asarray(-np.inf, x.dtype)))
    least = 4 * float(np.finfo(np.float64 if x.dtype == np.float64 else np.float32).tiny)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = values if x.ndim else values.reshape(1)
        d = values.max(axis=axis, keepdims=True) - values
        e = np.exp(-d)
        e = np.where(kept, e, 0) if mask is not None else e
        total = e.sum(axis=axis, keepdims=True)
        y = e / np.where((total == 0) & (mask is not None), 1, total)
        d = np.where(np.isfinite(d), np.minimum(d, 104), 0)
    relative = (d + 4 + d.max(axis=axis, keepdims=True) + 4 + n + 2) * u
    bound = np.nan_to_num(np.abs(y)) * relative + least
    return rounded(y.reshape(x.shape), bound.reshape(x.shape), x.dtype)


def layer_norm(
    x: Array, weight: Array | None, bias: Array | None, eps: float, residual: Array | None = None
) -> Expected:
    """The mean's error is (n+1)u times the mean magnitude, that of c = x - mean one rounding more;
    the variance takes twice |c| times it, its own sum n+2 roundings. rsqrt halves the variance's
    relative error and rounds twice. The products and the bias round once each."""
    if x.size == 0:
        return Expected(wide(x), np.zeros(x.shape))
    u, n = roundoff(x.dtype), x.shape[-1] if x.ndim else 1
    values = wide(x).reshape(*x.shape[:-1], n) if x.ndim else wide(x).reshape(1)
    rest = 0.0 if residual is None else wide(residual).reshape(values.shape)
    values = values + rest
    first = 0 * values if residual is None else u * np.abs(values)
    mean = values.mean(-1, keepdims=True)
    c = values - mean
    mean_error = (n + 1) * u * np.abs(values).mean(-1, keepdims=True)
    c_error = first + first.mean(-1, keepdims=True) + mean_error + u * np.abs(c)
    variance = (c * c).mean(-1, keepdims=True)
    v_error = (2 * np.abs(c) * c_error + c_error**2).mean(-1, keepdims=True) + (
        n + 2
    ) * u * variance
    r = 1 / np.sqrt(variance + eps)
    relative = v_error / (2 * (variance + eps)) + 4 * u
    scale = 1.0 if weight is None else wide(weight)
    y = c * r * scale
    bound = (c_error * r + np.abs(c) * r * (relative + 2 * u)) * np.abs(scale)
    if bias is not None:
        y = y + wide(bias)
        bound = bound + u * np.abs(y)
    return rounded(y.reshape(x.shape), bound.reshape(x.shape), x.dtype)


def rms_norm(x: Array, weight: Array | None, eps: float) -> Expected:
    """The mean square is within (n+3)u, rsqrt halves that and rounds twice, two products follow."""
    if x.size == 0:
        return Expected(wide(x), np.zeros(x.shape))
    u, n = roundoff(x.dtype), x.shape[-1] if x.ndim else 1
    square = (wide(x) ** 2).mean(-1, keepdims=True) if x.ndim else wide(x) ** 2
    y = wide(x) / np.sqrt(square + eps)
    y = y if weight is None else y * wide(weight).reshape(weight.shape if x.ndim else ())
    return rounded(y, np.abs(y) * ((n + 3) / 2 + 4) * u, x.dtype)


def _count(x: Array, axis: int | None) -> int:
    return x.size if axis is None else x.shape[axis]


FLOATS = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), bfloat16]
