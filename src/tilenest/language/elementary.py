"""Elementwise functions, by the names NumPy gives them.

In: tiles and scalars that join, and numbers beside them. Out: a tile over the joined dims, or a
scalar. Transcendental functions take floats only and are within 2 ulp for float32 and float64;
specials are those of C99. Each function of the scalar table is one operation, the others compose.
A result has the operands' dtype unless it says another. DTypeError for dtypes that a function does
not name, or that differ; ShapeError for tiles that do not join.
"""

from __future__ import annotations

import math
from typing import TypeVar, overload

import numpy as np

from tilenest.ir import bool_, float64, int64
from tilenest.language.creation import scalar
from tilenest.language.dtypes import Number
from tilenest.language.values import (
    Element,
    Operable,
    Scalar,
    Tile,
    as_element,
    elementwise,
)

Result = Tile | Scalar
ElementT = TypeVar("ElementT", bound=Element)


@overload
def cast(x: ElementT, dtype: object) -> ElementT: ...
@overload
def cast(x: Number | np.generic, dtype: object) -> Scalar: ...
def cast(x: ElementT | Number | np.generic, dtype: object) -> ElementT | Scalar:
    """`x` converted to `dtype`: to nearest even; floats to integers saturate and NaN gives 0. A
    Python number becomes a scalar: an int by way of int64, a float of float64."""
    if isinstance(x, bool | int | float):
        kind = bool_ if isinstance(x, bool) else int64 if isinstance(x, int) else float64
        return scalar(x, kind).cast(dtype)
    if isinstance(x, np.generic):
        return scalar(x).cast(dtype)
    as_element(x, "cast")
    return x.cast(dtype)


def bitcast(x: ElementT, dtype: object) -> ElementT:
    """The bits of `x` read as a dtype of the same width, not bool; else DTypeError."""
    as_element(x, "bitcast")
    return x.bitcast(dtype)


def where(condition: Operable, a: Operable, b: Operable) -> Result:
    """`a` where the bool `condition` is true, else `b`, of one dtype; both are computed."""
    return elementwise("where", condition, a, b)


def fma(x: Operable, y: Operable, z: Operable) -> Result:
    """x * y + z of floats, rounded once."""
    return elementwise("fma", x, y, z)


def subtract(a: Operable, b: Operable) -> Result:
    """a - b of numbers; integers wrap."""
    return elementwise("sub", a, b)


def divide(a: Operable, b: Operable) -> Result:
    """a / b of floats; integers use `//`."""
    return elementwise("div", a, b)


def floor_divide(a: Operable, b: Operable) -> Result:
    """a // b of integers, rounded down; 0 where b is 0."""
    return elementwise("floordiv", a, b)


def mod(a: Operable, b: Operable) -> Result:
    """a % b of integers, with the sign of b; 0 where b is 0."""
    return elementwise("mod", a, b)


def negative(x: Operable) -> Result:
    """-x of numbers; integers wrap."""
    return elementwise("neg", x)


def abs(x: Operable) -> Result:  # noqa: A001 - the name NumPy gives it
    """The magnitude of numbers; that of the least signed integer wraps to itself."""
    return elementwise("abs", x)


def clip(x: Operable, low: Operable, high: Operable) -> Result:
    """`x` limited to [low, high], all of one dtype; NaN stays NaN."""
    return elementwise("minimum", elementwise("maximum", x, low), high)


def logical_not(x: Operable) -> Result:
    """The other truth value of a bool; of an integer every bit the other way."""
    return elementwise("not", x)


def isnan(x: Operable) -> Result:
    """Whether an element is NaN, as bool; integers never are."""
    return elementwise("ne", x, x)


def isinf(x: Operable) -> Result:
    """Whether an element of floats is infinite, as bool."""
    return elementwise("eq", elementwise("abs", x), math.inf)


def isfinite(x: Operable) -> Result:
    """Whether an element of floats is neither infinite nor NaN, as bool."""
    return elementwise("lt", elementwise("abs", x), math.inf)


def square(x: Operable) -> Result:
    """x * x of numbers; integers wrap."""
    return elementwise("mul", x, x)


def sqrt(x: Operable) -> Result:
    """The square root of floats, correctly rounded; NaN below 0."""
    return elementwise("sqrt", x)


def rsqrt(x: Operable) -> Result:
    """1 / sqrt(x) of floats."""
    return elementwise("rsqrt", x)


def reciprocal(x: Operable) -> Result:
    """1 / x of floats."""
    return elementwise("div", 1, x)


def floor(x: Operable) -> Result:
    """The greatest whole number that is not above x, of floats and as one."""
    return elementwise("floor", x)


def ceil(x: Operable) -> Result:
    """The least whole number that is not below x, of floats and as one."""
    return elementwise("ceil", x)


def trunc(x: Operable) -> Result:
    """The whole part of floats, as a float."""
    return elementwise("trunc", x)


def rint(x: Operable) -> Result:
    """The nearest whole number of floats, as a float; halves go to the even one."""
    return elementwise("rint", x)


def exp(x: Operable) -> Result:
    """e to the x, of floats."""
    return elementwise("exp", x)


def exp2(x: Operable) -> Result:
    """2 to the x, of floats."""
    return elementwise("exp2", x)


def expm1(x: Operable) -> Result:
    """exp(x) - 1 of floats, exact near 0."""
    return elementwise("expm1", x)


def log(x: Operable) -> Result:
    """The natural logarithm of floats; NaN below 0."""
    return elementwise("log", x)


def log2(x: Operable) -> Result:
    """The logarithm to base 2 of floats; NaN below 0."""
    return elementwise("log2", x)


def log1p(x: Operable) -> Result:
    """log(1 + x) of floats, exact near 0."""
    return elementwise("log1p", x)


def tanh(x: Operable) -> Result:
    """The hyperbolic tangent of floats."""
    return elementwise("tanh", x)


def erf(x: Operable) -> Result:
    """The error function of floats."""
    return elementwise("erf", x)


def sin(x: Operable) -> Result:
    """The sine of angles in radians, of floats."""
    return elementwise("sin", x)


def cos(x: Operable) -> Result:
    """The cosine of angles in radians, of floats."""
    return elementwise("cos", x)


def sigmoid(x: Operable) -> Result:
    """1 / (1 + exp(-x)) of floats."""
    return reciprocal(exp(negative(x)) + 1)
