"""Random programs whose memories are stored and loaded by parts.

In: a seed. Out: a module as of `memory_programs`. Places and the ends of nests are constants,
formulas of indices, or numbers that are loaded, carried or chosen on the way.
"""

from __future__ import annotations

import itertools

from tests.unit.capture.memory_programs import F32, ROWS, Program
from tilenest.capture.memory import carry_states, yield_states
from tilenest.capture.stages import Cut, split_stages
from tilenest.dialects import (
    Apply,
    Cast,
    If,
    Load,
    Map,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Pipeline,
    Reduce,
    ReductionContract,
    Serial,
    Store,
    Yield,
)
from tilenest.errors import SourceLocation
from tilenest.ir import (
    BOOL,
    INDEX,
    STATE,
    Block,
    Region,
    ScalarType,
    TileType,
    Type,
    Value,
    float32,
    int64,
)
from tilenest.layouts import shape_dims

PLACE = SourceLocation("program.py", 1, 0, 1, "main", "")


class PartsProgram(Program):
    """Stores and loads go to parts, at places that are constants, formulas of the indices of the
    nests around, or known in a run only: loaded, carried or decided by a condition. Nests are of
    all kinds, and end at such numbers too. Loads like to go where a store has gone before."""

    SHAPE = (4, 5)
    KINDS = ("snnnbdf", "slsdf")
    DEPTH = 2

    def __init__(self, seed: int) -> None:
        self.numbers: list[Value] = []
        self.indices: list[Value] = []
        self.parts: list[tuple[MemoryAllocate, list[Value], tuple[int, ...]]] = []
        super().__init__(seed)

    def _statement(self, kind: str, depth: int) -> None:
        if kind == "d":
            self.numbers.append(self._loaded())
        elif kind == "f":
            self._fill_up_to_a_number(self.random.choice(self.memories))
        else:
            super()._statement(kind, depth)

    def _fill(self, block: Block, depth: int, handed: int = 0) -> None:
        """A block that hands on some numbers."""
        inner = [argument for argument in block.arguments if argument.type is INDEX]
        numbers, parts = len(self.numbers), len(self.parts)
        self.numbers += inner
        with self.builder.at_end(block):
            if self.random.random() < 0.3:
                self._statement("d", depth)
            self._statements(depth - 1)
            values = [self._limited(self._place()) for _ in range(handed)]
            self.builder.insert(Yield(values=values))
        del self.numbers[numbers:], self.parts[parts:]

    # Nests and branches ------------------------------------------------------------------------

    def _nest(self, depth: int) -> None:
        axes = [self._bounds() for _ in range(self.random.choice([1, 1, 1, 2]))]
        lower, upper, step = map(list, zip(*axes, strict=True))
        kind = self.random.choice([Serial, Serial, Pipeline, Reduce])
        handed = self.random.randint(0, 1) if kind is not Reduce else 0
        body = Block([INDEX] * (len(axes) + handed))
        nest = kind(
            lower=lower,
            upper=upper,
            step=step,
            initial=[self._limited(self._place()) for _ in range(handed)],
            regions=[Region([body])],
            result_types=[INDEX] * handed,
        )
        if isinstance(nest, Reduce):
            policy = self.random.choice(["fold_left", "fold_right"])
            nest.attributes["contract"] = ReductionContract(policy)
        self.builder.insert(nest)
        self.indices += body.arguments[: len(axes)]
        self._fill(body, depth, handed)
        del self.indices[-len(axes) :]
        carry_states(nest)
        if isinstance(nest, Pipeline):
            # A load and the store of what it gives stay together.
            ends = [op for op in body.operations if not isinstance(op, MemoryLoad | Yield)]
            behind = self.random.choice([None, *ends])
            split_stages(nest, [Cut(None, None), Cut(None, behind)], PLACE)
        self.numbers += nest.results[:handed]
        self._look_around()

    def _bounds(self) -> tuple[Value, Value, Value]:
        """The lower bound, the upper bound and the step of an axis; it has few turns."""
        step = self.random.choice([1, 1, 1, 1, 2, 3, -1])
        low = self.random.choice([0, 0, 0, -1, -2, 1])
        ends = [self._constant(low), self._constant(low + self.random.randint(0, 4))]
        if self.random.random() < 0.5:
            ends[self.random.choice([0, 1, 1, 1])] = self._number()
        return ends[step < 0], ends[step > 0], self._constant(step)

    def _branch(self, depth: int) -> None:
        blocks = [Block(), Block()]
        handed = self.random.randint(0, 1)
        branch = self.builder.insert(
            If(
                condition=self._condition(),
                regions=[Region([block]) for block in blocks],
                result_types=[INDEX] * handed,
            )
        )
        for block in blocks:
            self._fill(block, depth, handed)
        yield_states(branch)
        self.numbers += branch.results[:handed]
        self._look_around()

    def _condition(self) -> Value:
        if self.random.random() < 0.5:
            return self.random.choice(self.conditions)
        return self._apply("lt", self._number(), self._number(), type_=BOOL)

    # Accesses ----------------------------------------------------------------------------------

    def _store(self, memory: MemoryAllocate) -> None:
        origins, shape = self._part()
        self.parts.append((memory, origins, shape))
        self._store_part(memory, origins, shape)

    def _store_part(
        self, memory: MemoryAllocate, origins: list[Value], shape: tuple[int, ...]
    ) -> None:
        store = MemoryStore(
            memory=memory.memory,
            state=memory.state,
            value=self._tile(shape),
            origins=origins,
            result_types=[STATE],
        )
        self.builder.insert(store)

    def _fill_up_to_a_number(self, memory: MemoryAllocate) -> None:
        """Two nests store what lies before a number and from it on, at times side by side."""
        axis, number = self.random.randint(0, 1), self._number()
        if self.numbers and self.random.random() < 0.7:
            number = self.numbers[-1]
        extent = self._constant(self.SHAPE[axis])
        if self.random.random() < 0.7:
            number = self._apply("minimum", number, extent)
            number = self._apply("maximum", number, self._constant(0))
        base = self.random.choice([self._number(), *self.indices[-1:] * 2])
        scale = self._constant(self.random.choice([1, 1, 1, 2, -1, -2]))
        offset = self._constant(self.random.randint(-1, 1))
        place = self._apply("add", self._apply("mul", base, scale), offset)
        shape = (1, self.random.randint(1, 2))[:: 1 if axis == 0 else -1]
        beside = self._constant(self.random.choice([0, 1, -1]))
        ends = self._constant(0), number, extent
        for (low, high), way in zip(itertools.pairwise(ends), (False, True), strict=True):
            body = Block([INDEX])
            nest = self.builder.insert(
                Serial(
                    lower=[low],
                    upper=[high],
                    step=[self._constant(1)],
                    initial=[],
                    regions=[Region([body])],
                )
            )
            with self.builder.at_end(body):
                other = self._apply("add", place, beside) if way else place
                origins = [body.arguments[0], other][:: 1 if axis == 0 else -1]
                self._store_part(memory, origins, shape)
                self.builder.insert(Yield(values=[]))
            carry_states(nest)
        origins = [self._constant(0), place][:: 1 if axis == 0 else -1]
        spanned = tuple(n if each == axis else 1 for each, n in enumerate(self.SHAPE))
        self.parts.append((memory, origins, spanned))
        self._look_around()

    def _load(self, memory: MemoryAllocate) -> None:
        known = [(origins, shape) for owner, origins, shape in self.parts if owner is memory]
        is_known = known and self.random.random() < 0.7
        self._load_part(memory, *(self.random.choice(known) if is_known else self._part()))

    def _look_around(self) -> None:
        """Load a row, a column and a smaller part of a memory."""
        rows, columns = self.SHAPE
        memory = self.random.choice(self.memories)
        for shape in ((1, columns), (rows, 1), (1, self.random.randint(1, columns))):
            spare = [extent - n for extent, n in zip(self.SHAPE, shape, strict=True)]
            at = [self._constant(self.random.randint(0, n)) for n in spare]
            self._load_part(memory, at, shape)

    def _load_part(
        self, memory: MemoryAllocate, origins: list[Value], shape: tuple[int, ...]
    ) -> None:
        self.accesses += 1
        outside = [self._constant(self.accesses * ROWS), self._constant(0)]
        dims = shape_dims(shape)
        load = self.builder.insert(
            MemoryLoad(
                memory=memory.memory,
                state=memory.state,
                origins=origins,
                result_types=[TileType(float32, dims)],
            )
        )
        self.builder.insert(Store(view=self.out, origins=outside, value=load.result, dims=dims))

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

    # Numbers -----------------------------------------------------------------------------------

    def _number(self) -> Value:
        if self.numbers and self.random.random() < 0.6:
            return self.random.choice(self.numbers[-2:])
        return self.random.choice([*self.numbers, self.trips])

    def _place(self) -> Value:
        offset = self._constant(self.random.randint(-1, 3))
        if self.random.random() < 0.3:
            return offset
        if self.random.random() < 0.1:
            return self._apply("where", self._condition(), self._number(), offset)
        scale = self._constant(self.random.choice([1, 1, 2, 2, 3, -1]))
        return self._apply("add", self._apply("mul", self._number(), scale), offset)

    def _loaded(self) -> Value:
        type_ = ScalarType(int64)
        load = Load(view=self.array, origins=[self._place()], result_types=[type_])
        number = self.builder.insert(load).result
        return self.builder.insert(Cast(value=number, result_types=[INDEX])).result

    def _limited(self, number: Value) -> Value:
        """What is handed on stays small, however often it is."""
        number = self._apply("minimum", number, self._constant(5))
        return self._apply("maximum", number, self._constant(-1))

    def _apply(self, function: str, *arguments: Value, type_: Type = INDEX) -> Value:
        op = Apply(arguments=list(arguments), function=function, result_types=[type_])
        return self.builder.insert(op).result


