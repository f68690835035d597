"""The questions about layout maps against plain enumeration, and cases too large to enumerate.

With the default budget every question about the small random maps must be decided, and decided as
their tables say; without enumeration it may stay unknown and must never be wrong.
"""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.map_cases import (
    Case,
    Point,
    cases,
    index_sets,
    inside,
    into,
    named,
    points_of,
)
from tilenest.errors import ShapeError
from tilenest.layouts import (
    Answer,
    Axis,
    Compose,
    Constraint,
    DimRef,
    Expressions,
    FiniteTable,
    Identity,
    IndexExpr,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    MixedRadix,
    Permute,
    Product,
    Recast,
    Registered,
    Space,
    Sym,
    Transform,
    Translate,
    Verdict,
    are_disjoint,
    bit_and,
    covers,
    equal,
    image,
    image_contains,
    image_points,
    inverse,
    is_bounded,
    is_injective,
    is_surjective,
    is_total,
    normalise,
    preimage,
    preimage_points,
    row_major,
    shift_left,
    shift_right,
    strided,
    try_inverse,
    xor,
)

D0, D1 = DimRef(0), DimRef(1)
budgets = st.sampled_from([0, 1 << 16])


def check(answer: Answer, truth: bool, budget: int) -> tuple[Point, ...]:
    """The answer is right, and sure when trying is allowed; the points of its witness."""
    if budget:
        assert answer.verdict is not Verdict.UNKNOWN, answer
    if answer.verdict is not Verdict.UNKNOWN:
        assert answer.is_proven == truth, answer
    assert (answer.witness is not None) == answer.is_disproven
    return () if answer.witness is None else answer.witness.points


@given(cases(), budgets)
def test_total_and_bounded(case: Case, budget: int) -> None:
    points = points_of(case.map.domain)
    answer = is_total(case.map, budget=budget)
    for point in check(answer, all(point in case.table for point in points), budget):
        assert point in points
        assert point not in case.table
    is_inside = all(inside(case.map.codomain, value) for value in case.table.values())
    for point in check(is_bounded(case.map, budget), is_inside, budget):
        assert not inside(case.map.codomain, case.table[point])


@given(st.data(), budgets)
def test_total_on_a_set(data: st.DataObject, budget: int) -> None:
    case = data.draw(cases())
    index_set, points = data.draw(index_sets(case.map.domain))
    answer = is_total(case.map, index_set, budget)
    for point in check(answer, all(point in case.table for point in points), budget):
        assert point in points
        assert point not in case.table


@given(cases(), budgets)
def test_injective_and_surjective(case: Case, budget: int) -> None:
    values = list(case.table.values())
    pair = check(is_injective(case.map, budget), len(set(values)) == len(values), budget)
    if pair:
        assert pair[0] != pair[1]
        assert case.table[pair[0]] == case.table[pair[1]]
    places = points_of(case.map.codomain)
    answer = is_surjective(case.map, budget)
    for place in check(answer, all(place in values for place in places), budget):
        assert place in places
        assert place not in values


@given(st.data(), budgets)
def test_covers_and_image_contains(data: st.DataObject, budget: int) -> None:
    case = data.draw(cases())
    index_set, places = data.draw(index_sets(case.map.codomain))
    values = set(case.table.values())
    answer = covers(case.map, index_set, budget)
    for place in check(answer, all(place in values for place in places), budget):
        assert place in places
        assert place not in values
    for place in points_of(case.map.codomain)[:3]:
        check(image_contains(case.map, place, budget), place in values, budget)


@given(st.data(), budgets)
def test_equal_and_disjoint(data: st.DataObject, budget: int) -> None:
    f = data.draw(cases(depth=1))
    g = data.draw(into(f.map.domain, f.map.codomain))
    for point in check(equal(f.map, g.map, budget), f.table == g.table, budget):
        assert f.table.get(point) != g.table.get(point)
    assert equal(f.map, normalise(f.map), budget).is_proven
    other = data.draw(into(named([3, 2], "z"), f.map.codomain))
    meet = set(f.table.values()) & set(other.table.values())
    pair = check(are_disjoint(f.map, other.map, budget), not meet, budget)
    if pair:
        assert f.table[pair[0]] == other.table[pair[1]]


