"""Functions whose blocks branch to each other, for tests of the spine.

In: a module or a description of the ways. Out: a function with those blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilenest.dialects import Apply, BlockBranch, CondBranch, Return
from tilenest.ir import BOOL, INDEX, Block, Function, Module
from tilenest.records import record


@record(eq=False)
class Diamond:
    """Blocks of `diamond`: any kind, as tests ask for what their operations declare."""

    function: Function
    entry: Any
    then: Any
    otherwise: Any
    join: Any


def diamond(module: Module) -> Diamond:
    """func @diamond(%i, %b): two ways, each with a value, that join in a block with an argument."""
    function = module.add(Function("diamond", [INDEX, BOOL], [INDEX]))
    i, condition = function.arguments
    entry = function.body
    then, otherwise = Block(), Block()
    join = Block([INDEX])
    for block in (then, otherwise, join):
        function.region.append(block)
    negated = entry.append(Apply(function="neg", arguments=[i], result_types=[INDEX]))
    entry.append(CondBranch(condition=condition, then=(then, []), otherwise=(otherwise, [])))
    for block in (then, otherwise):
        arguments = [negated.result]
        value = block.append(Apply(function="neg", arguments=arguments, result_types=[INDEX]))
        block.append(BlockBranch(target=(join, value.results)))
    join.append(Return(values=join.arguments))
    return Diamond(function, entry, then, otherwise, join)


def graph(ways: Sequence[Sequence[int]]) -> Function:
    """Block n goes on with the blocks `ways[n]`, at most two."""
    function = Function("graph", [BOOL])
    blocks = [function.body, *(function.region.append(Block()) for _ in ways[1:])]
    condition = function.arguments[0]
    for block, targets in zip(blocks, ways, strict=True):
        match targets:
            case []:
                block.append(Return())
            case [one]:
                block.append(BlockBranch(target=(blocks[one], [])))
            case [one, other]:
                then, otherwise = (blocks[one], ()), (blocks[other], ())
                block.append(CondBranch(condition=condition, then=then, otherwise=otherwise))
    return function
