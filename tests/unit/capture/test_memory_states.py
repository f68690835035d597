"""States of memory in random programs: threaded, judged by running every way through them.

A program is stores and loads of two memories in nests and branches. Its accesses are given their
states as capture does; the interpreter, which counts stores and knows what is stored, finds every
state that is not the latest and every load of what was never stored.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.capture.memory_programs import PartsProgram, Program
from tilenest.analysis import MemoryStates, StateFault
from tilenest.dialects import MemoryLoad, MemoryStore
from tilenest.ir import StateType, Value, fresh
from tilenest.verify import diagnose_module


def is_accepted(program: Program) -> bool:
    """Whether capture accepts a program, in which then no run fails."""
    is_accepted = program.finish()
    faults = {problem.fault for problem in fresh(MemoryStates, program.function).problems}
    assert faults <= {StateFault.UNINITIALISED}
    assert bool(faults) != is_accepted
    assert {diagnostic.rule for diagnostic in diagnose_module(program.module)} <= {"OP68"}
    failures = program.failures()
    assert "stale" not in failures
    assert not is_accepted or not failures
    return is_accepted


@pytest.mark.parametrize("seed", range(60))
def test_memory_states_of_threaded_programs(seed: int) -> None:
    is_accepted(Program(seed))


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_parts_in_threaded_programs(first: int) -> None:
    """No run of an accepted program loads what is not stored, and there are accepted ones."""
    assert sum(accepts_a_part(seed) for seed in range(first, first + 60)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 100))
def test_parts_in_many_threaded_programs(first: int) -> None:
    assert sum(accepts_a_part(seed) for seed in range(first, first + 100)) > 0


def accepts_a_part(seed: int) -> bool:
    """Whether a program is accepted in which parts are loaded."""
    program = PartsProgram(seed)
    loads = [op for op in program.module.walk() if isinstance(op, MemoryLoad)]
    return is_accepted(program) and any(load.origins for load in loads)


@pytest.mark.parametrize("seed", range(60))
def test_memory_states_tells_every_state_that_a_run_misses(seed: int) -> None:
    """One access takes another state that is visible there: if any run notices, so does this."""
    program = Program(seed)
    if not program.finish():
        return
    choose = random.Random(seed)
    accesses = [op for op in program.module.walk() if isinstance(op, MemoryLoad | MemoryStore)]
    op = choose.choice(accesses)
    states = [
        value
        for other in program.module.walk()
        for value in (*other.results, *_arguments(other))
        if isinstance(value.type, StateType)
    ]
    op.set_group("state", [choose.choice(states)])
    if any(diagnostic.rule.startswith("IR") for diagnostic in diagnose_module(program.module)):
        return
    problems = fresh(MemoryStates, program.function).problems
    assert problems or not program.failures()


def _arguments(op: object) -> list[Value]:
    regions = getattr(op, "regions", [])
    return [argument for region in regions for argument in region.block.arguments]
