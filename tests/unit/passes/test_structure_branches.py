"""Branches written as conditionals: the same results, one block a region, refusals that teach."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.interp.branching import (
    Branching,
    diamond,
    first_positive,
    ladder,
    nearest_power,
    sum_of_odds,
)
from tilenest.dialects import If
from tilenest.errors import ControlFlowError
from tilenest.interp import interpret
from tilenest.ir import INDEX, Module, Rewriter, clone_module
from tilenest.passes import canonicalize, structure_branches
from tilenest.verify import verify_module

PROGRAMS = {
    "first_positive": (first_positive(), 2),
    "diamond": (diamond(), 2),
    "ladder": (ladder(5), 2),
    "sum_of_odds": (sum_of_odds(), 1),
}


def structured(program: Branching) -> Module:
    verify_module(program.module)
    module = clone_module(program.module)
    for function in module.functions:
        structure_branches(function, Rewriter())
    verify_module(module)
    regions = [region for op in module.walk() for region in op.regions]
    regions += [function.region for function in module.functions]
    assert all(len(region.blocks) == 1 for region in regions)
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_conditionals_give_what_branches_gave(name: str) -> None:
    program, arity = PROGRAMS[name]
    module = structured(program)
    for values in itertools.product(range(-1, 6), repeat=arity):
        assert interpret(module, values) == program.run(*values)
    for function in module.functions:
        canonicalize(function, Rewriter())
    verify_module(module)
    for values in itertools.product(range(-1, 6), repeat=arity):
        assert interpret(module, values) == program.run(*values)


def test_a_block_of_two_ways_is_copied_only_where_they_have_not_met() -> None:
    assert sum(isinstance(op, If) for op in structured(ladder(40)).walk()) == 40


def test_circles_are_refused() -> None:
    program = nearest_power()
    verify_module(program.module)
    function = next(iter(program.module.functions))
    with pytest.raises(ControlFlowError, match=r"cf\.\w+ goes back to a block") as caught:
        structure_branches(function, Rewriter())
    assert caught.value.remedy is not None and "nests" in caught.value.remedy


def test_tangles_are_refused() -> None:
    """Ways that cross over and over, and meet only at the end."""
    program = Branching(INDEX, INDEX)
    a, b = program.arguments
    last = program.block()
    pairs = [(program.block(), program.block()) for _ in range(14)]
    condition = program.apply("lt", a, b)
    program.decide(condition, (pairs[0][0], []), (pairs[0][1], []))
    for (left, right), (next_left, next_right) in itertools.pairwise(pairs):
        for block in (left, right):
            with program.writing(block):
                program.decide(condition, (next_left, []), (next_right, []))
    for block in pairs[-1]:
        with program.writing(block):
            program.go(last)
    with program.writing(last):
        program.leave(a)
    with pytest.raises(ControlFlowError, match="too tangled"):
        structure_branches(program.function, Rewriter())
