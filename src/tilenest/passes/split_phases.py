"""Split nests at their synchronizations: all instances finish a phase before any begins the next.

In: Candidate form whose memory is placed. Out: one parallel a phase; a serial nest in which
instances wait runs around the phases of its body. What an instance keeps from phase to phase is
computed again where it is index arithmetic, else it lies in a buf with a part for every instance.

    exec.parallel { (%i): A; exec.serial { (%k): B; exec.sync } }
    becomes   exec.parallel { (%i): A }; exec.serial { (%k): exec.parallel { (%i): B } }
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from tilenest.analysis import (
    ancestor_in,
    captured_values,
    constant_of,
    effects_of,
    enclosing,
    induction_of,
    is_computation,
    is_defined_above,
    is_met_in,
    may_overlap,
    nearest_parallel,
    stored_by,
    trip_counts,
)
from tilenest.dialects import Access, Alloc, MapReducePost, Parallel, Serial, Synchronize, Yield
from tilenest.errors import TargetError
from tilenest.ir import (
    INDEX,
    Block,
    BufType,
    Builder,
    DType,
    EffectKind,
    Function,
    Operation,
    OpResult,
    Region,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    clone_operation,
    describe_type,
    element_dtype,
)
from tilenest.layouts import AffineMap, DimRef, IndexExpr, Sym
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import insert_pointwise, insert_store
from tilenest.passes.remap import forget_remaps
from tilenest.records import replace

Phase = list[Operation]
"""Operations of one block, in a row, without a synchronization among them."""


def split_phases(function: Function, rewriter: Rewriter) -> None:
    """Rewrite every nest of one function in place, the inner ones first."""
    operations = list(function.walk())
    for op in operations:
        if isinstance(op, Synchronize) and nearest_parallel(op) is None:
            # The call is one instance, which waits for nobody.
            rewriter.erase(op)
    nests = [op for op in reversed(operations) if isinstance(op, Parallel) and is_met_in(op)]
    for nest in nests:
        _refuse_updates(nest)
        _Split(nest, rewriter).run()
    if nests:
        forget_remaps(function, rewriter)


def _refuse_updates(nest: Parallel) -> None:
    if nest.results:
        raise TargetError(
            "instances that wait for each other update values of outside",
            remedy="let them store to an array, and load it behind the nest",
            location=nest.location,
        )


class _Split:
    """One nest on its way into phases."""

    def __init__(self, nest: Parallel, rewriter: Rewriter) -> None:
        self.nest = nest
        self.rewriter = rewriter
        self.outside = rewriter.builder_before(nest)
        self.homes: dict[Value, Value] = {}
        """the buf in which a value waits"""
        self.inside: set[Operation] = set()
        """the nest and what stood in it before anything left, and the nests of phases"""
        self.serials = _serials_around_syncs(nest)
        """the nests that will run around the phases"""

    def run(self) -> None:
        for serial in self.serials:
            self._keep_states(serial)
        blocks = [self.nest.body, *(serial.body for serial in self.serials)]
        for alloc in [op for block in blocks for op in block.operations if isinstance(op, Alloc)]:
            self._share(alloc)
        for phase in [phase for block in blocks for phase in self._phases(block)]:
            _Arrival(self, phase).run()
        self.inside.update((self.nest, *self.nest.walk()))
        self._leave(self.nest.body, self.nest)
        self.rewriter.erase(self.nest)

    def _phases(self, block: Block) -> Iterator[Phase]:
        """The operations between what all instances do together."""
        phase: Phase = []
        for op in block.operations:
            if not self._is_common_step(op):
                phase.append(op)
            elif phase:
                yield phase
                phase = []

    def _is_common_step(self, op: Operation) -> bool:
        return op in self.serials or isinstance(op, Synchronize) or op.TERMINATOR

    def is_common(self, value: Value) -> bool:
        """Whether a value is the same in every phase: of outside, or an index."""
        if is_defined_above(value, self.nest):
            return True
        maker = _maker(value)
        is_ours = maker is self.nest or maker in self.serials
        return is_ours and induction_of(value) is not None

    # What instances keep -------------------------------------------------------------------

    def _keep_states(self, serial: Serial) -> None:
        """States live in bufs: written before the nest and at the end of its body."""
        end = serial.body.terminator
        for carry in serial.carries():
            home = self.make_home(carry.initial, serial)
            self.homes.update(dict.fromkeys((*carry.arguments, carry.result), home))
            self.store(carry.initial, home, self.rewriter.builder_before(serial))
        for carry in serial.carries():
            self.store(carry.yielded, self.homes[carry.result], self.rewriter.builder_before(end))
        self.rewriter.set_operands(end, "values", [])
        self.rewriter.set_operands(serial, "initial", [])

    def make_home(self, value: Value, near: Operation) -> Value:
        """A buf with a place for the value of every instance."""
        if not isinstance(value.type, ScalarType | TileType):
            raise TargetError(
                "instances keep a value while they wait for each other, and it is a "
                f"{describe_type(value.type)}",
                remedy="make it anew behind the synchronization, or keep a tile",
                location=near.location,
            )
        home = self._allocate(element_dtype(value.type), _extents(value), near)
        home.name = value.name
        return home

    def _allocate(self, dtype: DType, shape: tuple[int, ...], near: Operation) -> Value:
        """A buf outside, with a part of this shape for every instance."""
        trips = [trip for trip in trip_counts(self.nest) if trip is not None]
        if len(trips) < self.nest.rank:
            raise TargetError(
                "instances keep a value while they wait for each other, and how many of them there "
                "are is known at run time only",
                remedy="run over a constant or a tn.axis, or keep the value in an array",
                location=near.location,
            )
        kind = BufType(dtype, (*trips, *shape))
        return self.outside.insert(Alloc(result_types=[kind])).result

    def _share(self, alloc: Alloc) -> None:
        """Let a buf that several phases use be the instance's part of one outside."""
        block, users = alloc.parent, list(dict.fromkeys(alloc.result.users))
        assert block is not None
        phases = [phase for phase in self._phases(block) if alloc in phase]
        if all(ancestor_in(block, user) in phases[0] for user in users):
            return
        type_ = alloc.result.type
        assert isinstance(type_, BufType)
        home = self._allocate(type_.dtype, type_.shape, alloc)
        home.name = alloc.result.name
        for user in users:
            assert isinstance(user, MapReducePost), "nothing else touches explicit memory"
            self._use_part(user, alloc.result, home)
        self.rewriter.erase(alloc)

    def _use_part(self, work: MapReducePost, buf: Value, home: Value) -> None:
        """Let work access the instance's part of a home instead of a buf."""
        symbols = [*work.symbols, *self.nest.body.arguments]
        part = self._part([Sym(place) for place in range(len(work.symbols), len(symbols))])
        for group in ("input", "seed", "post", "output"):
            values: list[Value] = getattr(work, f"{group}s")
            accesses: list[Access] = []
            for value, access in zip(values, work.attributes[f"{group}_access"], strict=True):
                results = access.map.results
                places = (*part, *results) if value is buf else results
                map_ = AffineMap(work.rank, len(symbols), places)
                accesses.append(replace(access, map=map_))
            moved = [home if value is buf else value for value in values]
            self.rewriter.set_operands(work, f"{group}s", moved)
            self.rewriter.set_attribute(work, f"{group}_access", tuple(accesses))
        self.rewriter.set_operands(work, "symbols", symbols)

    def _place(self, composer: Composer) -> list[IndexExpr]:
        """Where the elements of an instance lie in a home."""
        indices = [composer.symbol(index) for index in self.nest.body.arguments]
        return [*self._part(indices), *(DimRef(dim) for dim in range(composer.rank))]

    def _part(self, indices: Sequence[IndexExpr]) -> list[IndexExpr]:
        """The number of an instance along each axis of the nest."""
        places: list[IndexExpr] = []
        for axis, index in enumerate(indices):
            lower, step = (constant_of(group[axis]) for group in (self.nest.lower, self.nest.step))
            assert lower is not None and step is not None, "the number of instances is known"
            places.append((index - int(lower)) // int(step))
        return places

    def store(self, value: Value, home: Value, builder: Builder) -> None:
        composer = Composer(_extents(value))
        composer.location(builder.location)
        element = composer.element(value, tuple(DimRef(dim) for dim in range(composer.rank)))
        place = self._place(composer)
        insert_store(builder, composer, element, (home, composer.access(home, place, "zero")))

    def load(self, value: Value, home: Value, builder: Builder) -> Value:
        composer = Composer(_extents(value))
        composer.location(builder.location)
        place = self._place(composer)
        element = composer.read(home, composer.access(home, place, "zero"))
        return insert_pointwise(builder, composer, element, value.type).result

    # Out of the nest -----------------------------------------------------------------------

    def _leave(self, block: Block, anchor: Operation) -> None:
        """Phases become nests of their own, in front of the anchor; serial nests hold theirs."""
        steps = [op for op in block.operations if self._is_common_step(op)]
        phases = {phase[-1].next: phase for phase in self._phases(block)}
        for step in steps:
            if step in phases:
                self._make_nest(phases[step], anchor)
            if isinstance(step, Synchronize):
                self.rewriter.erase(step)
            elif isinstance(step, Serial):
                self._move_out(step, anchor)

    def _make_nest(self, phase: Phase, anchor: Operation) -> None:
        rewriter, nest = self.rewriter, self.nest
        block = Block([INDEX] * nest.rank)
        for old, new in zip(nest.body.arguments, block.arguments, strict=True):
            new.name = old.name
        fresh = Parallel(
            lower=nest.lower,
            upper=nest.upper,
            step=nest.step,
            scope=nest.scope,
            regions=[Region([block])],
            location=nest.location,
        )
        rewriter.insert_before(fresh, anchor)
        self.inside.add(fresh)
        rewriter.splice(phase[0], phase[-1], block)
        rewriter.builder_at_end(block).insert(Yield(values=[]))
        indices = dict(zip(nest.body.arguments, block.arguments, strict=True))
        for op in fresh.body.walk():
            for place, operand in enumerate(op.operands):
                if operand in indices:
                    rewriter.set_operand(op, place, indices[operand])

    def _move_out(self, serial: Serial, anchor: Operation) -> None:
        rewriter = self.rewriter
        builder = rewriter.builder_before(anchor)
        for group in ("lower", "upper", "step"):
            values = [self._common(value, serial, builder) for value in getattr(serial, group)]
            rewriter.set_operands(serial, group, values)
        rewriter.move_before(serial, anchor)
        for place in reversed(range(len(serial.results))):
            rewriter.remove_argument(serial.body, serial.rank + place)
            rewriter.remove_result(serial, place)
        self._leave(serial.body, serial.body.terminator)

    def _common(self, value: Value, serial: Serial, builder: Builder) -> Value:
        """A bound as all instances compute it, outside of the nest."""
        maker = _maker(value)
        if maker not in self.inside or maker in self.serials:
            return value
        if isinstance(value, OpResult) and _is_cheap(value.owner):
            values = {v: self._common(v, serial, builder) for v in value.owner.operands}
            return builder.insert(clone_operation(value.owner, values)).results[value.index]
        raise TargetError(
            "instances wait for each other in a serial nest whose bounds are not the same for all",
            remedy="use bounds that depend on no instance, and no element that is loaded there",
            location=serial.location,
        )

    def may_repeat(self, op: Operation) -> bool:
        """Whether a later phase may compute again what an operation gives."""
        if _is_cheap(op):
            return True
        found = effects_of(op)
        if None not in trip_counts(self.nest) or not found.kinds <= {EffectKind.READ}:
            return False
        stored = {storage for inner in self.nest.walk() for storage in stored_by(inner)}
        return not any(may_overlap(*pair) for pair in itertools.product(found.reads, stored))


class _Arrival:
    """One phase, which finds at its start what earlier phases left for it."""

    def __init__(self, split: _Split, phase: Phase) -> None:
        self.split = split
        self.phase = phase
        self.members = frozenset(phase)
        self.block = phase[0].parent
        self.builder = split.rewriter.builder_before(phase[0])
        self.values: dict[Value, Value] = {}

    def run(self) -> None:
        for op in self.phase:
            for inner in op.walk():
                for place, value in enumerate(inner.operands):
                    self._take(inner, place, value)

    def _take(self, op: Operation, place: int, value: Value) -> None:
        here = self._here(value)
        if here is not value:
            self.split.rewriter.set_operand(op, place, here)

    def _here(self, value: Value) -> Value:
        """The value as this phase has it; what it is computed from comes first, from a list of our
        own: chains of index arithmetic may be longer than Python's stack."""
        pending = [value]
        while pending:
            missing = [v for v in self._sources(pending[-1]) if v not in self.values]
            pending += missing
            if not missing:
                found = pending.pop()
                if found not in self.values:
                    self.values[found] = self._find(found)
        return self.values[value]

    def _sources(self, value: Value) -> list[Value]:
        """What a value that is computed again is computed from."""
        if value in self.values or not self._is_repeated(value):
            return []
        return [*value.owner.operands, *captured_values(value.owner)]

    def _is_repeated(self, value: Value) -> TypeGuard[OpResult]:
        split = self.split
        is_here = split.is_common(value) or self._is_made_here(value) or value in split.homes
        return not is_here and isinstance(value, OpResult) and split.may_repeat(value.owner)

    def _find(self, value: Value) -> Value:
        split = self.split
        if split.is_common(value) or self._is_made_here(value):
            return value
        if self._is_repeated(value):
            values = {source: self.values[source] for source in self._sources(value)}
            return self.builder.insert(clone_operation(value.owner, values)).results[value.index]
        home = split.homes.get(value)
        if home is None:
            assert isinstance(value, OpResult), "an argument is a state, an index or of this phase"
            home = split.homes[value] = split.make_home(value, value.owner)
            split.store(value, home, split.rewriter.builder_after(value.owner))
        return split.load(value, home, self.builder)

    def _is_made_here(self, value: Value) -> bool:
        maker = _maker(value)
        assert self.block is not None and maker is not None
        return ancestor_in(self.block, maker) in self.members


def _serials_around_syncs(nest: Parallel) -> list[Serial]:
    """The nests between the instances' own body and where they wait, the outer ones first."""
    found: dict[Serial, None] = {}
    for op in nest.walk():
        if isinstance(op, Synchronize) and nearest_parallel(op) is nest:
            around = list(enclosing(op, nest))
            assert all(isinstance(holder, Serial) for holder in around), "as the verifier says"
            found.update(
                (holder, None) for holder in reversed(around) if isinstance(holder, Serial)
            )
    return list(found)


def _maker(value: Value) -> Operation | None:
    """The operation that has the value as a result, or as an argument of its region."""
    if isinstance(value, OpResult):
        return value.owner
    block = value.defining_block
    return None if block is None else block.parent_op


def _is_cheap(op: Operation) -> bool:
    """Index arithmetic, facts of views, and views."""
    return is_computation(op) and not any(isinstance(r.type, TileType) for r in op.results)


def _extents(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TileType) else ()
