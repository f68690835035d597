"""Which memory may be the same, and what may change it.

In: views, bufs and memories, and a function for what lies between two operations. Out: whether two
may overlap; alias sets; whether memory may change between two operations. Storage is an argument, a
buf or a memory; a view of a view shares that of the view below. Two arguments overlap only when the
function's attribute `alias_groups` puts both into one group (one int per argument), and then they
coincide exactly; without the attribute any two may overlap. Two views of one storage are disjoint
where their index maps never meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar

from tilenest.analysis.composed_accesses import compose_view
from tilenest.analysis.effects import CHANGING, HIDDEN
from tilenest.analysis.meetings import Relation, never_meet
from tilenest.analysis.structure import CONTRACTS, ancestor_in, enclosing
from tilenest.dialects import base_of, chain_of
from tilenest.ir import (
    POINTER,
    Analysis,
    Asker,
    BlockArgument,
    BufType,
    Edit,
    EditKind,
    Function,
    MemoryType,
    Operation,
    RegionUse,
    Value,
    ViewType,
)
from tilenest.records import record


def may_overlap(a: Value, b: Value) -> bool:
    """Whether two views, bufs or memories may share an element."""
    below = base_of(a), base_of(b)
    if not _may_be_one(*below):
        return False
    is_same = below[0] is below[1] or coincide(*below)
    is_part = bool(chain_of(a) or chain_of(b))
    return not (is_same and is_part and _are_apart(a, b))


def _are_apart(a: Value, b: Value) -> bool:
    """Whether two views of the same elements are known to be disjoint. One may be that of an
    earlier iteration, so only what is the same throughout a call is so in both."""
    return never_meet(compose_view(a), compose_view(b), _OF_A_CALL).is_proven


def _is_fixed(value: Value) -> bool:
    """Whether a value is the same throughout a call: it is made in the function's first block."""
    block = value.defining_block
    region = None if block is None else block.parent
    if region is None or not isinstance(region.parent, Function):
        return False
    return block is region.blocks.first


_OF_A_CALL = Relation(_is_fixed)


def coincide(a: Value, b: Value) -> bool:
    """Whether two views are the same elements: arguments of one group coincide exactly."""
    if a is b:
        return True
    is_argument = all(isinstance(v, BlockArgument) and isinstance(v.type, ViewType) for v in (a, b))
    return is_argument and _alias_groups(a) is not None and _may_be_one(a, b)


def _may_be_one(a: Value, b: Value) -> bool:
    """Whether two storages may share an element."""
    if a is b:
        return True
    if isinstance(a.type, BufType | MemoryType) or isinstance(b.type, BufType | MemoryType):
        # A memory that a stage hands on has another name in the next one.
        return a.type is b.type and any(isinstance(value, BlockArgument) for value in (a, b))
    groups = _alias_groups(a)
    return groups is None or bool(groups[a.index] == groups[b.index])


def _alias_groups(view: Value) -> tuple[int, ...] | None:
    assert isinstance(view, BlockArgument) and view.block.parent is not None
    function = view.block.parent.parent
    assert isinstance(function, Function), "a view is an argument of its function"
    groups: tuple[int, ...] | None = function.attributes.get("alias_groups")
    return groups


# A function ------------------------------------------------------------------------------------


