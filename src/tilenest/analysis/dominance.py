"""What runs before and after what on every way through a function: dominance, post-dominance.

In: a function; places in it, operations and blocks. Out: whether one place is passed on every way
to another, the nearest block that is passed on every way from one, the nearest that dominates
several places, and what an operation sees. A place holds what is nested in it: it starts before
that and ends after it. Regions run as their operation says: alternatives and loops may be passed
by, stages come in order. What is kept are the trees of regions with several blocks; the order
within a block is read off its list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    DominatorTree,
    Edit,
    EditKind,
    Function,
    Operation,
    OpResult,
    Region,
    RegionUse,
    Value,
    block_dominators,
    dominators,
    next_blocks,
)
from tilenest.records import record

Place: TypeAlias = Operation | Block

_IN_ORDER = (RegionUse.IN_TURN, RegionUse.REPEATED)
"""Who comes to a region has been through those before it."""


@record
class Dominance(Analysis[Function, "Dominance"]):
    """The dominators of the blocks of one function."""

    NAME: ClassVar[str] = "dominance"

    from_entry: Mapping[Region, DominatorTree[Block]]
    """for every region of several blocks"""
    from_exit: Mapping[Region, DominatorTree[Block | None]]
    """the same against the direction of control; None is what comes after the region"""

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> Dominance:
        nested = (region for op in subject.walk() for region in op.regions)
        several = [region for region in (subject.region, *nested) if len(region.blocks) > 1]
        return cls(
            MappingProxyType({region: block_dominators(region) for region in several}),
            MappingProxyType({region: _post_dominators(region) for region in several}),
        )

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.SUCCESSORS:
            return True
        if edit.kind not in (EditKind.INSERTED, EditKind.ERASED, EditKind.MOVED):
            return False
        return edit.operation is None or any(map(_directs_control, edit.operation.walk()))

    # Before and after ------------------------------------------------------------------------

    def dominates(self, above: Place, below: Place) -> bool:
        """Whether `above` has started whenever `below` starts; a place dominates itself."""
        return above is below or self._is_passed(above, below)

    def sees(self, op: Operation, value: Value) -> bool:
        """Whether a value is defined on every way to an operation that stands in its scope."""
        block = value.defining_block
        if block is None or _place_in(_region(block), op) is None:
            return False
        if not isinstance(value, OpResult):
            return self.dominates(block, op)
        return not value.owner.is_ancestor_of(op) and self.dominates(value.owner, op)

    def postdominator(self, block: Block) -> Block | None:
        """The nearest other block that every way from a block passes; None where the ways only meet
        outside of the region."""
        tree = self.from_exit.get(_region(block))
        return None if tree is None else tree.parents.get(block)

    def common_dominator(self, places: Iterable[Place]) -> Block:
        """The last of the blocks that every way to any of the places passes."""
        first, *others = places
        found = _block(first)
        for other in others:
            while (below := _place_in(_region(found), other)) is None:
                owner = found.parent_op
                assert owner is not None, "the places are in one function"
                found = _block(owner)
            tree = self.from_entry.get(_region(found))
            found = found if tree is None else tree.common(_block(below), found)
        return found

    def _is_passed(self, one: Place, other: Place) -> bool:
        """Whether one place is passed on every way to the other.

        When the other place is elsewhere, all ways through the region have to pass the one; then
        the same is asked of the operation around it.
        """
        while True:
            region = _region(one)
            below = _place_in(region, other)
            if below is not None:
                return below is one or self._is_passed_within(region, one, below)
            if not self._is_always_passed(region, one):
                return False
            owner = region.parent
            assert isinstance(owner, Operation), "the places are in one function"
            place = owner.regions.index(region)
            later = owner.regions[place + 1 :]
            if any(_place_in(sibling, other) is not None for sibling in later):
                return owner.REGION_USE in _IN_ORDER
            if owner.REGION_USE is not RegionUse.IN_TURN:
                return False
            one = owner

    def _is_passed_within(self, region: Region, one: Place, other: Place) -> bool:
        """The same for two places of one region."""
        first, second = _block(one), _block(other)
        if first is not second:
            return self.from_entry[region].dominates(first, second)
        if isinstance(one, Block) or isinstance(other, Block):
            return isinstance(one, Block)
        return precedes(one, other)

    def _is_always_passed(self, region: Region, place: Place) -> bool:
        """Whether all ways through a region pass one of its places."""
        tree = self.from_exit.get(region)
        return tree is None or tree.dominates(_block(place), region.blocks.first)


def precedes(first: Operation, last: Operation) -> bool:
    """Whether one operation of a block stands before another one of it."""
    ahead, behind = first.next, last.next
    while ahead is not None and behind is not None:
        if ahead is last or behind is first:
            return ahead is last
        ahead, behind = ahead.next, behind.next
    # Whoever comes to the end first stands later.
    return ahead is not None


def _post_dominators(region: Region) -> DominatorTree[Block | None]:
    ends = [block for block in region.blocks if not next_blocks(block)]

    def before(block: Block | None) -> Iterable[Block]:
        if block is None:
            return ends
        return [source for source in block.predecessors if source.parent is region]

    return dominators(None, before)


def _directs_control(op: Operation) -> bool:
    return bool(op.edges) or any(len(region.blocks) > 1 for region in op.regions)


def _block(place: Place) -> Block:
    block = place if isinstance(place, Block) else place.parent
    assert block is not None, "a place is in a function"
    return block


def _region(place: Place) -> Region:
    region = _block(place).parent
    assert region is not None, "a place is in a function"
    return region


def _place_in(region: Region, place: Place) -> Place | None:
    """The block or operation directly in a region that is a place or holds it."""
    current: Place | None = place
    while current is not None and _region(current) is not region:
        current = _block(current).parent_op
    return current
