"""Where a nest stands while it is built: domain, open loops, coordinates, operands.

In: an op, the emitter, where its operands live. Out: reads, writes and regions at the current
coordinates. Loads are placed in front of the outermost loop they do not depend on; stores of a
straight line come after all its reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tilenest.analysis import output_clips
from tilenest.dialects import Access, Loop, MapReducePost
from tilenest.ir import INDEX, Operation, ScalarType, Value
from tilenest.layouts import Const, DimRef, IndexExpr, Interval
from tilenest.nests.addresses import Address, MemoryAccess, Place
from tilenest.nests.atoms import placed_atoms
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Emitter, Index
from tilenest.nests.fold_shape import Key, folded_dims
from tilenest.nests.guards import READ_GROUPS, CheckedAxis
from tilenest.nests.lanes import evaluate


class Environment(Protocol):
    """What surrounds a nest: where operands live in Machine form."""

    def address(self, value: Value) -> Address: ...

    def scalar(self, value: Value) -> Value: ...

    def range_of(self, value: Value) -> Interval | None: ...

    def storage(self, value: Value) -> object:
        """Equal for operands that may share memory."""
        ...


@dataclass(slots=True)
class _Scope:
    """An open loop or branch: operations may be placed in front of it when it surely runs."""

    operation: Operation | None
    surely_runs: bool


class NestFrame:
    """The state of one nest under construction."""

    def __init__(self, op: MapReducePost, emitter: Emitter, environment: Environment) -> None:
        self.op = op
        self.emitter = emitter
        self.environment = environment
        self.loops: tuple[Loop, ...] = op.schedule().loops
        self.atoms = placed_atoms(op)
        self.slots = Coordinates(emitter)
        self.memory = MemoryAccess(emitter, self.slots)
        self.symbols = [self.symbol(value) for value in op.symbols]
        self.folded = folded_dims(op)
        self.origins: list[IndexExpr] = [Const(0)] * op.rank
        self.sizes: list[Index] = list(op.extents)
        self.lane = next((loop for loop in self.loops if loop.policy == "vector"), None)
        self.lane_expr = self.slots.add_lane(self.lane.step) if self.lane else None
        self.lane_open = False
        self.tail: Value | None = None
        self.tail_count: Index = self.lane.step if self.lane else 0
        self.copies: dict[int, int] = {}
        self.copy_loops: tuple[int, ...] = ()
        self.accumulators: dict[tuple[int, Key], Value] | None = None
        self.pending: list[tuple[Place, Value, Value | None]] = []
        self.scopes: list[_Scope] = []
        self.loaded: list[dict[object, Value]] = [{}]
        self.written = {environment.storage(value) for value in op.outputs}
        self.unclipped: dict[int, list[int]] = {}
        self.inside: frozenset[CheckedAxis] = frozenset()

    def memory_of(self, value: Value) -> Address | None:
        return None if isinstance(value.type, ScalarType) else self.environment.address(value)

    def symbol(self, value: Value) -> IndexExpr:
        return self.slots.add(self.environment.scalar(value), self.environment.range_of(value), 0)

    def clip(self) -> None:
        """Shrink the domain to the run-time bounds and to what the outputs keep."""
        op, emitter = self.op, self.emitter
        bounds = {
            dim: emitter.maximum(
                emitter.minimum(self.environment.scalar(bound), op.extents[dim]), 0
            )
            for dim, bound in zip(op.clipped, op.upper, strict=True)
        }
        clips = output_clips(op)
        if clips:
            covered = {clip.axis for clip in clips}
            axes = range(len(op.access("output", 0).map.results))
            self.unclipped[0] = [axis for axis in axes if axis not in covered]
        for clip in clips:
            address = self.environment.address(op.outputs[0])
            self.clip_dim(clip.dim, clip.offset, address.extents[clip.axis])
        for dim, bound in bounds.items():
            if self.sizes[dim] == op.extents[dim]:
                self.sizes[dim] = self.whole_blocks(dim, bound)
            else:
                # The other clip moved the origin: the bound counts from the domain's start.
                room = emitter.subtract(bound, self.slots.emit(self.origins[dim]))
                self.sizes[dim] = emitter.maximum(emitter.minimum(self.sizes[dim], room), 0)

    def whole_blocks(self, dim: int, size: Index) -> Index:
        """Clipping is a permission: round up where the extent consists of whole unrolled blocks."""
        first = next((loop for loop in self.loops if loop.dim == dim), None)
        if first is None or first.step == 1 or self.op.extents[dim] % first.step:
            return size
        return self.emitter.multiply(self.emitter.ceil_divide(size, first.step), first.step)

    def clip_dim(self, dim: int, offset: IndexExpr, extent: Index) -> None:
        """Keep 0 <= offset + d < extent."""
        emitter, slots = self.emitter, self.slots
        shift = slots.simplify(offset.substitute([DimRef(i) for i in range(64)], self.symbols))
        known = slots.bounds(shift)
        full = self.op.extents[dim]
        lower: Index = 0
        if known is None or known[0] < 0:
            lower = emitter.maximum(emitter.subtract(0, slots.emit(shift)), 0)
        upper: Index = full
        if known is None or not isinstance(extent, int) or known[1] + full > extent:
            upper = emitter.minimum(emitter.subtract(extent, slots.emit(shift)), full)
        if lower == 0 and upper == full:
            return
        self.origins[dim] = slots.add(lower, (0, full), 0)
        self.sizes[dim] = emitter.maximum(emitter.subtract(upper, lower), 0)

    @property
    def lane_count(self) -> int:
        assert self.lane is not None
        return self.lane.step

    @contextmanager
    def tile(self, loop: Loop, origin: IndexExpr, size: int) -> Iterator[None]:
        """Narrow `loop.dim` to a tile; at the vector loop itself the lane joins the coordinate."""
        dim = loop.dim
        saved = self.origins[dim], self.sizes[dim]
        opens_lane = self.lane is not None and dim == self.lane.dim and size == self.lane.step
        opens_lane = opens_lane and not self.lane_open
        if opens_lane:
            assert self.lane_expr is not None
            origin = origin + self.lane_expr
            self.lane_open = True
        self.origins[dim], self.sizes[dim] = origin, size
        yield
        self.origins[dim], self.sizes[dim] = saved
        if opens_lane:
            self.lane_open = False

    @contextmanager
    def scope(self, operation: Operation | None, surely_runs: bool) -> Iterator[None]:
        self.scopes.append(_Scope(operation, surely_runs))
        self.loaded.append({})
        yield
        self.loaded.pop()
        self.scopes.pop()

    def evaluate(self, states: Sequence[Value]) -> list[Value]:
        """The fold region at the current coordinates."""
        block = self.op.fold_block
        elements = [self.read("input", i) for i in range(len(self.op.inputs))]
        arguments = [*self.coordinates(block.arguments), *elements, *states]
        return evaluate(block, arguments, self.emitter)

    def coordinates(self, arguments: Sequence[Value]) -> list[Value]:
        """The index arguments of a region: vectors where the lane is involved."""
        values: list[Value] = []
        for dim in range(self.op.rank):
            if not arguments[dim].has_uses:
                values.append(self.emitter.constant(0, INDEX))
                continue
            expr = self.slots.simplify(self.origins[dim])
            if self.slots.has_lane(expr):
                values.append(self.slots.emit_lanes(expr))
            else:
                values.append(self.emitter.value(self.slots.emit(expr)))
        return values

    def place(self, value: Value, access: Access, axes: Sequence[int] | None = None) -> Place:
        coordinates = tuple(
            self.slots.simplify(expr.substitute(self.origins, self.symbols))
            for expr in access.map.results
        )
        checked = range(len(coordinates)) if axes is None else axes
        is_checked = access.bounds not in ("proven", "assume")
        return Place(
            self.environment.address(value),
            coordinates,
            access,
            tuple(checked) if is_checked else (),
        )

    def read(self, group: str, position: int) -> Value:
        value: Value = getattr(self.op, READ_GROUPS[group])[position]
        if isinstance(value.type, ScalarType):
            return self.environment.scalar(value)
        access = self.op.access(group, position)
        axes = [
            axis
            for axis in range(len(access.map.results))
            if (group, position, axis) not in self.inside
        ]
        place = self.place(value, access, axes)
        has_lane = any(self.slots.has_lane(expr) for expr in place.coordinates)
        tail = self.tail if has_lane else None
        level = self.level_for(value, place, tail)
        key = (value, place.coordinates, tail)
        found = self.loaded[level].get(key)
        if found is None:
            with self.at_level(level):
                found = self.loaded[level][key] = self.memory.load(place, tail)
        return found

    def level_for(self, value: Value, place: Place, tail: Value | None) -> int:
        """The outermost open loop the load can stand in front of."""
        here = len(self.scopes)
        if tail is not None or self.environment.storage(value) in self.written:
            return here
        level = max((self.slots.depth(expr) for expr in place.coordinates), default=0)
        while not all(scope.surely_runs for scope in self.scopes[level:]):
            level += 1
        return level

    @contextmanager
    def at_level(self, level: int) -> Iterator[None]:
        if level == len(self.scopes):
            yield
            return
        operation = self.scopes[level].operation
        assert operation is not None
        with self.emitter.before(operation):
            yield

    def store_result(self, result: int, value: Value, predicate: Value | None) -> None:
        access = self.op.access("output", result)
        place = self.place(self.op.outputs[result], access, self.unclipped.get(result))
        has_lane = any(self.slots.has_lane(expr) for expr in place.coordinates)
        mask = self.tail if has_lane else None
        self.pending.append((place, value, self.emitter.both(mask, predicate, self.slots.lanes)))

    def flush(self) -> None:
        """Write what the copies computed: all their reads come first."""
        for place, value, mask in self.pending:
            self.memory.store(place, value, mask)
        self.pending.clear()
