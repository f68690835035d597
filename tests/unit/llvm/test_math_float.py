"""float expansions against NumPy's double functions, over every exponent."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.llvm.loops import Expansion, compile_loop, machines
from tests.unit.llvm.rounding import stratified_floats, ulp_errors
from tilenest.backends.llvm import math_erf, math_exp, math_log, math_power, math_trig

Reference = Callable[..., Any]

# Function, reference, largest error in units of the last place (measured, then rounded up).
FUNCTIONS: dict[str, tuple[Expansion, Reference, float]] = {
    "exp": (math_exp.exp, np.exp, 1.05),
    "exp2": (math_exp.exp2, np.exp2, 1.1),
    "expm1": (math_exp.expm1, np.expm1, 1.55),
    "tanh": (math_exp.tanh, np.tanh, 1.5),
    "log": (math_log.log, np.log, 1.0),
    "log2": (math_log.log2, np.log2, 1.15),
    "log1p": (math_log.log1p, np.log1p, 1.6),
    "erf": (math_erf.erf, np.vectorize(math.erf, [float]), 1.15),
    "sin": (math_trig.sin, np.sin, 1.6),
    "cos": (math_trig.cos, np.cos, 1.6),
    "rsqrt": (math_power.rsqrt, lambda x: 1 / np.sqrt(x), 1.5),
}
SAMPLE = stratified_floats(2048, seed=1)
BLOCK = 1 << 22


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_exponent(name: str, machine: str) -> None:
    expansion, reference, bound = FUNCTIONS[name]
    sample = SAMPLE if machine == "host" else SAMPLE[::7]
    loop = compile_loop(expansion, ["float", "float"], lanes=16, machine=machines()[machine])
    with np.errstate(all="ignore"):
        exact = reference(sample.astype(np.float64))
    errors = ulp_errors(loop(sample), exact)
    worst = errors.argmax()
    assert errors[worst] <= bound, f"{name}({sample[worst]!r})"


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lane_counts_agree(name: str, lanes: int) -> None:
    expansion = FUNCTIONS[name][0]
    sample = SAMPLE[:: 997 * 3]
    wanted = compile_loop(expansion, ["float", "float"], lanes=16)(sample)
    got = compile_loop(expansion, ["float", "float"], lanes=lanes)(sample)
    np.testing.assert_array_equal(got, wanted)


def _import_torch() -> Any:
    """Two seconds to load, and only the exhaustive test needs a fast erf."""
    import torch

    return torch


def torch_erf(x: Any) -> Any:
    torch = _import_torch()
    return torch.erf(torch.from_numpy(x)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf"])
def test_every_float(name: str) -> None:
    expansion, reference, bound = FUNCTIONS[name]
    fast_reference = torch_erf if name == "erf" else reference
    assert worst_of_all_floats(expansion, fast_reference) <= bound


def worst_of_all_floats(expansion: Expansion, reference: Reference) -> float:
    loop = compile_loop(expansion, ["float", "float"], lanes=16)
    worst = 0.0
    for start in range(0, 1 << 32, BLOCK):
        x = np.arange(start, start + BLOCK, dtype=np.uint32).view(np.float32)
        got = np.full_like(x, np.nan)
        loop.run([x], got)
        with np.errstate(all="ignore"):
            exact = reference(x.astype(np.float64))
            rounded = exact.astype(np.float32)
        # Where the result is the rounded one the error is at most a half.
        differs = got.view(np.uint32) != rounded.view(np.uint32)
        differs &= ~(np.isnan(got) & np.isnan(rounded))
        if differs.any():
            worst = max(worst, float(ulp_errors(got[differs], exact[differs]).max()))
    return worst
