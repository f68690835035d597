"""Dominance and post-dominance against a search on all ways through a function."""

from __future__ import annotations

from itertools import product

import pytest

from tests.unit.analysis.random_functions import branching, structured
from tests.unit.analysis.ways import Ways
from tests.unit.ir.branches import diamond, graph
from tilenest.analysis import Dominance
from tilenest.dialects import Constant
from tilenest.driver import parse
from tilenest.ir import (
    INDEX,
    Block,
    Function,
    Module,
    Operation,
    OpResult,
    Rewriter,
    Value,
    fresh,
)

STAGES = """
module "candidate"
func @kernel(%flag: bool, %n: index) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  exec.pipeline(lower = [%zero], upper = [%n], step = [%one], initial = []) { |%i: index|
    %early = scalar.apply "neg"(%i) : index
    exec.yield(%early)
  } { |%i2: index, %handed: index|
    exec.if(%flag) {
      %inside = scalar.apply "neg"(%handed) : index
      exec.yield
    } {
      exec.yield
    }
    %late = scalar.apply "neg"(%handed) : index
    exec.yield
  }
  %after = scalar.apply "neg"(%n) : index
  func.return
}
"""


def check(function: Function) -> int:
    """Compare every pair of places; how many hold."""
    ways, found = Ways(function), fresh(Dominance, function)
    holding = 0
    for above in ways.places:
        cut = ways.search([ways.start], [(above, "start")])
        for below in ways.places:
            if (below, "start") in ways.reached:
                expected = (below, "start") not in cut
                assert found.dominates(above, below) == expected, (above, below)
                holding += expected
    return holding


@pytest.mark.parametrize("seed", range(12))
def test_dominance_of_branches(seed: int) -> None:
    assert sum(check(function) for function in branching(seed)) > 50


@pytest.mark.parametrize("seed", range(3))
def test_dominance_of_structured_programs(seed: int) -> None:
    function = next(structured(seed))
    assert check(function) > 50


def test_dominance_of_stages() -> None:
    function = parse(STAGES).function("kernel")
    check(function)
    found = fresh(Dominance, function)
    early, inside, late, after = (
        next(op for op in function.walk() if any(r.name == name for r in op.results))
        for name in ("early", "inside", "late", "after")
    )
    # A later stage comes after an earlier one of its iteration, whatever branches it has.
    assert found.dominates(early, inside) and found.dominates(early, late)
    assert not found.dominates(early, after)


@pytest.mark.parametrize("seed", range(12))
def test_dominance_says_what_an_operation_sees(seed: int) -> None:
    """A value is seen where every way from the start has made it, within its region."""
    for function in branching(seed):
        ways, found = Ways(function), fresh(Dominance, function)
        values: list[Value] = list(function.arguments)
        values += [result for op in function.walk() for result in op.results]
        operations = [op for op in function.walk() if (op, "start") in ways.reached]
        for value, op in product(values, operations):
            assert found.sees(op, value) == is_made(value, op, ways), (value.name, op)


def is_made(value: Value, op: Operation, ways: Ways) -> bool:
    block = value.defining_block
    assert block is not None and block.parent is not None
    if not any(inner is op for inner in block.parent.walk()):
        return False
    made = (value.owner, "end") if isinstance(value, OpResult) else (block, "start")
    return (op, "start") not in ways.search([ways.start], [made])


@pytest.mark.parametrize("seed", range(12))
def test_dominance_has_nearest_blocks(seed: int) -> None:
    """Of all blocks that dominate two places, the one that the others dominate."""
    for function in branching(seed):
        ways, found = Ways(function), fresh(Dominance, function)
        blocks = [b for b in ways.places if isinstance(b, Block) and (b, "start") in ways.reached]
        for one, other in product(blocks, blocks):
            above = [b for b in blocks if found.dominates(b, one) and found.dominates(b, other)]
            nearest = found.common_dominator([one, other])
            assert nearest in above
            assert all(found.dominates(block, nearest) for block in above)


def test_dominance_of_a_diamond() -> None:
    blocks = diamond(Module())
    found = fresh(Dominance, blocks.function)
    following = [found.postdominator(block) for block in blocks.function.region.blocks]
    assert following == [blocks.join, blocks.join, blocks.join, None]
    assert found.common_dominator([blocks.then, blocks.otherwise.terminator]) is blocks.entry


@pytest.mark.parametrize("seed", range(12))
def test_dominance_finds_where_ways_meet(seed: int) -> None:
    """Of all other blocks that every way out of a function passes, the one that comes first."""
    for function in branching(seed):
        ways, found = Ways(function), fresh(Dominance, function)
        blocks = [block for block in function.region.blocks if (block, "start") in ways.reached]
        passed = {
            block: [
                other
                for other in blocks
                if other is not block
                and ways.end not in ways.search([(block, "end")], [(other, "start")])
            ]
            for block in blocks
            if ways.end in ways.search([(block, "end")])
        }
        for block, others in passed.items():
            nearest = [one for one in others if {one, *passed[one]} >= set(others)]
            assert len(nearest) == bool(others)
            assert found.postdominator(block) is next(iter(nearest), None)


def test_dominance_of_ways_that_never_leave() -> None:
    function = graph([[1, 2], [1], []])
    circle, end = list(function.region.blocks)[1:]
    found = fresh(Dominance, function)
    # From the circle nothing leads out, so only the way past it counts.
    assert found.postdominator(function.body) is end
    assert found.postdominator(end) is None and found.postdominator(circle) is None


def test_dominance_is_dropped_by_edits_of_control_only() -> None:
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    analyses = rewriter.analyses
    kept = analyses.get(Dominance, blocks.function)
    one = rewriter.insert_before(
        Constant(value=1, result_types=[INDEX]), blocks.then.operations.first
    )
    rewriter.set_operand(blocks.then.operations.first.next, 0, one.result)
    rewriter.move_before(one, blocks.entry.operations.first)
    assert analyses.get(Dominance, blocks.function) is kept
    analyses.check()
    rewriter.set_successor(blocks.entry.terminator, "then", blocks.otherwise)
    assert not analyses.is_known(Dominance, blocks.function)
    analyses.get(Dominance, blocks.function)
    rewriter.split_block(blocks.join.terminator)
    assert not analyses.is_known(Dominance, blocks.function)
