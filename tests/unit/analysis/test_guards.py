"""Guards: what follows from them and which calls they cover, against all calls of a small world."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

import tilenest as tn
from tilenest.analysis import (
    Claim,
    EntryFacts,
    GuardFacts,
    cover_calls,
    entry_guards,
    find_call,
    guard_counterexample,
)
from tilenest.dialects import GUARD_KINDS, Guard, PassedArguments, PassedArray
from tilenest.ir import Rewriter, ScalarType, Type, ViewType, float32, fresh, index

VECTOR = ViewType(float32, (None,), (None,))
MATRIX = ViewType(float32, (None, None), (None, None))
KNOWN = ViewType(float32, (3,), (1,))
NUMBER = ScalarType(index)


def world(types: Sequence[Type], extents: range, strides: range) -> list[PassedArguments]:
    """Every call with these extents and strides, with every way in which arrays may be one."""
    calls: list[PassedArguments] = []

    def extend(call: PassedArguments) -> None:
        if len(call) == len(types):
            calls.append(call)
            return
        type_ = types[len(call)]
        if not isinstance(type_, ViewType):
            extend((*call, None))
            return
        shapes = itertools.product(extents, repeat=type_.rank)
        steps = list(itertools.product(strides, repeat=type_.rank))
        for shape, step in itertools.product(shapes, steps):
            for alike in (*firsts(call, shape, step), len(call)):
                extend((*call, PassedArray(shape, step, alike)))

    extend(())
    return calls


def firsts(
    call: PassedArguments, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Iterator[int]:
    """The arguments so far that an array of these extents and strides may be the same as."""
    for place, array in enumerate(call):
        if array is None or array.alike != place or array.shape != shape or 0 in shape:
            continue
        steps = zip(shape, strides, array.strides, strict=True)
        if all(extent == 1 or one == other for extent, one, other in steps):
            yield place


def some_guards(chance: random.Random, types: Sequence[Type], most: int) -> tuple[Guard, ...]:
    guards = []
    arrays = {i: type_.rank for i, type_ in enumerate(types) if isinstance(type_, ViewType)}
    for _ in range(chance.randint(0, 4)):
        kind = chance.choice(GUARD_KINDS)
        argument = chance.choice(list(arrays))
        if kind == "first_alike":
            firsts = [place for place in arrays if place <= argument]
            guards.append(Guard(kind, argument, chance.choice(firsts)))
        else:
            value = chance.randint(0, 1 if kind == "unit_stride" else most)
            guards.append(Guard(kind, argument, value, chance.randrange(arrays[argument])))
    return tuple(guards)


WORLDS: dict[str, tuple[list[Type], list[PassedArguments], int]] = {
    "two arrays": ([VECTOR, VECTOR], world([VECTOR, VECTOR], range(6), range(5)), 3),
    "three arrays": (
        [VECTOR, NUMBER, VECTOR, VECTOR],
        world([VECTOR, NUMBER, VECTOR, VECTOR], range(4), range(3)),
        1,
    ),
    "a matrix": ([MATRIX], world([MATRIX], range(6), range(5)), 3),
    "two matrices": ([MATRIX, MATRIX], world([MATRIX, MATRIX], range(4), range(3)), 1),
}


def meets(guards: Sequence[Guard], call: PassedArguments) -> bool:
    return all(guard.is_met(call) for guard in guards)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(40))
def test_guard_implication_is_that_of_all_calls(name: str, seed: int) -> None:
    types, calls, most = WORLDS[name]
    chance = random.Random(seed)
    given = some_guards(chance, types, most)
    fitting = [call for call in calls if meets(given, call)]
    found = find_call(types, [Claim(guard) for guard in given])
    assert (found is None) == (not fitting), (given, found)
    for wanted in some_guards(chance, types, most):
        counter = guard_counterexample(types, given, wanted)
        assert (counter is None) == all(wanted.is_met(call) for call in fitting), wanted
        if counter is not None:
            assert meets(given, counter)
            assert not wanted.is_met(counter)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(20))
def test_guard_coverage_is_that_of_all_calls(name: str, seed: int) -> None:
    types, calls, most = WORLDS[name]
    chance = random.Random(f"coverage {seed}")
    variants = [some_guards(chance, types, most) for _ in range(chance.randint(0, 4))]
    taken = {len(variants): 0} | dict.fromkeys(range(len(variants)), 0)
    for call in calls:
        fits = [place for place, guards in enumerate(variants) if meets(guards, call)]
        taken[fits[0] if fits else len(variants)] += 1
    found = cover_calls(types, variants)
    assert found.shadowed == tuple(place for place in range(len(variants)) if not taken[place])
    assert (found.uncovered is None) == (not taken[len(variants)])
    if found.uncovered is not None:
        assert not any(meets(guards, found.uncovered) for guards in variants)


def test_a_guard_is_met_by_what_is_known() -> None:
    named = PassedArray((None, 3), (None, 1), 0)
    assert Guard("extent", 0, 3, 1).is_met((named,))
    assert Guard("unit_stride", 0, 1, 1).is_met((named,))
    for guard in (
        Guard("extent", 0, 3, 0),
        Guard("stride", 0, 3, 0),
        Guard("unit_stride", 0, 0, 0),
        Guard("unit_stride", 0, 1, 0),
    ):
        assert not guard.is_met((named,)), guard


TEXT = """
module "candidate"

