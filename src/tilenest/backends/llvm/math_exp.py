"""exp, exp2, expm1 and tanh in registers, float and double, any lane count, no branches.

In: the function being written and an operand. Out: the operand holding the result. One reduction
serves all: x = n log(2) + r with |r| <= log(2)/2, where adding 1.5 * 2^mantissa rounds x / log(2)
to n in the low bits of the sum; a polynomial gives exp(r) - 1, integer shifts give powers of two.
Errors in the docstrings were measured: float over all inputs, double over samples.
"""

from tilenest.backends.llvm.float_bits import (
    at_least,
    at_most,
    format_of,
    from_bits,
    horner,
    to_bits,
)
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value
from tilenest.records import record

_LOG2_E = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_TANH_SPLIT = 0.4


@record
class _ExpConstants:
    """log(2) = log2_high + log2_low; beyond the limits the results are 0 or inf, -1, 1.

    `tail` is (exp(r) - 1 - r) / r^2 with the error relative to exp(r), `tail_minus_one` the same
    with the error relative to exp(r) - 1; `tanh_near` is (tanh(x) - x) / x^3 in powers of x^2 (see
    tools/fit_math.py).
    """

    log2_high: float
    log2_low: float
    exp_limits: tuple[float, float]
    exp2_limits: tuple[float, float]
    expm1_limits: tuple[float, float]
    tanh_limit: float
    tail: tuple[float, ...]
    tail_minus_one: tuple[float, ...]
    tanh_near: tuple[float, ...]


_CONSTANTS = {
    "float": _ExpConstants(
        log2_high=0.6931471824645996,
        log2_low=-1.9046542121259336e-09,
        exp_limits=(-104.0, 89.0),
        exp2_limits=(-151.0, 129.0),
        expm1_limits=(-20.0, 89.0),
        tanh_limit=20.0,
        tail=(0.49999994, 0.166665167, 0.0416681021, 0.0083691543, 0.00138376432),
        tail_minus_one=(0.49999997, 0.16666539, 0.041667752, 0.0083670821, 0.00138376711),
        tanh_near=(-0.333332986, 0.133312032, -0.0535602085, 0.0187368467),
    ),
    "double": _ExpConstants(
        log2_high=0.6931471805599453,
        log2_low=2.3190468138462996e-17,
        exp_limits=(-746.0, 710.0),
        exp2_limits=(-1076.0, 1025.0),
        expm1_limits=(-40.0, 710.0),
        tanh_limit=40.0,
        tail=(
            0.50000000000000111,
            0.16666666666666435,
            0.041666666666525749,
            0.0083333333334757991,
            0.0013888888944885291,
            0.0001984126955547104,
            2.4801491708065935e-05,
            2.7557535335559948e-06,
            2.7630774121366679e-07,
            2.5018483402836844e-08,
        ),
        tail_minus_one=(
            0.50000000000000011,
            0.16666666666666671,
            0.04166666666664863,
            0.0083333333333288889,
            0.0013888888896913408,
            0.00019841269854168023,
            2.4801573212251538e-05,
            2.7557295351085314e-06,
            2.7567638567316245e-07,
            2.5084949329274989e-08,
            1.8260202217927252e-09,
        ),
        tanh_near=(
            -0.33333333333333209,
            0.13333333333302097,
            -0.053968253941137349,
            0.021869487380794063,
            -0.0088632076301156694,
            0.0035917197997386114,
            -0.0014521323266091619,
            0.00056954832304296566,
            -0.00017457312627326775,
        ),
    ),
}


def exp(f: FunctionText, x: Value) -> Value:
    """e^x; largest error 1.02 ulp in float, 0.99 in double."""
    constants = _CONSTANTS[x.type.element]
    rounder = format_of(x).rounder + 2 * format_of(x).bias
    low, high = constants.exp_limits
    x, vanishes = _without_vanishing(f, at_most(f, x, high), low)
    shifted = f.fma(x, _LOG2_E, rounder)
    n = f.fsub(shifted, rounder)
    r = f.fma(n, -constants.log2_low, f.fma(n, -constants.log2_high, x))
    return f.select(vanishes, 0.0, _scale_twice(f, _exp_of_rest(f, r), shifted))


def exp2(f: FunctionText, x: Value) -> Value:
    """2^x, exact for integers; largest error 1.03 ulp in float, 1.02 in double."""
    return exp2_of_sum(f, x, None)


