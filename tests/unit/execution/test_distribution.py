"""Who holds what of a value, against every place listed one by one."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.execution.oracle import structure_of
from tilenest.errors import VerifyError
from tilenest.execution import (
    Distribution,
    ExecStructure,
    Fact,
    PrefixCut,
    are_compatible,
    check_distribution,
    first_failure,
    repartition,
)
from tilenest.layouts import (
    Constraint,
    DimRef,
    Expressions,
    IndexExpr,
    IndexSet,
    LayoutCorr,
    Project,
    Space,
)
from tilenest.records import replace

WARP = structure_of(("block", "parallel", 3), ("lane", "parallel", 4))
VALUE = Space.box(12)


def held(
    *places: int,
    by: IndexExpr,
    value: Space = VALUE,
    is_replicated: bool = False,
    is_masked: bool = False,
) -> Distribution:
    """A value of each block, spread over its lanes by a formula of (lane, fragment)."""
    layout = Expressions(Space.box(*places), value, (by,))
    return Distribution(PrefixCut(1), ("lane",), layout, is_replicated, is_masked)


CYCLIC = held(4, 3, by=DimRef(1) * 4 + DimRef(0))
BLOCKED = held(4, 3, by=DimRef(0) * 3 + DimRef(1))


def failed(facts: tuple[Fact, ...]) -> str | None:
    failure = first_failure(facts)
    return None if failure is None else failure.law


def test_cyclic_and_blocked_distributions_cover_exactly() -> None:
    for distribution in (CYCLIC, BLOCKED):
        facts = check_distribution(WARP, distribution)
        assert failed(facts) is None and {fact.law for fact in facts} == {
            "place",
            "covers",
            "once",
            "full",
        }


def test_what_nobody_holds_is_found() -> None:
    short = held(4, 2, by=DimRef(1) * 4 + DimRef(0))
    assert failed(check_distribution(WARP, short)) == "covers"


def test_replication_has_to_be_said() -> None:
    twice = held(4, 6, by=(DimRef(1) * 4 + DimRef(0)) % 12)
    assert failed(check_distribution(WARP, twice)) == "once"
    assert failed(check_distribution(WARP, replace(twice, is_replicated=True))) is None
    everyone = held(4, 12, by=DimRef(1), is_replicated=True)
    assert failed(check_distribution(WARP, everyone)) is None


def test_masking_has_to_be_said() -> None:
    ragged = held(4, 3, by=DimRef(1) * 4 + DimRef(0), value=Space.box(10))
    assert failed(check_distribution(WARP, ragged)) == "full"
    assert failed(check_distribution(WARP, replace(ragged, is_masked=True))) is None
    assert isinstance(CYCLIC.placement, Expressions)
    inside = IndexSet(CYCLIC.places, (Constraint(9 - DimRef(1) * 4 - DimRef(0)),))
    cut = CYCLIC.placement.restrict(inside)
    partial = Distribution(PrefixCut(1), ("lane",), cut)
    assert failed(check_distribution(WARP, partial)) == "covers"


def test_a_correspondence_places_a_value_as_a_map_does() -> None:
    assert isinstance(CYCLIC.placement, Expressions)
    span = LayoutCorr.from_map(CYCLIC.placement)
    assert failed(check_distribution(WARP, replace(CYCLIC, placement=span))) is None
    occurrences = Space.box(4, 3, 2)
    doubled = LayoutCorr(
        Expressions(occurrences, Space.box(4, 3), (DimRef(0), DimRef(1))),
        Expressions(occurrences, VALUE, (DimRef(1) * 4 + DimRef(0),)),
    )
    assert failed(check_distribution(WARP, replace(CYCLIC, placement=doubled))) == "place"


def test_participants_are_parallel_levels_below_the_owner() -> None:
    loop = structure_of(("block", "parallel", 3), ("step", "serial", 4))
    with pytest.raises(VerifyError, match="takes no part"):
        check_distribution(loop, replace(CYCLIC, participants=("step",)))
    with pytest.raises(VerifyError, match="takes no part"):
        check_distribution(WARP, replace(CYCLIC, owner=PrefixCut(2)))
    with pytest.raises(VerifyError, match="do not begin with the participants"):
        check_distribution(WARP, held(2, 6, by=DimRef(0) * 6 + DimRef(1)))
    with pytest.raises(VerifyError, match="no cut at depth 5"):
        check_distribution(WARP, replace(CYCLIC, owner=PrefixCut(5)))


def test_equal_placements_are_compatible() -> None:
    written_apart = held(4, 3, by=(DimRef(1) * 8 + DimRef(0) * 2) // 2)
    assert are_compatible(CYCLIC, written_apart).is_proven
    assert are_compatible(CYCLIC, BLOCKED).is_disproven
    assert not are_compatible(CYCLIC, replace(CYCLIC, owner=PrefixCut(0))).is_proven


def test_a_repartition_counts_what_crosses_participants() -> None:
    found = repartition(CYCLIC, BLOCKED)
    assert found is not None
    cyclic = {i: i % 4 for i in range(12)}
    moved = sum(cyclic[i] != i // 3 for i in range(12))
    assert (found.moved, found.kept) == (moved, 12 - moved)
    own = repartition(CYCLIC, CYCLIC)
    assert own is not None and (own.moved, own.kept) == (0, 12)
    reordered = repartition(CYCLIC, held(4, 3, by=(2 - DimRef(1)) * 4 + DimRef(0)))
    assert reordered is not None and reordered.moved == 0
    everyone = held(4, 12, by=DimRef(1), is_replicated=True)
    spread, gathered = repartition(CYCLIC, everyone), repartition(everyone, CYCLIC)
    assert spread is not None and (spread.moved, spread.kept) == (36, 12)
    assert gathered is not None and (gathered.moved, gathered.kept) == (0, 12)


def test_a_repartition_that_cannot_be_counted_has_no_cost() -> None:
    assert repartition(CYCLIC, BLOCKED, budget=11) is None
    with pytest.raises(VerifyError, match="not the same value"):
        repartition(CYCLIC, held(4, 3, by=DimRef(0) * 3 + DimRef(1), value=Space.box(13)))


def test_levels_that_only_one_side_names_are_held_alike() -> None:
    grid = structure_of(("row", "parallel", 2), ("lane", "parallel", 3))
    value = Space.box(6)
    by_row = Distribution(
        PrefixCut(0), ("row",), Expressions(Space.box(2, 3), value, (DimRef(0) * 3 + DimRef(1),))
    )
    both = Expressions(Space.box(2, 3, 1), value, (DimRef(0) * 3 + DimRef(1),))
    by_lane = Distribution(PrefixCut(0), ("row", "lane"), both)
    for distribution in (by_row, by_lane):
        assert failed(check_distribution(grid, distribution)) is None
    found = repartition(by_row, by_lane)
    assert found is not None and found.moved == 0


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_facts_are_those_of_all_places(data: st.DataObject) -> None:
    lanes, size = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
    value = Space.box(data.draw(st.integers(0, 9)))
    a, b, c = (data.draw(st.integers(-1, 4)) for _ in range(3))
    turn = data.draw(st.sampled_from([1, 2, 5, 12]))
    structure: ExecStructure = structure_of(("block", "parallel", 2), ("lane", "parallel", lanes))
    formula = (DimRef(0) * a + DimRef(1) * b + c) % turn
    distribution = held(lanes, size, by=formula, value=value)
    places = list(product(range(lanes), range(size)))
    counts = Counter((a * lane + b * at + c) % turn for lane, at in places)
    wanted = {
        "place": True,
        "covers": all(counts[x] for (x,) in value.points()),
        "once": all(count < 2 for count in counts.values()),
        "full": all(value.holds((x,)) for x in counts),
    }
    found = {
        fact.law: fact.answer.is_proven for fact in check_distribution(structure, distribution)
    }
    assert found == wanted


def test_places_and_coordinates_are_those_of_the_map() -> None:
    assert CYCLIC.places == Space.box(4, 3) and CYCLIC.logical == VALUE
    assert set(CYCLIC.holdings()) == {((i % 4,), (i,)) for i in range(12)}
    project = Distribution(PrefixCut(1), ("lane",), Project(Space.box(4, 3), (0,)), True)
    assert set(project.holdings()) == {((i,), (i,)) for i in range(4)}