func @main(%A: view<f32, [64, ?], [?, 1]>, %B: view<f32, [?, ?], [?, ?]>) with (
  alias_groups = [0, 0], guards = [#guard<kind = "extent", argument = 0, value = 64, axis = 0>]) {
  func.return
}
"""


def test_guards_of_a_function_are_held_against_its_assumptions() -> None:
    function = tn.parse(TEXT).function("main")
    rewriter = Rewriter()
    facts = rewriter.analyses.get(GuardFacts, function)
    assert facts.example is not None
    assert [str(one.assumption) for one in facts.unproven] == [
        "stride 1 of argument 0 is 1",
        "argument 1 is the same array as argument 0",
    ]
    more = (Guard("unit_stride", 1, 1, 1), Guard("first_alike", 1, 0))
    rewriter.set_function_attribute(function, "guards", (*entry_guards(function), *more[1:]))
    (left,) = rewriter.analyses.get(GuardFacts, function).unproven
    rewriter.analyses.check()
    assert left.assumption == Guard("stride", 0, 1, 1)
    rewriter.set_function_attribute(function, "guards", (*entry_guards(function), *more))
    # Arrays that are one have the same strides wherever these are used.
    assert not rewriter.analyses.get(GuardFacts, function).unproven
    rewriter.analyses.check()


def test_guards_are_not_needed_by_a_function_that_has_none() -> None:
    function = tn.parse(TEXT).function("main")
    stated = entry_guards(function)
    del function.attributes["guards"]
    assert fresh(GuardFacts, function) == EntryFacts(None, ())
    assert len(entry_guards(function)) == 4 > len(stated)


@pytest.mark.parametrize("seed", range(5))
def test_guards_that_are_kept_are_those_of_a_fresh_run(seed: int) -> None:
    chance = random.Random(f"kept {seed}")
    function = tn.parse(TEXT).function("main")
    rewriter = Rewriter()
    kept = 0
    for _ in range(60):
        kept += rewriter.analyses.is_known(GuardFacts, function)
        rewriter.analyses.get(GuardFacts, function)
        match chance.randrange(5):
            case 0:
                guards = some_guards(chance, [MATRIX, MATRIX], 3)
                rewriter.set_function_attribute(function, "guards", guards)
            case 1:
                groups = chance.choice([(0, 0), (0, 1)])
                rewriter.set_function_attribute(function, "alias_groups", groups)
            case 2 if len(function.arguments) > 2:
                rewriter.remove_argument(function.body, 2)
            case 2:
                rewriter.add_argument(function.body, chance.choice([VECTOR, KNOWN, NUMBER]))
            case _:
                rewriter.set_name(function.arguments[0], f"a{chance.random()}")
        rewriter.analyses.check()
    assert kept > 10
