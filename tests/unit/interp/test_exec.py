"""Structured execution: order, carried states, stages, zero trips, branches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.unit.interp.programs import Program, blank, view
from tilenest.dialects import (
    If,
    Load,
    Nest,
    Parallel,
    Pipeline,
    Reduce,
    Serial,
    Store,
    Synchronize,
    contract_of,
)
from tilenest.errors import OutOfBounds, TargetError
from tilenest.interp import exec as structured
from tilenest.interp.exec import Domain
from tilenest.ir import BOOL, INDEX, ScalarType, Value, float32

F32 = ScalarType(float32)
POLICIES = ["unordered_tree", "ordered_tree", "fold_left", "fold_right"]


def visits(
    kind: type[Nest], domain: list[int | tuple[int, int, int]], **fields: object
) -> list[int]:
    """The indices in the order of the visits, as decimal digits of a carried number."""
    program = Program()
    nest = program.nest(kind, domain, [program.constant(0)], **fields)
    with program.inside(nest) as (*at, state):
        digits: Value = state
        for index in at:
            shifted = program.apply("mul", digits, program.constant(10))
            digits = program.apply("add", shifted, index)
        program.yields(digits)
    program.finish(nest.result)
    return [int(digit) for digit in str(program.run()[0])]


def test_serial_runs_in_lexicographic_order() -> None:
    assert visits(Serial, [(1, 4, 1)]) == [1, 2, 3]
    assert visits(Serial, [(1, 9, 3)]) == [1, 4, 7]
    assert visits(Serial, [(1, 3, 1), (4, 8, 2)]) == [1, 4, 1, 6, 2, 4, 2, 6]


def test_fold_right_visits_in_reverse() -> None:
    assert visits(Reduce, [(1, 3, 1), (4, 6, 1)], contract=contract_of("fold_left")) == [
        1,
        4,
        1,
        5,
        2,
        4,
        2,
        5,
    ]
    assert visits(Reduce, [(1, 3, 1), (4, 6, 1)], contract=contract_of("fold_right")) == [
        2,
        5,
        2,
        4,
        1,
        5,
        1,
        4,
    ]


@pytest.mark.parametrize("kind", [Serial, Reduce])
@pytest.mark.parametrize("domain", [[0], [(5, 5, 1)], [(7, 2, 1)], [3, 0], [0, 3]])
def test_no_trip_gives_the_initial_state(
    kind: type[Nest], domain: list[int | tuple[int, int, int]]
) -> None:
    assert visits(kind, domain) == [0]


def test_states_are_exchanged_at_once() -> None:
    program = Program(INDEX, F32, F32)
    count, a, b = program.arguments
    nest = program.nest(Serial, [count], [a, b])
    with program.inside(nest) as (_, x, y):
        program.yields(y, program.apply("add", x, y))
    program.finish(*nest.results)
    assert program.run(5, 0.0, 1.0) == [5, 8]
    assert program.run(0, 3.0, 4.0) == [3, 4]


def reduction(name: str, policy: str, element_left: bool) -> Program:
    """(view, seed) -> the fold of the view's elements."""
    program = Program(view(float32, 1), F32)
    a, seed = program.arguments
    nest = program.nest(Reduce, [3], [seed], contract=contract_of(policy))
    with program.inside(nest) as (i, state):
        x = program.value(Load(view=a, origins=[i], result_types=[F32]))
        program.yields(program.apply(name, *((x, state) if element_left else (state, x))))
    program.finish(nest.result)
    return program


def test_sub_tells_the_folds_apart() -> None:
    values = np.array([1, 2, 3], np.float32)
    assert reduction("sub", "fold_left", False).run(values, 0.0) == [-6]
    assert reduction("sub", "fold_right", True).run(values, 0.0) == [2]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("seed", "expected"), [(0.0, 0.0), (-0.0, -0.0), (3.0, 3.0)])
def test_the_seed_enters_once(policy: str, seed: float, expected: float) -> None:
    zeros = np.array([-0.0, -0.0, -0.0], np.float32)
    (result,) = reduction("add", policy, policy == "fold_right").run(zeros, seed)
    assert (result, np.signbit(result)) == (expected, np.signbit(expected))
    (total,) = reduction("add", policy, policy == "fold_right").run(zeros + 2, seed)
    assert total == expected + 6


def test_parallel_visits_every_instance_once_in_any_order() -> None:
    program = Program(view(float32, 2), view(float32, 1))
    a, last = program.arguments
    nest = program.nest(Parallel, [4, 3])
    with program.inside(nest) as (i, j):
        old = program.value(Load(view=a, origins=[i, j], result_types=[F32]))
        program.add(
            Store(view=a, origins=[i, j], value=program.apply("add", old, program.constant(1, F32)))
        )
        program.add(Store(view=last, origins=program.indices(0), value=program.cast(i, float32)))
        program.yields()
    program.finish()
    winners = set()
    for seed in (None, *range(8)):
        counts, winner = np.zeros((4, 3), np.float32), np.zeros(1, np.float32)
        program.run(counts, winner, shuffle=seed)
        assert (counts == 1).all()
        winners.add(float(winner[0]))
    assert len(winners) > 1, "interference shows as a result that follows the order"


