"""Correct rounding by exact fractions: the judge of the interpreter's arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tilenest.ir import DType, bfloat16, float16, float32, float64

FORMATS = {float16: (11, -14), bfloat16: (8, -126), float32: (24, -126), float64: (53, -1022)}
"""Bits of precision and smallest normal exponent."""

FLOATS = [float16, bfloat16, float32, float64]


def nearest(exact: Fraction, dtype: DType) -> float:
    """The element of the dtype nearest to a fraction, ties to even."""
    precision, lowest = FORMATS[dtype]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    rounded = round(size / quantum) * quantum
    beyond = Fraction(2) ** (1 - lowest + 1)
    result = math.inf if rounded >= beyond else float(rounded)
    return -result if exact < 0 else result


def edges(dtype: DType) -> list[float]:
    """Finite values of the dtype at which arithmetic goes wrong first."""
    precision, lowest = FORMATS[dtype]
    ulp = 2.0 ** (1 - precision)
    largest = (2.0 - ulp) * 2.0 ** (1 - lowest)
    sizes = [
        0.0,
        2.0**lowest * ulp,
        3 * 2.0**lowest * ulp,
        2.0**lowest * (1 - ulp),
        2.0**lowest,
        2.0 ** (lowest // 2),
        ulp,
        1 - ulp / 2,
        1.0,
        1 + ulp,
        1 + 3 * ulp,
        1.5,
        2.5,
        3.0,
        2.0**precision - 1,
        2.0 ** -(lowest // 2) * (1 + ulp),
        largest,
        largest * 0.5,
    ]
    return [sign * size for size in sizes for sign in (1.0, -1.0)]


def assert_same(actual: npt.NDArray[Any], expected: list[float]) -> None:
    """Every element has the expected bits, all NaNs being one."""
    got = np.asarray(actual).astype(np.float64)
    want = np.asarray(expected, np.float64).reshape(got.shape)
    equal = (got == want) & (np.signbit(got) == np.signbit(want))
    equal |= np.isnan(got) & np.isnan(want)
    places = np.argwhere(~equal)
    assert not places.size, f"{len(places)} differ, first {places[0]}: " + repr(
        (got[tuple(places[0])], want[tuple(places[0])])
    )