@record
class MemoryEffects(Analysis[Function, "MemoryEffects"]):
    """What may change the memory that a function sees, and which of it may be the same."""

    NAME: ClassVar[str] = "memory effects"

    writes: Mapping[Operation, frozenset[Value] | None]
    """every operation that may change memory, nested ones counted, and what; None for anything"""
    alias_sets: frozenset[frozenset[Value]]
    """all views, bufs and memories: those of one set may share storage, those of two do not"""

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> MemoryEffects:
        writes: dict[Operation, frozenset[Value] | None] = {}
        for op in subject.region.operations():
            _note_writes(op, writes)
        return cls(MappingProxyType(writes), _alias_sets(subject))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        match edit.kind:
            case EditKind.LABEL | EditKind.MODULE | EditKind.SUCCESSORS:
                return False
            case EditKind.FUNCTION:
                return edit.detail == "alias_groups"
            case EditKind.OPERANDS:
                return any(v.type is POINTER or _is_memory(v) for v in edit.values)
            case EditKind.ATTRIBUTE:
                assert edit.operation is not None
                return not edit.operation.IS_ELEMENTWISE and edit.detail not in CONTRACTS
            case EditKind.DEFINITIONS:
                return True
        if edit.operation is not None:
            return any(map(_is_of_memory, edit.operation.walk()))
        assert edit.block is not None
        return any(map(_is_memory, edit.block.arguments)) or any(
            map(_is_of_memory, edit.block.walk())
        )

    def may_write(self, op: Operation, memory: Value) -> bool:
        """Whether a view, buf or memory may change while the operation runs."""
        written = self.writes.get(op, frozenset())
        return written is None or any(may_overlap(memory, one) for one in written)

    def is_written_between(self, memory: Value, first: Operation, last: Operation) -> bool:
        """Whether `memory` may change after `first` runs and before `last` (later, maybe nested)
        does.

        When `last` is nested, everything in the operation that holds it counts: a loop's later
        iterations come after its earlier ones.
        """
        block = first.parent
        assert block is not None
        holder = ancestor_in(block, last)
        assert holder is not None, "the second operation is not in the first one's block"
        if self._is_written(memory, _strictly_between(first, holder)):
            return True
        if holder is last:
            return False
        if any(op.REGION_USE is RegionUse.REPEATED for op in enclosing(last, block.parent_op)):
            return self.may_write(holder, memory)
        # Only branches enclose it: what comes before it in each of them counts.
        return any(
            self._is_written(memory, _strictly_between(None, inner))
            for inner in (last, *enclosing(last, block.parent_op))
            if inner is not holder
        )

    def _is_written(self, memory: Value, ops: Iterator[Operation]) -> bool:
        return any(op in self.writes and self.may_write(op, memory) for op in ops)


def _note_writes(op: Operation, writes: dict[Operation, frozenset[Value] | None]) -> None:
    """What an operation and all below it may write."""
    effects = [effect for effect in op.effects() if effect.kind in CHANGING]
    is_anything = any(e.resource is None or e.kind in HIDDEN for e in effects)
    found = {effect.resource for effect in effects if effect.resource is not None}
    if op.REGION_USE is not RegionUse.ELEMENTWISE:
        for region in op.regions:
            for inner in region.operations():
                _note_writes(inner, writes)
                below = writes.get(inner, frozenset())
                is_anything |= below is None
                found.update(below or ())
    if is_anything:
        writes[op] = None
    elif found:
        writes[op] = frozenset(found)


def _alias_sets(function: Function) -> frozenset[frozenset[Value]]:
    sets: dict[Value, set[Value]] = {}
    handed: list[BlockArgument] = []
    for argument in function.arguments:
        if _is_memory(argument):
            _unite(argument, sets)
    for op in function.walk():
        for value in filter(_is_memory, op.results):
            base = base_of(value)
            sets.setdefault(base, {base}).add(value)
        for region in op.regions:
            handed += [v for block in region.blocks for v in block.arguments if _is_memory(v)]
    for argument in handed:
        _unite(argument, sets)
    return frozenset(map(frozenset, sets.values()))


def _unite(storage: Value, sets: dict[Value, set[Value]]) -> None:
    """Put a storage into one set with all that it may be."""
    together = {storage}
    for other in [other for other in sets if _may_be_one(storage, other)]:
        together |= sets[other]
    sets[storage] = together
    sets.update({other: together for other in sets if other in together})


def _is_memory(value: Value) -> bool:
    return isinstance(value.type, ViewType | BufType | MemoryType)


def _is_of_memory(op: Operation) -> bool:
    """Whether an operation changes memory or gives some of it a name."""
    return any(map(_is_memory, op.results)) or any(e.kind in CHANGING for e in op.effects())


def _strictly_between(first: Operation | None, last: Operation) -> Iterator[Operation]:
    op = last.previous
    while op is not None and op is not first:
        yield op
        op = op.previous
