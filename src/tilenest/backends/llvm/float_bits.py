"""What the math expansions share: facts of a float format, its bits, Horner's rule.

In: operands of float or double, any lane count. Out: operands. The expansions are written once for
both formats; what differs is a `FloatFormat` and the coefficients.
"""

from collections.abc import Sequence

from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import LlvmType, Operand, Value
from tilenest.records import record


@record
class FloatFormat:
    """A binary interchange format by its sizes."""

    integer: str
    bits: int
    mantissa: int
    bias: int

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def rounder(self) -> float:
        """Added to a small number it leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.mantissa


FORMATS = {"float": FloatFormat("i32", 32, 23, 127), "double": FloatFormat("i64", 64, 52, 1023)}


def format_of(value: Value) -> FloatFormat:
    return FORMATS[value.type.element]


def to_bits(f: FunctionText, value: Value) -> Value:
    return f.bitcast(value, value.type.with_element(format_of(value).integer))


def from_bits(f: FunctionText, bits: Value, kind: LlvmType) -> Value:
    return f.bitcast(bits, kind)


def horner(f: FunctionText, x: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[0] + coefficients[1] x + ..., one fma a step."""
    total: Operand = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = f.fma(x, total, coefficient)
    assert isinstance(total, Value)
    return total


def at_most(f: FunctionText, x: Value, high: float) -> Value:
    """`x`, or `high` where `x` is above it; NaN stays, and it is still one instruction."""
    return f.select(f.fcmp("ogt", x, high), high, x)


def at_least(f: FunctionText, x: Value, low: float) -> Value:
    """`x`, or `low` where `x` is below it; NaN stays."""
    return f.select(f.fcmp("olt", x, low), low, x)
