"""Which values are still needed where: through branches, loops, stages and further iterations.

In: a function. Out: what is live at both ends of every block, and when each block last uses a
value. The operations of a function have places, the order of its text. A value from outside of a
repeated region that it uses is needed until the last run ends; one that a region hands on lives
there under another name (see `stage_dependences.handed_values`), and as itself only until its last
use before.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    Edit,
    EditKind,
    Function,
    Operation,
    OpResult,
    Region,
    RegionUse,
    Value,
    next_blocks,
)
from tilenest.records import record

_Values = frozenset[Value]
_NOTHING: _Values = frozenset()
_CONCERNING = frozenset(EditKind) - {
    EditKind.LABEL,
    EditKind.ATTRIBUTE,
    EditKind.FUNCTION,
    EditKind.MODULE,
}


@record
class Liveness(Analysis[Function, "Liveness"]):
    """What is live in one function."""

    NAME: ClassVar[str] = "liveness"

    places: Mapping[Operation, int]
    """where every operation stands in the text of the function"""
    live_in: Mapping[Block, _Values]
    """what comes from before a block and is needed in it or later; its arguments are not"""
    live_out: Mapping[Block, _Values]
    """what is needed when a block has ended, by what follows or by another run"""
    last_uses: Mapping[Block, Mapping[Value, int]]
    """the last operation of a block that uses a value, itself or below it"""

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> Liveness:
        places = {op: place for place, op in enumerate(subject.walk())}
        flow = _Flow(places)
        flow.region(subject.region, _NOTHING)
        return cls(
            MappingProxyType(places),
            MappingProxyType(flow.live_in),
            MappingProxyType(flow.live_out),
            MappingProxyType(flow.last_uses),
        )

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in _CONCERNING

    # A point of the program ------------------------------------------------------------------

    def is_live_after(self, value: Value, op: Operation) -> bool:
        """Whether a value is there when an operation has run, and may be used from then on."""
        block = op.parent
        assert block is not None
        return self._is_made(value, block, self.places[op]) and self._is_needed(value, op, block)

    def is_live_into(self, value: Value, nest: Operation) -> bool:
        """Whether a value is there before a nest, and may be used in it or later."""
        block = nest.parent
        assert block is not None
        return self._is_made(value, block, self.places[nest] - 1) and (
            self._is_used_inside(value, nest) or self._is_needed(value, nest, block)
        )

    def used_range(self, value: Value) -> tuple[int, int] | None:
        """From its first use on, the places at which a value is held: all in between has to spare
        it. None for what is not used."""
        if not value.has_uses:
            return None
        found = [self.places[user] for user in value.users]
        for block, live in self.live_in.items():
            if value in live:
                found.append(self._first(block))
        for block, live in self.live_out.items():
            if value in live:
                found.append(self._last(block))
        return min(found), max(found)

    def are_held_together(self, one: Value, other: Value) -> bool:
        """Whether two values are held at one place."""
        mine, theirs = self.used_range(one), self.used_range(other)
        if mine is None or theirs is None:
            return False
        return mine[0] <= theirs[1] and theirs[0] <= mine[1]

    def _first(self, block: Block) -> int:
        first = block.operations.first
        assert first is not None
        return self.places[first]

    def _last(self, block: Block) -> int:
        last = block.operations.last
        assert last is not None
        return self.places[last]

    def _is_made(self, value: Value, block: Block, place: int) -> bool:
        """Whether a value is made by an operation up to a place, as far as that is of the block."""
        if not isinstance(value, OpResult) or value.owner.parent is not block:
            return True
        return self.places[value.owner] <= place

    def _is_needed(self, value: Value, op: Operation, block: Block) -> bool:
        last = self.last_uses[block].get(value, -1)
        return last > self.places[op] or value in self.live_out[block]

    def _is_used_inside(self, value: Value, nest: Operation) -> bool:
        home = value.defining_block
        if home is None or home.parent in nest.regions:
            return False
        blocks = (block for region in nest.regions for block in region.blocks)
        return any(value in self.last_uses.get(block, ()) for block in blocks)


class _Flow:
    """The sets while they are found, from the outermost region inwards."""

    def __init__(self, places: Mapping[Operation, int]) -> None:
        self.places = places
        self.live_in: dict[Block, _Values] = {}
        self.live_out: dict[Block, _Values] = {}
        self.last_uses: dict[Block, Mapping[Value, int]] = {}
        self._exposed: dict[Block, _Values] = {}
        self._note_uses()

    def _note_uses(self) -> None:
        found: dict[Block, dict[Value, int]] = {}
        for op in self.places:
            assert op.parent is not None
            found.setdefault(op.parent, {})
            for value in op.operands:
                self._note_use(op, value, found)
        for block, uses in found.items():
            self.last_uses[block] = MappingProxyType(uses)
            self._exposed[block] = frozenset(v for v in uses if v.defining_block is not block)

    def _note_use(self, op: Operation, value: Value, found: dict[Block, dict[Value, int]]) -> None:
        """In the block of the operation and in those around it, up to where the value is made."""
        home = value.defining_block
        assert home is not None
        holder: Operation | None = op
        while holder is not None:
            block = holder.parent
            assert block is not None
            found.setdefault(block, {})[value] = self.places[holder]
            holder = None if block.parent is home.parent else block.parent_op

    def region(self, region: Region, after: _Values) -> _Values:
        """Settle a region and all below it; what is live where it starts."""
        before = self._settle(region, after, self.live_in, self.live_out)
        for block in region.blocks:
            for op in block.operations:
                if op.regions:
                    self._below(op, self._after(op, block))
        return before

    def _below(self, op: Operation, after: _Values) -> None:
        if op.REGION_USE is RegionUse.ALTERNATIVE:
            for region in op.regions:
                self.region(region, after)
            return
        if op.REGION_USE is not RegionUse.IN_TURN:
            after |= self._next_run(op)
        for region in reversed(op.regions):
            after = self.region(region, after)

    def _next_run(self, op: Operation) -> _Values:
        """What one more run of all regions needs from outside."""
        needed = _NOTHING
        for region in reversed(op.regions):
            needed = self._settle(region, needed, {}, {})
        return needed

    def _after(self, op: Operation, block: Block) -> _Values:
        """What is live after an operation, without its results."""
        place = self.places[op]
        later = {value for value, last in self.last_uses[block].items() if last > place}
        return frozenset(
            value
            for value in later | self.live_out[block]
            if not isinstance(value, OpResult)
            or value.owner.parent is not block
            or self.places[value.owner] < place
        )

    def _settle(
        self,
        region: Region,
        after: _Values,
        live_in: dict[Block, _Values],
        live_out: dict[Block, _Values],
    ) -> _Values:
        """The sets of a region's blocks, given what is live after it."""
        blocks = list(reversed(list(region.blocks)))
        live_in.update(dict.fromkeys(blocks, _NOTHING))
        is_stable = False
        while not is_stable:
            is_stable = True
            for block in blocks:
                following = next_blocks(block)
                out = after if not following else _NOTHING.union(*(live_in[b] for b in following))
                passing = (value for value in out if value.defining_block is not block)
                found = self._exposed.get(block, _NOTHING).union(passing)
                live_out[block] = out
                if found != live_in[block]:
                    live_in[block] = found
                    is_stable = len(blocks) == 1
        return live_in[blocks[-1]] if blocks else after
