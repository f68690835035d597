"""Random legal edits against a naive model of lists, with the identity of every use."""

from __future__ import annotations

import random
from collections import Counter

from tilenest.dialects import Apply, If, Return, Yield
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Function,
    Module,
    Operation,
    Region,
    Use,
    Value,
    verify,
)


class Model:
    """Blocks as plain lists of operations, operands as plain lists of values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.module = Module()
        function = self.module.add(Function("f", [INDEX, INDEX, BOOL]))
        self.arguments = function.arguments
        self.blocks: dict[Block, list[Operation]] = {function.body: []}
        self.operands: dict[Operation, list[Value]] = {}
        self.uses: dict[Operation, list[Use]] = {}
        self.detached: list[Operation] = []
        self.terminators: set[Operation] = set()
        self.close(function.body, Return())

    def close(self, block: Block, terminator: Operation) -> None:
        block.append(terminator)
        self.blocks[block].append(terminator)
        self.note(terminator)
        self.terminators.add(terminator)

    def note(self, op: Operation) -> None:
        self.operands[op] = op.operands
        self.uses[op] = list(op.operand_uses)

    # What the model knows ------------------------------------------------------------------

    def linked(self) -> list[Operation]:
        return [op for block in self.reachable() for op in self.blocks[block]]

    def reachable(self) -> list[Block]:
        return [block for block in self.blocks if self.depth(block) is not None]

    def holder(self, op: Operation) -> Block | None:
        return next((block for block, ops in self.blocks.items() if op in ops), None)

    def depth(self, block: Block) -> int | None:
        """How deep a block lies; None below a detached operation."""
        if block.parent_op is None:
            return 0
        outer = self.holder(block.parent_op)
        above = None if outer is None else self.depth(outer)
        return None if above is None else above + 1

    def visible(self, block: Block, place: int) -> list[Value]:
        """Values defined before a place, through the enclosing blocks."""
        found: list[Value] = [r for op in self.blocks[block][:place] for r in op.results]
        owner = block.parent_op
        if owner is None:
            return [*self.arguments[:2], *found]
        outer = self.holder(owner)
        if outer is None:
            return found
        return [*self.visible(outer, self.blocks[outer].index(owner)), *found]

    def users(self, value: Value) -> int:
        return sum(ops.count(value) for op in self.linked() if (ops := self.operands[op]))

    def inside(self, op: Operation) -> set[Operation]:
        return set(op.walk())

    def is_legal(self, op: Operation, block: Block, place: int) -> bool:
        """Whether `op` may be linked at a place of a block it is not in."""
        outside = set(self.visible(block, place)) | {self.arguments[2]}
        own: set[Value] = set()
        for inner in op.walk():
            if any(value not in outside | own for value in self.operands[inner]):
                return False
            own.update(inner.results)
        return True

    def is_used_only_after(self, op: Operation, block: Block, place: int) -> bool:
        """Whether every linked use of the results would still see them."""
        inside = self.inside(op)
        for user in self.linked():
            if user not in inside and set(self.operands[user]) & set(op.results):
                at = self.ancestor_in(user, block)
                if at is None or self.blocks[block].index(at) < place:
                    return False
        return True

    def ancestor_in(self, op: Operation, block: Block) -> Operation | None:
        """The operation of a block that is or holds `op`."""
        current: Operation | None = op
        while current is not None:
            home = self.holder(current)
            if home is block:
                return current
            current = None if home is None else home.parent_op
        return None

    # Edits ---------------------------------------------------------------------------------

    def insert(self) -> None:
        block, place = self.any_place()
        visible = self.visible(block, place)
        op: Operation
        if self.chance.random() < 0.15 and (self.depth(block) or 0) < 3:
            op = If(condition=self.arguments[2], regions=[Region([Block()]), Region([Block()])])
            for region in op.regions:
                self.blocks[region.block] = []
                self.close(region.block, Yield())
        else:
            arguments = self.chance.choices(visible, k=self.chance.randrange(4))
            types = [INDEX] * self.chance.randrange(3)
            op = Apply(function="any", arguments=arguments, result_types=types)
        self.note(op)
        self.link(op, block, place)

    def link(self, op: Operation, block: Block, place: int) -> None:
        block.insert(op, self.blocks[block][place])
        self.blocks[block].insert(place, op)

    def any_place(self) -> tuple[Block, int]:
        block = self.chance.choice(self.reachable())
        return block, self.chance.randrange(len(self.blocks[block]))

    def any_op(self) -> Operation | None:
        movable = [op for op in self.linked() if op not in self.terminators]
        return self.chance.choice(movable) if movable else None

    def is_free(self, op: Operation) -> bool:
        return not any(self.users(result) for result in op.results)

    def detach(self) -> None:
        op = self.any_op()
        if op is not None and self.is_free(op):
            self.take_out(op)
            op.detach()
            self.detached.append(op)

    def take_out(self, op: Operation) -> None:
        holder = self.holder(op)
        assert holder is not None
        self.blocks[holder].remove(op)

    def reinsert(self) -> None:
        if self.detached:
            op = self.chance.choice(self.detached)
            block, place = self.any_place()
            if self.is_legal(op, block, place):
                self.detached.remove(op)
                self.link(op, block, place)

    def move(self) -> None:
        op = self.any_op()
        block, place = self.any_place()
        if op is None:
            return
        holder = self.holder(op)
        assert holder is not None
        anchor = self.blocks[block][place]
        if anchor is op or self.lies_below(block, op):
            return
        before = self.blocks[holder].index(op)
        self.blocks[holder].remove(op)
        target = self.blocks[block].index(anchor)
        if self.is_legal(op, block, target) and self.is_used_only_after(op, block, target):
            op.move(block, anchor)
            self.blocks[block].insert(target, op)
        else:
            self.blocks[holder].insert(before, op)

    def lies_below(self, block: Block, op: Operation) -> bool:
        owner = block.parent_op
        return owner is not None and op.is_ancestor_of(owner)

    def set_operand(self) -> None:
        op = self.any_op()
        if op is None or not self.operands[op] or isinstance(op, If):
            return
        holder = self.holder(op)
        assert holder is not None
        value = self.chance.choice(self.visible(holder, self.blocks[holder].index(op)))
        slot = self.chance.randrange(len(self.operands[op]))
        op.set_operand(slot, value)
        self.operands[op][slot] = value

    def replace_all_uses(self) -> None:
        """Any value by one of the function's arguments, which everything sees."""
        op = self.any_op()
        if op is None or not op.results:
            return
        old = self.chance.choice(op.results)
        new = self.chance.choice(self.arguments[:2])
        old.replace_all_uses_with(new)
        for user in self.linked():
            self.operands[user] = [new if v is old else v for v in self.operands[user]]

    def erase(self) -> None:
        op = self.any_op()
        if op is not None and self.is_free(op):
            self.take_out(op)
            op.erase()
            for inner in op.walk():
                for region in inner.regions:
                    self.blocks.pop(region.block)

    # Agreement -----------------------------------------------------------------------------

    def check(self) -> None:
        for block, ops in self.blocks.items():
            assert list(block.operations) == ops
            assert list(reversed(block.operations)) == ops[::-1]
            assert len(block.operations) == len(ops)
        linked = self.linked()
        assert set(self.module.walk()) == set(linked)
        for op in linked:
            assert op.operands == self.operands[op]
            assert all(a is b for a, b in zip(op.operand_uses, self.uses[op], strict=True))
            assert all(use.holder is use.value for use in op.operand_uses)
        for op in (inner for outer in self.detached for inner in outer.walk()):
            assert op.operands == self.operands[op]
            assert all(a is b for a, b in zip(op.operand_uses, self.uses[op], strict=True))
            assert not any(use.is_linked for use in op.operand_uses)
        counts = Counter(value for op in linked for value in self.operands[op])
        for value in [*self.arguments, *(r for op in linked for r in op.results)]:
            assert len(value.uses) == counts[value]
            assert Counter(value.users) == Counter(
                {op: n for op in linked if (n := self.operands[op].count(value))}
            )


