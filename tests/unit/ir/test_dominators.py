"""Dominators of random graphs against their definition, and the spine of branches."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.unit.ir.branches import diamond, graph
from tilenest.dialects import Apply, BlockBranch, CondBranch, If
from tilenest.ir import (
    INDEX,
    Block,
    Module,
    Operation,
    Region,
    Rewriter,
    block_dominators,
    clone_function,
    clone_module,
    clone_operation,
    successor,
    verify,
)


def reached(ways: list[list[int]], without: int) -> set[int]:
    seen: set[int] = set()
    waiting = [0] if without else []
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            waiting += [target for target in ways[place] if target != without]
    return seen


@pytest.mark.parametrize("seed", range(200))
def test_dominators_are_those_of_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.randrange(1, 9)
    ways = [
        [chance.randrange(1, size) for _ in range(chance.randrange(3))] if size > 1 else []
        for _ in range(size)
    ]
    region = graph(ways).region
    dominance, blocks = block_dominators(region), list(region.blocks)
    everywhere = reached(ways, -1)
    assert {blocks.index(block) for block in dominance.order} == everywhere
    for a, above in enumerate(blocks):
        cut = reached(ways, a)
        for b, below in enumerate(blocks):
            is_expected = b not in everywhere or (a in everywhere and b not in cut)
            assert dominance.dominates(above, below) == is_expected
    for place, block in enumerate(dominance.order):
        over = {other for other in dominance.order if dominance.dominates(other, block)}
        assert over <= set(dominance.order[: place + 1])


def test_a_chain_of_blocks_needs_no_recursion() -> None:
    size = 5000
    function = graph([[n + 1] for n in range(size - 1)] + [[]])
    region = function.region
    dominance = block_dominators(region)
    *_, last = region.blocks
    assert dominance.dominates(function.body, last)
    module = Module()
    module.add(function)
    assert verify(module) == []


def test_an_empty_region_has_no_dominators() -> None:
    assert block_dominators(Region()).order == ()


def test_predecessors_are_those_of_linked_terminators() -> None:
    module = Module()
    blocks = diamond(module)
    assert list(blocks.join.predecessors) == [blocks.then, blocks.otherwise]
    end = blocks.then.terminator
    edges = list(end.edges)
    end.detach()
    assert list(blocks.join.predecessors) == [blocks.otherwise]
    end.set_successor(0, blocks.otherwise)
    assert not list(blocks.otherwise.predecessors)[1:]
    blocks.then.append(end)
    assert list(blocks.otherwise.predecessors) == [blocks.entry, blocks.then]
    assert end.edges == edges
    assert end.successors == [blocks.otherwise]


def test_a_successor_reads_as_a_block_and_operands() -> None:
    module = Module()
    blocks = diamond(module)
    block, operands = blocks.then.terminator.target
    assert (block, operands) == (blocks.join, [blocks.then.operations.first.result])
    end = blocks.entry.terminator
    assert (end.then.block, end.otherwise.block) == (blocks.then, blocks.otherwise)


def test_only_terminators_declare_successors() -> None:
    with pytest.raises(AssertionError, match="not a terminator"):
        type("Bad", (Operation,), {"NAME": "bad", "target": successor()})


def test_a_successor_is_needed() -> None:
    with pytest.raises(AssertionError, match="'target' is missing"):
        BlockBranch()


def test_blocks_are_split_and_erased() -> None:
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    first, end = blocks.then.operations.first, blocks.then.terminator
    rest = rewriter.split_block(end)
    rewriter.builder_at_end(blocks.then).insert(BlockBranch(target=(rest, [])))
    assert [*blocks.function.region.blocks][1:3] == [blocks.then, rest]
    assert (first.parent, end.parent) == (blocks.then, rest)
    assert list(blocks.join.predecessors) == [rest, blocks.otherwise]
    assert verify(module) == []
    with pytest.raises(AssertionError, match="goes on with"):
        rewriter.erase_block(blocks.then)
    rewriter.set_successor(blocks.entry.terminator, "then", blocks.otherwise)
    with pytest.raises(AssertionError, match="used outside"):
        rewriter.erase_block(blocks.then)
    rewriter.set_operands(end, "target", blocks.function.arguments[:1])
    rewriter.erase_block(blocks.then)
    assert verify(module) == []
    assert len(blocks.function.region.blocks) == 4


def test_blocks_move_between_regions() -> None:
    """A conditional's region becomes blocks of the function."""
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    inner = Block()
    i = blocks.function.arguments[0]
    value = inner.append(Apply(function="neg", arguments=[i], result_types=[INDEX]))
    inner.append(BlockBranch(target=(blocks.join, value.results)))
    nest = If(condition=blocks.function.arguments[1], regions=[Region([inner])])
    rewriter.insert_before(nest, blocks.otherwise.operations.first)
    uses = list(value.operand_uses)
    rewriter.inline_region_before(nest.regions[0], blocks.join)
    rewriter.erase(nest)
    rewriter.set_successor(blocks.entry.terminator, "then", inner)
    assert [*blocks.function.region.blocks][-2:] == [inner, blocks.join]
    assert list(value.operand_uses) == uses
    assert set(blocks.join.predecessors) == {blocks.then, blocks.otherwise, inner}
    assert verify(module) == []
    with pytest.raises(AssertionError):
        rewriter.inline_region_before(blocks.function.region, blocks.join)


