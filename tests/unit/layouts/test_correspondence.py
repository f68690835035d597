"""Correspondences: relations by plain sets of pairs, the laws of converse and composition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.map_cases import REGISTRY, Case, Point, cases, inside, into, named
from tilenest.errors import ShapeError
from tilenest.layouts import (
    DimRef,
    Expressions,
    FiniteTable,
    Identity,
    LayoutCorr,
    MixedRadix,
    Project,
    Replication,
    Space,
    Sym,
    Translate,
    is_injective,
    parse_correspondence,
    row_major,
    strided,
)

Pairs = set[tuple[Point, Point]]


def related(left: Case, right: Case) -> Pairs:
    return {
        (left.table[o], right.table[o])
        for o in left.table.keys() & right.table.keys()
        if inside(left.map.codomain, left.table[o]) and inside(right.map.codomain, right.table[o])
    }


@st.composite
def spans(draw: st.DrawFn, start: Space | None = None) -> tuple[LayoutCorr, Pairs]:
    occurrences = named(draw(st.sampled_from([[4, 3], [5], [2, 2, 2], [], [0, 2]])), "o")
    left = draw(cases(occurrences, depth=1) if start is None else into(occurrences, start))
    right = draw(cases(occurrences, depth=1))
    return LayoutCorr(left.map, right.map), related(left, right)


@given(spans())
def test_pairs_and_converse(span: tuple[LayoutCorr, Pairs]) -> None:
    corr, pairs = span
    assert set(corr.pairs()) == pairs
    assert set(corr.converse().pairs()) == {(b, a) for a, b in pairs}
    assert corr.converse().converse() == corr
    assert parse_correspondence(str(corr), REGISTRY) == corr


@given(st.data())
def test_composition_and_its_converse(data: st.DataObject) -> None:
    first, pairs = data.draw(spans())
    second, others = data.draw(spans(first.codomain))
    expected = {(a, c) for a, b in pairs for other, c in others if b == other}
    assert set(first.then(second).pairs()) == expected
    turned = second.converse().then(first.converse())
    assert set(turned.pairs()) == {(c, a) for a, c in expected}
    assert set(turned.converse().pairs()) == expected


@given(spans())
def test_maps_are_units(span: tuple[LayoutCorr, Pairs]) -> None:
    corr, pairs = span
    before = LayoutCorr.from_map(Identity(corr.domain)).then(corr)
    after = corr.then(LayoutCorr.from_map(Identity(corr.codomain)))
    assert set(before.pairs()) == set(after.pairs()) == pairs


@given(spans())
def test_placements_and_replication(span: tuple[LayoutCorr, Pairs]) -> None:
    corr, pairs = span
    points = list(corr.domain.points())
    places = {point: sorted({b for a, b in pairs if a == point}) for point in points}
    placed = corr.placed()
    for point in points:
        assert placed.get(point, ()) == tuple(places[point])
    counts = [len(found) for found in places.values()]
    covered = sum(count > 0 for count in counts)
    expected = Replication(covered, len(points), min(counts, default=0), max(counts, default=0))
    assert corr.replication() == expected


def test_corpus_37_replicas() -> None:
    occurrences = Space.box(4, 3)
    element = Project(occurrences, (0,))
    coincident = LayoutCorr(element, strided(occurrences, (1, 0)))
    assert coincident.replication() == Replication(4, 4, 1, 1)
    distinct = LayoutCorr(element, strided(occurrences, (3, 1)))
    assert distinct.replication() == Replication(4, 4, 3, 3)
    assert distinct.placed()[2,] == ((6,), (7,), (8,))
    assert distinct.converse().placed()[7,] == ((2,),)


def test_corpus_37_shards_replicas_and_an_offset() -> None:
    # 8x16 over 8 lanes of 16, each element held by two groups of lanes 8 apart, from lane 5 on.
    occurrences = Space.box(8, 16, 2)
    element = Project(occurrences, (0, 1))
    places = Space.box(32, 16, prefix="p")
    x, y, replica = DimRef(0), DimRef(1), DimRef(2)
    corr = LayoutCorr(element, Expressions(occurrences, places, (x + replica * 8 + 5, y)))
    assert corr.replication() == Replication(128, 128, 2, 2)
    assert corr.placed()[3, 4] == ((8, 4), (16, 4))
    assert is_injective(corr.right).is_proven


def test_a_map_is_a_correspondence() -> None:
    layout = row_major(Space.box(2, 3))
    corr = LayoutCorr.from_map(layout)
    assert corr.placed()[1, 2] == ((5,),)
    assert corr.converse().placed()[5,] == ((1, 2),)
    assert (3,) not in LayoutCorr.from_map(Translate(Space.box(4), Space.box(4), (1,))).placed()


def test_run_time_extents() -> None:
    space = Space.box("N", 2)
    corr = LayoutCorr(Project(space, (0,)), MixedRadix(space, Space.box("N"), ((1, 1),)))
    assert corr.placed({"N": 5})[1,] == ((1,), (2,))
    assert corr.replication({"N": 3}) == Replication(3, 3, 1, 2)
    composed = corr.then(LayoutCorr.from_map(Translate(Space.box("N"), Space.box("N"), (1,))))
    assert set(composed.pairs({"N": 3})) == {((0,), (1,)), ((0,), (2,)), ((1,), (2,))}
    with pytest.raises(ShapeError, match="have no values"):
        corr.replication()


def test_what_is_too_large_or_does_not_fit_is_refused() -> None:
    large = Space.box(1 << 40)
    corr = LayoutCorr(strided(large, (1,), large), Identity(large))
    with pytest.raises(ShapeError, match="over the budget"):
        corr.replication()
    with pytest.raises(ShapeError, match="start from"):
        LayoutCorr(Identity(Space.box(2)), Identity(Space.box(3)))
    with pytest.raises(ShapeError, match="cannot be followed"):
        corr.then(LayoutCorr.from_map(Identity(Space.box(3))))
    # The formulas say the composition of spans too large to enumerate.
    assert corr.then(corr).right.apply((7, 7)) == (7,)
    assert corr.then(corr).right.apply((7, 8)) is None


def test_maps_known_by_value_are_composed_by_trying() -> None:
    table = FiniteTable(Space.box(3), Space.box(3), ((2,), None, (0,)))
    corr = LayoutCorr.from_map(table)
    assert sorted(corr.then(corr).pairs()) == [((0,), (0,)), ((2,), (2,))]
    with pytest.raises(ShapeError, match="over the budget"):
        corr.then(corr, budget=1)


@pytest.mark.parametrize(("old", "new"), [(16, 8), (8, 32), (4, 6), (8, 8)])
def test_elements_of_another_width_hold_the_same_bits(old: int, new: int) -> None:
    corr = LayoutCorr.of_widths(Space.box(2, 12), old, new)
    assert corr.codomain.extents == (2, 12 * old // new)
    expected = {
        ((row, bit // old), (row, bit // new)) for row in range(2) for bit in range(12 * old)
    }
    assert set(corr.pairs()) == expected


def test_widths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="no whole number"):
        LayoutCorr.of_widths(Space.box(3), 8, 16)
    with pytest.raises(ShapeError, match="cannot be read"):
        LayoutCorr.of_widths(Space.box("N"), 8, 16)
    with pytest.raises(ShapeError, match="cannot be read"):
        LayoutCorr.of_widths(Space(), 8, 16)
    assert LayoutCorr.of_widths(Space.box("N", 4), 8, 16).codomain.extents == ("N", 2)


def test_composition_where_a_constant_of_the_meeting_leaves_64_bits() -> None:
    line, middle = Space.box(9), Space.box(3)
    steep = MixedRadix(line, middle, ((-(1 << 62),),))
    one = LayoutCorr.from_map(steep)
    other = LayoutCorr(Translate(middle, middle, (-(1 << 63),)), Identity(middle))
    far = LayoutCorr(MixedRadix(middle, middle, ((1 << 62,),)), Identity(middle))
    for second in (other, far):
        wanted = {(a, c) for a, b in one.pairs() for b2, c in second.pairs() if b == b2}
        assert set(one.then(second).pairs()) == wanted


def test_what_has_no_formula_is_not_joined_over_run_time_extents() -> None:
    line = Space.box(2)
    table = LayoutCorr.from_map(FiniteTable(line, line, ((1,), (0,))))
    run_time = LayoutCorr(Translate(line, line, (0,)), Expressions(line, line, (Sym(0),), ("n",)))
    with pytest.raises(ShapeError, match="point by point"):
        table.then(run_time)