@pytest.mark.parametrize(
    "bounds", [(), ((0, 3, 1), (5, -2, -3)), ((0, 4, 0),), ((2, 2, 1), (0, 3, 1))]
)
def test_a_domain_is_the_product_of_its_ranges(bounds: tuple[tuple[int, int, int], ...]) -> None:
    domain = Domain(bounds)
    ranges = [range(*axis) if axis[2] else range(0) for axis in bounds]
    assert [domain.point(place) for place in domain.places] == list(itertools.product(*ranges))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100])
def test_runs_of_a_large_domain_are_visited_as_drawn(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured, "MOST_DRAWN", 8)
    visits = list(structured.visited(range(size), np.random.default_rng(0)))
    assert sorted(visits) == list(range(size))
    assert size < 7 or visits != sorted(visits)


@pytest.mark.parametrize("kind", [Parallel, Serial])
@pytest.mark.parametrize("shuffle", [None, 5])
def test_a_domain_larger_than_memory_is_not_listed(
    kind: type[Parallel | Serial], shuffle: int | None
) -> None:
    program = Program(view(float32, 1))
    (a,) = program.arguments
    nest = program.nest(kind, [1 << 40, 1 << 40])
    with program.inside(nest) as (i, j):
        load = Load(
            view=a, origins=[program.apply("add", i, j)], bounds="check", result_types=[F32]
        )
        program.add(load)
        program.yields()
    program.finish()
    with pytest.raises(OutOfBounds):
        program.run(np.zeros(3, np.float32), shuffle=shuffle)


def test_too_many_instances_that_wait_are_refused() -> None:
    program = Program()
    nest = program.nest(Parallel, [1 << 40])
    with program.inside(nest):
        program.add(Synchronize())
        program.yields()
    program.finish()
    with pytest.raises(TargetError, match="1099511627776 instances wait for each other"):
        program.run()


def test_one_seed_gives_one_order() -> None:
    program = Program(view(float32, 1))
    nest = program.nest(Parallel, [50])
    with program.inside(nest) as (i,):
        store = Store(
            view=program.arguments[0],
            origins=program.indices(0),
            value=program.cast(i, float32),
        )
        program.add(store)
        program.yields()
    program.finish()
    results = []
    for _ in range(2):
        last = np.zeros(1, np.float32)
        program.run(last, shuffle=3)
        results.append(float(last[0]))
    assert results[0] == results[1]


@pytest.mark.parametrize(("trips", "expected"), [(0, 5.0), (1, 5.0), (4, 5 + 2 + 8 + 18)])
def test_pipeline_hands_values_from_stage_to_stage(trips: int, expected: float) -> None:
    program = Program(INDEX, F32)
    count, start = program.arguments
    first, second = blank(INDEX, F32), blank(INDEX, F32, F32, INDEX)
    third = blank(INDEX, F32, F32, INDEX, F32)
    zero, one = program.indices(0, 1)
    op = program.add(
        Pipeline(
            lower=[zero],
            upper=[count],
            step=[one],
            initial=[start],
            window=2,
            stage_names=("load", None, "add"),
            result_types=[F32],
            regions=[first, second, third],
        )
    )
    with program.inside(op, 0) as (i, _):
        program.yields(program.cast(i, float32), i)
    with program.inside(op, 1) as (_, _, x, j):
        program.yields(program.apply("mul", x, program.cast(j, float32)))
    with program.inside(op, 2) as (_, state, _, _, square):
        program.yields(program.apply("add", state, program.apply("add", square, square)))
    program.finish(op.result)
    assert program.run(trips, 5.0) == [expected]


def test_conditional_takes_one_side() -> None:
    program = Program(BOOL, view(float32, 1))
    condition, a = program.arguments
    op = program.add(If(condition=condition, result_types=[F32], regions=[blank(), blank()]))
    for region, value in enumerate((1.5, 2.5)):
        with program.inside(op, region):
            chosen = program.constant(value, F32)
            program.add(Store(view=a, origins=program.indices(region), value=chosen))
            program.yields(chosen)
    program.finish(op.result)
    array = np.zeros(2, np.float32)
    assert program.run(True, array) == [1.5]
    assert array.tolist() == [1.5, 0]
    assert program.run(False, array) == [2.5]
    assert array.tolist() == [1.5, 2.5]


def test_inner_instances_see_the_outer_values() -> None:
    program = Program(view(float32, 2))
    (a,) = program.arguments
    outer = program.nest(Parallel, [3])
    with program.inside(outer) as (i,):
        ten = program.apply("mul", i, program.constant(10))
        inner = program.nest(Parallel, [ten])
        with program.inside(inner) as (j,):
            total = program.cast(program.apply("add", ten, j), float32)
            program.add(Store(view=a, origins=[i, j], value=total))
            program.yields()
        program.yields()
    program.finish()
    array = np.full((3, 20), -1, np.float32)
    program.run(array, shuffle=1)
    assert array[0].tolist() == [-1] * 20
    assert array[1].tolist() == [*range(10, 20), *[-1] * 10]
    assert array[2].tolist() == list(range(20, 40))
