"""A module as plain lists and dicts, on which edits are made naively.

In: what an edit does. Out: where everything is, and what sees what. Nothing is asked of the module:
a block dominates another one when cutting it off leaves the other unreachable.
"""

from __future__ import annotations

import copy

from tilenest.dialects import Apply
from tilenest.ir import (
    Block,
    BlockArgument,
    Edge,
    Function,
    Operation,
    OpResult,
    Region,
    Use,
    Value,
)


class Lists:
    """The module as plain lists; a copy is a save point."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.blocks: dict[Region, list[Block]] = {}
        self.operations: dict[Block, list[Operation]] = {}
        self.arguments: dict[Block, list[BlockArgument]] = {}
        self.home: dict[Operation, Block] = {}
        """linked operations, also those below detached ones"""
        self.place: dict[Block, Region] = {}
        self.operands: dict[Operation, list[Value]] = {}
        self.uses: dict[Operation, list[Use]] = {}
        self.targets: dict[Operation, list[Block]] = {}
        self.edges: dict[Operation, list[Edge]] = {}
        self.names: dict[Operation, str] = {}
        self.detached: list[Operation] = []

    def copy(self) -> Lists:
        fresh = Lists()
        for name, table in vars(self).items():
            saved = copy.copy(table)
            if isinstance(saved, dict):
                saved = {k: list(v) if isinstance(v, list) else v for k, v in saved.items()}
            setattr(fresh, name, saved)
        return fresh

    # What is known -------------------------------------------------------------------------

    def below(self, op: Operation) -> list[Operation]:
        """An operation and everything in its regions."""
        found = [op]
        for region in op.regions:
            for block in self.blocks[region]:
                for inner in self.operations[block]:
                    found += self.below(inner)
        return found

    def in_region(self, region: Region) -> list[Operation]:
        return [
            op
            for block in self.blocks[region]
            for outer in self.operations[block]
            for op in self.below(outer)
        ]

    def linked(self) -> list[Operation]:
        return [op for function in self.functions for op in self.in_region(function.region)]

    def linked_blocks(self) -> list[Block]:
        regions = [function.region for function in self.functions]
        found: list[Block] = []
        while regions:
            for block in self.blocks[regions.pop()]:
                found.append(block)
                for op in self.operations[block]:
                    regions += op.regions
        return found

    def owner(self, block: Block) -> Operation | None:
        owner = self.place[block].parent
        return owner if isinstance(owner, Operation) else None

    def depth(self, block: Block) -> int:
        owner = self.owner(block)
        return 0 if owner is None else 1 + self.depth(self.home[owner])

    def following(self, block: Block) -> list[Block]:
        ops = self.operations[block]
        return self.targets.get(ops[-1], []) if ops else []

    def reached(self, region: Region, without: Block | None = None) -> set[Block]:
        """The blocks that control reaches when one of them is cut off."""
        first = self.blocks[region][0]
        waiting = [] if first is without else [first]
        seen = set(waiting)
        while waiting:
            for target in self.following(waiting.pop()):
                if target not in seen and target is not without:
                    seen.add(target)
                    waiting.append(target)
        return seen

    def dominates(self, above: Block, below: Block) -> bool:
        region = self.place[below]
        return below not in self.reached(region) or below not in self.reached(region, above)

    def sees(self, block: Block, place: int, value: Value) -> bool:
        """Whether a value is visible before the operation at a place."""
        if isinstance(value, OpResult):
            definition = self.home.get(value.owner)
            if definition is None or value.owner in self.detached:
                return False
            at = self.operations[definition].index(value.owner)
        else:
            assert isinstance(value, BlockArgument)
            definition, at = value.block, -1
            if value not in self.arguments[definition]:
                return False
        while True:
            if definition is block:
                return at < place
            if self.place.get(definition) is self.place[block]:
                return self.dominates(definition, block)
            owner = self.owner(block)
            if owner is None or owner not in self.home:
                return False
            block = self.home[owner]
            place = self.operations[block].index(owner)

    def users(self, value: Value) -> list[Operation]:
        """Linked operations, once for each use."""
        return [op for op in self.linked() for _ in range(self.operands[op].count(value))]

    def all_see(self, operations: list[Operation]) -> bool:
        """Whether operations see their operands where they are."""
        for op in operations:
            block = self.home[op]
            at = self.operations[block].index(op)
            if not all(self.sees(block, at, value) for value in self.operands[op]):
                return False
        return True

    def is_legal(self, moved: list[Operation]) -> bool:
        """Whether moved operations see what they need and are seen where they are needed."""
        inside = [op for outer in moved for op in self.below(outer)]
        results = {value for outer in moved for value in outer.results}
        users = [op for op in self.linked() if not results.isdisjoint(self.operands[op])]
        return self.all_see(inside) and self.all_see(users)

    # Changes -------------------------------------------------------------------------------

    def note(self, op: Operation) -> None:
        """An operation made just now, with what it holds."""
        self.operands[op], self.uses[op] = op.operands, list(op.operand_uses)
        if op.successors:
            self.targets[op], self.edges[op] = op.successors, list(op.edges)
        if isinstance(op, Apply):
            self.names[op] = op.function
        for region in op.regions:
            self.note_region(region)

    def note_region(self, region: Region) -> None:
        self.blocks[region] = list(region.blocks)
        for block in region.blocks:
            self.place[block], self.operations[block] = region, list(block.operations)
            self.arguments[block] = list(block.arguments)
            for op in block.operations:
                self.home[op] = block
                self.note(op)

    def link(self, op: Operation, block: Block, place: int) -> None:
        self.operations[block].insert(place, op)
        self.home[op] = block

    def unlink(self, op: Operation) -> None:
        self.operations[self.home.pop(op)].remove(op)

    def move(self, run: list[Operation], block: Block, before: Operation | None) -> None:
        for op in run:
            self.unlink(op)
        ops = self.operations[block]
        at = len(ops) if before is None else ops.index(before)
        for offset, op in enumerate(run):
            self.link(op, block, at + offset)
