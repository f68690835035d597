"""Random programs of a few accesses, and every element that they touch, one by one.

In: a random source. Out: a function of two arrays that are one, with nests of run-time bounds,
conditions, masks and views of views around loads, stores and atomics; and, for the extent `n` of a
third array, all events: which operation touches which element in which instance of the parallel,
found by running the index arithmetic with plain numbers.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.unit.interp.programs import Program, blank
from tilenest.dialects import (
    Apply,
    Atomic,
    Constant,
    Extent,
    If,
    Load,
    Nest,
    Parallel,
    Remap,
    Serial,
    Store,
    chain_of,
    view_type,
    views,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Induction,
    Operation,
    ScalarType,
    TileType,
    Value,
    ViewType,
    float32,
)
from tilenest.layouts import positional_dim

N = range(5)
"""the numbers tried for `n`"""
SHAPES: tuple[tuple[int, ...], ...] = ((12,), (6, 4))
F32 = ScalarType(float32)
_MEANING: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": lambda a, b: a % b if b else 0,
    "floordiv": lambda a, b: a // b if b else 0,
    "minimum": min,
    "lt": operator.lt,
    "eq": operator.eq,
}
Numbers = dict[Value, int]


@dataclass(frozen=True)
class Event:
    """One operation in one instance of the parallel; it surely happens, or nobody knows."""

    operation: Operation
    instance: tuple[int, ...]
    element: tuple[int, ...]
    is_sure: bool


class RandomProgram:
    """`accesses` of X and Y in one parallel nest, each in loops and branches of its own."""

    def __init__(self, chance: random.Random, accesses: int = 2) -> None:
        self.chance = chance
        shape = chance.choice(SHAPES)
        strides = tuple([4, 1][-len(shape) :])
        array = ViewType(float32, shape, strides)
        counted = ViewType(float32, (None,), (1,))
        self.program = Program(array, array, counted, BOOL)
        self.function = self.program.function
        self.function.attributes["alias_groups"] = (0, 0, 1, 2)
        size = Extent(view=self.program.arguments[2], axis=0, result_types=[INDEX])
        self.n = self.program.value(size)
        self.nest = self.program.add(self._nest(Parallel, chance.randint(1, 2), []))
        self.accesses: list[Operation] = []
        with self.program.inside(self.nest) as indices:
            for place in range(accesses):
                self._part(list(indices), place)
            self.program.yields()
        self.program.finish()

    # Making ----------------------------------------------------------------------------------

    def _part(self, indices: list[Value], place: int) -> None:
        chance, program = self.chance, self.program
        match chance.randrange(4):
            case 0:
                loop = program.add(self._nest(Serial, 1, indices))
                with program.inside(loop) as inner:
                    self._access([*indices, *inner], place)
                    program.yields()
            case 1:
                index, modulus = chance.choice(indices), chance.choice([2, 3])
                rest = program.apply("mod", index, program.constant(modulus))
                asked = program.apply(chance.choice(["eq", "lt"]), rest, program.constant(1))
                condition = chance.choice([asked, asked, program.arguments[3]])
                branch = program.add(If(condition=condition, regions=[blank(), blank()]))
                with program.inside(branch):
                    self._access(indices, place)
                    program.yields()
                with program.inside(branch, 1):
                    program.yields()
            case _:
                self._access(indices, place)

    def _nest(self, kind: type[Nest], rank: int, outer: list[Value]) -> Nest:
        chance, program = self.chance, self.program
        lower = [program.constant(chance.choice([0, 0, 1])) for _ in range(rank)]
        upper = [program.constant(chance.choice([1, 2, 3, 4])) for _ in range(rank)]
        steps = [chance.choice([1, 1, 2, -1]) for _ in range(rank)]
        for axis, step in enumerate(steps):
            if chance.random() < 0.3:
                upper[axis] = chance.choice([self.n, *outer])
            if step < 0:
                lower[axis], upper[axis] = upper[axis], lower[axis]
        by = [program.constant(step) for step in steps]
        return kind(lower=lower, upper=upper, step=by, regions=[blank(*[INDEX] * rank)])

    def _access(self, indices: list[Value], place: int) -> None:
        chance, program = self.chance, self.program
        view: Value = program.arguments[place % 2]
        for _ in range(chance.choice([0, 0, 1, 2])):
            view = self._view(view, indices)
        rank = len(view_type(view).shape)
        origins = [self._index(indices) for _ in range(rank)]
        dims = tuple(positional_dim(axis, chance.choice([1, 1, 2, 3])) for axis in range(rank))
        bounds = chance.choice(["zero", "zero", "assume", "check"])
        mask = program.arguments[3] if chance.random() < 0.15 else None
        common: dict[str, Any] = {"view": view, "origins": origins, "bounds": bounds, "mask": mask}
        match chance.randrange(5):
            case 0 if place != 1:
                op: Operation = Load(result_types=[TileType(float32, dims)], **common)
            case 1:
                op = Atomic(value=program.constant(1.0, F32), function="add", dims=dims, **common)
            case 2 | 3 if place != 1:
                op = Load(result_types=[TileType(float32, dims)], **common)
            case _:
                op = Store(value=program.constant(1.0, F32), dims=dims, **common)
        self.accesses.append(program.add(op))

    def _index(self, indices: list[Value]) -> Value:
        """A random number made of indices."""
        chance, program = self.chance, self.program
        total = program.constant(chance.choice([0, 0, 0, 1, 2]))
        for index in chance.sample(indices, chance.randint(0, min(2, len(indices)))):
            factor = program.constant(chance.choice([1, 1, 2, 3, 4, -1]))
            total = program.apply("add", total, program.apply("mul", index, factor))
        match chance.randrange(8):
            case 0:
                return program.apply("mod", total, program.constant(3))
            case 1:
                return program.apply("floordiv", total, program.constant(2))
            case 2:
                return program.apply("minimum", total, program.constant(chance.choice([2, 5])))
            case 3:
                return program.apply("add", total, self.n)
        return total

    def _view(self, view: Value, indices: list[Value]) -> Value:
        chance, insert = self.chance, self.program.builder.insert
        shape = [extent for extent in view_type(view).shape if extent is not None]
        if len(shape) < len(view_type(view).shape):
            return view
        match chance.randrange(6):
            case 0:
                steps = [chance.choice([-1, 1, 2, 3]) for _ in shape]
                starts: list[views.Size] = [chance.randrange(max(1, extent)) for extent in shape]
                counts = [chance.randrange(1, 5) for _ in shape]
                return views.strided_slice(insert, view, starts, counts, steps).result
            case 1:
                starts = [self._index(indices) for _ in shape]
                return views.subview(insert, view, starts, [3] * len(shape)).result
            case 2:
                order = chance.sample(range(len(shape)), len(shape))
                return views.permute(insert, view, order).result
            case 3:
                # The last axis repeats its first element.
                places: list[int | None] = [*range(len(shape) - 1), None]
                return views.broadcast(insert, view, [*shape[:-1], 3], places).result
            case 4:
                before = [chance.randrange(-1, 3) for _ in shape]
                sizes = [max(1, extent + chance.randrange(-2, 3)) for extent in shape]
                return views.pad(insert, view, before, sizes).result
        sizes_open: list[views.Size] = [self.n, *shape[1:]]
        return views.subview(insert, view, [1] + [0] * (len(shape) - 1), sizes_open).result

    # Running ---------------------------------------------------------------------------------

    def events(self, n: int) -> list[Event]:
        """Everything that happens, or may happen, for a number of the call."""
        return list(self._run(self.function.body, {self.n: n}, (), True))

    def _run(
        self, block: Block, numbers: Numbers, instance: tuple[int, ...], is_sure: bool
    ) -> Iterator[Event]:
        for op in _operations(block):
            match op:
                case Nest():
                    for at in product(*(_range(axis, numbers) for axis in op.inductions())):
                        here = instance if isinstance(op, Serial) else at
                        inner = numbers | dict(zip(op.body.arguments, at, strict=True))
                        yield from self._run(op.body, inner, here, is_sure)
                case If():
                    known = numbers.get(op.condition)
                    for place, region in enumerate(op.regions):
                        if known is None or place == int(not known):
                            sure = is_sure and known is not None
                            yield from self._run(region.block, dict(numbers), instance, sure)
                case Load() | Store() | Atomic():
                    for element in _elements(op, numbers):
                        yield Event(op, instance, element, is_sure and op.mask is None)
                case _:
                    _compute(op, numbers)


def _range(axis: Induction[Value], numbers: Numbers) -> range:
    return range(numbers[axis.lower], numbers[axis.upper], numbers[axis.step])


def _compute(op: Operation, numbers: Numbers) -> None:
    if isinstance(op, Constant) and isinstance(op.value, int):
        numbers[op.result] = op.value
    elif isinstance(op, Apply) and all(value in numbers for value in op.arguments):
        numbers[op.result] = _MEANING[op.function](*(numbers[value] for value in op.arguments))


def _operations(block: Block) -> Iterator[Operation]:
    op = block.operations.first
    while op is not None:
        yield op
        op = op.next


def _elements(op: Load | Store | Atomic, numbers: Numbers) -> Iterator[tuple[int, ...]]:
    origins = [numbers[value] for value in op.origins]
    dims = op.result.type.dims if isinstance(op, Load) else op.dims  # type: ignore[attr-defined]  # a tile
    for step in product(*(range(dim.extent) for dim in dims)):
        point = tuple(a + b for a, b in zip(origins, step, strict=True))
        view = op.view
        for remap in chain_of(view):
            symbols = [numbers[value] for value in remap.symbols]
            if not _lies_in(point, _shape(remap, numbers)) or any(
                condition.evaluate(point, symbols) < 0 for condition in remap.conditions
            ):
                break
            point = remap.map.evaluate(point, symbols)
            view = remap.view
        else:
            if _lies_in(point, [extent or 0 for extent in view_type(view).shape]):
                yield point


def _shape(remap: Remap, numbers: Numbers) -> list[int]:
    sizes = [remap.extent(axis) for axis in range(remap.map.n_dims)]
    return [size if isinstance(size, int) else numbers[size] for size in sizes]


def _lies_in(point: tuple[int, ...], extents: list[int]) -> bool:
    return all(0 <= x < extent for x, extent in zip(point, extents, strict=True))