@given(cases())
def test_inverse(case: Case) -> None:
    values = list(case.table.values())
    found, answer = inverse(case.map)
    if len(set(values)) < len(values):
        assert found is None
        assert answer.is_disproven
        return
    assert found is not None, answer
    assert (found.domain, found.codomain) == (case.map.codomain, case.map.domain)
    source = {value: point for point, value in case.table.items()}
    for place in points_of(case.map.codomain):
        assert found.apply(place) == source.get(place), (found, answer)


@given(st.data())
def test_image_and_preimage(data: st.DataObject) -> None:
    case = data.draw(cases())
    values = frozenset(case.table.values())
    assert image_points(case.map)[0] == values
    sets, answer = image(case.map)
    assert answer.is_proven == (sets is not None)
    for place in points_of(case.map.codomain) if sets is not None else ():
        assert any(part.holds(place) for part in sets or ()) == (place in values)
    index_set, places = data.draw(index_sets(case.map.codomain))
    sources, answer = preimage(case.map, index_set)
    assert answer.is_proven == (sources is not None)
    for point in points_of(case.map.domain) if sources is not None else ():
        count = sum(part.holds(point) for part in sources or ())
        assert count == (case.table.get(point) in places)
    for place in points_of(case.map.codomain)[:3]:
        fibre = tuple(p for p in points_of(case.map.domain) if case.table.get(p) == place)
        assert preimage_points(case.map, place)[0] == fibre


def facts(layout: LayoutMap, budget: int = 1 << 16) -> str:
    """Total, bounded, injective, surjective, a letter each: proven, disproven or unknown."""
    answers = [
        is_total(layout, budget=budget),
        is_bounded(layout, budget),
        is_injective(layout, budget),
        is_surjective(layout, budget),
    ]
    return "".join(answer.verdict.value[0] for answer in answers)


def gray(extent: int) -> Expressions:
    space = Space.box(extent)
    return Expressions(space, space, (xor(D0, shift_right(D0, 1)),))


def test_corpus_34_names_tell_axes_apart() -> None:
    with pytest.raises(ShapeError):
        equal(Identity(named([2])), Identity(named([2], "b")))
    with pytest.raises(ShapeError):
        equal(Identity(Space.box("N")), Identity(Space.box("M")))


def test_corpus_35_strides_and_reshapes() -> None:
    assert facts(row_major(Space.box(2, 3))) == "pppp"
    assert facts(strided(Space.box(4, 3), (0, 1))) == "ppdp"
    turned = Permute(Space.box(2, 3), (1, 0))
    back = turned.then(Recast(turned.codomain, Space.box(6)))
    assert facts(back) == "pppp"
    assert facts(Recast(Space.box(2, 3), Space.box(3, 2))) == "pppp"


def test_corpus_36_gray_code_and_shifts() -> None:
    assert facts(gray(8)) == "pppp"
    sixteen = Space.box(16)
    round_trip = shift_right(shift_left(D0, 58), 58)
    assert equal(Expressions(sixteen, sixteen, (round_trip,)), Identity(sixteen)).is_proven


@pytest.mark.parametrize("extent", [1, 31, 32, 2**21 - 1, 2**21, 2**63])
def test_corpus_42_gray_code_of_any_extent(extent: int) -> None:
    assert is_injective(gray(extent), budget=0).is_proven
    is_power = extent & (extent - 1) == 0
    assert facts(gray(extent), budget=0) == ("pppp" if is_power else "pdpd")


def test_corpus_36_run_time_extents() -> None:
    layout = Expressions(Space.box("N"), Space.box("N"), (xor(D0, shift_right(D0, 1)),))
    assert layout.apply((5,), {"N": 8}) == (7,)
    assert is_injective(layout).is_proven
    # One value of N is enough to break a claim about all of them.
    answer = is_bounded(layout)
    assert answer.is_disproven
    assert answer.witness is not None
    values = dict(answer.witness.symbols)
    value = layout.apply(answer.witness.points[0], values)
    assert value is not None
    assert value[0] >= values["N"]


