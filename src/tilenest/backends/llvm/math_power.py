"""power and rsqrt in registers, float and double, any lane count, no branches.

In: the function being written and the operands. Out: the operand holding the result. x^y is
2^(y log2|x|) with a sign. For float both steps run in double. For double the logarithm is a sum of
two numbers, some 65 bits, of which y times the second joins what the power of two leaves over.
Errors in the docstrings were measured over samples.
"""

import math

from tilenest.backends.llvm.float_bits import horner
from tilenest.backends.llvm.math_exp import exp2, exp2_of_sum
from tilenest.backends.llvm.math_log import log2, split_number
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value
from tilenest.records import record

# 2 / (3 log 2) in two parts, and (3 atanh(s) / s - 3 - s^2) / s^4 in powers of s^2 (see
# tools/fit_math.py).
_SCALE, _SCALE_LOW = 0.9617966939259756, 5.0577616648125907e-17
_TAIL = (
    0.59999999999999964,
    0.42857142857168801,
    0.33333333326029413,
    0.2727272833921498,
    0.23076833006879596,
    0.20004564507005773,
    0.17510435649029918,
    0.17998428996634772,
)
_BEYOND_EXPONENTS = 2000.0


@record
class _Sum:
    """high + low, low at most the rounding error of high."""

    high: Value
    low: Value


def rsqrt(f: FunctionText, x: Value) -> Value:
    """1 / sqrt(x), 1.2 ulp; the processor's own estimate is not the same everywhere."""
    return f.fdiv(1.0, f.sqrt(x))


def power(f: FunctionText, x: Value, y: Value) -> Value:
    """x^y with the special cases of C99; float 0.51 ulp, double 1.2."""
    magnitude = f.fabs(x)
    if x.type.element == "float":
        exponent = f.fpext(y, "double")
        logarithm = log2(f, f.fpext(magnitude, "double"))
        product = _zero_if_either_is(f, f.fmul(exponent, logarithm), exponent, logarithm)
        unsigned = f.fptrunc(exp2(f, product), "float")
    else:
        unsigned = _power_of_double(f, magnitude, y)
    return _with_sign(f, x, y, unsigned)


def _with_sign(f: FunctionText, x: Value, y: Value, unsigned: Value) -> Value:
    """Odd powers keep the sign of x; finite numbers below 0 have no fractional power."""
    half = f.fmul(y, 0.5)
    is_whole = f.fcmp("oeq", f.truncate(y), y)
    is_odd = f.and_(is_whole, f.fcmp("one", f.truncate(half), half))
    signed = f.select(is_odd, f.copysign(unsigned, x), unsigned)
    is_below = f.and_(f.fcmp("olt", x, 0.0), f.fcmp("ogt", x, -math.inf))
    is_missing = f.and_(is_below, f.not_(is_whole))
    return f.select(is_missing, math.nan, signed)


def _zero_if_either_is(f: FunctionText, product: Value, y: Value, logarithm: Value) -> Value:
    """x^0 and 1^y are 1 even for infinities and NaN."""
    is_one = f.or_(f.fcmp("oeq", y, 0.0), f.fcmp("oeq", logarithm, 0.0))
    return f.select(is_one, 0.0, product)


def _power_of_double(f: FunctionText, x: Value, y: Value) -> Value:
    logarithm = _log2_sum(f, x)
    high = f.fmul(y, logarithm.high)
    low = f.fma(y, logarithm.low, f.fma(y, logarithm.high, f.fneg(high)))
    # Beyond all exponents, or where a factor was infinite, the second part is no number.
    low = f.select(f.fcmp("olt", f.fabs(high), _BEYOND_EXPONENTS), low, 0.0)
    high = _zero_if_either_is(f, high, y, logarithm.high)
    low = _zero_if_either_is(f, low, y, logarithm.high)
    return exp2_of_sum(f, high, low)


def _log2_sum(f: FunctionText, x: Value) -> _Sum:
    """log2(x) for x >= 0: e + 2/(3 log 2) s (3 + s^2 + s^4 P(s^2)) at s = (m - 1)/(m + 1)."""
    exponent, mantissa = split_number(f, x)
    ratio = _quotient(f, mantissa)
    square = f.fmul(ratio.high, ratio.high)
    square_low = f.fma(ratio.high, ratio.high, f.fneg(square))
    square_low = f.fma(f.fadd(ratio.high, ratio.high), ratio.low, square_low)
    rest = f.fma(f.fmul(square, square), horner(f, square, _TAIL), square_low)
    factor = f.fadd(square, 3.0)
    factor_low = f.fadd(f.fsub(square, f.fsub(factor, 3.0)), rest)
    product = _renormalised(f, _product(f, ratio, _Sum(factor, factor_low)))
    scaled = f.fmul(product.high, _SCALE)
    scaled_low = f.fma(product.high, _SCALE, f.fneg(scaled))
    scaled_low = f.fma(product.low, _SCALE, f.fma(product.high, _SCALE_LOW, scaled_low))
    high = f.fadd(exponent, scaled)
    low = f.fadd(scaled_low, f.fsub(scaled, f.fsub(high, exponent)))
    high = f.select(f.fcmp("oeq", x, 0.0), -math.inf, high)
    return _Sum(f.select(f.fcmp("olt", x, math.inf), high, x), low)


def _quotient(f: FunctionText, mantissa: Value) -> _Sum:
    """(m - 1) / (m + 1)."""
    above = f.fsub(mantissa, 1.0)
    below = f.fadd(mantissa, 1.0)
    below_low = f.fsub(mantissa, f.fsub(below, 1.0))
    inverse = f.fdiv(1.0, below)
    high = f.fmul(above, inverse)
    left = f.fma(f.fneg(high), below, above)
    left = f.fma(f.fneg(high), below_low, left)
    return _Sum(high, f.fmul(left, inverse))


def _product(f: FunctionText, left: _Sum, right: _Sum) -> _Sum:
    high = f.fmul(left.high, right.high)
    low = f.fma(left.high, right.high, f.fneg(high))
    low = f.fma(left.high, right.low, f.fma(left.low, right.high, low))
    return _Sum(high, low)


def _renormalised(f: FunctionText, value: _Sum) -> _Sum:
    high = f.fadd(value.high, value.low)
    return _Sum(high, f.fsub(value.low, f.fsub(high, value.high)))
