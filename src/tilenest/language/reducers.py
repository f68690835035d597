"""The binary functions that reductions know: `tn.add`, `tn.maximum`, `tn.bitwise_and` and so on.

In: two operands, or nothing but their name in `tn.reduce(x, axis, tn.add)`. Out: an elementwise
result, or the number that a reduction starts from. All are associative and commutative in exact
arithmetic, so every policy admits them. `fmax` and `fmin` are of floats; they leave NaN out where
there is a number.
"""

from __future__ import annotations

import math

from tilenest.errors import DTypeError
from tilenest.ir import DType
from tilenest.language.dtypes import Number, integer_range
from tilenest.language.values import Operable, Scalar, Tile, elementwise
from tilenest.layouts import check_kind
from tilenest.records import record


@record
class Reducer:
    """A binary function that reductions know: `tn.add(a, b)`, or `tn.reduce(x, axis, tn.add)`.

    Called, it works elementwise on tiles that join, scalars and numbers of one dtype, which the
    result has. ShapeError for tiles that do not join, DTypeError for dtypes that differ or that it
    has no meaning for: `add` and `multiply` are of numbers, `maximum` and `minimum` of any, `fmax`
    and `fmin` of floats, the bitwise ones of integers and bools, the logical ones of bools.
    """

    name: str
    function: str
    bool_only: bool = False

    def __call__(self, a: Operable, b: Operable) -> Tile | Scalar:
        """The function on two operands, elementwise over their joined dims."""
        result = elementwise(self.function, a, b)
        if self.bool_only and not result.dtype.is_bool:
            raise DTypeError(
                f"tn.{self.name} takes bool operands, not {result.dtype}",
                remedy="compare first, as x != 0, or use tn.bitwise_and and its kin on integers",
            )
        return result

    def __repr__(self) -> str:
        return f"tn.{self.name}"

    def over_nothing(self, dtype: DType) -> Number:
        """The result over no elements, which a reduction without `init=` starts from.

        It leaves every element of `dtype` as it is, but for -0 of `tn.add`: a sum over nothing is
        +0, as everywhere, and a sum of nothing but -0 is +0 with it.
        """
        match self.function:
            case "add":
                return 0
            case "mul":
                return 1
            case "maximum":
                return _extreme(dtype, -1)
            case "minimum":
                return _extreme(dtype, 1)
            case "and":
                return _all_ones(dtype)
            case "fmax" | "fmin":
                return math.nan
        return False if dtype.is_bool else 0


class PropagatingReducer(Reducer):
    """`maximum` and `minimum`, which may also be asked to ignore NaN."""

    __slots__ = ()

    def __call__(self, a: Operable, b: Operable, *, propagate_nan: bool = True) -> Tile | Scalar:
        """Elementwise. A NaN operand gives NaN, or the other operand with `propagate_nan=False`;
        -0 is below +0."""
        check_kind(propagate_nan, bool, "propagate_nan=")
        if propagate_nan:
            return elementwise(self.function, a, b)
        return elementwise({"maximum": "fmax", "minimum": "fmin"}[self.function], a, b)


add = Reducer("add", "add")
multiply = Reducer("multiply", "mul")
maximum = PropagatingReducer("maximum", "maximum")
minimum = PropagatingReducer("minimum", "minimum")
fmax = Reducer("fmax", "fmax")
fmin = Reducer("fmin", "fmin")
bitwise_and = Reducer("bitwise_and", "and")
bitwise_or = Reducer("bitwise_or", "or")
bitwise_xor = Reducer("bitwise_xor", "xor")
logical_and = Reducer("logical_and", "and", bool_only=True)
logical_or = Reducer("logical_or", "or", bool_only=True)
logical_xor = Reducer("logical_xor", "xor", bool_only=True)


def _extreme(dtype: DType, sign: int) -> Number:
    """The greatest (sign 1) or least number of a dtype, infinities included."""
    if dtype.is_float:
        return sign * math.inf
    if dtype.is_bool:
        return sign > 0
    low, high = integer_range(dtype)
    return high if sign > 0 else low


def _all_ones(dtype: DType) -> Number:
    if dtype.is_bool:
        return True
    return -1 if dtype.is_signed else integer_range(dtype)[1]