def test_five_thousand_edits_keep_lists_and_uses() -> None:
    model = Model(7)
    edits = (
        [model.insert] * 5
        + [model.detach, model.reinsert, model.replace_all_uses]
        + [model.move] * 3
        + [model.set_operand] * 3
        + [model.erase] * 4
    )
    done: Counter[str] = Counter()
    for step in range(5000):
        edit = model.chance.choice(edits)
        if len(model.linked()) > 60:
            edit = model.chance.choice((model.erase, model.detach))
        edit()
        done[edit.__name__] += 1
        if len(model.detached) > 8:
            model.detached.clear()
        if step % 20 == 0:
            model.check()
        if step % 100 == 99:
            assert verify(model.module) == []
    model.check()
    assert min(done.values()) > 100


def test_a_reinserted_operation_brings_the_same_uses_back() -> None:
    module = Module()
    function = module.add(Function("f", [INDEX]))
    op = Apply(function="neg", arguments=function.arguments * 2, result_types=[INDEX])
    uses = list(op.operand_uses)
    assert not function.arguments[0].has_uses
    function.body.append(op)
    assert list(function.arguments[0].uses) == uses
    op.detach()
    assert not function.arguments[0].has_uses
    op.set_operand(0, function.arguments[0])
    assert not function.arguments[0].has_uses
    function.body.append(op)
    assert all(a is b for a, b in zip(function.arguments[0].uses, uses, strict=True))


def test_nested_uses_follow_the_outermost_operation() -> None:
    module = Module()
    function = module.add(Function("f", [INDEX, BOOL]))
    index, condition = function.arguments
    inner = Block()
    inner.append(Apply(function="neg", arguments=[index], result_types=[INDEX]))
    op = If(condition=condition, regions=[Region([inner])])
    assert not index.has_uses
    function.body.append(op)
    assert len(index.uses) == 1
    op.detach()
    assert not index.has_uses
    assert not condition.has_uses
    second = Block()
    second.append(Apply(function="neg", arguments=[index], result_types=[INDEX]))
    function.body.append(op)
    op.regions[0].append(second)
    assert len(index.uses) == 2
