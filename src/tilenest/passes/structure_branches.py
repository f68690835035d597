"""Write branches as conditionals: every region becomes one block.

In: Candidate form whose regions may hold several blocks. Out: regions of one block; where a branch
decides, an `exec.if` yields what the block at which its ways meet takes. A block that two ways
reach before they meet is copied into both. Branches that go round in a circle are refused: loops
are nests.

    cond_branch %c ^a ^b; ^a: branch ^m(%x); ^b: branch ^m(%y); ^m(%v): ...
    becomes   %v = exec.if %c { yield %x } { yield %y }; ...
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import Dominance
from tilenest.dialects import BlockBranch, CondBranch, If, Yield, YieldUpdates
from tilenest.errors import ControlFlowError
from tilenest.ir import (
    Block,
    Builder,
    Function,
    Operation,
    Region,
    Rewriter,
    Type,
    Value,
    ValueMap,
    clone_operation,
)

_MOST_COPIES = 1000
"""Copied blocks of one region: structured code copies none, short circuits a few."""


def structure_branches(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Rewrite one function in place, inner regions first; there is nothing to decide."""
    regions = [region for op in function.walk() for region in op.regions]
    for region in [*reversed(regions), function.region]:
        if len(region.blocks) > 1:
            _Structurer(function, region, rewriter).run()
    return ()


class _Structurer:
    """One region of several blocks."""

    def __init__(self, function: Function, region: Region, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        self.order = _acyclic_order(region)
        self.dominance = rewriter.analyses.get(Dominance, function)
        self.leaving = _single_way_out(region)
        self.copies = 0

    def run(self) -> None:
        entry, *others = self.order
        end = entry.terminator
        builder = self.rewriter.builder_before(end)
        handed = self._follow(end, builder, {}, None)
        if end.edges:
            leaving = builder.insert(clone_operation(self.leaving, {}))
            for place, value in enumerate(handed):
                self.rewriter.set_operand(leaving, place, value)
        for block in self.order:
            if block is not entry:
                self.rewriter.erase(block.terminator)
            elif end.edges:
                self.rewriter.erase(end)
        for block in reversed(others):
            self.rewriter.erase_block(block)

    def _follow(
        self, end: Operation, builder: Builder, values: ValueMap, stop: Block | None
    ) -> list[Value]:
        """Write what comes after a terminator, up to `stop` or (None) out of the region; what is
        handed over there."""
        while end.edges:
            block = end.parent
            assert block is not None
            following: Block | None
            if isinstance(end, BlockBranch):
                following, handed = end.target.block, _mapped(end.target.operands, values)
            else:
                assert isinstance(end, CondBranch)
                following = self.dominance.postdominator(block)
                handed = self._decide(end, builder, values, following)
            if following is stop:
                return handed
            assert following is not None, "ways that do not meet leave the region"
            end = self._copy(following, handed, builder, values)
        return _mapped(end.operands, values)

    def _decide(
        self, end: CondBranch, builder: Builder, values: ValueMap, meeting: Block | None
    ) -> list[Value]:
        """A conditional with both ways up to where they meet."""
        regions = []
        for way in (end.then, end.otherwise):
            inner = dict(values)
            body = Block()
            inside = Builder(body)
            inside.location = end.location
            handed = _mapped(way.operands, values)
            if way.block is not meeting:
                after = self._copy(way.block, handed, inside, inner)
                handed = self._follow(after, inside, inner, meeting)
            inside.location = end.location
            inside.insert(Yield(values=handed))
            regions.append(Region([body]))
        (condition,) = _mapped([end.condition], values)
        types = self._types_at(meeting)
        decided = If(condition=condition, result_types=types, regions=regions)
        builder.location = end.location
        builder.insert(decided)
        for result, argument in zip(
            decided.results, meeting.arguments if meeting else (), strict=False
        ):
            result.name = argument.name
        return list(decided.results)

    def _types_at(self, meeting: Block | None) -> list[Type]:
        taken = self.leaving.operands if meeting is None else meeting.arguments
        return [value.type for value in taken]

    def _copy(
        self, block: Block, handed: list[Value], builder: Builder, values: ValueMap
    ) -> Operation:
        """Write a block at the builder; its terminator."""
        self.copies += 1
        if self.copies > _MOST_COPIES:
            raise ControlFlowError(
                "the branches of a region are too tangled to be written as conditionals",
                "let the ways of a branch meet again before the next one",
                block.terminator.location,
            )
        values.update(zip(block.arguments, handed, strict=True))
        for op in block.operations:
            if not op.TERMINATOR:
                builder.insert(clone_operation(op, values))
        return block.terminator


def _mapped(operands: Sequence[Value], values: ValueMap) -> list[Value]:
    return [values.get(value, value) for value in operands]


def _single_way_out(region: Region) -> Operation:
    """A terminator for the one block that remains."""
    ends = [block.terminator for block in region.blocks if not block.terminator.edges]
    if len(ends) > 1 and isinstance(ends[0], YieldUpdates):
        raise ControlFlowError(
            "a parallel ends in several blocks, each with patches of its own",
            "branch to one block that ends with exec.yield_updates",
            ends[1].location,
        )
    return ends[0]


def _acyclic_order(region: Region) -> list[Block]:
    """The blocks, the entry first, each behind those that go on with it."""
    behind: list[Block] = []
    state: dict[Block, bool] = {}
    """False while a block is on the way down, True once it is done"""
    for root in reversed(list(region.blocks)):
        path = [] if root in state else [root]
        while path:
            block = path[-1]
            waiting = [b for b in block.terminator.successors if state.get(b) is not True]
            if block not in state:
                state[block] = False
                circle = [b for b in waiting if state.get(b) is False]
                if circle:
                    raise _circle(block.terminator)
                path += waiting
                continue
            path.pop()
            if not state[block]:
                state[block] = True
                behind.append(block)
    behind.reverse()
    return behind


def _circle(end: Operation) -> ControlFlowError:
    return ControlFlowError(
        f"a {end.NAME} goes back to a block that led to it",
        "write loops as nests: tn.serial, or a Python loop over a range",
        end.location,
    )