def test_corpus_38_joint_rank() -> None:
    space = Space.box(1048577, 1048577)
    joint = MixedRadix(space, Space.box(1 << 22, 1 << 22), ((2, 1), (1, 2)))
    assert is_injective(joint, budget=0).is_proven
    mixed = MixedRadix(Space.box(9, 9, 9), Space.box(900, 99), ((100, 2, 1), (0, 1, 2)))
    assert is_injective(mixed, budget=0).is_proven


def test_corpus_39_common_divisors() -> None:
    layout = MixedRadix(Space.box(4, 4), Space.box(64), ((2, 4),))
    assert is_injective(layout, budget=0).is_disproven
    small = MixedRadix(Space.box(2, 3), Space.box(64), ((2, 3),))
    assert is_injective(small).is_proven
    cancelled = MixedRadix(Space.box(2, 2), Space.box(64), ((1 << 62, 1 << 62),))
    assert is_total(cancelled).is_disproven


def test_corpus_40_cardinality() -> None:
    huge = Space.box(1 << 40, 1 << 40)
    assert facts(Identity(huge), budget=0) == "pppp"
    empty = Space.box(0, 1 << 63, 1 << 63, "N")
    assert facts(Expressions(empty, Space.box(7), (D0 * 99,)), budget=0) == "pppd"
    assert facts(Expressions(empty, Space.box(0, "M"), (D0, D1)), budget=0) == "pppp"
    crowded = Expressions(Space.box(1 << 40), Space.box(8), (bit_and(D0 * D0, 5),))
    assert is_injective(crowded).is_disproven
    roomy = Expressions(Space.box(5), Space.box(1 << 40), (D0 * D0 * D0,))
    assert is_surjective(roomy).is_disproven


def test_a_map_known_by_value_is_tried() -> None:
    space = Space.box(3)
    assert facts(FiniteTable(space, space, ((2,), (0,), (1,)))) == "pppp"
    assert facts(FiniteTable(space, space, ((2,), None, (2,)))) == "dpdd"
    assert facts(FiniteTable(space, space, ((2,), (3,), (1,)))) == "pdpd"
    assert facts(FiniteTable(space, space, ((2,), (0,), (1,))), budget=2) == "uuuu"


def test_parts_prove_the_whole() -> None:
    table = FiniteTable(Space.box(3), Space.box(3), ((2,), (0,), (1,)))
    large = Product(table, Permute(Space.box(1 << 30, 1 << 30), (1, 0)))
    assert facts(large) == "pppp"
    chain = Compose(large, Permute(large.codomain, (2, 1, 0)))
    assert facts(chain) == "pppp"
    back, answer = inverse(chain)
    assert answer.is_proven
    assert back is not None
    assert chain.apply((0, 7, 1 << 29)) == (7, 1 << 29, 2)
    assert back.apply((7, 1 << 29, 2)) == (0, 7, 1 << 29)


def test_a_stated_inverse_is_checked_not_believed() -> None:
    def constant(point: Point) -> Point:
        return (0,) * len(point)

    space = Space.box(4)
    layout = Transform(space, space, Registered("constant", constant, constant))
    assert is_injective(layout).is_disproven
    assert is_injective(layout, budget=0).verdict is Verdict.UNKNOWN


