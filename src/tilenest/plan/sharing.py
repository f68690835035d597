"""Which tiles live in one buf, so that a carried tile is updated in place.

In: a function of fused work on values. Out: every tile in exactly one group, a buf each.

Two tiles may share a buf when no write of one can come while the other is still to be read (see
`_overwrites`); all tiles of a group are pairwise safe. Sharing is tried where it saves a copy: what
a loop or branch hands on, then what a state starts from, then operands of the work that writes such
a buf. What is copied at one moment is read first, all of it: the pass sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilenest.analysis import Dominance, Liveness, ancestor_in, is_same_place
from tilenest.dialects import MapReducePost
from tilenest.ir import (
    Asker,
    BlockArgument,
    Function,
    Operation,
    OpResult,
    RegionUse,
    TileType,
    Value,
)
from tilenest.layouts import DimRef
from tilenest.records import record


@record
class SharedBuf:
    """Tiles that live in one buf, in the order of their definitions, and where it is made."""

    tiles: tuple[Value, ...]
    anchor: Operation
    """the first operation, in the innermost block around all tiles, that defines one or holds it"""


def plan_sharing(function: Function, ask: Asker) -> tuple[SharedBuf, ...]:
    """Put all tiles of a function into groups."""
    groups = _Groups(function, ask.get(Liveness, function))
    dominance = ask.get(Dominance, function)
    operations = list(function.walk())
    for op in operations:
        for tile, source in _handed_on(op):
            groups.unite(tile, source)
    for op in reversed(operations):
        if isinstance(op, MapReducePost):
            _update_operand(op, groups)
    return tuple(groups.bufs(dominance))


def _handed_on(op: Operation) -> Iterator[tuple[Value, Value]]:
    """The states of a loop or the results of an if, with the tiles that are copied into them."""
    tiles = [i for i, result in enumerate(op.results) if isinstance(result.type, TileType)]
    carries = [op.carries()[i] for i in tiles if op.carries()]
    yield from ((carry.arguments[0], carry.yielded) for carry in carries)
    yield from ((carry.arguments[0], carry.initial) for carry in carries)
    if op.REGION_USE is RegionUse.ALTERNATIVE:
        for region in op.regions:
            yield from ((op.results[i], region.block.terminator.operands[i]) for i in tiles)


def _update_operand(work: MapReducePost, groups: _Groups) -> None:
    """Let work that writes a shared buf find one of its operands there."""
    for result in work.results:
        if groups.is_alone(result):
            continue
        for use in work.operand_uses:
            if isinstance(use.value.type, TileType) and groups.unite(result, use.value):
                break


class _Groups:
    """The tiles of a function, in groups that grow."""

    def __init__(self, function: Function, liveness: Liveness) -> None:
        self._liveness = liveness
        self._groups: dict[Value, list[Value]] = {}
        for op in function.walk():
            for result in op.results:
                if isinstance(result.type, TileType):
                    self._add(result)

    def _add(self, result: OpResult) -> None:
        group: list[Value] = [result]
        carries = result.owner.carries()
        if carries:
            group += carries[result.index].arguments
        self._groups.update(dict.fromkeys(group, group))

    def is_alone(self, tile: Value) -> bool:
        group = self._groups.get(tile)
        return group is None or len(group) == 1

    def unite(self, one: Value, other: Value) -> bool:
        """Let two tiles share if all tiles of their groups may."""
        ours, theirs = self._groups[one], self._groups[other]
        if ours is theirs:
            return True
        if any(self._conflict(a, b) for a in ours for b in theirs):
            return False
        ours += theirs
        self._groups.update(dict.fromkeys(theirs, ours))
        return True

    def bufs(self, dominance: Dominance) -> Iterator[SharedBuf]:
        """One buf a group, in the order of their first tiles."""
        groups = {id(group): group for group in self._groups.values()}
        for group in groups.values():
            tiles = sorted(group, key=lambda tile: self._liveness.places[_definer(tile)])
            anchor = _anchor([_definer(tile) for tile in tiles], dominance)
            yield SharedBuf(tuple(tiles), anchor)

    # Safety --------------------------------------------------------------------------------

    def _conflict(self, a: Value, b: Value) -> bool:
        if not _is_alike(a, b) or _defined_together(a, b):
            return True
        return self._overwrites(a, b) or self._overwrites(b, a)

    def _overwrites(self, tile: Value, other: Value) -> bool:
        """Whether writing `tile` into the buf that holds `other` may lose what is still read.

        Work writes its results while it runs, and each cell after reading that cell. A state is
        written before its loop starts and whenever an iteration ends; the loop's result is the
        state it ends with. The result of an if is written at the end of either branch. A tile
        that is copied onto itself stays as it is.
        """
        if isinstance(tile, BlockArgument):
            return self._state_overwrites(tile, other)
        assert isinstance(tile, OpResult)
        work = tile.owner
        if isinstance(work, MapReducePost):
            slots = [use.index for use in work.operand_uses if use.value is other]
            if not all(_reads_own_cell(work, tile.index, slot) for slot in slots):
                return True
            return self._liveness.is_live_after(other, work)
        # A loop's state, in the same group, answers for its result.
        ends = [] if work.carries() else [region.block.terminator for region in work.regions]
        return any(
            end.operands[tile.index] is not other and self._liveness.is_live_after(other, end)
            for end in ends
        )

    def _state_overwrites(self, state: BlockArgument, other: Value) -> bool:
        loop = state.block.parent_op
        assert loop is not None, "a state is in the region of its loop"
        starts_as = loop.carries()[state.index - len(loop.inductions())].initial
        if other is not starts_as and self._liveness.is_live_into(other, loop):
            return True
        return self._liveness.is_live_after(other, state.block.terminator)


def _is_alike(a: Value, b: Value) -> bool:
    assert isinstance(a.type, TileType) and isinstance(b.type, TileType)
    return a.type.dtype is b.type.dtype and a.type.shape == b.type.shape


def _definer(tile: Value) -> Operation:
    """The operation that defines a tile: its own result, or a state in its region."""
    if isinstance(tile, OpResult):
        return tile.owner
    block = tile.defining_block
    assert block is not None and block.parent_op is not None
    return block.parent_op


def _defined_together(a: Value, b: Value) -> bool:
    """Whether two tiles are results of one operation, or states of one loop: written at once."""
    same_kind = isinstance(a, OpResult) == isinstance(b, OpResult)
    return same_kind and _definer(a) is _definer(b)


def _reads_own_cell(work: MapReducePost, result: int, slot: int) -> bool:
    """Whether an operand is read only where the result is then written."""
    wanted = tuple(DimRef(d) for d in work.spec(result).dims)
    for group in ("input", "seed", "post"):
        start, stop = work.SPEC.group_range(work.segments, f"{group}s")
        if start <= slot < stop:
            access = work.access(group, slot - start)
            return is_same_place(access.map.results, wanted, work.extents)
    return False


def _anchor(definers: Sequence[Operation], dominance: Dominance) -> Operation:
    """From operations in order, the one that stands or holds the first in their common block."""
    anchor = ancestor_in(dominance.common_dominator(definers), definers[0])
    assert anchor is not None
    return anchor
