"""Programs with branches, for the interpreter and for the pass that writes them as conditionals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.unit.interp.programs import Program
from tilenest.dialects import BlockBranch, CondBranch, Nest, Return, Serial
from tilenest.ir import INDEX, Block, BlockArgument, Successor, Type, Value

Way = tuple[Block, Sequence[Value]]


class Branching(Program):
    """A function of several blocks under construction."""

    def __init__(self, *parameters: Type) -> None:
        super().__init__(*parameters)
        self.function.result_types = (INDEX,)

    def block(self, *types: Type) -> Block:
        return self.function.region.append(Block(types))

    @contextmanager
    def writing(self, block: Block) -> Iterator[list[BlockArgument]]:
        with self.builder.at_end(block):
            yield block.arguments

    @contextmanager
    def inside_first(self, nest: Nest) -> Iterator[list[BlockArgument]]:
        with self.builder.at_end(nest.body):
            yield nest.body.arguments

    def go(self, block: Block, *values: Value) -> None:
        self.add(BlockBranch(target=Successor(block, values)))

    def decide(self, condition: Value, then: Way, otherwise: Way) -> None:
        self.add(
            CondBranch(condition=condition, then=Successor(*then), otherwise=Successor(*otherwise))
        )

    def leave(self, *values: Value) -> None:
        self.add(Return(values=values))


def first_positive() -> Branching:
    """(a, b) -> the first of them above 0, or -1: a short circuit, and two ways out."""
    program = Branching(INDEX, INDEX)
    a, b = program.arguments
    found, second, none = program.block(INDEX), program.block(), program.block()
    zero = program.constant(0)
    program.decide(program.apply("gt", a, zero), (found, [a]), (second, []))
    with program.writing(second):
        program.decide(program.apply("gt", b, zero), (found, [b]), (none, []))
    with program.writing(none):
        program.leave(program.constant(-1))
    with program.writing(found) as (value,):
        program.leave(value)
    return program


def diamond() -> Branching:
    """(a, b) -> |a - b| + a, by a branch that meets again and values from before it."""
    program = Branching(INDEX, INDEX)
    a, b = program.arguments
    less, more, met = program.block(), program.block(), program.block(INDEX)
    program.decide(program.apply("lt", a, b), (less, []), (more, []))
    with program.writing(less):
        program.go(met, program.apply("sub", b, a))
    with program.writing(more):
        program.go(met, program.apply("sub", a, b))
    with program.writing(met) as (distance,):
        program.leave(program.apply("add", distance, a))
    return program


def nearest_power() -> Branching:
    """(limit) -> the first power of two that is no less: a circle."""
    program = Branching(INDEX)
    (limit,) = program.arguments
    head, body, end = program.block(INDEX), program.block(), program.block()
    program.go(head, program.constant(1))
    with program.writing(head) as (power,):
        program.decide(program.apply("lt", power, limit), (body, []), (end, []))
    with program.writing(body):
        program.go(head, program.apply("mul", power, program.constant(2)))
    with program.writing(end):
        program.leave(power)
    return program


def ladder(rungs: int) -> Branching:
    """(a, b) -> how many numbers below `rungs` lie between them: a branch after the other."""
    program = Branching(INDEX, INDEX)
    a, b = program.arguments
    count = program.constant(0)
    for rung in range(rungs):
        inside, after = program.block(), program.block(INDEX)
        at = program.constant(rung)
        is_inside = program.apply("and", program.apply("le", a, at), program.apply("lt", at, b))
        program.decide(is_inside, (inside, []), (after, [count]))
        with program.writing(inside):
            program.go(after, program.apply("add", count, program.constant(1)))
        program.builder.block = after
        (count,) = after.arguments
    program.leave(count)
    return program


def sum_of_odds() -> Branching:
    """(count) -> the sum of the odd numbers below it: branches inside a nest, two ways out."""
    program = Branching(INDEX)
    (count,) = program.arguments
    nest = program.nest(Serial, [count], [program.constant(0)])
    odd, even = (nest.regions[0].append(Block()) for _ in range(2))
    with program.inside_first(nest) as (i, total):
        rest = program.apply("mod", i, program.constant(2))
        program.decide(program.apply("eq", rest, program.constant(1)), (odd, []), (even, []))
    with program.writing(odd):
        program.yields(program.apply("add", total, i))
    with program.writing(even):
        program.yields(total)
    program.leave(nest.result)
    return program
