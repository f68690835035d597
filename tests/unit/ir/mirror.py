"""A module and a naive model of it, edited alike by chance.

In: a seed. Out: a module that a rewriter has edited, legally, and the comparison with the lists
that should describe it. What would be illegal is found on the lists, and not done.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from tests.unit.ir.lists import Lists
from tilenest.dialects import Apply, BlockBranch, CondBranch, If, Return, Yield
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Function,
    Module,
    Operation,
    Region,
    Rewriter,
    Value,
    clone_function,
)

DEEPEST = 3
Change = Callable[[list[Value], Operation], list[Value]]


class Mirror:
    """A module, its rewriter, its lists, and edits by chance."""

    def __init__(self, seed: int, most: int = 60) -> None:
        self.chance = random.Random(seed)
        self.most = most
        self.module = Module()
        self.rewriter = Rewriter()
        self.lists = Lists()
        self.new_function("f")

    def new_function(self, name: str) -> None:
        function = Function(name, [INDEX, INDEX, BOOL])
        function.body.append(Return())
        self.add(function)

    def add(self, function: Function) -> None:
        self.rewriter.insert_function(function, self.module)
        self.lists.functions.append(function)
        self.lists.note_region(function.region)

    # Choices -------------------------------------------------------------------------------

    def any_block(self) -> Block:
        """A linked block: go down from a function, now and then into an operation."""
        region = self.chance.choice(self.lists.functions).region
        while True:
            block = self.chance.choice(self.lists.blocks[region])
            nests = [op for op in self.lists.operations[block] if op.regions]
            if not nests or self.chance.random() < 0.5:
                return block
            region = self.chance.choice(self.chance.choice(nests).regions)

    def any_place(self) -> tuple[Block, int]:
        block = self.any_block()
        return block, self.chance.randrange(len(self.lists.operations[block]))

    def any_op(self) -> Operation | None:
        """A linked operation that ends no block."""
        ops = self.lists.operations[self.any_block()]
        return self.chance.choice(ops[:-1]) if len(ops) > 1 else None

    def condition(self, block: Block) -> Value:
        while (owner := self.lists.owner(block)) is not None:
            block = self.lists.home[owner]
        region = self.lists.place[block]
        return self.lists.arguments[self.lists.blocks[region][0]][2]

    def some_values(self, block: Block, place: int, count: int) -> list[Value]:
        """Visible values; a few of the block's own, others from around."""
        ops = self.lists.operations[block][max(place - 12, 0) : place]
        near: list[Value] = [result for op in ops for result in op.results]
        holder: Block | None = block
        while holder is not None:
            near += [value for value in self.lists.arguments[holder] if value.type is INDEX]
            region = self.lists.place[holder]
            for other in self.chance.sample(
                self.lists.blocks[region], min(2, len(self.lists.blocks[region]))
            ):
                ops = self.lists.operations[other][:6]
                found = [result for op in ops for result in op.results]
                near += [value for value in found if self.lists.sees(block, place, value)]
            owner = self.lists.owner(holder)
            holder = None if owner is None else self.lists.home[owner]
        if not near:
            return []
        return self.chance.choices(near, k=count)

    def size(self) -> int:
        return len(self.lists.linked())

    def is_free(self, op: Operation) -> bool:
        return not any(self.lists.users(result) for result in op.results)

    # Edits of operations -------------------------------------------------------------------

    def insert(self) -> bool:
        block, place = self.any_place()
        op: Operation
        if self.chance.random() < 0.12 and self.lists.depth(block) < DEEPEST:
            regions = [Region([Block()]), Region([Block()])]
            for region in regions:
                region.block.append(Yield())
            op = If(condition=self.condition(block), regions=regions)
        else:
            values = self.some_values(block, place, self.chance.randrange(4))
            types = [INDEX] * self.chance.randrange(3)
            op = Apply(function="any", arguments=values, result_types=types)
        self.lists.note(op)
        self.link(op, block, place)
        return True

    def link(self, op: Operation, block: Block, place: int) -> None:
        self.rewriter.insert_before(op, self.lists.operations[block][place])
        self.lists.link(op, block, place)

    def detach(self) -> bool:
        op = self.any_op()
        if op is None or not self.is_free(op):
            return False
        self.rewriter.detach(op)
        self.lists.unlink(op)
        self.lists.detached = [*self.lists.detached[-7:], op]
        return True

    def reinsert(self) -> bool:
        if not self.lists.detached:
            return False
        op = self.chance.choice(self.lists.detached)
        block, place = self.any_place()
        saved = self.lists.copy()
        self.lists.detached.remove(op)
        self.lists.link(op, block, place)
        if not self.lists.all_see(self.lists.below(op)):
            self.lists = saved
            return False
        self.rewriter.insert_before(op, self.lists.operations[block][place + 1])
        return True

    def move(self) -> bool:
        """One operation, or a run of them."""
        first = self.any_op()
        if first is None:
            return False
        ops = self.lists.operations[self.lists.home[first]]
        at = ops.index(first)
        run = ops[at : min(at + self.chance.choice((1, 1, 1, 2, 5)), len(ops) - 1)]
        block, place = self.any_place()
        before = self.lists.operations[block][place]
        if before in run or self.lies_below(block, run):
            return False
        saved = self.lists.copy()
        self.lists.move(run, block, before)
        if not self.lists.is_legal(run):
            self.lists = saved
            return False
        self.rewriter.splice(run[0], run[-1], block, before)
        return True

    def lies_below(self, block: Block, run: list[Operation]) -> bool:
        owner = self.lists.owner(block)
        while owner is not None:
            if owner in run:
                return True
            owner = self.lists.owner(self.lists.home[owner])
        return False

    def set_operand(self) -> bool:
        op = self.any_op()
        if op is None or not isinstance(op, Apply):
            return False
        block = self.lists.home[op]
        place = self.lists.operations[block].index(op)
        count = self.chance.randrange(4)
        values = self.some_values(block, place, count)
        if self.lists.operands[op] and values and self.chance.random() < 0.7:
            slot = self.chance.randrange(len(self.lists.operands[op]))
            self.rewriter.set_operand(op, slot, values[0])
            self.lists.operands[op][slot] = values[0]
        else:
            self.rewriter.set_operands(op, "arguments", values)
            self.lists.operands[op] = list(values)
            self.lists.uses[op] = list(op.operand_uses)
        return True

    def replace_all_uses(self) -> bool:
        op = self.any_op()
        if op is None or not op.results:
            return False
        old = self.chance.choice(op.results)
        block = self.lists.home[op]
        candidates = self.some_values(block, self.lists.operations[block].index(op), 1)
        if not candidates:
            return False
        new, users = candidates[0], self.lists.users(old)
        saved = self.lists.copy()
        for user in users:
            self.lists.operands[user] = [new if v is old else v for v in self.lists.operands[user]]
        if not self.lists.all_see(users):
            self.lists = saved
            return False
        self.rewriter.replace_all_uses(old, new)
        return True

    def erase(self) -> bool:
        op = self.any_op()
        if op is None or not self.is_free(op):
            return False
        self.rewriter.erase(op)
        self.lists.unlink(op)
        return True

    def clone(self) -> bool:
        from_op = self.any_op()
        block, place = self.any_place()
        if from_op is None or self.lists.depth(block) + 1 > DEEPEST:
            return False
        if len(self.lists.below(from_op)) > 40:
            return False
        fresh = self.rewriter.clone_before(from_op, self.lists.operations[block][place], {})
        saved = self.lists.copy()
        self.lists.note(fresh)
        self.lists.link(fresh, block, place)
        if not self.lists.all_see(self.lists.below(fresh)):
            self.rewriter.erase(fresh)
            self.lists = saved
            return False
        return True

    def set_attribute(self) -> bool:
        op = self.any_op()
        if isinstance(op, Apply):
            self.lists.names[op] = self.chance.choice(("add", "mul", "neg"))
            self.rewriter.set_attribute(op, "function", self.lists.names[op])
        return op is not None

    # Edits of blocks -----------------------------------------------------------------------

    def split(self) -> bool:
        block, place = self.any_place()
        ops = self.lists.operations[block]
        region = self.lists.place[block]
        if len(self.lists.blocks[region]) > 5:
            return False
        rest = self.rewriter.split_block(ops[place])
        branch = self.rewriter.builder_at_end(block).insert(BlockBranch(target=(rest, [])))
        siblings = self.lists.blocks[region]
        siblings.insert(siblings.index(block) + 1, rest)
        self.lists.place[rest], self.lists.arguments[rest] = region, []
        self.lists.operations[rest] = ops[place:]
        self.lists.home.update(dict.fromkeys(ops[place:], rest))
        del ops[place:]
        self.lists.note(branch)
        self.lists.link(branch, block, place)
        return True

    def redirect(self) -> bool:
        """A branch goes elsewhere, or gains a second way."""
        block = self.any_block()
        end = self.lists.operations[block][-1]
        region = self.lists.place[block]
        free = [b for b in self.lists.blocks[region][1:] if not self.lists.arguments[b]]
        if end not in self.lists.targets or not free or len(self.lists.in_region(region)) > 150:
            return False
        target = self.chance.choice(free)
        saved = self.lists.copy()
        if isinstance(end, BlockBranch) and self.chance.random() < 0.6:
            operands = self.lists.operands[end]
            fresh = CondBranch(
                condition=self.condition(block),
                then=(end.target.block, operands),
                otherwise=(target, []),
            )
            self.lists.note(fresh)
            self.lists.unlink(end)
            self.lists.link(fresh, block, len(self.lists.operations[block]))
            if self.lists.all_see(self.lists.in_region(region)):
                self.rewriter.insert_before(fresh, end)
                self.rewriter.erase(end)
                return True
        else:
            way = self.chance.choice(end.SPEC.successors)
            if self.lists.arguments[self.lists.targets[end][end.SPEC.successors.index(way)]]:
                return False
            self.lists.targets[end][end.SPEC.successors.index(way)] = target
            if self.lists.all_see(self.lists.in_region(region)):
                self.rewriter.set_successor(end, way, target)
                return True
        self.lists = saved
        return False

    def erase_block(self) -> bool:
        block = self.any_block()
        region = self.lists.place[block]
        if block is self.lists.blocks[region][0]:
            return False
        if any(block in self.lists.following(b) for b in self.lists.blocks[region] if b != block):
            return False
        ops = self.lists.operations[block]
        inside = {op for outer in ops for op in self.lists.below(outer)}
        values = [*self.lists.arguments[block], *(r for op in ops for r in op.results)]
        if any(user not in inside for value in values for user in self.lists.users(value)):
            return False
        self.rewriter.erase_block(block)
        self.lists.blocks[region].remove(block)
        del self.lists.place[block]
        return True

    def move_block(self) -> bool:
        block = self.any_block()
        siblings = self.lists.blocks[self.lists.place[block]]
        others = siblings[1:]
        if block not in others or len(others) < 2:
            return False
        before = self.chance.choice([other for other in others if other is not block])
        self.rewriter.move_block(block, self.lists.place[block], before)
        siblings.remove(block)
        siblings.insert(siblings.index(before), block)
        return True

    def change_arguments(self) -> bool:
        """A block takes a further value, which every branch to it hands on, or one fewer."""
        block = self.any_block()
        region = self.lists.place[block]
        if block is self.lists.blocks[region][0]:
            return False
        arguments = self.lists.arguments[block]
        unused = [a for a in arguments if not self.lists.users(a)]
        if unused and self.chance.random() < 0.5:
            index = arguments.index(self.chance.choice(unused))
            self.rewriter.remove_argument(block, index)
            del arguments[index]
            self.hand_on(block, lambda values, _: values[:index] + values[index + 1 :])
        elif len(arguments) < 3:
            ends = self.ends_to(block)
            homes = [
                (self.lists.home[e], len(self.lists.operations[self.lists.home[e]]) - 1)
                for e in ends
            ]
            given = {
                end: found[0]
                for end, home in zip(ends, homes, strict=True)
                if (found := self.some_values(*home, 1))
            }
            if len(given) == len(set(ends)):
                arguments.append(self.rewriter.add_argument(block, INDEX))
                self.hand_on(block, lambda values, end: [*values, given[end]])
        return True

    def ends_to(self, block: Block) -> list[Operation]:
        siblings = self.lists.blocks[self.lists.place[block]]
        return [self.lists.operations[b][-1] for b in siblings if block in self.lists.following(b)]

    def hand_on(self, block: Block, change: Change) -> None:
        for end in self.ends_to(block):
            for way, target in zip(end.SPEC.successors, self.lists.targets[end], strict=True):
                if target is block:
                    values = list(getattr(end, way).operands)
                    self.rewriter.set_operands(end, way, change(values, end))
            self.lists.operands[end] = end.operands
            self.lists.uses[end] = list(end.operand_uses)

    # Edits of functions --------------------------------------------------------------------

    def edit_functions(self) -> bool:
        functions = self.lists.functions
        action = self.chance.choice(("new", "clone", "move", "remove"))
        function = self.chance.choice(functions)
        if action == "new" and len(functions) < 6:
            self.new_function(f"f{self.chance.random()}")
        elif action == "clone" and len(functions) < 6:
            if len(self.lists.in_region(function.region)) < self.most // 8:
                self.add(clone_function(function, {}, f"g{self.chance.random()}"))
        elif action == "move" and len(functions) > 1:
            before = self.chance.choice([f for f in functions if f is not function])
            self.rewriter.move_function(function, self.module, before)
            functions.remove(function)
            functions.insert(functions.index(before), function)
        elif action == "remove" and len(functions) > 3:
            self.rewriter.remove_function(function)
            functions.remove(function)
            self.lists.detached.clear()
        return True

    # Agreement -----------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the module with the lists, link by link."""
        lists = self.lists
        assert list(self.module.functions) == lists.functions
        blocks = lists.linked_blocks()
        edges: Counter[Block] = Counter()
        for region in {lists.place[block] for block in blocks}:
            assert list(region.blocks) == lists.blocks[region]
        for block in blocks:
            ops = lists.operations[block]
            assert list(block.operations) == ops
            assert list(reversed(block.operations)) == ops[::-1]
            assert len(block.operations) == len(ops)
            assert block.arguments == lists.arguments[block]
            edges.update(lists.following(block))
        for block in blocks:
            assert len(block.incoming) == edges[block]
            assert all(lists.following(b).count(block) for b in block.predecessors)
        linked = lists.linked()
        assert list(self.module.walk()) == linked
        uses: dict[Value, Counter[Operation]] = {}
        for op in linked:
            self.check_slots(op, is_linked=True)
            for value in lists.operands[op]:
                uses.setdefault(value, Counter())[op] += 1
        for op in (inner for outer in lists.detached for inner in lists.below(outer)):
            self.check_slots(op, is_linked=False)
        for value in self.values(blocks, linked):
            assert Counter(value.users) == uses.get(value, Counter())
            assert len(value.uses) == sum(uses.get(value, Counter()).values())

    def check_slots(self, op: Operation, *, is_linked: bool) -> None:
        lists = self.lists
        assert op.operands == lists.operands[op]
        assert op.successors == lists.targets.get(op, [])
        assert all(a is b for a, b in zip(op.operand_uses, lists.uses[op], strict=True))
        assert all(a is b for a, b in zip(op.edges, lists.edges.get(op, []), strict=True))
        for link in (*op.operand_uses, *op.edges):
            assert link.is_linked == is_linked
        if is_linked:
            assert all(use.holder is use.value for use in op.operand_uses)
            assert all(edge.holder is edge.block for edge in op.edges)
        if isinstance(op, Apply):
            assert op.function == lists.names[op]

    def values(self, blocks: list[Block], linked: list[Operation]) -> list[Value]:
        found: list[Value] = [a for block in blocks for a in self.lists.arguments[block]]
        return [*found, *(result for op in linked for result in op.results)]
