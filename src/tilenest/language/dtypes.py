"""Which dtype an operation computes in, and host numbers rounded to it.

In: dtypes, Python numbers (weakly typed: they take the dtype they meet, rounded once) and NumPy
scalars (they keep theirs). Out: a dtype, or the number as the constant that the IR stores. A number
that a dtype cannot hold is a DTypeError, never a wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilenest.errors import DTypeError, shown
from tilenest.ir import (
    DTYPES,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    index,
    int32,
    int64,
)

Number = bool | int | float
_BY_NAME = {dtype.name.rstrip("_"): dtype for dtype in DTYPES if dtype is not index}
_BINARY_FORMATS = {
    float16: (11, -14, 15),
    bfloat16: (8, -126, 127),
    float32: (24, -126, 127),
    float64: (53, -1022, 1023),
}
"""Bits of the significand, least and greatest exponent."""


def as_dtype(given: object) -> DType:
    """A dtype written as `tn.float32`, `np.float32` or `np.dtype("float32")`."""
    if isinstance(given, DType):
        return given
    is_numpy = isinstance(given, np.dtype) or (
        isinstance(given, type) and issubclass(given, np.generic)
    )
    name = np.dtype(given).name if is_numpy else None  # type: ignore[call-overload]  # checked above
    found = _BY_NAME.get(name or "")
    if found is None:
        named = _BY_NAME.get(given) if isinstance(given, str) else None
        raise DTypeError(
            f"{shown(given)} is not a dtype", remedy=f"use one such as tn.{(named or float32).name}"
        )
    return found


def numpy_scalar_dtype(scalar: np.generic) -> DType:
    """The dtype that a NumPy scalar brings along."""
    return as_dtype(scalar.dtype)


def constant_value(number: Number | np.generic, dtype: DType) -> Number:
    """A host number as a constant of `dtype`: floats round to nearest even, once."""
    plain: Number = number.item() if isinstance(number, np.generic) else number
    if isinstance(plain, bool) or dtype.is_bool:
        if isinstance(plain, bool) and dtype.is_bool:
            return plain
        raise DTypeError(
            f"{shown(plain)} cannot become {dtype}",
            remedy="write True or False" if dtype.is_bool else f"write {int(plain)}",
        )
    if dtype.is_float:
        return _rounded(plain, dtype)
    if isinstance(plain, float):
        raise DTypeError(
            f"{shown(plain)} meets {dtype}, which holds only integers",
            remedy="cast the integer operand to a float dtype, or write a whole number",
        )
    low, high = integer_range(dtype)
    if not low <= plain <= high:
        raise DTypeError(
            f"{shown(plain)} is out of range for {dtype} ({low} to {high})",
            remedy="cast the other operand to a wider dtype",
        )
    return plain


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and greatest number of an integer dtype."""
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def common_dtype(dtypes: Sequence[DType], has_tile: bool) -> DType:
    """The one dtype that operands of these dtypes compute in.

    Equal dtypes only, but for `index`, which mixes with any integer: among scalars the result is an
    index, beside a tile the index takes the tile's dtype. A tile never holds `index`; it becomes
    int64 there.
    """
    distinct = list(dict.fromkeys(dtypes))
    plain = [dtype for dtype in distinct if dtype is not index]
    has_index = len(plain) < len(distinct)
    if len(plain) > 1 or (has_index and plain and not plain[0].is_integer):
        raise DTypeError(
            f"the operands have different dtypes: {' and '.join(str(each) for each in distinct)}",
            remedy="cast one of them, as x.cast(tn.float32): nothing is converted implicitly",
        )
    if has_index and not has_tile:
        return index
    return plain[0] if plain else int64


def weak_dtype(numbers: Sequence[DType]) -> DType:
    """The dtype in which weakly typed run-time scalars of these dtypes compute among themselves."""
    if any(dtype.is_float for dtype in numbers):
        return float64
    return bool_ if all(dtype.is_bool for dtype in numbers) else int64


def accumulator_dtype(dtype: DType) -> DType:
    """The dtype in which sums of `dtype` are kept: half floats in float32, bytes in int32."""
    if dtype.is_float:
        return dtype if dtype.bits >= 32 else float32
    return dtype if dtype.bits > 16 else int32


def _rounded(number: int | float, dtype: DType) -> float:
    """Round once; magnitudes past the format's range become infinite."""
    if number == 0 or (isinstance(number, float) and not math.isfinite(number)):
        return float(number)
    precision, least, greatest = _BINARY_FORMATS[dtype]
    numerator, denominator = abs(number).as_integer_ratio()
    unit = max(_exponent(numerator, denominator), least) - precision + 1
    scaled, divisor = _scaled(numerator, denominator, unit)
    units, rest = divmod(scaled, divisor)
    # To the nearer one, halves to the even one.
    units += (2 * rest, units % 2) > (divisor, 0)
    is_beyond = units.bit_length() + unit > greatest + 1
    # A number that rounds to 0 keeps its sign.
    value = math.inf if is_beyond else math.ldexp(units, unit)
    return -value if number < 0 else value


def _scaled(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """The fraction divided by this power of two."""
    if exponent < 0:
        return numerator << -exponent, denominator
    return numerator, denominator << exponent


def _exponent(numerator: int, denominator: int) -> int:
    """floor(log2) of a positive fraction, exactly."""
    guess = numerator.bit_length() - denominator.bit_length()
    scaled, whole = _scaled(numerator, denominator, guess)
    return guess if scaled >= whole else guess - 1