def exp2_of_sum(f: FunctionText, high: Value, low: Value | None) -> Value:
    """2^(high + low); low, if any, is below the last place of high."""
    rounder = format_of(high).rounder + 2 * format_of(high).bias
    limit_low, limit_high = _CONSTANTS[high.type.element].exp2_limits
    high, vanishes = _without_vanishing(f, at_most(f, high, limit_high), limit_low)
    shifted = f.fadd(high, rounder)
    rest = f.fsub(high, f.fsub(shifted, rounder))
    if low is not None:
        rest = f.fadd(rest, low)
    result = _scale_twice(f, _exp_of_rest(f, f.fmul(rest, _LOG_2)), shifted)
    return f.select(vanishes, 0.0, result)


def expm1(f: FunctionText, x: Value) -> Value:
    """e^x - 1; largest error 1.53 ulp in float, 1.57 in double."""
    low, high = _CONSTANTS[x.type.element].expm1_limits
    half = _half_expm1(f, at_least(f, at_most(f, x, high), low))
    return f.copysign(f.fadd(half, half), x)


def tanh(f: FunctionText, x: Value) -> Value:
    """Near zero x + x^3 P(x^2), else w / (w + 1) at w = (e^2|x| - 1) / 2: no digits cancel.

    Largest error 1.50 ulp in float and in double.
    """
    constants = _CONSTANTS[x.type.element]
    square = f.fmul(x, x)
    near = f.fma(f.fmul(square, x), horner(f, square, constants.tanh_near), x)
    magnitude = f.fabs(x)
    doubled = f.fadd(magnitude, magnitude)
    half = _half_expm1(f, at_most(f, doubled, constants.tanh_limit))
    far = f.fdiv(half, f.fadd(half, 1.0))
    return f.copysign(f.select(f.fcmp("olt", magnitude, _TANH_SPLIT), near, far), x)


def exp_of_moderate(f: FunctionText, x: Value) -> Value:
    """e^x where the result is normal; used inside other expansions, 2^-22 (2^-51) relative."""
    rounder = format_of(x).rounder + format_of(x).bias
    shifted = f.fma(x, _LOG2_E, rounder)
    n = f.fsub(shifted, rounder)
    r = f.fma(n, -_CONSTANTS[x.type.element].log2_high, x)
    return f.fmul(_exp_of_rest(f, r), _power_of_two(f, to_bits(f, shifted), x))


def _half_expm1(f: FunctionText, x: Value) -> Value:
    """(e^x - 1) / 2; half, because 2^n itself can be out of range."""
    constants = _CONSTANTS[x.type.element]
    rounder = format_of(x).rounder + format_of(x).bias - 1
    shifted = f.fma(x, _LOG2_E, rounder)
    n = f.fsub(shifted, rounder)
    r = f.fma(n, -constants.log2_low, f.fma(n, -constants.log2_high, x))
    scale = _power_of_two(f, to_bits(f, shifted), x)
    rest = f.fma(f.fmul(r, r), horner(f, r, constants.tail_minus_one), r)
    return f.fma(rest, scale, f.fsub(scale, 0.5))


def _without_vanishing(f: FunctionText, x: Value, low: float) -> tuple[Value, Value]:
    """x with 0 where its power is 0, and where that is.

    Computing such a power would underflow, which takes over a hundred cycles on many processors:
    a masked softmax is full of them.
    """
    vanishes = f.fcmp("olt", x, low)
    return f.select(vanishes, 0.0, x), vanishes


def _exp_of_rest(f: FunctionText, r: Value) -> Value:
    tail = horner(f, r, _CONSTANTS[r.type.element].tail)
    return f.fadd(f.fma(f.fmul(r, r), tail, r), 1.0)


def _power_of_two(f: FunctionText, biased: Value, like: Value) -> Value:
    """2^n from an integer whose low bits hold n + bias."""
    return from_bits(f, f.shl(biased, format_of(like).mantissa), like.type)


def _scale_twice(f: FunctionText, value: Value, shifted: Value) -> Value:
    """value * 2^n, n + 2 bias in the low bits of `shifted`: two factors reach inf and the
    subnormals with one rounding."""
    bits = to_bits(f, shifted)
    first = f.lshr(bits, 1)
    second = f.sub(bits, first)
    once = f.fmul(value, _power_of_two(f, first, value))
    return f.fmul(once, _power_of_two(f, second, value))
