"""The one nest builder: a scheduled map_reduce_post becomes loops, registers and lanes.

The schedule's loops are opened outermost first. The first occurrence of a dim runs over its
extent: whole steps, then the later occurrences' smaller steps, then masked lanes. Unrolled and
vector occurrences become copies of the body. Reaching the first folded loop opens the
accumulators: one per copy of every inner kept loop, and, where lanes or copies split a folded dim,
partial ones that hold the merge's identity and meet the seed in a fixed tree at the end. All
presets are schedules of this builder; none has code of its own.

Preconditions (the planner's): all folded results of an op keep the same dims; kept dims occur
outside the first folded loop and, inside it, only as unrolled or vector loops; only a tree policy
with a known merge splits a fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tilenest.analysis import output_clips
from tilenest.dialects import Access, Loop, MapReducePost
from tilenest.ir import INDEX, DType, Operation, ScalarType, Value, element_dtype
from tilenest.layouts import Const, DimRef, IndexExpr, Interval
from tilenest.nests.addresses import Address, MemoryAccess, Place
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Emitter, Index, lane_type, lanes_of
from tilenest.nests.fold_shape import FoldShape, Key, folded_dims
from tilenest.nests.folds import combine, identity_of
from tilenest.nests.guards import READ_GROUPS, CheckedAxis, inside_guard
from tilenest.nests.lanes import apply_function, evaluate


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


class NestBuilder:
    """Builds the nest of one op at the emitter's insertion point."""

    def __init__(self, op: MapReducePost, emitter: Emitter, environment: Environment) -> None:
        self.op = op
        self.emitter = emitter
        self.environment = environment
        self.loops: tuple[Loop, ...] = op.schedule().loops
        self.slots = Coordinates(emitter)
        self.memory = MemoryAccess(emitter, self.slots)
        self.symbols = [self._symbol(value) for value in op.symbols]
        self.folded = folded_dims(op)
        self.origins: list[IndexExpr] = [Const(0)] * op.rank
        self.sizes: list[Index] = list(op.extents)
        self.lane = next((loop for loop in self.loops if loop.policy == "vector"), None)
        self.lane_expr = self.slots.add_lane(self.lane.step) if self.lane else None
        self.lane_open = False
        self.tail: Value | None = None
        self.copies: dict[int, int] = {}
        self.copy_loops: tuple[int, ...] = ()
        self.accumulators: dict[tuple[int, Key], Value] | None = None
        self.pending: list[tuple[Place, Value, Value | None]] = []
        self.scopes: list[_Scope] = []
        self.loaded: list[dict[object, Value]] = [{}]
        self.written = {environment.storage(value) for value in op.outputs}
        self.unclipped: dict[int, list[int]] = {}
        self.inside: frozenset[CheckedAxis] = frozenset()

    def build(self) -> None:
        self._clip()
        guard = inside_guard(
            self.op, self.origins, self.sizes, self.symbols, self.slots, self._memory_of
        )
        if guard is None:
            self._run()
            return
        self.emitter.branch(
            guard.condition, [], lambda: self._version(guard.proven), lambda: self._version(())
        )

    def _version(self, proven: Iterable[CheckedAxis]) -> list[Value]:
        """The nest without the bounds checks of the proven axes."""
        self.inside = frozenset(proven)
        with self._scope(None, surely_runs=False):
            self._run()
        return []

    def _run(self) -> None:
        self._level(0)
        self._flush()

    def _memory_of(self, value: Value) -> Address | None:
        return None if isinstance(value.type, ScalarType) else self.environment.address(value)

    # The domain ------------------------------------------------------------------------------

    def _symbol(self, value: Value) -> IndexExpr:
        return self.slots.add(self.environment.scalar(value), self.environment.range_of(value), 0)

    def _clip(self) -> None:
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
            self._clip_dim(clip.dim, clip.offset, address.extents[clip.axis])
        for dim, bound in bounds.items():
            if self.sizes[dim] == op.extents[dim]:
                self.sizes[dim] = self._whole_blocks(dim, bound)
            else:
                # The other clip moved the origin: the bound counts from the domain's start.
                room = emitter.subtract(bound, self.slots.emit(self.origins[dim]))
                self.sizes[dim] = emitter.maximum(emitter.minimum(self.sizes[dim], room), 0)

    def _whole_blocks(self, dim: int, size: Index) -> Index:
        """Clipping is a permission: round up where the extent consists of whole unrolled blocks."""
        first = next((loop for loop in self.loops if loop.dim == dim), None)
        if first is None or first.step == 1 or self.op.extents[dim] % first.step:
            return size
        return self.emitter.multiply(self.emitter.ceil_divide(size, first.step), first.step)

    def _clip_dim(self, dim: int, offset: IndexExpr, extent: Index) -> None:
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

    # Loops -----------------------------------------------------------------------------------

    def _level(self, position: int) -> None:
        is_innermost = position == len(self.loops)
        starts_fold = is_innermost or self.loops[position].dim in self.folded
        if starts_fold and self.accumulators is None and self.op.folded_results:
            self._fold(position)
            return
        if is_innermost:
            self._body()
            return
        loop = self.loops[position]
        if loop.policy == "plain" or self._is_first(position):
            self._phases(position)
        else:
            self._copy(position)

    def _is_first(self, position: int) -> bool:
        dim = self.loops[position].dim
        return all(loop.dim != dim for loop in self.loops[:position])

    def _copy(self, position: int) -> None:
        """One copy of the rest per step of the current (static) tile."""
        loop = self.loops[position]
        tile = self.sizes[loop.dim]
        assert isinstance(tile, int)
        origin = self.origins[loop.dim]
        count = max(1, tile // loop.step)
        for copy in range(count):
            self.copies[position] = copy
            with self._tile(loop, origin + copy * loop.step, min(tile, loop.step)):
                self._level(position + 1)
        self.copies[position] = 0

    def _phases(self, position: int) -> None:
        """Whole steps, then the smaller steps of later occurrences, then masked lanes."""
        loop = self.loops[position]
        emitter = self.emitter
        size = self.sizes[loop.dim]
        base = self.origins[loop.dim]
        steps = [later.step for later in self.loops[position:] if later.dim == loop.dim]
        for step in dict.fromkeys(steps):
            count = emitter.floor_divide(size, step)
            self._counted(position, step, base, count)
            done = emitter.multiply(count, step)
            size = emitter.subtract(size, done)
            base = base + self.slots.add(done, (0, self.op.extents[loop.dim]), len(self.scopes))
        if size != 0 and self.lane is not None and self.lane.dim == loop.dim:
            self._masked(position, base, size)

    def _counted(self, position: int, step: int, base: IndexExpr, count: Index) -> None:
        """A loop of `count` iterations, `step` points each."""
        if count == 0:
            return
        loop = self.loops[position]
        if count == 1:
            with self._tile(loop, base, step):
                self._level(position + 1)
            return
        carried = self._carried()
        for_op = self.emitter.open_for(0, count, 1, [carried[key] for key in carried])
        most = count if isinstance(count, int) else self.op.extents[loop.dim] // step
        with self.emitter.inside(for_op), self._scope(for_op, isinstance(count, int)):
            counter, *states = for_op.body.arguments
            self._restore(carried, states)
            place = self.slots.add(counter, (0, max(most - 1, 0)), len(self.scopes))
            with self._tile(loop, base + place * step, step):
                self._level(position + 1)
            self._flush()
            self.emitter.finish(list(self._carried().values()))
        self._restore(carried, for_op.results)

    def _masked(self, position: int, base: IndexExpr, count: Index) -> None:
        """The last lanes: fewer than a vector."""
        assert self.lane is not None

        def run() -> list[Value]:
            self.tail = self.memory.lane_mask(count)
            with self._tile(self.loops[position], base, self.lane_count):
                self._level(position + 1)
            self._flush()
            self.tail = None
            return list(self._carried().values())

        if isinstance(count, int):
            run()
            return
        carried = self._carried()
        condition = self.emitter.compare("gt", count, 0)
        with self._scope(None, surely_runs=False):
            old = list(carried.values())
            types = [value.type for value in old]
            results = self.emitter.branch(condition, types, run, lambda: old)
        self._restore(carried, results)

    @property
    def lane_count(self) -> int:
        assert self.lane is not None
        return self.lane.step

    @contextmanager
    def _tile(self, loop: Loop, origin: IndexExpr, size: int) -> Iterator[None]:
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
    def _scope(self, operation: Operation | None, surely_runs: bool) -> Iterator[None]:
        self.scopes.append(_Scope(operation, surely_runs))
        self.loaded.append({})
        yield
        self.loaded.pop()
        self.scopes.pop()

    def _carried(self) -> dict[tuple[int, Key], Value]:
        return dict(self.accumulators or {})

    def _restore(self, keys: dict[tuple[int, Key], Value], values: Sequence[Value]) -> None:
        if self.accumulators is not None:
            self.accumulators = dict(zip(keys, values, strict=True))

    # Accumulators ----------------------------------------------------------------------------

    def _fold(self, position: int) -> None:
        """Open the accumulators, run the remaining loops, close them."""
        fold = FoldShape(self.loops, position, self.folded, self.sizes)
        self.copy_loops = fold.copy_loops
        lanes = self.lane.step if self.lane else 0
        accumulators: dict[tuple[int, Key], Value] = {}
        for _ in self._cells(fold.kept_loops):
            for folded, result in enumerate(self.op.folded_results):
                for key in fold.partial_keys(self.copies):
                    accumulators[folded, key] = self._start(fold, folded, result, lanes)
        self.accumulators = accumulators
        self._level(position)
        finished, self.accumulators = self.accumulators, None
        for _ in self._cells(fold.kept_loops):
            keys = fold.partial_keys(self.copies)
            for folded, result in enumerate(self.op.folded_results):
                parts = [finished[folded, key] for key in keys]
                self._close(fold, folded, result, parts)

    def _start(self, fold: FoldShape, folded: int, result: int, lanes: int) -> Value:
        """The accumulator's first value."""
        dtype = self._state_dtype(folded)
        merge = self.op.spec(result).merge
        if fold.is_partial:
            assert merge is not None
            return self.emitter.constant(identity_of(merge, dtype), lane_type(dtype, lanes))
        return self.emitter.spread(self._read("seed", folded), lanes)

    def _close(self, fold: FoldShape, folded: int, result: int, parts: Sequence[Value]) -> None:
        """Merge partials and seed, run the epilogue, store."""
        value = parts[0]
        merge = self.op.spec(result).merge
        if fold.is_partial:
            assert merge is not None
            total = combine(merge, parts, self.emitter)
            value = apply_function(merge, [self._read("seed", folded), total], self.emitter)
        first = sum(self.op.spec(r).posts for r in self.op.folded_results[:folded])
        count = self.op.spec(result).posts
        extras = [self._read("post", first + i) for i in range(count)]
        block = self.op.post_block(folded)
        arguments = [*self._coordinates(block.arguments), value, *extras]
        (final,) = evaluate(block, arguments, self.emitter)
        self._store(result, final, None)

    def _state_dtype(self, folded: int) -> DType:
        states = len(self.op.folded_results)
        arguments = self.op.fold_block.arguments
        return element_dtype(arguments[len(arguments) - states + folded].type)

    def _cells(self, positions: Sequence[int]) -> Iterator[None]:
        """Visit every copy of the given loops, coordinates set."""
        if not positions:
            yield
            return
        position = positions[0]
        loop = self.loops[position]
        tile, origin = self.sizes[loop.dim], self.origins[loop.dim]
        assert isinstance(tile, int)
        for copy in range(max(1, tile // loop.step)):
            self.copies[position] = copy
            with self._tile(loop, origin + copy * loop.step, min(tile, loop.step)):
                yield from self._cells(positions[1:])
        self.copies[position] = 0

    # The body --------------------------------------------------------------------------------

    def _body(self) -> None:
        op = self.op
        block = op.fold_block
        key = tuple(self.copies.get(position, 0) for position in self.copy_loops)
        states = [] if self.accumulators is None else self._states(key)
        elements = [self._read("input", i) for i in range(len(op.inputs))]
        arguments = [*self._coordinates(block.arguments), *elements, *states]
        values = evaluate(block, arguments, self.emitter)
        predicates = iter(values[len(op.specs) :])
        folded = 0
        for result, spec in enumerate(op.specs):
            if spec.policy is None:
                predicate = next(predicates) if spec.is_masked else None
                self._store(result, values[result], predicate)
            else:
                self._accumulate(folded, key, values[result])
                folded += 1

    def _states(self, key: Key) -> list[Value]:
        assert self.accumulators is not None
        return [self.accumulators[folded, key] for folded in range(len(self.op.folded_results))]

    def _accumulate(self, folded: int, key: Key, value: Value) -> None:
        assert self.accumulators is not None
        old = self.accumulators[folded, key]
        value = self.emitter.spread(value, lanes_of(old))
        is_split = self.lane is not None and self.lane.dim in self.folded
        if self.tail is not None and is_split:
            value = self.emitter.apply("where", self.tail, value, old)
        self.accumulators[folded, key] = value

    def _coordinates(self, arguments: Sequence[Value]) -> list[Value]:
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

    # Operands --------------------------------------------------------------------------------

    def _place(self, value: Value, access: Access, axes: Sequence[int] | None = None) -> Place:
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

    def _read(self, group: str, position: int) -> Value:
        value: Value = getattr(self.op, READ_GROUPS[group])[position]
        if isinstance(value.type, ScalarType):
            return self.environment.scalar(value)
        access = self.op.access(group, position)
        axes = [
            axis
            for axis in range(len(access.map.results))
            if (group, position, axis) not in self.inside
        ]
        place = self._place(value, access, axes)
        has_lane = any(self.slots.has_lane(expr) for expr in place.coordinates)
        tail = self.tail if has_lane else None
        level = self._level_for(value, place, tail)
        key = (value, place.coordinates, tail)
        found = self.loaded[level].get(key)
        if found is None:
            with self._at_level(level):
                found = self.loaded[level][key] = self.memory.load(place, tail)
        return found

    def _level_for(self, value: Value, place: Place, tail: Value | None) -> int:
        """The outermost open loop the load can stand in front of."""
        here = len(self.scopes)
        if tail is not None or self.environment.storage(value) in self.written:
            return here
        level = max((self.slots.depth(expr) for expr in place.coordinates), default=0)
        while not all(scope.surely_runs for scope in self.scopes[level:]):
            level += 1
        return level

    @contextmanager
    def _at_level(self, level: int) -> Iterator[None]:
        if level == len(self.scopes):
            yield
            return
        operation = self.scopes[level].operation
        assert operation is not None
        with self.emitter.before(operation):
            yield

    def _store(self, result: int, value: Value, predicate: Value | None) -> None:
        access = self.op.access("output", result)
        place = self._place(self.op.outputs[result], access, self.unclipped.get(result))
        has_lane = any(self.slots.has_lane(expr) for expr in place.coordinates)
        mask = self.tail if has_lane else None
        self.pending.append((place, value, self.emitter.both(mask, predicate, self.slots.lanes)))

    def _flush(self) -> None:
        """Write what the copies computed: all their reads come first."""
        for place, value, mask in self.pending:
            self.memory.store(place, value, mask)
        self.pending.clear()
