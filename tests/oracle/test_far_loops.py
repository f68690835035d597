"""Loops whose bounds are anywhere in 64 bits run as often as Python's range, at its numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilenest as tn

LEAST, MOST = -(1 << 63), (1 << 63) - 1
TURNS = 6
Loop = tuple[int, int, int]


@tn.kernel
def known_steps(Indices: Any, Counts: Any, lower: Any, upper: Any, *, step: int) -> None:
    for block in tn.parallel(1):
        turn: Any = tn.scalar(0, tn.int64)
        for at in block.serial(range(lower, upper, step)):
            Indices.at(turn).store(at.index())
            turn = turn + 1
        Counts.at(0).store(turn)


@tn.kernel
def steps(Indices: Any, Counts: Any, lower: Any, upper: Any, step: Any) -> None:
    for block in tn.parallel(1):
        turn: Any = tn.scalar(0, tn.int64)
        for at in block.serial(range(lower, upper, step)):
            Indices.at(turn).store(at.index())
            turn = turn + 1
        Counts.at(0).store(turn)


@tn.kernel
def instances(Indices: Any, Counts: Any, lower: Any, upper: Any, first: Any, step: Any) -> None:
    for block in tn.parallel(range(lower, upper, step)):
        Indices.at(block.index() // step - first // step).store(block.index())
        Counts.at(0).atomic_add(1)


@tn.kernel
def folds(Y: Any, lower: Any, upper: Any, step: Any, *, policy: Any) -> None:
    for block in tn.parallel(1):
        state: Any = tn.scalar(0, tn.int64)
        for at in block.reduce(range(lower, upper, step), policy=policy):
            state = (state * 3 + at.index()).cast(tn.int64)
        Y.at(0).store(state)


@tn.kernel
def folds_of_two(Y: Any, lower: Any, upper: Any, *, step: int, policy: Any) -> None:
    for block in tn.parallel(1):
        state: Any = tn.scalar(0, tn.int64)
        for at in block.reduce(2, range(lower, upper, step), policy=policy):
            i, j = at.index()
            state = (state * 3 + (i + j)).cast(tn.int64)
        Y.at(0).store(state)


def loops(seed: int, count: int) -> list[Loop]:
    """Ranges of at most some turns, near the ends of 64 bits or across them."""
    source = random.Random(seed)
    found: list[Loop] = []
    while len(found) < count:
        ends = [LEAST, MOST, 0, 1 << 62, -(1 << 62), source.randrange(LEAST, MOST)]
        lower, upper = (source.choice(ends) + source.randint(-5, 5) for _ in range(2))
        span = abs(upper - lower)
        step = source.choice([1, 2, 3, 7, 1 << 62, MOST, max(1, span // 3), max(1, span // 5)])
        step *= source.choice([1, -1])
        is_held = all(LEAST <= number <= MOST for number in (lower, upper, step))
        if is_held and len(range(lower, upper, step)[: TURNS + 1]) <= TURNS:
            found.append((lower, upper, step))
    return found


NAMED = [
    (0, MOST, 1 << 62),
    (LEAST, MOST, 1 << 62),
    (MOST - 1, MOST, 1 << 62),
    (0, (1 << 62) + 1, 1 << 62),
    (MOST - 3, MOST, 2),
    (LEAST + 3, LEAST, -2),
    (MOST, LEAST, -(1 << 62)),
    (MOST, LEAST, LEAST),
    (MOST, LEAST, 1),
]

UPWARD = [loop for loop in (*NAMED, *loops(1, 40)) if loop[2] > 0]


def outputs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.full(TURNS, 77, np.int64), np.zeros(1, np.int64)


def expected(loop: Loop) -> tuple[list[int], list[int]]:
    numbers = list(range(*loop))
    return numbers + [77] * (TURNS - len(numbers)), [len(numbers)]


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("loop", [*NAMED, *loops(0, 40)], ids=str)
def test_run_time_bounds_and_steps(loop: Loop, target: str) -> None:
    lower, upper, step = map(np.int64, loop)
    indices, counts = outputs()
    steps(indices, counts, lower, upper, step, target=target)
    assert (indices.tolist(), counts.tolist()) == expected(loop)
    indices, counts = outputs()
    instances(indices, counts, lower, upper, lower, step, target=target)
    assert (indices.tolist(), counts.tolist()) == expected(loop)


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("loop", UPWARD, ids=str)
def test_known_steps(loop: Loop, target: str) -> None:
    lower, upper, _ = map(np.int64, loop)
    indices, counts = outputs()
    known_steps(indices, counts, lower, upper, step=loop[2], target=target)
    assert (indices.tolist(), counts.tolist()) == expected(loop)


def in_twos(module: Any) -> None:
    tn.remap(module, "at").split("at", 2).apply()


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("loop", UPWARD, ids=str)
def test_levels_that_are_split(loop: Loop, target: str) -> None:
    lower, upper, _ = map(np.int64, loop)
    indices, counts = outputs()
    split = known_steps.rearranged(in_twos)
    split(indices, counts, lower, upper, step=loop[2], target=target)
    assert (indices.tolist(), counts.tolist()) == expected(loop)


POLICIES = [tn.reduction.fold_left, tn.reduction.fold_right]


def folded(numbers: list[int], policy: Any) -> int:
    """state * 3 + number, in 64 bits that wrap."""
    state = 0
    for number in numbers if policy is POLICIES[0] else reversed(numbers):
        state = (state * 3 + number + (1 << 63)) % (1 << 64) - (1 << 63)
    return state


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("loop", [*NAMED, *loops(2, 40)], ids=str)
def test_folds(loop: Loop, target: str, policy: Any) -> None:
    lower, upper, step = map(np.int64, loop)
    found = np.full(1, 77, np.int64)
    folds(found, lower, upper, step, policy=policy, target=target)
    assert found.tolist() == [folded(list(range(*loop)), policy)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("loop", UPWARD, ids=str)
def test_folds_over_two_axes(loop: Loop, target: str, policy: Any) -> None:
    lower, upper, _ = map(np.int64, loop)
    found = np.full(1, 77, np.int64)
    folds_of_two(found, lower, upper, step=loop[2], policy=policy, target=target)
    numbers = [i + number for i in range(2) for number in range(*loop)]
    assert found.tolist() == [folded(numbers, policy)]
