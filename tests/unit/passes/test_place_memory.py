"""Parts of explicit memory through the passes, judged by the interpreter on the program as it was.

Random programs store and load parts at constants, at formulas of loop indices and at numbers of the
call, inside, across the ends of the memory and outside.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.capture.memory_programs import CALLS
from tests.unit.capture.part_programs import FilledProgram, PartsProgram
from tests.unit.passes.lowering import lowered
from tilenest.dialects import MemoryLoad, registry
from tilenest.ir import Module, parse_module
from tilenest.machine import AVX512


def check(program: PartsProgram) -> None:
    """Every form of a program writes the same, in every run."""
    text = str(program.module)
    again = parse_module(text, registry())
    assert str(again) == text
    expected = [program.run(program.module, *call) for call in CALLS]
    results: list[Module] = [again]
    results += [module for _, module in lowered(again, AVX512)][-1:]
    for module in results:
        for call, wanted in zip(CALLS, expected, strict=True):
            np.testing.assert_array_equal(program.run(module, *call), wanted)


@pytest.mark.parametrize("seed", range(24))
def test_parts_keep_their_places(seed: int) -> None:
    program = FilledProgram(seed)
    assert program.finish()
    check(program)


def test_memory_that_is_stored_by_parts_only_keeps_them() -> None:
    checked = 0
    for seed in range(60):
        program = PartsProgram(seed)
        is_loaded = any(isinstance(op, MemoryLoad) for op in program.module.walk())
        if program.finish() and is_loaded:
            checked += 1
            check(program)
    assert checked


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 20))
def test_parts_of_many_programs_keep_their_places(first: int) -> None:
    for seed in range(first, first + 20):
        test_parts_keep_their_places(seed)
