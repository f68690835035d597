"""Liveness against a search on all ways, tokens sent through stages, and bytes that are in use."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.unit.analysis.random_functions import branching, forms, structured
from tests.unit.analysis.ways import Point, Ways
from tests.unit.ir.branches import diamond
from tilenest.analysis import Liveness, ScratchLayout, frame_of, handed_values, padded_bytes
from tilenest.dialects import Alloc, Constant, Pipeline
from tilenest.driver import parse
from tilenest.ir import (
    INDEX,
    Block,
    BufType,
    Function,
    Module,
    Operation,
    OpResult,
    Rewriter,
    Value,
    fresh,
)


def values_of(function: Function) -> list[Value]:
    blocks = [
        *function.region.blocks,
        *(block for op in function.walk() for region in op.regions for block in region.blocks),
    ]
    arguments: list[Value] = [argument for block in blocks for argument in block.arguments]
    return arguments + [result for op in function.walk() for result in op.results]


def made_at(value: Value) -> Point:
    block = value.defining_block
    assert block is not None
    return (value.owner, "end") if isinstance(value, OpResult) else (block, "start")


def check(function: Function) -> int:
    """Compare every value at every point; how often one is live."""
    ways, found = Ways(function), fresh(Liveness, function)
    places = [place for place in ways.places if (place, "start") in ways.reached]
    operations = [op for op in places if isinstance(op, Operation)]
    is_all_reached = len(places) == len(ways.places)
    live = 0
    for value in values_of(function):
        held = found.used_range(value)
        assert (held is None) == (not value.has_uses)
        used = ways.search([(user, "start") for user in value.users], [made_at(value)])
        for op in operations:
            is_live = ways.is_live(value, (op, "end"))
            is_found = found.is_live_after(value, op)
            assert is_found or not is_live, (value.name, op)
            # A use where nothing leads counts like any other.
            assert is_found == is_live or not is_all_reached, (value.name, op)
            # A way from one use to another stays in the range.
            if is_live and (op, "end") in used:
                assert held is not None and held[0] <= found.places[op] <= held[1]
            live += is_live
        for block in (block for block in places if isinstance(block, Block)):
            comes = value.defining_block is not block and ways.is_live(value, (block, "start"))
            stays = ways.is_live(value, (block, "end"))
            assert (value in found.live_in[block], value in found.live_out[block]) == (
                comes,
                stays,
            ) or not is_all_reached
            assert value in found.live_in[block] or not comes
            assert value in found.live_out[block] or not stays
    return live


@pytest.mark.parametrize("seed", range(12))
def test_liveness_of_branches(seed: int) -> None:
    assert sum(check(function) for function in branching(seed)) > 20


@pytest.mark.parametrize("seed", range(3))
def test_liveness_of_structured_programs(seed: int) -> None:
    function = next(structured(seed))
    assert check(function) > 50


# Iterations ------------------------------------------------------------------------------------


def readers(op: Pipeline, iterations: int) -> list[set[tuple[int, int]]]:
    """Send a token from each place of a yield, as the stages run: of every state, then of every
    value for later stages, in which stages it is used and how many iterations later."""
    rank, count = op.rank, len(op.initial)
    yielded = [len(region.block.terminator.operands) for region in op.regions[:-1]]
    found: list[set[tuple[int, int]]] = [set() for _ in range(count + sum(yielded))]
    states: list[tuple[int, int] | None] = [None] * count
    for iteration in range(iterations):
        handed: list[tuple[int, int]] = []
        for stage, region in enumerate(op.regions):
            held = [*states, *handed]
            for token, argument in zip(held, region.block.arguments[rank:], strict=True):
                if token is not None and argument.has_uses:
                    place, birth = token
                    found[place].add((stage, iteration - birth))
            if stage < len(op.regions) - 1:
                first = count + len(handed)
                handed += [(first + place, iteration) for place in range(yielded[stage])]
        states = [(place, iteration) for place in range(count)]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_liveness_over_iterations(seed: int) -> None:
    for function in structured(seed):
        for op in (op for op in function.walk() if isinstance(op, Pipeline)):
            assert [set(value.readers) for value in handed_values(op)] == readers(op, 4)


ROTATION = """
module "candidate"
func @kernel(%n: index) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %p, %q, %r = exec.pipeline(
      lower = [%zero], upper = [%n], step = [%one], initial = [%zero, %zero, %zero]
  ) : (index, index, index) { |%i: index, %x: index, %y: index, %z: index|
    %new = scalar.apply "neg"(%i) : index
    exec.yield(%new)
  } { |%i2: index, %x2: index, %y2: index, %z2: index, %new2: index|
    %sum = scalar.apply "add"(%new2, %z2) : index
    exec.yield(%new2, %x2, %y2)
  }
  func.return
}
"""


def test_liveness_of_a_value_that_rotates_through_states() -> None:
    """What is yielded as x comes as y, then as z: each hands it on an iteration later."""
    function = parse(ROTATION).function("kernel")
    (op,) = [op for op in function.walk() if isinstance(op, Pipeline)]
    found = [(value.producer, value.readers) for value in handed_values(op)]
    assert found == [(1, ((1, 1),)), (1, ((1, 1),)), (1, ((1, 1),)), (0, ((1, 0),))]
    assert [set(value.readers) for value in handed_values(op)] == readers(op, 6)


# Scratch ---------------------------------------------------------------------------------------


def points_in_use(alloc: Alloc, ways: Ways, backward: dict[object, list[object]]) -> set[object]:
    """Where a buf holds what a use before it left and one after it may want."""
    made = (alloc, "end")
    uses = [(user, "start") for user in alloc.result.users]
    after = ways.search(uses, [made])
    before: set[object] = set()
    waiting: list[object] = list(uses)
    while waiting:
        point = waiting.pop()
        if point not in before and point != made:
            before.add(point)
            waiting += backward.get(point, [])
    return before & set(after)


@pytest.mark.parametrize("seed", range(25))
def test_liveness_keeps_bufs_apart_that_are_in_use_together(seed: int) -> None:
    *_, scheduled = forms(seed)
    (function,) = scheduled.functions
    ways, layout = Ways(function), fresh(ScratchLayout, function)
    backward: dict[object, list[object]] = {}
    for point, targets in ways.following.items():
        for target in targets:
            backward.setdefault(target, []).append(point)
    allocs = [op for op in function.walk() if isinstance(op, Alloc)]
    points = {op: points_in_use(op, ways, backward) for op in allocs}
    for one, other in combinations(allocs, 2):
        if frame_of(one) is frame_of(other) and points[one] & points[other]:
            (a, b), (c, d) = (bytes_of(op, layout) for op in (one, other))
            assert b <= c or d <= a, (one.result.name, other.result.name)
    for op in allocs:
        assert bytes_of(op, layout)[1] <= layout.sizes[frame_of(op)]
    for frame, size in layout.sizes.items():
        mine = [bytes_of(op, layout) for op in allocs if frame_of(op) is frame]
        assert size <= sum(end - start for start, end in mine)


def bytes_of(alloc: Alloc, layout: ScratchLayout) -> tuple[int, int]:
    type_ = alloc.result.type
    assert isinstance(type_, BufType)
    start = layout.offset(alloc)
    return start, start + padded_bytes(type_)


# Keeping ---------------------------------------------------------------------------------------


def test_liveness_is_dropped_by_edits_of_uses_only() -> None:
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    analyses = rewriter.analyses
    kept = analyses.get(Liveness, blocks.function)
    first = blocks.then.operations.first
    rewriter.set_attribute(first, "function", "abs")
    rewriter.set_name(first.result, "negated")
    rewriter.set_function_attribute(blocks.function, "alias_groups", (0, 1))
    assert analyses.get(Liveness, blocks.function) is kept
    analyses.check()
    rewriter.set_operand(first, 0, blocks.function.arguments[0])
    assert not analyses.is_known(Liveness, blocks.function)
    found = analyses.get(Liveness, blocks.function)
    assert found.live_out[blocks.entry] != kept.live_out[blocks.entry]
    rewriter.insert_before(Constant(value=1, result_types=[INDEX]), first)
    assert not analyses.is_known(Liveness, blocks.function)
