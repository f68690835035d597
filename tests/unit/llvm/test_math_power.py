"""power against the C library's long double function, C99's special cases against NumPy's."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.llvm.loops import compile_loop, machines
from tests.unit.llvm.rounding import ulp_errors
from tilenest.backends.llvm.math_power import power

EDGES = [0.0, 1.0, 2.0, 0.5, 3.0, 1.5, 1e300, 5e-324, 2.0**53 + 1, 1e15 + 0.5, 1 + 2.0**-52]
EDGES = [*EDGES, *(-edge for edge in EDGES), math.inf, -math.inf, math.nan]
SIZE = 20_000
BOUNDS = {"float": 0.51, "double": 1.2}


def samples(dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Edges with each other, any base, moderate ones, bases near 1, whole numbers."""
    random = np.random.default_rng(11)
    left, right = (part.ravel() for part in np.meshgrid(EDGES, EDGES))
    scales = np.exp2(random.uniform(-50, -1, SIZE))
    bases = [
        left,
        np.exp2(random.uniform(-1074, 1024, SIZE)),
        random.uniform(0, 3, SIZE),
        1 + random.standard_normal(SIZE) * scales,
        random.integers(-20, 20, SIZE).astype(np.float64),
    ]
    exponents = [
        right,
        random.uniform(-2, 2, SIZE) * np.exp2(random.uniform(-8, 4, SIZE)),
        random.uniform(-700, 700, SIZE),
        random.standard_normal(SIZE) / scales,
        random.integers(-20, 20, SIZE).astype(np.float64),
    ]
    with np.errstate(over="ignore"):
        return np.concatenate(bases).astype(dtype), np.concatenate(exponents).astype(dtype)


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("element", BOUNDS)
def test_samples_and_special_cases(element: str, machine: str) -> None:
    x, y = samples({"float": "f4", "double": "f8"}[element])
    loop = compile_loop(power, [element] * 3, lanes=8, machine=machines()[machine])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    errors = ulp_errors(loop(x, y), exact)
    worst = errors.argmax()
    assert errors[worst] <= BOUNDS[element], f"{x[worst]!r} ** {y[worst]!r}"


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("element", BOUNDS)
def test_lane_counts_agree(element: str, lanes: int) -> None:
    x, y = (part[::61] for part in samples({"float": "f4", "double": "f8"}[element]))
    wanted = compile_loop(power, [element] * 3, lanes=8)(x, y)
    np.testing.assert_array_equal(compile_loop(power, [element] * 3, lanes=lanes)(x, y), wanted)
