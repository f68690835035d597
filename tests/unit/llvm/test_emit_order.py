"""maximum and minimum for every pair of special numbers, at every width, on every processor."""

import itertools

import numpy as np
import pytest

from tests.unit.llvm.loops import machines
from tests.unit.llvm.programs import Program, assert_equal, lane_type, numpy_dtype, run_both
from tilenest.backends.llvm import HostMachineInfo
from tilenest.ir import DType, Value, bfloat16, float16, float32, float64

_MACHINES = machines()
_SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-4, np.inf, -np.inf, np.nan, -np.nan]


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("lanes", [0, 4, 16, 32])
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("function", ["minimum", "maximum", "fmin", "fmax"])
def test_all_pairs(function: str, dtype: DType, lanes: int, machine: HostMachineInfo) -> None:
    program = Program([1, 1, 1])
    (extent,) = program.view(0)[1]

    def body(place: Value) -> list[Value]:
        x, y = (
            program.load(
                program.at(program.view(i)[0], place, dtype.bytes), lane_type(dtype, lanes)
            )
            for i in range(2)
        )
        target = program.at(program.view(2)[0], place, dtype.bytes)
        program.store(program.apply(function, x, y), target)
        return []

    program.loop(program.number(0), extent, program.number(max(lanes, 1)), body)
    pairs = np.array(list(itertools.product(_SPECIAL, repeat=2)))
    pairs = np.concatenate([pairs, np.zeros((128 - len(pairs), 2))]).astype(numpy_dtype(dtype))
    arrays = [pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros(128, numpy_dtype(dtype))]
    assert_equal(*run_both(program.finish(), arrays, machine=machine)[2])
