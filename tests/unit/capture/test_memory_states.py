"""States of memory in random programs: threaded, judged by running every way through them.

A program is stores and loads of two memories in nests and branches. Its accesses are given their
states as capture does; the interpreter, which counts stores, finds every state that is not the
latest and every load of what was never stored.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tilenest.analysis import MemoryStates, StateFault
from tilenest.capture.memory import carry_states, finish_states, yield_states
from tilenest.dialects import (
    Constant,
    If,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Return,
    Serial,
    Yield,
)
from tilenest.errors import InternalError, UninitialisedMemoryError
from tilenest.interp import interpret
from tilenest.ir import (
    BOOL,
    INDEX,
    STATE,
    Block,
    Builder,
    Function,
    MemoryType,
    Module,
    Region,
    ScalarType,
    StateType,
    Value,
    float32,
    fresh,
)
from tilenest.verify import diagnose_module

CONDITIONS = 2
TRIPS = (0, 1, 2)
F32 = ScalarType(float32)


class Program:
    """One random program; its arguments are the conditions, a run-time trip count and a value."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.module = Module("candidate")
        types = [BOOL] * CONDITIONS + [INDEX, F32]
        self.function = self.module.add(Function("main", types))
        *self.conditions, self.trips, self.value = self.function.arguments
        self.builder = Builder(self.function.body)
        self.memories = [self._allocate(), self._allocate()]
        self._statements(3)
        self.builder.insert(Return(values=[]))

    def _allocate(self) -> MemoryAllocate:
        types = [MemoryType(float32, ()), STATE]
        return self.builder.insert(MemoryAllocate(result_types=types))

    def _constant(self, value: int) -> Value:
        return self.builder.insert(Constant(value=value, result_types=[INDEX])).result

    def _statements(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._statement(self.random.choice("slsnb" if depth else "sl"), depth)

    def _statement(self, kind: str, depth: int) -> None:
        memory = self.random.choice(self.memories)
        if kind == "s":
            self.builder.insert(
                MemoryStore(
                    memory=memory.memory,
                    state=memory.state,
                    value=self.value,
                    result_types=[STATE],
                )
            )
        elif kind == "l":
            load = MemoryLoad(memory=memory.memory, state=memory.state, result_types=[F32])
            self.builder.insert(load)
        elif kind == "n":
            self._nest(depth)
        else:
            self._branch(depth)

    def _nest(self, depth: int) -> None:
        known = self.random.choice([None, *TRIPS])
        upper = self.trips if known is None else self._constant(known)
        body = Block([INDEX])
        nest = self.builder.insert(
            Serial(
                lower=[self._constant(0)],
                upper=[upper],
                step=[self._constant(1)],
                initial=[],
                regions=[Region([body])],
            )
        )
        self._fill(body, depth)
        carry_states(nest)

    def _branch(self, depth: int) -> None:
        blocks = [Block(), Block()]
        condition = self.random.choice(self.conditions)
        regions = [Region([block]) for block in blocks]
        branch = self.builder.insert(If(condition=condition, regions=regions))
        for block in blocks:
            self._fill(block, depth)
        yield_states(branch)

    def _fill(self, block: Block, depth: int) -> None:
        with self.builder.at_end(block):
            self._statements(depth - 1)
            self.builder.insert(Yield(values=[]))

    def failures(self) -> set[str]:
        """What any run of the program raises."""
        found: set[str] = set()
        for *conditions, trips in itertools.product(*[(False, True)] * CONDITIONS, TRIPS):
            try:
                interpret(self.module, [*conditions, trips, np.float32(1)])
            except InternalError as error:
                found.add("stale" if "latest" in error.message else "empty")
        return found


@pytest.mark.parametrize("seed", range(60))
def test_memory_states_of_threaded_programs(seed: int) -> None:
    program = Program(seed)
    is_refused = False
    try:
        finish_states(program.function)
    except UninitialisedMemoryError:
        is_refused = True
    faults = {problem.fault for problem in fresh(MemoryStates, program.function).problems}
    assert faults <= {StateFault.UNINITIALISED}
    assert bool(faults) == is_refused
    assert {diagnostic.rule for diagnostic in diagnose_module(program.module)} <= {"OP68"}
    failures = program.failures()
    assert "stale" not in failures
    assert is_refused or not failures


@pytest.mark.parametrize("seed", range(60))
def test_memory_states_tells_every_state_that_a_run_misses(seed: int) -> None:
    """One access takes another state that is visible there: if any run notices, so does this."""
    program = Program(seed)
    try:
        finish_states(program.function)
    except UninitialisedMemoryError:
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
