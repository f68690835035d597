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
from tilenest.capture.memory import carry_states, finish_states, yield_states
from tilenest.dialects import (
    Apply,
    Cast,
    Constant,
    If,
    Map,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Return,
    Serial,
    Store,
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
    TileType,
    Value,
    ViewType,
    float32,
)
from tilenest.layouts import shape_dims

CONDITIONS = 2
TRIPS = (0, 1, 2)
CALLS = [
    (conditions, trips)
    for conditions in itertools.product((False, True), repeat=CONDITIONS)
    for trips in TRIPS
]
ROWS = 8
"""of the output that belong to one load"""
F32 = ScalarType(float32)


class Program:
    """One random program; its arguments are the conditions, a run-time trip count, a value and an
    array for what it loads."""

    SHAPE: tuple[int, ...] = ()

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.module = Module("candidate")
        out = ViewType(float32, (None, None), (None, 1))
        types = [BOOL] * CONDITIONS + [INDEX, F32, out]
        self.function = self.module.add(Function("main", types))
        *self.conditions, self.trips, self.value, self.out = self.function.arguments
        self.builder = Builder(self.function.body)
        self.memories = [self._allocate(), self._allocate()]
        self.accesses = 0
        self._begin()
        self._statements(3)
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
            self._statement(self.random.choice("slsnb" if depth else "sl"), depth)

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

    def run(self, module: Module, conditions: Iterable[bool], trips: int) -> Array:
        """What the program, in whatever form, writes for its loads."""
        out = np.full((1 + self.accesses * ROWS, ROWS), np.nan, np.float32)
        interpret(module, [*conditions, trips, np.float32(1), out])
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


class PartsProgram(Program):
    """Stores and loads go to parts, at places that are constants, formulas of the indices of the
    nests around, or known in a run only. Loads like to go where a store has gone before."""

    SHAPE = (4, 5)

    def __init__(self, seed: int) -> None:
        self.indices: list[Value] = []
        self.parts: list[tuple[MemoryAllocate, list[Value], tuple[int, ...]]] = []
        super().__init__(seed)

    def _fill(self, block: Block, depth: int) -> None:
        inner = [argument for argument in block.arguments if argument.type is INDEX]
        indices, parts = len(self.indices), len(self.parts)
        self.indices += inner
        super()._fill(block, depth)
        del self.indices[indices:], self.parts[parts:]

    def _store(self, memory: MemoryAllocate) -> None:
        origins, shape = self._part()
        self.parts.append((memory, origins, shape))
        store = MemoryStore(
            memory=memory.memory,
            state=memory.state,
            value=self._tile(shape),
            origins=origins,
            result_types=[STATE],
        )
        self.builder.insert(store)

    def _load(self, memory: MemoryAllocate) -> None:
        known = [(origins, shape) for owner, origins, shape in self.parts if owner is memory]
        is_known = known and self.random.random() < 0.8
        origins, shape = self.random.choice(known) if is_known else self._part()
        load = MemoryLoad(
            memory=memory.memory,
            state=memory.state,
            origins=origins,
            result_types=[TileType(float32, shape_dims(shape))],
        )
        self.builder.insert(load)
        self.accesses += 1
        origins = [self._constant(self.accesses * ROWS), self._constant(0)]
        dims = shape_dims(shape)
        self.builder.insert(Store(view=self.out, origins=origins, value=load.result, dims=dims))

    def _tile(self, shape: tuple[int, ...]) -> Value:
        """Elements that tell where they are and in which tile."""
        body = Block([INDEX] * len(shape))
        row, column = body.arguments
        self.accesses += 1
        with self.builder.at_end(body):
            place = self._apply("add", self._apply("mul", row, self._constant(8)), column)
            number = self._apply("add", place, self._constant(self.accesses * 64))
            cast = self.builder.insert(Cast(value=number, result_types=[F32])).result
            self.builder.insert(Yield(values=[cast]))
        type_ = TileType(float32, shape_dims(shape))
        return self.builder.insert(
            Map(inputs=[], result_types=[type_], regions=[Region([body])])
        ).result

    def _part(self) -> tuple[list[Value], tuple[int, ...]]:
        """The whole, a part that spans an axis, or any part."""
        kind = self.random.choice(["whole", "rows", "columns", "any"])
        if kind == "whole":
            return [], self.SHAPE
        origins: list[Value] = []
        shape: list[int] = []
        for axis, extent in enumerate(self.SHAPE):
            if kind == ("columns", "rows")[axis]:
                origins.append(self._constant(0))
                shape.append(extent)
            else:
                origins.append(self._place())
                shape.append(self.random.randint(1, extent))
        return origins, tuple(shape)

    def _place(self) -> Value:
        offset = self._constant(self.random.randint(-1, 3))
        if self.random.random() < 0.3:
            return offset
        base = self.random.choice([*self.indices, *self.indices, self.trips])
        scale = self._constant(self.random.choice([1, 1, 2, 2, 3, -1]))
        return self._apply("add", self._apply("mul", base, scale), offset)

    def _apply(self, function: str, one: Value, other: Value) -> Value:
        op = Apply(arguments=[one, other], function=function, result_types=[INDEX])
        return self.builder.insert(op).result


class FilledProgram(PartsProgram):
    """The same, of memories in which everything is stored before."""

    def _begin(self) -> None:
        for memory in self.memories:
            store = MemoryStore(
                memory=memory.memory,
                state=memory.state,
                value=self._tile(self.SHAPE),
                result_types=[STATE],
            )
            self.builder.insert(store)
