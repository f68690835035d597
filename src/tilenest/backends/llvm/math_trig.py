"""sin and cos in registers, float and double, any lane count.

In: the function being written and an operand. Out: the operand holding the result. x = n pi/2 + r
with |r| <= pi/4: three fused steps are exact enough up to a bound; lanes beyond it are rare and go
to `math_trig_large` behind a branch, so the expansion ends in another block than it began in. Two
polynomials in r^2 give sin(r) and cos(r); n says which one and which sign. Errors in the docstrings
were measured: float over all inputs, double over samples.
"""

from tilenest.backends.llvm.float_bits import format_of, from_bits, horner, to_bits
from tilenest.backends.llvm.math_trig_large import large_angle_function, pair_type
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value
from tilenest.records import record

_TWO_OVER_PI = 0.6366197723675814


@record
class _Angle:
    """An angle as a quadrant (its low two bits count) and a rest in [-pi/4, pi/4]."""

    rest: Value
    quadrant: Value


@record
class _TrigConstants:
    """pi/2 in parts; `sin` is (sin r - r) / r^3 and `cos` (cos r - 1 + r^2/2) / r^4, both in
    powers of r^2 (see tools/fit_math.py)."""

    bound: float
    half_pi: tuple[float, float, float]
    sin: tuple[float, ...]
    cos: tuple[float, ...]


_CONSTANTS = {
    "float": _TrigConstants(
        bound=2.0**17,
        half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        sin=(-0.166666552, 0.00833219104, -0.000195185959),
        cos=(0.0416666456, -0.00138873013, 2.44306739e-05),
    ),
    "double": _TrigConstants(
        bound=2.0**30,
        half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        sin=(
            -0.16666666666666632,
            0.0083333333333224721,
            -0.00019841269829835558,
            2.7557313697257526e-06,
            -2.5050758471657869e-08,
            1.5896795103231666e-10,
        ),
        cos=(
            0.041666666666666602,
            -0.0013888888888874457,
            2.4801587289652787e-05,
            -2.7557314393818327e-07,
            2.0875728099540579e-09,
            -1.1359864151971469e-11,
        ),
    ),
}


def sin(f: FunctionText, x: Value) -> Value:
    """Sine; largest error 1.54 ulp in float, 1.45 in double."""
    angle = _reduce(f, x)
    result = _of_quadrant(f, angle.rest, angle.quadrant)
    return f.select(f.fcmp("oeq", x, 0.0), x, result)


def cos(f: FunctionText, x: Value) -> Value:
    """Cosine; largest error 1.55 ulp in float, 1.46 in double."""
    angle = _reduce(f, x)
    return _of_quadrant(f, angle.rest, f.add(angle.quadrant, 1))


def _of_quadrant(f: FunctionText, r: Value, quadrant: Value) -> Value:
    """sin(r + quadrant pi/2)."""
    constants = _CONSTANTS[r.type.element]
    square = f.fmul(r, r)
    sine = f.fma(f.fmul(square, r), horner(f, square, constants.sin), r)
    cosine = f.fma(square, f.fma(square, horner(f, square, constants.cos), -0.5), 1.0)
    is_odd = f.icmp("ne", f.and_(quadrant, 1), 0)
    magnitude = to_bits(f, f.select(is_odd, cosine, sine))
    sign = f.shl(f.and_(quadrant, 2), r.type.bits - 2)
    return from_bits(f, f.xor(magnitude, sign), r.type)


def _reduce(f: FunctionText, x: Value) -> _Angle:
    bound = _CONSTANTS[x.type.element].bound
    near = _reduce_moderate(f, x)
    is_large = f.fcmp("ogt", f.fabs(x), bound)
    before, large, after = f.current, f.block("large_angle"), f.block("angle")
    f.branch_if(f.vector_reduce("or", is_large), large, after)
    f.begin(large)
    far = _reduce_large(f, x)
    rest = f.select(is_large, far.rest, near.rest)
    quadrant = f.select(is_large, far.quadrant, near.quadrant)
    f.branch(after)
    f.begin(after)
    return _Angle(
        f.phi(x.type, (near.rest, before), (rest, large)).value,
        f.phi(near.quadrant.type, (near.quadrant, before), (quadrant, large)).value,
    )


def _reduce_moderate(f: FunctionText, x: Value) -> _Angle:
    rounder = format_of(x).rounder
    shifted = f.fma(x, _TWO_OVER_PI, rounder)
    n = f.fsub(shifted, rounder)
    rest = x
    for part in _CONSTANTS[x.type.element].half_pi:
        rest = f.fma(n, -part, rest)
    return _Angle(rest, to_bits(f, shifted))


def _reduce_large(f: FunctionText, x: Value) -> _Angle:
    name = large_angle_function(f.module, x.type)
    pair = f.call(name, pair_type(x.type), [x])
    integer = x.type.with_element(format_of(x).integer)
    return _Angle(f.extract_value(pair, x.type, 0), f.extract_value(pair, integer, 1))