class TurnsProgram(PartsProgram):
    """One nest, of which each turn stores up to a number and from it on, and little else; then
    every row and every column is loaded. The memory is so small that turns often span it."""

    SHAPE = (2, 3)
    MEMORIES = 1

    def _statements(self, depth: int) -> None:
        if depth < self.DEPTH:
            kinds = self.random.choice(["df", "df", "df", "f", "dff", "dfs", "dlf", "bf"])
            for kind in kinds if depth else self.random.choice("fs"):
                self._statement(kind, depth)
            return
        for kind in self.random.choice(["n", "n", "n", "sn", "fn", "b"]):
            self._statement(kind, depth)
        for memory in self.memories:
            for axis, extent in enumerate(self.SHAPE):
                shape = tuple(1 if each == axis else n for each, n in enumerate(self.SHAPE))
                for place in range(extent):
                    at = [self._constant(place * (each == axis)) for each in range(2)]
                    self._load_part(memory, at, shape)

    def _bounds(self) -> tuple[Value, Value, Value]:
        if self.random.random() < 0.4:
            return super()._bounds()
        # As far as the memory reaches, and a place before it.
        most = self.random.choice(self.SHAPE)
        return self._constant(-1), self._constant(most), self._constant(1)

    def _number(self) -> Value:
        is_own = self.indices and self.random.random() < 0.6
        return self.indices[-1] if is_own else super()._number()

    def _look_around(self) -> None:
        """That is done at the end."""


class FilledProgram(PartsProgram):
    """The same, of memories in which everything is stored before: all loads are accepted."""

    KINDS = ("slsnbdf", "sldf")

    def _look_around(self) -> None:
        """Other loads are enough."""

    def _begin(self) -> None:
        for memory in self.memories:
            store = MemoryStore(
                memory=memory.memory,
                state=memory.state,
                value=self._tile(self.SHAPE),
                result_types=[STATE],
            )
            self.builder.insert(store)