def test_run_time_extents_for_all_values() -> None:
    rows = Space((Axis("m", "M"), Axis("n", 16)))
    flat = Expressions(rows, Space.box(1 << 62), (D0 * 16 + D1,))
    assert is_injective(flat).is_proven
    split = Recast(rows, Space((Axis("m", "M"), Axis("a", 4), Axis("b", 4))))
    assert facts(split) == "pppp"
    halved = Expressions(Space.box("N"), Space.box("N", prefix="y"), (D0 // 2,))
    assert facts(halved) == "ppdd"
    other = Expressions(Space.box("N"), Space.box("N", prefix="y"), (D0 // 2 + D0 % 2,))
    assert equal(halved, other).is_disproven
    tail = IndexSet(Space.box("N"), (Constraint(Sym(0) - 2 - D0),))
    one_up = Translate(Space.box("N"), Space.box("N"), (1,))
    assert is_bounded(one_up).is_disproven
    assert is_bounded(one_up.restrict(tail)).is_proven
    assert is_total(one_up.restrict(tail), tail).is_proven
    assert is_total(one_up.restrict(tail)).is_disproven


def test_products_of_run_time_numbers() -> None:
    layout = Expressions(Space.box("M", "N"), Space.box(1 << 63), (D0 * Sym(1) + D1,))
    assert is_injective(layout).is_proven
    # Injective for every M and N, by what no engine knows of products.
    curved = Expressions(Space.box("M"), Space.box(1 << 63), (D0 * D0 + Sym(0),))
    assert is_injective(curved).verdict is Verdict.UNKNOWN
    wrong = Expressions(Space.box("M", "N"), Space.box(1 << 63), (D0 * Sym(1) + D1 * 2,))
    answer = is_injective(wrong)
    assert answer.is_disproven
    assert answer.witness is not None
    values: Mapping[str, int] = dict(answer.witness.symbols)
    first, second = (wrong.apply(point, values) for point in answer.witness.points)
    assert first == second


def test_inverses_by_structure_and_by_formula() -> None:
    space = Space.box(1024, 2048)
    swizzle = Expressions(space, space, (D0, xor(D1, bit_and(D0, 7) * 8)))
    found, answer = inverse(swizzle, budget=0)
    assert answer.is_proven
    assert found is not None
    assert normalise(found) == normalise(swizzle)
    assert equal(swizzle.then(found), Identity(space), budget=0).is_proven
    flat = MixedRadix(Space.box(7, 9, 11), Space.box(1000), ((1, -7, 63),))
    shifted = flat.then(Translate(Space.box(1000), Space.box(2000), (0,)))
    found, answer = inverse(shifted, budget=0)
    assert answer.is_proven
    assert try_inverse(flat) is None
    turned = Permute(Space.box(2, 3), (1, 0)).then(
        Recast(Space(tuple(reversed(Space.box(2, 3).axes))), Space.box(6))
    )
    back = try_inverse(turned)
    assert back is not None
    assert normalise(turned.then(back)) == Identity(Space.box(2, 3))


def test_sets_of_another_space_are_refused() -> None:
    layout = Identity(Space.box(3))
    with pytest.raises(ShapeError):
        is_total(layout, IndexSet(Space.box(4)))
    with pytest.raises(ShapeError):
        covers(layout, IndexSet(Space.box(4)))
    with pytest.raises(ShapeError):
        preimage(layout, IndexSet(Space.box(4)))
    with pytest.raises(ShapeError):
        are_disjoint(layout, Identity(Space.box(4)))


def test_a_budget_counts_the_nodes_of_large_formulas() -> None:
    """One residue of many moduli at 2**16 points: the value of one point takes long."""
    space = Space.box(1 << 12, 1 << 4)
    large: IndexExpr = DimRef(0) * DimRef(1)
    while large.size < 900:
        large += DimRef(0) * DimRef(1) % (large.size + 5)
    small, whole = (Expressions(space, space, (e, e)) for e in (DimRef(0), large))
    assert small.n_nodes == 2
    assert whole.then(small).n_nodes == 2 * large.size + 2
    assert image_points(small)[1].is_proven
    found, answer = image_points(whole)
    assert found is None
    assert answer.verdict is Verdict.UNKNOWN
    inside = IndexSet(space, (Constraint(large),))
    assert whole.restrict(inside).n_nodes == 3 * large.size
    with pytest.raises(ShapeError, match="over the budget"):
        LayoutCorr.from_map(whole).placed()
