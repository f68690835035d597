"""Random programs of stores and loads of memories, in nests and branches.

In: a seed. Out: a module whose accesses are given their states as capture does, and what any of its
runs raises in the interpreter, which counts stores and knows of each element whether it is stored.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import numpy as np

from tests.oracle.arrays import Array
from tilenest.analysis import MemoryStates
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
    Value,
    ViewType,
    float32,
    fresh,
    int64,
)
from tilenest.layouts import shape_dims

CONDITIONS = 2
TRIPS = (0, 1, 2)
NUMBERS = ((4, 0, 3, 1), (0, 5, -1, 2), (1, 3, 0, 5))
"""what an array of the call holds"""
CALLS = [
    (conditions, trips, NUMBERS[(place + trips) % len(NUMBERS)])
    for place, conditions in enumerate(itertools.product((False, True), repeat=CONDITIONS))
    for trips in TRIPS
]
ROWS = 8
"""of the output that belong to one load"""
F32 = ScalarType(float32)


class Program:
    """One random program; its arguments are the conditions, a run-time trip count, a value, an
    array of numbers and one for what it loads."""

    SHAPE: tuple[int, ...] = ()
    KINDS = ("slsnb", "sl")
    """of statements, and of those in the innermost blocks"""
    DEPTH = 3
    MEMORIES = 2

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.module = Module("candidate")
        out = ViewType(float32, (None, None), (None, 1))
        numbers = ViewType(int64, (None,), (1,))
        types = [BOOL] * CONDITIONS + [INDEX, F32, numbers, out]
        self.function = self.module.add(Function("main", types))
        *self.conditions, self.trips, self.value, self.array, self.out = self.function.arguments
        self.builder = Builder(self.function.body)
        self.memories = [self._allocate() for _ in range(self.MEMORIES)]
        self.accesses = 0
        self._begin()
        self._statements(self.DEPTH)
        self.builder.insert(Return(values=[]))

    def _begin(self) -> None:
        """What comes before all statements."""

    def _allocate(self) -> MemoryAllocate:
        types = [MemoryType(float32, shape_dims(self.SHAPE)), STATE]
        return self.builder.insert(MemoryAllocate(result_types=types))

    def _constant(self, value: int) -> Value:
        return self.builder.insert(Constant(value=value, result_types=[INDEX])).result

    def _statements(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._statement(self.random.choice(self.KINDS[not depth]), depth)

    def _statement(self, kind: str, depth: int) -> None:
        memory = self.random.choice(self.memories)
        if kind == "s":
            self._store(memory)
        elif kind == "l":
            self._load(memory)
        elif kind == "n":
            self._nest(depth)
        else:
            self._branch(depth)

    def _store(self, memory: MemoryAllocate) -> None:
        store = MemoryStore(
            memory=memory.memory, state=memory.state, value=self.value, result_types=[STATE]
        )
        self.builder.insert(store)

    def _load(self, memory: MemoryAllocate) -> None:
        load = MemoryLoad(memory=memory.memory, state=memory.state, result_types=[F32])
        self.builder.insert(load)

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

    def finish(self) -> bool:
        """Give the accesses their states; whether the program is accepted."""
        try:
            finish_states(self.function)
        except UninitialisedMemoryError:
            return False
        return True

    def drop_refused_loads(self) -> int:
        """Keep only what is accepted of a program that has its states; how many loads these are."""
        for problem in fresh(MemoryStates, self.function).problems:
            (use,) = problem.operation.result.uses
            use.operation.erase()
            problem.operation.erase()
        return sum(isinstance(op, MemoryLoad) for op in self.module.walk())

    def run(
        self, module: Module, conditions: Iterable[bool], trips: int, numbers: Iterable[int]
    ) -> Array:
        """What the program, in whatever form, writes for its loads."""
        out = np.full((1 + self.accesses * ROWS, ROWS), np.nan, np.float32)
        interpret(module, [*conditions, trips, np.float32(1), np.array(numbers, np.int64), out])
        return out

    def failures(self) -> set[str]:
        """What any run of the program raises."""
        found: set[str] = set()
        for call in CALLS:
            try:
                self.run(self.module, *call)
            except InternalError:
                found.add("stale")
            except UninitialisedMemoryError:
                found.add("empty")
        return found
