"""double expansions against the C library's long double functions (64 bits of mantissa)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.llvm.loops import compile_loop, machines
from tests.unit.llvm.rounding import SPECIALS, ulp_errors
from tilenest.backends.llvm import math_erf, math_exp, math_log, math_power, math_trig

Wide = NDArray[np.longdouble]
SIZE = 20_000


def wide_erf(x: Wide) -> Wide:
    """Kummer's series: all terms have one sign, so nothing cancels."""
    magnitude = np.minimum(np.abs(x), np.longdouble(6.5))
    term = magnitude.copy()
    total = magnitude.copy()
    for step in range(1, 260):
        term = term * 2 * magnitude * magnitude / (2 * step + 1)
        total = total + term
    pi = np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16)
    near = total * np.exp(-magnitude * magnitude) * 2 / np.sqrt(pi)
    return np.copysign(np.where(magnitude > 6.4, np.longdouble(1), near), x)


# Function, reference, where most of the sample lies, largest error measured and rounded up.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[float, float], float]] = {
    "exp": (math_exp.exp, np.exp, (-750, 712), 1.0),
    "exp2": (math_exp.exp2, np.exp2, (-1080, 1026), 1.1),
    "expm1": (math_exp.expm1, np.expm1, (-45, 712), 1.65),
    "tanh": (math_exp.tanh, np.tanh, (-22, 22), 1.6),
    "log": (math_log.log, np.log, (0, 20), 0.9),
    "log2": (math_log.log2, np.log2, (0, 20), 1.1),
    "log1p": (math_log.log1p, np.log1p, (-1, 50), 1.5),
    "erf": (math_erf.erf, wide_erf, (-6.5, 6.5), 1.3),
    "sin": (math_trig.sin, np.sin, (-1000, 1000), 1.6),
    "cos": (math_trig.cos, np.cos, (-1000, 1000), 1.6),
    "rsqrt": (math_power.rsqrt, lambda x: 1 / np.sqrt(x), (0, 20), 1.5),
}


def samples(low: float, high: float) -> NDArray[np.float64]:
    """Any bits, the interesting range, small numbers, around 1, around multiples of pi/2."""
    random = np.random.default_rng(7)
    scales = np.exp2(random.uniform(-40, 1, SIZE))
    parts = [
        random.integers(0, 2**64, SIZE, dtype=np.uint64).view(np.float64),
        random.uniform(low, high, 3 * SIZE),
        random.standard_normal(SIZE) * scales,
        1 + random.standard_normal(SIZE) * scales,
        np.round(random.uniform(-1e6, 1e6, SIZE)) * (np.pi / 2),
        SPECIALS,
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples(name: str, machine: str) -> None:
    assert np.finfo(np.longdouble).nmant >= 63, "the reference needs more digits than double"
    expansion, reference, (low, high), bound = FUNCTIONS[name]
    loop = compile_loop(expansion, ["double", "double"], lanes=8, machine=machines()[machine])
    x = samples(low, high)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble))
    errors = ulp_errors(loop(x), exact)
    worst = errors.argmax()
    assert errors[worst] <= bound, f"{name}({x[worst]!r})"


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lane_counts_agree(name: str, lanes: int) -> None:
    expansion, _, (low, high), _ = FUNCTIONS[name]
    x = samples(low, high)[::61]
    wanted = compile_loop(expansion, ["double", "double"], lanes=8)(x)
    got = compile_loop(expansion, ["double", "double"], lanes=lanes)(x)
    np.testing.assert_array_equal(got, wanted)
