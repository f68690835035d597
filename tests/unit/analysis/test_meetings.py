"""Whether accesses meet: every answer about random programs, tried on every element they touch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise, product

import pytest

from tests.unit.analysis.access_programs import Event, N, RandomProgram
from tilenest.analysis import coincidence_hazard, compose, is_defined_above, may_overlap
from tilenest.analysis.composed_accesses import ComposedAccess
from tilenest.analysis.meetings import Relation, apart_across, never_meet, surely_meet, turns_met
from tilenest.dialects import Atomic, Load, Store
from tilenest.ir import Operation, Value
from tilenest.layouts import Answer

SEEDS = range(120)
FAR = 1 << 62


def composed(op: Operation, *, thoroughly: bool = True) -> ComposedAccess:
    (touch,) = op.accesses()
    return compose(op, touch, thoroughly=thoroughly)


def of(op: Operation, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.operation is op]


def pairs_met(program: RandomProgram, n: int) -> list[tuple[Event, Event]]:
    """The first access's events and the second's that touch one element."""
    events = program.events(n)
    one, other = (of(op, events) for op in program.accesses)
    return [(a, b) for a, b in product(one, other) if a.element == b.element]


def is_beyond(answer: Answer) -> bool:
    """Whether a witness is about numbers that nobody tried."""
    assert answer.witness is not None
    return any(abs(value) not in N for _, value in answer.witness.symbols)


@pytest.mark.parametrize("seed", SEEDS)
def test_meetings_of_instances(seed: int) -> None:
    program = RandomProgram(random.Random(seed))
    one, other = map(composed, program.accesses)
    answer = apart_across(one, other, [program.nest])
    meet = any(a.instance != b.instance for n in N for a, b in pairs_met(program, n))
    assert not (answer.is_proven and meet), str(answer)
    assert not answer.is_disproven or meet or is_beyond(answer), str(answer)


def test_meetings_of_instances_are_decided_often() -> None:
    found: Counter[tuple[bool, str]] = Counter()
    for seed in SEEDS:
        program = RandomProgram(random.Random(seed))
        one, other = map(composed, program.accesses)
        meet = any(a.instance != b.instance for n in N for a, b in pairs_met(program, n))
        found[meet, apart_across(one, other, [program.nest]).verdict.value] += 1
    assert found[False, "proven"] > 0.8 * (found[False, "proven"] + found[False, "unknown"])
    assert found[True, "disproven"] > 15


@pytest.mark.parametrize("seed", SEEDS)
def test_meetings_of_views(seed: int) -> None:
    """Views that do not overlap share no element, in no two instances of one call."""
    program = RandomProgram(random.Random(seed))
    one, other = (op.view for op in program.accesses)  # type: ignore[attr-defined]  # all have one
    if not may_overlap(one, other):
        assert not any(pairs_met(program, n) for n in N)
    assert may_overlap(one, other) == may_overlap(other, one)


@pytest.mark.parametrize("seed", SEEDS)
def test_meetings_at_a_distance(seed: int) -> None:
    """Whatever number of turns lies between two that meet is among the turns answered."""
    program = RandomProgram(random.Random(seed))
    chance = random.Random(seed)
    one, other = (composed(op, thoroughly=False) for op in program.accesses)
    index, axis = program.nest.body.arguments[0], program.nest.inductions()[0]
    step = axis.step.owner.value  # type: ignore[attr-defined]  # a constant
    first = chance.randrange(-3, 3)
    relation = Relation(
        lambda value: is_defined_above(value, program.nest), (index, index), step, (first, FAR)
    )
    found = turns_met(one, other, relation)
    answer = never_meet(one, other, relation, thoroughly=True)
    turns = {(b.instance[0] - a.instance[0]) // step for n in N for a, b in pairs_met(program, n)}
    asked = {turn for turn in turns if turn >= first}
    assert found is not None or not asked
    assert found is None or all(found[0] <= turn <= found[1] for turn in asked)
    assert not (answer.is_proven and asked)


@pytest.mark.parametrize("seed", SEEDS)
def test_meetings_that_are_sure_happen(seed: int) -> None:
    """Windows of given instances that surely meet do so whenever both instances run."""
    program = RandomProgram(random.Random(seed))
    one, other = (composed(op, thoroughly=False) for op in program.accesses)
    if any(access.storage is not access.touch.memory for access in (one, other)):
        return
    indices = program.nest.body.arguments
    events = {n: program.events(n) for n in N}
    for x, y in pairwise(sorted({event.instance for n in N for event in events[n]})):
        given: tuple[dict[Value, int], dict[Value, int]] = (
            dict(zip(indices, x, strict=True)),
            dict(zip(indices, y, strict=True)),
        )
        relation = Relation(lambda value: is_defined_above(value, program.nest), given=given)
        if not surely_meet(one, other, relation):
            continue
        for n in N:
            first = [e for e in of(program.accesses[0], events[n]) if e.instance == x]
            last = [e for e in of(program.accesses[1], events[n]) if e.instance == y]
            # A window that lies outside as a whole leaves no event: then the instance is not run.
            if first and last:
                assert {e.element for e in first} & {e.element for e in last}


def breaks_its_promise(events: list[Event]) -> bool:
    """Whether instances surely store to one element of one array."""
    stores = [e for e in events if isinstance(e.operation, Store) and e.is_sure]
    owners: dict[tuple[object, tuple[int, ...]], tuple[int, ...]] = {}
    return any(owners.setdefault((base(e), e.element), e.instance) != e.instance for e in stores)


def base(event: Event) -> object:
    return composed(event.operation, thoroughly=False).storage


@pytest.mark.parametrize("seed", SEEDS)
def test_meetings_of_arguments_that_are_one_array(seed: int) -> None:
    program = RandomProgram(random.Random(seed), accesses=random.Random(seed).choice([2, 3]))
    if coincidence_hazard(program.function) is not None:
        return
    for n in N:
        events = program.events(n)
        if breaks_its_promise(events):
            continue
        stores = [e for e in events if not isinstance(e.operation, Load)]
        for store, event in product(stores, events):
            if store.instance != event.instance and store.element == event.element:
                assert base(store) is base(event), (n, store, event)


def test_meetings_let_most_arguments_be_one_array() -> None:
    """Programs whose instances keep apart are taken, but for a few."""
    taken = kept = 0
    for seed in SEEDS:
        program = RandomProgram(random.Random(seed))
        meet = any(a.instance != b.instance for n in N for a, b in pairs_met(program, n))
        if not meet and any(isinstance(op, Store | Atomic) for op in program.accesses):
            kept += 1
            taken += coincidence_hazard(program.function) is None
    assert taken > 0.8 * kept > 30
