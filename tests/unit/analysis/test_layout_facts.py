"""The analysis of layout facts: every answer about random accesses, tried on every event."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest

from tests.unit.analysis.random_accesses import N, RandomAccess, evaluated, random_access
from tilenest.analysis import (
    ComposedAccess,
    LayoutFacts,
    compose,
    in_range,
    is_inside,
    ranges_of,
    reached,
    reaching,
)
from tilenest.analysis.meetings import apart_across
from tilenest.dialects import MapReducePost, Nest, registry
from tilenest.ir import Function, Value, fresh, parse_module
from tilenest.layouts import Answer, point_set

SEEDS = range(150)


def function_of(access: RandomAccess) -> Function:
    (function,) = parse_module(access.text(), registry()).functions
    return function


def work_of(function: Function) -> MapReducePost:
    (work,) = [op for op in function.walk() if isinstance(op, MapReducePost)]
    return work


def is_beyond(answer: Answer) -> bool:
    """Whether a witness is about numbers that nobody tried."""
    assert answer.witness is not None
    return any(value not in N for _, value in answer.witness.symbols)


def composed(work: MapReducePost) -> ComposedAccess:
    return compose(work, work.accesses()[0], thoroughly=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_layout_facts_answers_hold_at_every_event(seed: int) -> None:
    access = random_access(random.Random(seed))
    work = work_of(function_of(access))
    answers = in_range(work, work.accesses()[0])
    for axis, answer in enumerate(answers):
        stays = access.stays_in(axis)
        assert not answer.is_proven or stays, f"axis {axis}: {answer}"
        if answer.is_disproven:
            # A witness may be a call with a number larger than those tried.
            assert not stays or is_beyond(answer)


def test_layout_facts_decide_nearly_everything() -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        work = work_of(function_of(random_access(random.Random(seed))))
        found.update(answer.verdict.value for answer in in_range(work, work.accesses()[0]))
    assert found["proven"] > 20
    assert found["disproven"] > 20
    assert found["unknown"] <= 0.05 * found.total()


@pytest.mark.parametrize("seed", SEEDS)
def test_layout_facts_by_intervals_are_among_the_proven(seed: int) -> None:
    access = random_access(random.Random(seed))
    work = work_of(function_of(access))
    ranges = ranges_of(work.extents, work.symbols)
    inside = is_inside(work.access("input", 0), work.inputs[0], ranges, work.symbols)
    for axis, is_known in enumerate(inside):
        assert not is_known or access.stays_in(axis)


@pytest.mark.parametrize("seed", range(60))
def test_layout_facts_reach_what_is_read(seed: int) -> None:
    source = random.Random(seed)
    access = random_access(source)
    while None in access.shape or any(nest.is_open for nest in access.nests):
        access = random_access(source)
    one = composed(work_of(function_of(access)))
    found = reached(one)
    assert found is not None
    for at in access.instances(0):
        values = named(one, dict(zip("ij", at, strict=True)))
        places = set(access.places(at))
        kept = {place for place in places if lies_in(place, access.extents(0))}
        assert {point for part in found for point in part.points(values)} == kept


@pytest.mark.parametrize("seed", range(40))
def test_layout_facts_say_who_reaches_an_element(seed: int) -> None:
    source = random.Random(seed)
    access = random_access(source)
    while None in access.shape or any(nest.is_open for nest in access.nests):
        access = random_access(source)
    one = composed(work_of(function_of(access)))
    place = tuple(source.randrange(extent) for extent in access.extents(0))
    assert one.layout is not None
    found = reaching(one, point_set(one.layout.codomain, place))
    assert found is not None
    for at in access.instances(0):
        values = named(one, dict(zip("ij", at, strict=True)))
        wanted = {
            point
            for point in product(*map(range, access.box))
            if tuple(evaluated(term, (*point, *at)) for term in access.terms) == place
        }
        assert {point for part in found for point in part.points(values)} == wanted


def named(one: ComposedAccess, numbers: dict[str, int]) -> dict[str, int]:
    """Numbers of the leaves, by the names that an access knows them by."""
    keys = zip(one.names, one.leaves.keys, strict=True)
    return {name: numbers[key.name or ""] for name, key in keys if isinstance(key, Value)}


def lies_in(place: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    return all(0 <= x < extent for x, extent in zip(place, extents, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_layout_facts_of_instances_apart(seed: int) -> None:
    source = random.Random(seed)
    access = random_access(source, "parallel")
    function = function_of(access)
    nests = [op for op in function.walk() if isinstance(op, Nest)]
    one = composed(work_of(function))
    answer = apart_across(one, one, nests)
    meets = any(
        set(access.places(x)) & set(access.places(y))
        for n in N
        for x in access.instances(n)
        for y in access.instances(n)
        if x != y
    )
    assert not (answer.is_proven and meets), str(answer)
    if answer.is_disproven:
        assert meets or is_beyond(answer)


def test_layout_facts_list_their_obligations() -> None:
    function = function_of(random_access(random.Random(1)))
    found = fresh(LayoutFacts, function).obligations
    assert {(o.touch.group, o.axis) for o in found} >= {("input", 0), ("output", 0)}
    assert all(o.answer.is_proven for o in found if o.touch.group == "output")
    assert str(found[-1]).startswith("output 0 stays in axis ")


CLIPPED = """
module "scheduled"
func @main(%A: view<f32, [?], [1]>) {
  %n = view.extent(%A, axis = 0) : index
  %t = buf.alloc : buf<f32, 16>
  tensor.map_reduce_post(
      inputs = [%A], outputs = [%t], upper = [%n], extents = [16], clipped = [0],
      input_access = [#access<map = (d0) -> (d0)>],
      output_access = [#access<map = (d0) -> (d0)>],
      specs = [#result_spec<dims = [0]>]
  ) { |%j: index, %a: f32|
    exec.yield(%a)
  }
  func.return
}
"""


def test_layout_facts_do_not_rely_on_where_a_dim_may_end() -> None:
    """A nest of whole vectors runs on behind the bound, and would read behind the view."""
    (function,) = parse_module(CLIPPED, registry()).functions
    work = work_of(function)
    read, written = work.accesses()
    assert [answer.is_disproven for answer in in_range(work, read)] == [True]
    assert [answer.is_proven for answer in in_range(work, written)] == [True]
