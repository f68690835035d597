"""Which levels each operation runs in, which of them it needs, and who owns and sees what.

In: a function of nests. Out: for each operation the axes of the nests around it, its anchor (the
shortest prefix of these that its operands, coordinates, effects and destination allow) and its
frontier; for each memory the parallel nest whose instances own it. A level is known by its nest and
axis. Only what instances share makes an operation need a level it does not name: a write happens as
often as it stands there, unless nobody else writes the buf, which then is a value of its owner's; a
read of memory needs the nests in which it may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from tilenest.analysis.effects import Effects, effects_of, stored_by
from tilenest.analysis.memory_effects import may_overlap
from tilenest.analysis.structure import CONTRACTS
from tilenest.dialects import CarryingNest, Nest, Parallel, base_of
from tilenest.execution import PrefixCut
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    BufType,
    Edit,
    EditKind,
    EffectKind,
    Function,
    Operation,
    OpResult,
    RegionUse,
    Value,
)
from tilenest.records import record


@record
class NestAxis:
    """One axis of one nest: what a level is known by."""

    nest: Nest
    axis: int

    @property
    def is_spatial(self) -> bool:
        return isinstance(self.nest, Parallel)


@record
class Place:
    """Where an operation stands; both cuts are depths in `levels`."""

    levels: tuple[NestAxis, ...]
    anchor: PrefixCut
    frontier: PrefixCut

    @property
    def spatial(self) -> tuple[int, ...]:
        """The positions of the levels that tell owners apart."""
        return tuple(place for place, level in enumerate(self.levels) if level.is_spatial)


@record
class Ownership:
    """Whose a memory is: of every instance of a parallel nest, or, without one, of the call."""

    nest: Operation | None
    cut: PrefixCut
    """the same depth for everybody who may see it"""

    def is_visible_to(self, operation: Operation) -> bool:
        """Whether an operation runs below the owner."""
        if self.nest is None:
            return True
        return operation is not self.nest and self.nest.is_ancestor_of(operation)


@record
class ExecutionStructure(Analysis[Function, "ExecutionStructure"]):
    """The places of one function's operations, and the owners of its memories. What stands in
    scalar code has the place of the operation that holds it."""

    NAME: ClassVar[str] = "execution structure"

    places: Mapping[Operation, Place]
    owners: Mapping[Value, Ownership]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> ExecutionStructure:
        found = _Structure(_sole_writers(subject))
        caller = Ownership(None, PrefixCut(0))
        found.owners.update(dict.fromkeys(subject.arguments, caller))
        found.needs.update(dict.fromkeys(subject.arguments, frozenset()))
        for block in subject.region.blocks:
            found.block(block, ())
        return cls(found.places, found.owners)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.FUNCTION:
            return edit.detail == "alias_groups"
        return edit.kind is not EditKind.LABEL and edit.detail not in CONTRACTS

    def place(self, operation: Operation) -> Place:
        """Where an operation stands."""
        holder: Operation | None = operation
        while holder is not None and holder not in self.places:
            holder = holder.parent_op
        assert holder is not None, f"{operation.NAME} is not in this function"
        return self.places[holder]

    def may_see(self, operation: Operation, memory: Value) -> bool:
        """Whether the instance that runs an operation is, or lies in, an owner of the memory."""
        return self.owners[memory].is_visible_to(operation)


_Levels = tuple[NestAxis, ...]
_Needs = frozenset[NestAxis]
_NOTHING: _Needs = frozenset()
_PRIVATE = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.ALLOCATE})


class _Structure:
    """What is known while a function is walked in order."""

    def __init__(self, writers: Mapping[Value, Operation | None]) -> None:
        self.writers = writers
        self.places: dict[Operation, Place] = {}
        self.owners: dict[Value, Ownership] = {}
        self.needs: dict[Value, _Needs] = {}
        self._effects: dict[Operation, Effects] = {}

    def block(self, block: Block, levels: _Levels) -> None:
        for argument in block.arguments:
            # What a branch hands on may differ wherever its block runs.
            self.needs.setdefault(argument, frozenset(levels))
        for op in block.operations:
            self.operation(op, levels)

    def operation(self, op: Operation, levels: _Levels) -> None:
        needs = self._free(op) | self._of_effects(op, levels)
        if op.TERMINATOR:
            needs = frozenset(levels)
        anchor = _depth_of(needs, levels)
        spread = _depth_of(filter(_is_spatial, levels), levels)
        cuts = PrefixCut(anchor), PrefixCut(max(anchor, spread))
        self.places[op] = Place(levels, *cuts)
        self.needs.update(dict.fromkeys(op.results, needs))
        for effect in op.effects():
            if effect.kind is EffectKind.ALLOCATE and effect.resource is not None:
                self.owners[effect.resource] = owner_at(levels)
        if op.REGION_USE is not RegionUse.ELEMENTWISE:
            self._regions(op, levels, needs)

    def _regions(self, op: Operation, levels: _Levels, needs: _Needs) -> None:
        inner = (*levels, *axes_of(op))
        own = frozenset(inner[len(levels) :])
        for region in op.regions:
            for block in region.blocks:
                if isinstance(op, Nest):
                    self._arguments(op, block, inner, needs | own)
                self.block(block, inner)

    def _arguments(self, nest: Nest, block: Block, inner: _Levels, all_: _Needs) -> None:
        indices, rest = block.arguments[: nest.rank], block.arguments[nest.rank :]
        for axis, index in enumerate(indices):
            bounds = nest.lower[axis], nest.upper[axis], nest.step[axis]
            level = inner[len(inner) - nest.rank + axis]
            self.needs[index] = frozenset({level}).union(*map(self._need, bounds))
        for place, argument in enumerate(rest):
            # Every instance of a parallel gets what was there on entry; states change.
            is_entry = isinstance(nest, Parallel) and place < len(nest.initial)
            self.needs[argument] = self._need(initial_of(nest)[place]) if is_entry else all_

    def _need(self, value: Value) -> _Needs:
        return self.needs.get(value, _NOTHING)

    def _free(self, op: Operation) -> _Needs:
        """What the values need that an operation takes from outside, for itself or within."""
        used = {value for nested in op.walk() for value in nested.operands}
        return _NOTHING.union(*map(self._need, used))

    def _of_effects(self, op: Operation, levels: _Levels) -> _Needs:
        effects = effects_of(op)
        if effects.kinds - _PRIVATE or effects.reads_anything or effects.writes_anything:
            return frozenset(levels)
        if not all(self._is_value_of(op, memory, effects.reads) for memory in effects.writes):
            return frozenset(levels)
        owners = [self.owners[base_of(memory)] for memory in effects.writes]
        if EffectKind.ALLOCATE in effects.kinds:
            owners.append(owner_at(levels))
        found = {level for owner in owners for level in levels[: owner.cut.depth]}
        if effects.reads:
            found.update(lv for lv in levels if self._may_change(lv.nest, effects.reads))
        return frozenset(found)

    def _is_value_of(self, op: Operation, memory: Value, reads: Iterable[Value]) -> bool:
        """Whether a memory holds what an operation makes of other things, and nothing else."""
        is_own = self.writers.get(base_of(memory)) is op
        return is_own and not any(may_overlap(memory, one) for one in reads)

    def _may_change(self, nest: Operation, read: Iterable[Value]) -> bool:
        """Whether a nest may write what is read."""
        if nest not in self._effects:
            self._effects[nest] = effects_of(nest)
        effects = self._effects[nest]
        return effects.writes_anything or any(
            may_overlap(one, other) for one in read for other in effects.writes
        )


def _sole_writers(function: Function) -> Mapping[Value, Operation | None]:
    """For each buf who writes it; None where several do."""
    writers: dict[Value, Operation | None] = {}
    for op in function.walk():
        for memory in stored_by(op):
            if isinstance(memory, OpResult) and isinstance(memory.type, BufType):
                writers[memory] = None if memory in writers else op
    return writers


def axes_of(op: Operation) -> _Levels:
    """The levels that an operation opens."""
    if not isinstance(op, Nest):
        return ()
    return tuple(NestAxis(op, axis) for axis in range(op.rank))


def owner_at(levels: Iterable[NestAxis]) -> Ownership:
    """Who owns memory that is made below these levels: the nearest parallel."""
    found = Ownership(None, PrefixCut(0))
    for depth, level in enumerate(levels, start=1):
        if level.is_spatial:
            found = Ownership(level.nest, PrefixCut(depth))
    return found


def initial_of(nest: Operation) -> list[Value]:
    """The states that a nest hands from instance to instance, or joins patches of, at its start."""
    return list(nest.initial) if isinstance(nest, Parallel | CarryingNest) else []


def _is_spatial(level: NestAxis) -> bool:
    return level.is_spatial


def _depth_of(needs: Iterable[NestAxis], levels: _Levels) -> int:
    """The shortest prefix that has all of these levels."""
    place = {level: depth for depth, level in enumerate(levels, start=1)}
    return max((place[level] for level in needs), default=0)