def test_a_block_is_refused_below_itself() -> None:
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    nest = If(condition=blocks.function.arguments[1], regions=[Region([Block()])])
    rewriter.insert_before(nest, blocks.then.terminator)
    with pytest.raises(AssertionError):
        rewriter.move_block(blocks.then, nest.regions[0])
    with pytest.raises(AssertionError, match="own region"):
        rewriter.splice(nest, nest, nest.body)
    assert [*blocks.function.region.blocks][1] is blocks.then


def test_copies_branch_between_copies() -> None:
    module = Module()
    blocks = diamond(module)
    # Text order is not dominance order: the join, moved up, uses what a later block hands on.
    blocks.join.terminator.set_group("values", blocks.entry.operations.first.results)
    rewriter = Rewriter()
    rewriter.move_block(blocks.join, blocks.function.region, blocks.then)
    late = Apply(function="neg", arguments=blocks.then.operations.first.results)
    tail = rewriter.split_block(blocks.then.terminator)
    rewriter.builder_at_end(blocks.then).insert(BlockBranch(target=(tail, [])))
    rewriter.move_block(tail, blocks.function.region, blocks.then)
    rewriter.insert_before(late, tail.terminator)
    assert verify(module) == []
    other = clone_module(module)
    assert verify(other) == []
    shape = [[b.operations.first.NAME, len(list(b.predecessors))] for b in all_blocks(module)]
    assert [
        [b.operations.first.NAME, len(list(b.predecessors))] for b in all_blocks(other)
    ] == shape
    shared = {id(item) for item in everything(module)} & {id(item) for item in everything(other)}
    assert not shared
    copy = clone_function(blocks.function, {}, "twin")
    module.add(copy)
    assert verify(module) == []
    assert copy.name == "twin"


def test_a_copied_terminator_goes_on_with_the_same_blocks() -> None:
    module = Module()
    blocks = diamond(module)
    copy = clone_operation(blocks.entry.terminator, {})
    assert isinstance(copy, CondBranch)
    assert copy.successors == [blocks.then, blocks.otherwise]
    assert list(blocks.then.predecessors) == [blocks.entry]


def all_blocks(module: Module) -> list[Any]:
    return [block for function in module.functions for block in function.region.blocks]


def everything(module: Module) -> list[object]:
    """Blocks, operations, values, uses and edges, and what they refer to."""
    found: list[object] = []
    for block in all_blocks(module):
        found += [block, *block.arguments, *block.incoming]
        for op in block.operations:
            found += [op, *op.results, *op.operand_uses, *op.operands, *op.edges, *op.successors]
    return found


def test_functions_move_and_go() -> None:
    module, other = Module(), Module()
    rewriter = Rewriter()
    first = diamond(module).function
    second = rewriter.insert_function(clone_function(first, {}, "second"), module, first)
    assert list(module.functions) == [second, first]
    rewriter.move_function(first, module, second)
    assert list(module.functions) == [first, second]
    rewriter.move_function(first, other)
    assert (list(module.functions), list(other.functions)) == ([second], [first])
    assert verify(module) == verify(other) == []
    rewriter.remove_function(second)
    assert not list(module.functions)
    with pytest.raises(AssertionError, match="in no module"):
        rewriter.remove_function(second)


def test_operations_move_between_functions() -> None:
    module = Module()
    blocks = diamond(module)
    other = clone_function(blocks.function, {}, "other")
    module.add(other)
    rewriter = Rewriter()
    fresh = Apply(function="neg", arguments=blocks.function.arguments[:1], result_types=[INDEX])
    rewriter.insert_before(fresh, blocks.entry.terminator)
    rewriter.set_operand(fresh, 0, other.arguments[0])
    uses = list(fresh.operand_uses)
    rewriter.move_before(fresh, other.body.terminator)
    assert fresh.parent_function is other
    assert fresh.operand_uses == uses
    assert verify(module) == []
