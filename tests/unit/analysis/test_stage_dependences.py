"""Dependences between the stages of a pipeline, against a schedule tried out by brute force."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.unit.interp.programs import Program, blank, view
from tilenest.analysis import effect_dependences, unkept_dependences, value_dependences
from tilenest.dialects import Dependence, Load, Pipeline, Store, Yield
from tilenest.ir import INDEX, Builder, ScalarType, float32

F32 = ScalarType(float32)


def pipeline(chance: random.Random, stages: int, window: int) -> tuple[Pipeline, list[set[str]]]:
    """Stages that load and store elements of three arrays, and what each touches: r0, w2, ..."""
    program = Program(*[view(float32, 1)] * 3, F32)
    program.function.attributes["alias_groups"] = (0, 1, 2, 3)
    arrays, x = program.arguments[:3], program.arguments[3]
    zero, one, trips = (program.constant(number) for number in (0, 1, 3))
    op = program.add(
        Pipeline(
            lower=[zero], upper=[trips], step=[one], window=window,
            regions=[blank(INDEX) for _ in range(stages)],
        )
    )  # fmt: skip
    touched: list[set[str]] = []
    for region in op.regions:
        builder = Builder(region.block)
        touched.append(set())
        for _ in range(chance.randrange(3)):
            place = chance.randrange(3)
            if chance.random() < 0.5:
                builder.insert(Load(view=arrays[place], origins=[zero], result_types=[F32]))
                touched[-1].add(f"r{place}")
            else:
                builder.insert(Store(view=arrays[place], origins=[zero], value=x))
                touched[-1].add(f"w{place}")
        builder.insert(Yield())
    program.finish()
    return op, touched


def collide(one: set[str], other: set[str]) -> bool:
    return any(a[1] == b[1] and "w" in (a[0], b[0]) for a, b in itertools.product(one, other))


def is_ordered(
    first: tuple[int, int], last: tuple[int, int], stated: list[Dependence], window: int
) -> bool:
    """Whether (iteration, stage) `first` has to end before `last` begins, by walking all edges."""
    if window == 1 and first[0] < last[0]:
        return True
    reached, waiting = {first}, [first]
    while waiting:
        iteration, stage = waiting.pop()
        for edge in stated:
            point = (iteration + edge.distance, edge.consumer)
            if edge.producer == stage and point[0] <= last[0] and point not in reached:
                reached.add(point)
                waiting.append(point)
    return last in reached - {first}


@pytest.mark.parametrize("seed", range(80))
def test_what_is_not_kept_is_found(seed: int) -> None:
    chance = random.Random(seed)
    stages, window = chance.randrange(1, 5), chance.choice((0, 1, 2))
    op, touched = pipeline(chance, stages, window)
    stated = []
    for _ in range(chance.randrange(7)):
        distance = chance.randrange(2)
        a, b = chance.randrange(stages), chance.randrange(stages)
        if distance or a < b:
            stated.append(Dependence(a, b, "effect", distance))
    unkept = {(d.producer, d.consumer, d.distance) for d in unkept_dependences(op, stated)}
    expected = set()
    for a, b, distance in itertools.product(range(stages), range(stages), range(2)):
        comes_after = (distance == 1 and b <= a) or (distance == 0 and a < b)
        is_needed = comes_after and collide(touched[a], touched[b])
        if is_needed and not is_ordered((0, a), (distance, b), stated, window):
            expected.add((a, b, distance))
    assert unkept == expected
    assert not list(unkept_dependences(op, effect_dependences(op)))


def test_values_travel_forward_and_states_around() -> None:
    program = Program(INDEX)
    (count,) = program.arguments
    zero, one = program.constant(0), program.constant(1)
    op = program.add(
        Pipeline(
            lower=[zero], upper=[count], step=[one], initial=[zero, one],
            result_types=[INDEX, INDEX],
            regions=[blank(*[INDEX] * width) for width in (3, 5, 6)],
        )
    )  # fmt: skip
    with program.inside(op, 0) as (i, _, b):
        program.yields(i, b)
    with program.inside(op, 1) as (_, _, _, first, _):
        program.yields(first)
    with program.inside(op, 2) as (_, a, _, _, second, third):
        program.yields(program.apply("add", a, second), third)
    program.finish(*op.results)
    assert set(value_dependences(op)) == {
        Dependence(2, 0, "value", 1),
        Dependence(0, 1, "value"),
        Dependence(2, 2, "value", 1),
        Dependence(0, 2, "value"),
        Dependence(1, 2, "value"),
    }
