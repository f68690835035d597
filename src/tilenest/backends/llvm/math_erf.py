"""erf in registers, float and double, any lane count, no branches.

In: the function being written and an operand. Out: the operand holding erf(x). Below the split
erf(x) = x + x P(x^2); above it 1 - exp(Q(|x|)) with Q a polynomial for log(erfc). Both are
evaluated, side by side, and one is selected. Errors in the docstring were measured: float over all
inputs, double over samples.
"""

from tilenest.backends.llvm.float_bits import at_most, horner
from tilenest.backends.llvm.math_exp import exp_of_moderate
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value
from tilenest.records import record


@record
class _ErfConstants:
    """From `limit` on erf is 1; `near` is P and `far` is Q (see tools/fit_math.py)."""

    split: float
    limit: float
    near: tuple[float, ...]
    far: tuple[float, ...]


_CONSTANTS = {
    "float": _ErfConstants(
        split=0.875,
        limit=4.0,
        near=(
            0.128379151,
            -0.376125038,
            0.112819225,
            -0.0267708451,
            0.00500036124,
            -0.000603409717,
        ),
        far=(
            -0.000144259873,
            -1.12788916,
            -0.636821091,
            -0.104249761,
            0.022380786,
            -0.00308192521,
            0.000199892966,
        ),
    ),
    "double": _ErfConstants(
        split=0.84375,
        limit=6.0,
        near=(
            0.12837916709551256,
            -0.37612638903183249,
            0.11283791670927765,
            -0.026866170639333792,
            0.0052239775623982437,
            -0.00085483230192569628,
            0.00012055174118842939,
            -1.492158917918728e-05,
            1.6395020843596124e-06,
            -1.5669188974442923e-07,
            1.0595151351232738e-08,
        ),
        far=(
            1.9142118320848373e-08,
            -1.1283794211932745,
            -0.63661818124001501,
            -0.10277885593872779,
            0.019145750380184397,
            0.00017332938761625193,
            -0.0016384068114321992,
            0.00051594932946509347,
            5.1079266476519077e-05,
            -0.00012957169897458287,
            7.4642649305002866e-05,
            -2.8516949188942248e-05,
            8.2622773133137374e-06,
            -1.8870586087044545e-06,
            3.4257481942026592e-07,
            -4.9055677860309347e-08,
            5.4279873727018189e-09,
            -4.4757235228475842e-10,
            2.5853602943486955e-11,
            -9.312924157786028e-13,
            1.5695696175859648e-14,
        ),
    ),
}


def erf(f: FunctionText, x: Value) -> Value:
    """The error function; largest error 1.14 ulp in float, 1.18 in double."""
    constants = _CONSTANTS[x.type.element]
    magnitude = f.fabs(x)
    near = f.fma(x, horner(f, f.fmul(x, x), constants.near), x)
    tail = exp_of_moderate(f, horner(f, at_most(f, magnitude, constants.limit), constants.far))
    far = f.copysign(f.fsub(1.0, tail), x)
    return f.select(f.fcmp("olt", magnitude, constants.split), near, far)
