"""The one nest builder: a scheduled map_reduce_post becomes loops, registers and lanes.

Loops are opened outermost first. A dim's first loop runs over its extent in whole steps, then in
the steps of its later loops, then on masked lanes; unrolled and vector loops become copies of the
body. The first folded loop opens the accumulators: one per copy of the kept loops inside it, and
partial ones where lanes or copies split a folded dim, which meet the seed in a fixed tree.
What a schedule must be for that, the verifier's rules TN09b, TN09c and OP40 to OP44 say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilenest.dialects import Loop, identity_of
from tilenest.ir import DType, Value, element_dtype
from tilenest.layouts import IndexExpr
from tilenest.nests.atoms import call_atom
from tilenest.nests.emitter import Index, lane_type, lanes_of
from tilenest.nests.fold_shape import FoldShape, Key
from tilenest.nests.folds import combine
from tilenest.nests.frame import NestFrame
from tilenest.nests.guards import CheckedAxis, inside_guard
from tilenest.nests.lanes import apply_function, evaluate


class NestBuilder(NestFrame):
    """Builds the nest of one op at the emitter's insertion point."""

    def build(self) -> None:
        self.clip()
        guard = inside_guard(
            self.op, self.origins, self.sizes, self.symbols, self.slots, self.memory_of
        )
        self.inside = frozenset(guard.proven)
        if guard.condition is None:
            self._run()
            return
        self.emitter.branch(
            guard.condition,
            [],
            lambda: self._version([*guard.proven, *guard.guarded]),
            lambda: self._version(guard.proven),
        )

    def _version(self, proven: Iterable[CheckedAxis]) -> list[Value]:
        """The nest without the bounds checks of the proven axes."""
        self.inside = frozenset(proven)
        with self.scope(None, surely_runs=False):
            self._run()
        return []

    def _run(self) -> None:
        self._level(0)
        self.flush()

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
        if loop.policy == "transposed":
            self._transposed(loop)
        elif loop.policy == "plain" or self._is_first(position):
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
            with self.tile(loop, origin + copy * loop.step, min(tile, loop.step)):
                self._level(position + 1)
        self.copies[position] = 0

    def _phases(self, position: int) -> None:
        """Whole steps, then the smaller steps of later occurrences, then masked lanes."""
        loop = self.loops[position]
        emitter = self.emitter
        size = self.sizes[loop.dim]
        base = self.origins[loop.dim]
        steps = [later.step for later in self.loops[position:] if later.dim == loop.dim]
        if isinstance(size, int) and self._is_transposed(loop.dim):
            # The rest of a transposed dim is one narrower square.
            steps = [loop.step, size % loop.step or 1]
        for step in dict.fromkeys(steps):
            count = emitter.floor_divide(size, step)
            self._counted(position, step, base, count)
            done = emitter.multiply(count, step)
            size = emitter.subtract(size, done)
            base = base + self.slots.add(done, (0, self.op.extents[loop.dim]), len(self.scopes))
        if size != 0 and self.lane is not None and self.lane.dim == loop.dim:
            self._masked(position, base, size)

    def _is_transposed(self, dim: int) -> bool:
        return any(loop.dim == dim and loop.policy == "transposed" for loop in self.loops)

    def _counted(self, position: int, step: int, base: IndexExpr, count: Index) -> None:
        """A loop of `count` iterations, `step` points each."""
        if count == 0:
            return
        loop = self.loops[position]
        if count == 1:
            with self.tile(loop, base, step):
                self._level(position + 1)
            return
        carried = self._carried()
        for_op = self.emitter.open_for(0, count, 1, [carried[key] for key in carried])
        most = count if isinstance(count, int) else self.op.extents[loop.dim] // step
        with self.emitter.inside(for_op), self.scope(for_op, isinstance(count, int)):
            counter, *states = for_op.body.arguments
            self._restore(carried, states)
            place = self.slots.add(counter, (0, max(most - 1, 0)), len(self.scopes))
            with self.tile(loop, base + place * step, step):
                self._level(position + 1)
            self.flush()
            self.emitter.finish(list(self._carried().values()))
        self._restore(carried, for_op.results)

    def _masked(self, position: int, base: IndexExpr, count: Index) -> None:
        """The last lanes: fewer than a vector."""
        assert self.lane is not None

        def run() -> list[Value]:
            self.tail, self.tail_count = self.memory.lane_mask(count), count
            with self.tile(self.loops[position], base, self.lane_count):
                self._level(position + 1)
            self.flush()
            self.tail, self.tail_count = None, self.lane_count
            return list(self._carried().values())

        if isinstance(count, int):
            run()
            return
        carried = self._carried()
        condition = self.emitter.compare("gt", count, 0)
        with self.scope(None, surely_runs=False):
            old = list(carried.values())
            types = [value.type for value in old]
            results = self.emitter.branch(condition, types, run, lambda: old)
        self._restore(carried, results)

    def _carried(self) -> dict[tuple[int, Key], Value]:
        return dict(self.accumulators or {})

    def _restore(self, keys: dict[tuple[int, Key], Value], values: Sequence[Value]) -> None:
        if self.accumulators is not None:
            self.accumulators = dict(zip(keys, values, strict=True))

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
        return self.emitter.spread(self.read("seed", folded), lanes)

    def _close(self, fold: FoldShape, folded: int, result: int, parts: Sequence[Value]) -> None:
        """Merge partials and seed, run the epilogue, store."""
        value = parts[0]
        merge = self.op.spec(result).merge
        if fold.is_partial:
            assert merge is not None
            total = combine(merge, parts, self.atoms.get(result), self.emitter)
            value = apply_function(merge, [self.read("seed", folded), total], self.emitter)
        first = sum(self.op.spec(r).posts for r in self.op.folded_results[:folded])
        count = self.op.spec(result).posts
        extras = [self.read("post", first + i) for i in range(count)]
        block = self.op.post_block(folded)
        arguments = [*self.coordinates(block.arguments), value, *extras]
        (final,) = evaluate(block, arguments, self.emitter)
        self.store_result(result, final, None)

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
            with self.tile(loop, origin + copy * loop.step, min(tile, loop.step)):
                yield from self._cells(positions[1:])
        self.copies[position] = 0

    def _body(self) -> None:
        op = self.op
        key = tuple(self.copies.get(position, 0) for position in self.copy_loops)
        values = self.evaluate([] if self.accumulators is None else self._states(key))
        predicates = iter(values[len(op.specs) :])
        folded = 0
        for result, spec in enumerate(op.specs):
            if spec.policy is None:
                predicate = next(predicates) if spec.is_masked else None
                self.store_result(result, values[result], predicate)
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

    def _transposed(self, loop: Loop) -> None:
        """A square: rows with lanes along the vector dim, stored with lanes along `loop.dim`."""
        assert self.lane is not None and self.lane_expr is not None
        lanes, tile = self.lane.step, self.sizes[loop.dim]
        assert isinstance(tile, int) and tile <= lanes, "a square has at most a vector's rows"
        origin, along = self.origins[loop.dim], self.lane.dim
        rows: list[Value] = []
        for row in range(tile):
            with self.tile(loop, origin + row, 1):
                rows.append(self.emitter.spread(self.evaluate([])[0], lanes))
        # Rows that are missing are zero.
        missing = [self.emitter.constant(0, rows[0].type)] * (lanes - tile)
        columns = call_atom(self.atoms[0], [*rows, *missing], self.emitter)
        across = self.slots.without_lane(self.origins[along])
        mask = None if tile == lanes else self.memory.lane_mask(tile)
        saved = self.origins[along], self.origins[loop.dim]
        for column, value in enumerate(columns):
            if isinstance(self.tail_count, int) and column >= self.tail_count:
                break
            self.origins[along], self.origins[loop.dim] = across + column, origin + self.lane_expr
            place = self.place(
                self.op.outputs[0], self.op.access("output", 0), self.unclipped.get(0)
            )
            is_there = None
            if not isinstance(self.tail_count, int):
                is_there = self.emitter.compare("lt", column, self.tail_count)
            self.memory.store(place, value, self.emitter.both(mask, is_there, lanes))
        self.origins[along], self.origins[loop.dim] = saved
