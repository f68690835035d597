"""Where a Scheduled program goes in memory, by walking it: every access of every instance.

In: a function in Scheduled form, where its bufs lie, the numbers of one call, and how many workers
take how many instances at once. Out: for each operand of each operation, the byte that every event
touches. The walk runs loops, conditions and index arithmetic in plain Python integers and knows
nothing of equations. It remembers which buf each byte of scratch memory belongs to since it was
written: what is read must still be there. What the program computes from elements is not followed:
conditions and bounds here are of numbers.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilenest.ir import Block, BufType, Function, Operation, Value, ViewType
from tilenest.records import record

Event = tuple[int, ...]
Key = tuple[Operation, str, int]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "neg": lambda a: -a,
    "minimum": min,
    "maximum": max,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": lambda a: not a,
    "where": lambda condition, a, b: a if condition else b,
}


@record
class Place:
    """What one event touches."""

    resource: str
    instance: tuple[int, ...]
    base: int
    version: int
    byte: int


@record
class Memory:
    """Storage at hand: where its lowest element is, and how its elements lie."""

    resource: str
    instance: tuple[int, ...]
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_bytes: int


@record
class Array:
    """What is known of an argument that is an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """in elements"""


class MemoryModel:
    """One walk."""

    def __init__(
        self,
        function: Function,
        arguments: Mapping[Value, int | Array],
        workers: int,
        grain: int,
        offsets: Mapping[Operation, int],
    ) -> None:
        self.events: dict[Key, dict[Event, Place]] = defaultdict(dict)
        self.numbers: dict[Value, Any] = {}
        self.memories: dict[Value, Memory] = {}
        self.trail: list[int] = []
        self.worker: int | None = None
        self.workers, self.grain = workers, grain
        self.offsets = offsets
        self.held: dict[tuple[str, tuple[int, ...], int], Value] = {}
        """the buf that each byte of scratch memory was written for"""
        for argument, given in arguments.items():
            if isinstance(given, Array):
                assert isinstance(argument.type, ViewType)
                size = argument.type.dtype.bytes
                self.memories[argument] = Memory("global", (), 0, given.shape, given.strides, size)
            else:
                self.numbers[argument] = given
        self.block(function.body)

    def block(self, block: Block) -> list[Any]:
        for op in block.operations:
            if op.TERMINATOR:
                return [self.numbers.get(value) for value in op.operands]
            self.operation(op)
        raise AssertionError("a block without an end")

    def operation(self, op: Any) -> None:
        match op.NAME:
            case "scalar.constant":
                self.numbers[op.result] = op.value
            case "scalar.apply":
                self.numbers[op.result] = self.applied(op)
            case "scalar.cast":
                self.numbers[op.result] = self.numbers.get(op.operands[0])
            case "view.extent":
                self.numbers[op.result] = self.memories[op.view].shape[op.axis]
            case "buf.alloc":
                self.allocate(op)
            case "buf.read":
                self.touch(op, "buffer", 0, op.buffer, (), ())
                self.numbers[op.result] = None
            case "exec.if":
                condition = self.numbers[op.condition]
                assert condition is not None, "a condition on elements"
                values = self.block(op.regions[0 if condition else 1].block)
                self.numbers.update(zip(op.results, values, strict=True))
            case "exec.serial" | "exec.parallel" | "exec.reduce":
                self.nest(op)
            case "tensor.map_reduce_post":
                self.work(op)
            case name:
                raise AssertionError(name)

    def applied(self, op: Any) -> Any:
        parts = [self.numbers.get(argument) for argument in op.arguments]
        if op.function not in FUNCTIONS or any(part is None for part in parts):
            return None
        value = FUNCTIONS[op.function](*parts)
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        bits = op.result.type.dtype.bits
        return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    def allocate(self, op: Any) -> None:
        type_ = op.result.type
        assert isinstance(type_, BufType)
        size = type_.dtype.bytes
        strides: list[int] = []
        for extent in reversed(type_.shape):
            strides.insert(0, size // type_.dtype.bytes)
            size *= extent
        resource = "call" if self.worker is None else "private"
        instance = () if self.worker is None else (self.worker,)
        memory = Memory(
            resource, instance, self.offsets[op], type_.shape, tuple(strides), type_.dtype.bytes
        )
        self.memories[op.result] = memory
        for point in itertools.product(*map(range, type_.shape)):
            self.put(op, "result", 0, point, memory, point)

    # Nests -----------------------------------------------------------------------------------

    def nest(self, op: Any) -> None:
        bounds = [[self.numbers[v] for v in group] for group in (op.lower, op.upper, op.step)]
        axes = [range(*axis) for axis in zip(*bounds, strict=True)]
        states = [self.numbers.get(value) for value in getattr(op, "initial", ())]
        is_root = op.NAME == "exec.parallel" and self.worker is None
        for item, counters in enumerate(itertools.product(*(range(len(axis)) for axis in axes))):
            if is_root:
                self.worker = (item // self.grain) % self.workers
            indices = [axis[counter] for axis, counter in zip(axes, counters, strict=True)]
            self.trail += counters
            self.numbers.update(zip(op.body.arguments, [*indices, *states], strict=True))
            states = self.block(op.body)
            del self.trail[len(self.trail) - len(counters) :]
        if is_root:
            self.worker = None
        self.numbers.update(zip(op.results, states, strict=False))

    # Work ------------------------------------------------------------------------------------

    def work(self, op: Any) -> None:
        extents = list(op.extents)
        for dim, end in zip(op.clipped, op.upper, strict=True):
            extents[dim] = max(0, min(extents[dim], self.numbers[end]))
        symbols = [self.numbers[symbol] for symbol in op.symbols]
        specs = list(op.specs)
        folded = [spec for spec in specs if spec.policy is not None]
        posts = [spec for spec in folded for _ in range(spec.posts)]
        everything = tuple(range(len(extents)))
        for group, values, dims in (
            ("input", op.inputs, [everything] * len(op.inputs)),
            ("seed", op.seeds, [spec.dims for spec in folded]),
            ("post", op.posts, [spec.dims for spec in posts]),
            ("output", op.outputs, [spec.dims for spec in specs]),
        ):
            for position, (value, kept) in enumerate(zip(values, dims, strict=True)):
                if isinstance(value.type, ViewType | BufType):
                    box = [n if d in kept else 1 for d, n in enumerate(extents)]
                    points = itertools.product(*map(range, box))
                    self.touched(op, group, position, value, points, symbols)

    def touched(
        self,
        op: Any,
        group: str,
        position: int,
        value: Value,
        points: Iterator[Event],
        symbols: Sequence[int],
    ) -> None:
        for point in points:
            self.touch(op, group, position, value, point, symbols)

    def touch(
        self,
        op: Any,
        group: str,
        position: int,
        value: Value,
        point: Event,
        symbols: Sequence[int],
    ) -> None:
        memory = self.memories[value]
        if group == "buffer":
            self.put(op, group, position, point, memory, ())
            self.check_held(op, group, value, memory, ())
            return
        access = op.attributes[f"{group}_access"][position]
        coordinates = access.map.evaluate(point, symbols)
        pairs = zip(coordinates, memory.shape, strict=True)
        if all(0 <= place < extent for place, extent in pairs):
            self.put(op, group, position, point, memory, coordinates)
            self.check_held(op, group, value, memory, coordinates)
        else:
            assert access.bounds == "zero", f"{group} {position} leaves {value.name}"

    def put(
        self,
        op: Any,
        group: str,
        position: int,
        point: Event,
        memory: Memory,
        coordinates: Sequence[int],
    ) -> None:
        byte = byte_of(memory, coordinates)
        found = Place(memory.resource, memory.instance, memory.base, 0, byte)
        self.events[op, group, position][(*self.trail, *point)] = found

    def check_held(
        self, op: Any, group: str, value: Value, memory: Memory, coordinates: Sequence[int]
    ) -> None:
        """A write takes bytes of scratch memory for a buf; a read finds them so."""
        if not isinstance(value.type, BufType):
            return
        first = byte_of(memory, coordinates)
        for byte in range(first, first + memory.element_bytes):
            key = (memory.resource, memory.instance, byte)
            if group == "output":
                self.held[key] = value
            else:
                assert self.held.get(key) is value, f"{op.NAME} finds {value.name} overwritten"


def byte_of(memory: Memory, coordinates: Sequence[int]) -> int:
    element = sum(
        place * stride if stride >= 0 else (extent - 1 - place) * -stride
        for place, stride, extent in zip(coordinates, memory.strides, memory.shape, strict=True)
    )
    return memory.base + element * memory.element_bytes
