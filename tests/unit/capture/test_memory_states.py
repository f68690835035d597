"""States of memory in random programs: threaded, judged by running every way through them.

A program is stores and loads of memories in nests and branches. Its accesses are given their states
as capture does; the interpreter, which counts stores and knows what is stored, finds every state
that is not the latest and every load of what was never stored. Of a program that is refused the
loads that are not are judged, without the others.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.capture.memory_programs import Program
from tests.unit.capture.part_programs import PartsProgram, TurnsProgram
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
    if is_accepted:
        assert program.failures() == set()
    else:
        assert "stale" not in program.failures()
    return is_accepted


def accepted_loads(program: Program) -> int:
    """How many loads of a program are accepted, of which then no run fails."""
    program.finish()
    loads = program.drop_refused_loads()
    assert diagnose_module(program.module) == []
    assert program.failures() == set()
    return loads


@pytest.mark.parametrize("seed", range(60))
def test_memory_states_of_threaded_programs(seed: int) -> None:
    is_accepted(Program(seed))


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        (PartsProgram, 0, 10),
        (PartsProgram, 10, 10),
        (TurnsProgram, 50, 15),
        (TurnsProgram, 145, 15),
    ],
)
def test_parts_in_threaded_programs(kind: type[PartsProgram], first: int, count: int) -> None:
    """No run loads what is not stored by a load that is accepted, and there are many of these."""
    loads = sum(accepted_loads(kind(seed)) for seed in range(first, first + count))
    assert loads >= count // 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PartsProgram, TurnsProgram])
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_parts_in_many_threaded_programs(kind: type[PartsProgram], first: int) -> None:
    test_parts_in_threaded_programs(kind, first, 50)


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
