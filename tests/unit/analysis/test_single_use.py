"""Values used once, against all ways through random programs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.unit.interp.programs import Program, blank
from tilenest.analysis import overuse_of
from tilenest.dialects import ArrayAssemble, ArrayMake, BlockBranch, CondBranch, If, Serial
from tilenest.ir import BOOL, INDEX, ArrayType, Block, Successor, TileType, Value, float32
from tilenest.layouts import positional_dim

TILE = TileType(float32, (positional_dim(0, 4),))
ARRAY = ArrayType(TILE, (1,), True)


def write_uses(program: Program, value: Value, chance: random.Random, depth: int) -> None:
    """Uses of the value at random: here, in both ways of a conditional, in a loop."""
    for _ in range(chance.randrange(2 if depth else 3)):
        kind = chance.randrange(4 if depth < 3 else 1)
        if kind == 0:
            program.add(ArrayAssemble(array=value, result_types=[TILE]))
        elif kind == 3:
            nest = program.nest(Serial, [3])
            with program.inside(nest):
                write_uses(program, value, chance, depth + 1)
                program.yields()
        else:
            op = program.add(If(condition=program.arguments[0], regions=[blank(), blank()]))
            for region in range(2):
                with program.inside(op, region):
                    write_uses(program, value, chance, depth + 1)
                    program.yields()


def counts(block: Block, value: Value) -> set[int]:
    """How often a way through the block may use the value: loops run not at all or twice."""
    totals = {0}
    for op in block.operations:
        own = sum(operand is value for operand in op.operands)
        each = {own}
        inside = [counts(region.block, value) for region in op.regions]
        if isinstance(op, If):
            each = {own + count for ways in inside for count in ways}
        elif isinstance(op, Serial):
            each = {own} | {own + a + b for a, b in itertools.product(inside[0], repeat=2)}
        totals = {a + b for a, b in itertools.product(totals, each)}
    return totals


def programs() -> Iterator[tuple[Program, Value]]:
    for seed in range(400):
        program = Program(BOOL)
        value = program.value(ArrayMake(result_types=[ARRAY]))
        write_uses(program, value, random.Random(seed), 0)
        program.finish()
        yield program, value


def test_one_use_on_every_way_and_no_other_count() -> None:
    seen = {True: 0, False: 0}
    for program, value in programs():
        is_sound = counts(program.function.body, value) == {1}
        overuse = overuse_of(value)
        assert (overuse is None) == is_sound
        assert overuse is None or (overuse.fact and overuse.remedy)
        seen[is_sound] += 1
    assert min(seen.values()) > 20, "the programs are all alike"


@pytest.mark.parametrize(
    ("then", "otherwise", "is_sound"), [(1, 1, True), (1, 0, False), (2, 1, False)]
)
def test_branches_hand_it_on_every_way(then: int, otherwise: int, is_sound: bool) -> None:
    program = Program(BOOL, INDEX)
    value = program.value(ArrayMake(result_types=[ARRAY]))
    blocks = [program.function.region.append(Block([ARRAY] * count)) for count in (then, otherwise)]
    ways = [Successor(block, [value] * len(block.arguments)) for block in blocks]
    program.add(CondBranch(condition=program.arguments[0], then=ways[0], otherwise=ways[1]))
    assert (overuse_of(value) is None) == is_sound


def test_another_block_takes_it_as_an_argument() -> None:
    program = Program(BOOL)
    value = program.value(ArrayMake(result_types=[ARRAY]))
    following = program.function.region.append(Block())
    program.add(BlockBranch(target=Successor(following)))
    with program.builder.at_end(following):
        program.add(ArrayAssemble(array=value, result_types=[TILE]))
        program.finish()
    overuse = overuse_of(value)
    assert overuse is not None and "argument" in overuse.remedy
