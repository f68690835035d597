"""Modulo schedules, against every schedule of tiny problems, run for some iterations."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from tilenest.analysis.modulo_schedules import (
    Infeasible,
    ModuloSchedule,
    Need,
    Problem,
    Wait,
    Work,
    modulo_schedule,
)

ITERATIONS = 12


def drawn(chance: random.Random, stages: int) -> Problem:
    work = tuple(
        Work(chance.randrange(1, 4), chance.choice(("worker", "copies"))) for _ in range(stages)
    )
    waits = []
    for _ in range(chance.randrange(2 * stages)):
        producer, consumer = chance.randrange(stages), chance.randrange(stages)
        distance = chance.randrange(0 if producer < consumer else 1, 3)
        waits.append(Wait(producer, consumer, work[producer].latency, distance))
    needs = tuple(
        Need(wait.producer, ((wait.producer, 0), (wait.consumer, wait.distance))) for wait in waits
    )
    engines = {"worker": chance.randrange(1, 3)}
    return Problem(work, tuple(waits), needs, engines, chance.choice((0, 0, 1, 2)))


def runs(problem: Problem, interval: int, starts: tuple[int, ...]) -> bool:
    """Whether iterations at this pace keep waits, engines and the window, step by step."""
    begin = {
        (s, i): starts[s] + i * interval
        for s, i in itertools.product(range(len(starts)), range(ITERATIONS))
    }
    end = {(s, i): time + problem.work[s].latency for (s, i), time in begin.items()}
    for wait in problem.waits:
        for i in range(ITERATIONS - wait.distance):
            if begin[wait.consumer, i + wait.distance] < begin[wait.producer, i] + wait.latency:
                return False
    held: Counter[tuple[str, int]] = Counter()
    for (s, i), time in begin.items():
        held.update((problem.work[s].engine, step) for step in range(time, end[s, i]))
    if any(count > problem.engines.get(engine, 1) for (engine, _), count in held.items()):
        return False
    first = [min(begin[s, i] for s in range(len(starts))) for i in range(ITERATIONS)]
    last = [max(end[s, i] for s in range(len(starts))) for i in range(ITERATIONS)]
    for time in range(max(last)):
        flying = sum(a <= time < b for a, b in zip(first, last, strict=True))
        if problem.window and flying > problem.window:
            return False
    return True


def versions_that_do(problem: Problem, need: Need, found: ModuloSchedule) -> int:
    """The fewest versions with which no write meets a reader of an earlier value."""
    for versions in itertools.count(1):
        if not any(
            _clash(problem, need, found, i, later)
            for i in range(ITERATIONS)
            for later in range(i + versions, ITERATIONS, versions)
        ):
            return versions
    raise AssertionError


def _clash(problem: Problem, need: Need, found: ModuloSchedule, i: int, later: int) -> bool:
    """Whether the value of iteration `later` is begun while that of `i` is still needed."""
    begin = found.starts[need.producer] + later * found.interval
    return any(
        begin < found.starts[stage] + (i + distance) * found.interval + problem.work[stage].latency
        for stage, distance in need.readers
    )


def densest(problem: Problem, most: int) -> int | None:
    """The smallest interval of any schedule with starts below a bound."""
    reach = range(sum(work.latency for work in problem.work) + 1)
    for interval in range(1, most + 1):
        for starts in itertools.product(reach, repeat=len(problem.work)):
            if min(starts) == 0 and runs(problem, interval, starts):
                return interval
    return None


@pytest.mark.parametrize("seed", range(60))
def test_pipeline_schedules_are_the_densest(seed: int) -> None:
    chance = random.Random(seed)
    problem = drawn(chance, chance.randrange(1, 4))
    found = modulo_schedule(problem)
    assert isinstance(found, ModuloSchedule)
    assert runs(problem, found.interval, found.starts)
    assert found.is_densest
    assert densest(problem, found.interval) == found.interval
    for need, versions in zip(problem.needs, found.versions, strict=True):
        assert versions == versions_that_do(problem, need, found)


@pytest.mark.parametrize("seed", range(40))
def test_pipeline_schedules_of_more_stages_run(seed: int) -> None:
    chance = random.Random(seed)
    problem = drawn(chance, chance.randrange(5, 9))
    found = modulo_schedule(problem)
    assert isinstance(found, ModuloSchedule)
    assert runs(problem, found.interval, found.starts)
    for need, versions in zip(problem.needs, found.versions, strict=True):
        assert versions == versions_that_do(problem, need, found)


def test_pipeline_schedules_take_fill_intervals_and_drain() -> None:
    problem = Problem((Work(3, "copies"), Work(4)), (Wait(0, 1, 3), Wait(1, 1, 4, 1)))
    found = modulo_schedule(problem)
    assert isinstance(found, ModuloSchedule)
    assert (found.interval, found.fill, found.drain, found.in_flight) == (4, 3, 4, 2)
    assert [found.time(n) for n in range(4)] == [0, 7, 11, 15]


def test_pipeline_schedules_say_what_bounds_them() -> None:
    copies = (Work(3, "copies"), Work(4))
    chained = Problem(copies, (Wait(0, 1, 3), Wait(1, 0, 4, 1)))
    held = Problem((Work(3), Work(4)), (Wait(0, 1, 3),))
    asked = Problem(copies, (Wait(0, 1, 3),), interval=9)
    reasons = []
    for problem in (chained, held, asked):
        found = modulo_schedule(problem)
        assert isinstance(found, ModuloSchedule)
        reasons.append((found.interval, *found.reasons))
    assert reasons == [
        (7, "a circle of stages hands on what the next iteration waits for"),
        (7, "each iteration holds worker for 7, one at a time"),
        (9, "no shorter interval was asked for"),
    ]


def test_pipeline_schedules_refuse_a_circle_in_one_iteration() -> None:
    waits = (Wait(0, 1, 1), Wait(1, 0, 1))
    assert isinstance(modulo_schedule(Problem((Work(1), Work(1)), waits)), Infeasible)
