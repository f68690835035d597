"""Where a Scheduled program goes in memory, by walking it: every access of every instance.

In: a function in Scheduled form that says where its bufs lie, the numbers of one call, how many
workers take how many instances at once. Out: for each operand of each operation, the byte that each
event touches. The walk runs loops, conditions and index arithmetic in plain Python integers and
knows nothing of equations. It remembers which buf each byte of scratch memory belongs to since it
was written: what is read must still be there. Stages of a pipeline run in order here, and by their
schedule it is noted when they touch what. What the program computes from elements is not followed:
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
    made: Value | None = None
    """the buf, where it is one"""
    version: int = 0
    version_bytes: int = 0
    state: Event = ()
    """the run and the iteration of the pipeline that it is of"""


@record
class Array:
    """What is known of an argument that is an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """in elements"""


@record
class Turn:
    """The stage that runs: of which run of a pipeline, in which iteration, from when to when."""

    run: Event
    iteration: int
    start: int
    end: int


LINE = 64
_NO_TURN = Turn((), 0, 0, 0)


class MemoryModel:
    """One walk."""

    def __init__(
        self,
        function: Function,
        arguments: Mapping[Value, int | Array],
        workers: int,
        grain: int,
    ) -> None:
        self.events: dict[Key, dict[Event, Place]] = defaultdict(dict)
        self.numbers: dict[Value, Any] = {}
        self.memories: dict[Value, Memory] = {}
        self.trail: list[int] = []
        self.worker: int | None = None
        self.workers, self.grain = workers, grain
        self.held: dict[tuple[str, tuple[int, ...], int], tuple[Value | None, Event]] = {}
        """the buf and state that each byte of scratch memory was written for"""
        self.turn = _NO_TURN
        self.lives: dict[Any, dict[Event, tuple[int, int]]] = defaultdict(dict)
        """by version of a buf in one run of a pipeline: when each iteration needs it"""
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
                return [self.memories.get(v, self.numbers.get(v)) for v in op.operands]
            self.operation(op)
        raise AssertionError("a block without an end")

    def operation(self, op: Any) -> None:
        match op.NAME:
            case "scalar.constant" | "scalar.apply" | "scalar.cast" | "view.extent":
                self.numbers[op.result] = self.number(op)
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
            case "exec.pipeline":
                self.pipeline(op)
            case "tensor.map_reduce_post":
                self.work(op)
            case name:
                raise AssertionError(name)

    def number(self, op: Any) -> Any:
        match op.NAME:
            case "scalar.constant":
                return op.value
            case "scalar.cast":
                return self.numbers.get(op.operands[0])
            case "view.extent":
                return self.memories[op.view].shape[op.axis]
        return self.applied(op)

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
        # The caller of the kernel has memory for itself, behind that of the workers.
        runs = self.workers if self.worker is None else self.worker
        instance = () if op.resource == "call" else (runs,)
        memory = Memory(
            op.resource,
            instance,
            op.base,
            type_.shape,
            tuple(strides),
            type_.dtype.bytes,
            op.result,
            self.turn.iteration % op.versions,
            -(-size // LINE) * LINE,
            (*self.turn.run, self.turn.iteration),
        )
        assert op.base % LINE == 0
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

    def pipeline(self, op: Any) -> None:
        """Iterations one after the other; `turn` says when each stage would run."""
        around = self.turn
        schedule = op.schedule
        lower, upper, step = (self.numbers[group[0]] for group in (op.lower, op.upper, op.step))
        states = [self.numbers.get(value) for value in op.initial]
        for iteration, index in enumerate(range(lower, upper, step)):
            begin = iteration * schedule.interval
            self.trail.append(iteration)
            values, handed = [index, *states], states
            for region, start, end in zip(op.regions, schedule.starts, schedule.ends, strict=True):
                self.turn = Turn(tuple(self.trail[:-1]), iteration, begin + start, begin + end)
                for argument, value in zip(region.block.arguments, values, strict=True):
                    table: dict[Value, Any] = self.numbers
                    if isinstance(value, Memory):
                        table = self.memories
                    table[argument] = value
                handed = self.block(region.block)
                values += handed
            states = handed
            self.trail.pop()
        self.numbers.update(zip(op.results, states, strict=True))
        self.turn = around

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
        found = Place(memory.resource, memory.instance, memory.base, memory.version, byte)
        self.events[op, group, position][(*self.trail, *point)] = found

    def check_held(
        self, op: Any, group: str, value: Value, memory: Memory, coordinates: Sequence[int]
    ) -> None:
        """A write takes bytes of scratch memory for a buf; a read finds them so."""
        if not isinstance(value.type, BufType):
            return
        self.note_life(memory)
        first = byte_of(memory, coordinates)
        for byte in range(first, first + memory.element_bytes):
            key = (memory.resource, memory.instance, byte)
            if group == "output":
                self.held[key] = memory.made, memory.state
            else:
                found = self.held.get(key)
                wanted = memory.made, memory.state
                assert found == wanted, f"{op.NAME} finds {value.name} overwritten"

    def note_life(self, memory: Memory) -> None:
        """Stretch the time in which an iteration needs its version over the stage that runs."""
        if len(memory.state) > 1 or self.turn is not _NO_TURN:
            *run, _ = memory.state
            lives = self.lives[memory.made, memory.instance, tuple(run), memory.version]
            start, end = lives.get(memory.state, (self.turn.start, self.turn.end))
            lives[memory.state] = min(start, self.turn.start), max(end, self.turn.end)

    def crowded(self) -> list[tuple[Any, Event, Event]]:
        """Versions that two iterations need at one time."""
        return [
            (version, one, other)
            for version, lives in self.lives.items()
            for (one, first), (other, second) in itertools.combinations(lives.items(), 2)
            if first[0] < second[1] and second[0] < first[1]
        ]


def byte_of(memory: Memory, coordinates: Sequence[int]) -> int:
    element = sum(
        place * stride if stride >= 0 else (extent - 1 - place) * -stride
        for place, stride, extent in zip(coordinates, memory.strides, memory.shape, strict=True)
    )
    start = memory.base + memory.version * memory.version_bytes
    return start + element * memory.element_bytes


# Where bufs go ----------------------------------------------------------------------------------


def documented_bases(function: Function) -> dict[Operation, int]:
    """Where the bufs of a function go by the rule of the documentation, from its text alone: the
    bufs of one class in one frame, in the order of the program or the largest first, whichever
    needs less, each as low as no buf is that is held together with it."""
    order: dict[Any, int] = {op: number for number, op in enumerate(function.walk())}
    groups: dict[Any, list[Any]] = defaultdict(list)
    for op in order:
        if op.NAME == "buf.alloc":
            groups[frame(op), op.resource].append(op)
    found: dict[Operation, int] = {}
    for allocs in groups.values():
        largest_first = sorted(allocs, key=lambda op: -size_of(op))
        one, other = (first_fit(bufs, order) for bufs in (allocs, largest_first))
        found.update(one if extent(one) <= extent(other) else other)
    return found


def extent(bases: Mapping[Operation, int]) -> int:
    return max(base + size_of(op) for op, base in bases.items())


def first_fit(allocs: Sequence[Any], order: Mapping[Operation, int]) -> dict[Operation, int]:
    found: dict[Operation, int] = {}
    for op in allocs:
        mine = times_held(op, order)
        taken = [
            range(base, base + size_of(other))
            for other, base in found.items()
            if mine & times_held(other, order)
        ]
        starts = sorted({0, *(span.stop for span in taken)})
        found[op] = next(
            start
            for start in starts
            if not any(start < span.stop and span.start < start + size_of(op) for span in taken)
        )
    return found


def times_held(alloc: Any, order: Mapping[Operation, int]) -> set[int]:
    """Operations from the first at which a buf is held to the last: those that use it, and the ends
    of blocks that it is handed through, on the way to a use or to another iteration of one."""
    uses = {order[user] for user in alloc.result.users}
    times = set(uses)
    for holder in order:
        if alloc.parent_op not in (None, *above(holder)) or order[holder] < order[alloc]:
            continue
        loops = [op for op in (holder, *above(holder)) if op.NAME != "exec.if"]
        loops = [op for op in loops if not op.is_ancestor_of(alloc)]
        comes_again = any(uses & span_of(loop.walk(), order) for loop in loops)
        is_after = any(use > max(span_of(holder.walk(), order)) for use in uses)
        for region in holder.regions:
            span = span_of((op for top in region.operations() for op in top.walk()), order)
            if uses and (comes_again or is_after or uses & span):
                times.add(min(span))
            if comes_again or is_after:
                times.add(max(order[op] for op in region.operations()))
    return set(range(min(times), max(times) + 1)) if uses else set()


def above(op: Operation) -> Iterator[Operation]:
    while op.parent_op is not None:
        op = op.parent_op
        yield op


def span_of(operations: Iterator[Operation], order: Mapping[Operation, int]) -> set[int]:
    return {order[op] for op in operations}


def frame(op: Operation) -> Operation | None:
    """The outermost parallel around an operation."""
    return next((o for o in reversed(list(above(op))) if o.NAME == "exec.parallel"), None)


def size_of(op: Any) -> int:
    size = op.result.type.dtype.bytes
    for extent in op.result.type.shape:
        size *= extent
    return int(-(-size // LINE) * LINE * op.versions)
