"""Layout maps: every node against its table, the laws of the operators, normal forms, text."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.map_cases import (
    REGISTRY,
    Case,
    Point,
    cases,
    index_sets,
    inside,
    into,
    joined,
    named,
    points_of,
)
from tilenest.errors import ParseError, ShapeError, TileError
from tilenest.layouts import (
    Axis,
    BitLinear,
    Compose,
    Const,
    Constraint,
    DimRef,
    Expressions,
    FiniteTable,
    Identity,
    IndexSet,
    LayoutMap,
    MixedRadix,
    Permute,
    Piecewise,
    Product,
    Project,
    Recast,
    Space,
    Sym,
    Translate,
    normalise,
    of_affine_map,
    parse_affine_map,
    parse_index_set,
    parse_layout,
    parse_space,
    row_major,
    strided,
    xor,
)

D0, D1 = DimRef(0), DimRef(1)


def table_of(layout: LayoutMap) -> dict[Point, Point]:
    values = {point: layout.apply(point) for point in points_of(layout.domain)}
    return {point: value for point, value in values.items() if value is not None}


@given(cases())
def test_every_node_does_what_its_table_says(case: Case) -> None:
    assert table_of(case.map) == case.table
    beyond = tuple(int(extent) for extent in case.map.domain.extents)
    if beyond:
        assert case.map.apply(beyond) is None
        assert case.map.apply((-1,) * len(beyond)) is None
    assert case.map.apply((*beyond, 0)) is None


@given(cases())
def test_formulas_agree_with_values_on_disjoint_domains(case: Case) -> None:
    formulas = case.map.formulas()
    for point in points_of(case.map.domain) if formulas is not None else ():
        holding = [formula for formula in formulas or () if formula.domain.holds(point)]
        values = [tuple(r.evaluate(point) for r in formula.results) for formula in holding]
        assert values == ([case.table[point]] if point in case.table else [])


@given(cases())
def test_a_normal_form_is_equal_and_stays(case: Case) -> None:
    normal = normalise(case.map)
    assert (normal.domain, normal.codomain) == (case.map.domain, case.map.codomain)
    assert table_of(normal) == case.table
    assert normalise(normal) == normal


@given(cases())
def test_text_round_trip(case: Case) -> None:
    text = str(case.map)
    assert parse_layout(text, REGISTRY) == case.map
    assert str(parse_layout(text, REGISTRY)) == text
    normal = normalise(case.map)
    assert parse_layout(str(normal), REGISTRY) == normal


@given(cases())
def test_identity_is_the_unit_of_composition(case: Case) -> None:
    before = Identity(case.map.domain).then(case.map)
    assert table_of(before) == case.table
    after = case.map.then(Identity(case.map.codomain))
    kept = {p: value for p, value in case.table.items() if inside(case.map.codomain, value)}
    assert table_of(after) == kept
    assert normalise(before) == normalise(case.map)


@given(st.data())
def test_composition_is_associative(data: st.DataObject) -> None:
    f = data.draw(cases(depth=1))
    g = data.draw(cases(f.map.codomain, depth=1))
    h = data.draw(cases(g.map.codomain, depth=1))
    left = f.map.then(g.map).then(h.map)
    right = f.map.then(g.map.then(h.map))
    expected = joined(joined(f, g), h).table
    assert table_of(left) == table_of(right) == expected


@given(st.data())
def test_products_compose_componentwise(data: st.DataObject) -> None:
    f, p = data.draw(cases(depth=0)), data.draw(cases(depth=0))
    g = data.draw(cases(f.map.codomain, depth=0))
    q = data.draw(cases(p.map.codomain, depth=0))
    one = f.map.product(p.map).then(g.map.product(q.map))
    other = f.map.then(g.map).product(p.map.then(q.map))
    assert table_of(one) == table_of(other)
    assert (one.domain, one.codomain) == (other.domain, other.codomain)


@given(st.data())
def test_project_permute_and_restrict(data: st.DataObject) -> None:
    case = data.draw(cases(depth=1))
    order = tuple(data.draw(st.permutations(range(case.map.codomain.rank))))
    kept = {p: value for p, value in case.table.items() if inside(case.map.codomain, value)}
    expected = {p: tuple(value[i] for i in order) for p, value in kept.items()}
    assert table_of(case.map.permute(order)) == expected
    expected = {p: tuple(value[i] for i in order[:1]) for p, value in kept.items()}
    assert table_of(case.map.project(order[:1])) == expected
    index_set, points = data.draw(index_sets(case.map.domain))
    restricted = case.map.restrict(index_set)
    assert table_of(restricted) == {p: v for p, v in case.table.items() if p in points}


@given(st.data())
def test_the_first_piece_that_holds_wins(data: st.DataObject) -> None:
    space = named([4, 3])
    first, second = data.draw(into(space, space)), data.draw(into(space, space))
    (one, points), (other, _) = data.draw(index_sets(space)), data.draw(index_sets(space))
    choice = Piecewise(space, space, ((one, first.map), (other, second.map)))
    for point in points:
        assert choice.apply(point) == first.table[point]


def test_a_normal_form_of_parts_that_became_plain_stays() -> None:
    """Bits that add up without an exclusive or, and a choice whose first piece is everything."""
    two, three = Space.box(2), Space.box(3)
    bits = BitLinear(two, three, (2,), 1).then(Translate(three, Space.box(3, prefix="y"), (-1,)))
    point = Space.box()
    whole = Piecewise(point, point, ((IndexSet(point), Identity(point)),) * 2)
    for layout in (bits, Product(Identity(point), whole)):
        normal = normalise(layout)
        assert normalise(normal) == normal
        assert table_of(normal) == table_of(layout)
    assert normalise(Product(Identity(point), whole)) == Identity(point)


def test_common_shapes_have_one_normal_form() -> None:
    space = Space.box(4, 6)
    transposed = Permute(space, (1, 0))
    assert normalise(transposed.then(Permute(transposed.codomain, (1, 0)))) == Identity(space)
    assert normalise(Product(Identity(Space.box(4)), Identity(Space.box(6)))) != Identity(space)
    split = Recast(Space.box(24), space)
    assert normalise(split.then(Recast(space, Space.box(24)))) == Identity(Space.box(24))
    assert normalise(Expressions(space, Space.box(24, prefix="y"), (D0 * 6 + D1,))) == row_major(
        space
    )
    moved = Translate(space, space, (0, 2))
    assert normalise(Expressions(space, space, (D0, D1 + 2))) == moved
    twice = Translate(Space.box(4), Space.box(6), (1,)), Translate(Space.box(6), Space.box(9), (2,))
    assert normalise(twice[0].then(twice[1])) == Translate(Space.box(4), Space.box(9), (3,))
    eight = Space.box(8, 8)
    swizzle = Expressions(eight, eight, (D0, xor(D0, D1)))
    assert isinstance(normalise(swizzle), BitLinear)
    assert normalise(swizzle.then(swizzle)) == Identity(eight)


def test_a_composition_is_undefined_where_the_middle_is_left() -> None:
    outer = Translate(Space.box(4), Space.box(9), (0,))
    inner = MixedRadix(Space.box(4), Space.box(4), ((2,),))
    both = inner.then(outer)
    assert [both.apply((x,)) for x in range(4)] == [(0,), (2,), None, None]
    assert table_of(normalise(both)) == {(0,): (0,), (1,): (2,)}


def test_results_beyond_64_bits_are_undefined() -> None:
    layout = MixedRadix(Space.box(4), Space.box(1 << 63), ((1 << 61,),))
    assert layout.apply((3,)) == (3 << 61,)
    assert MixedRadix(Space.box(4), Space.box(9), ((1 << 62,),)).apply((2,)) is None
    # What leaves 64 bits on the way and comes back is a number like any other.
    back = MixedRadix(Space.box(9, 9), Space.box(9), ((1 << 62, -(1 << 62)),))
    assert back.apply((8, 8)) == (0,)
    assert back.apply((8, 0)) is None
    assert MixedRadix(Space.box(2), Space.box(9), ((1 << 70,),)).formulas() is None


def test_extents_reach_two_to_the_63() -> None:
    assert Identity(Space.box(1 << 63)).apply(((1 << 63) - 1,)) == ((1 << 63) - 1,)
    with pytest.raises(ShapeError, match="has the extent"):
        Space.box((1 << 63) + 1)


def test_run_time_extents() -> None:
    space = Space((Axis("m", "M"), Axis("n", 12)))
    split = Space((Axis("m", "M"), Axis("a", 3), Axis("b", 4)))
    layout = Recast(space, split)
    assert layout.apply((6, 11), {"M": 7}) == (6, 2, 3)
    assert layout.apply((7, 0), {"M": 7}) is None
    assert normalise(layout.then(Recast(split, space))) == Identity(space)
    merged = Recast(Space.box("M", "N"), Space.box("N", "M"))
    assert merged.apply((1, 2), {"M": 2, "N": 5}) == (3, 1)
    flat = Expressions(space, Space.box(1 << 40), (D0 * Sym(0) + D1,), ("L",))
    assert flat.symbols == ("L", "M")
    assert flat.apply((2, 3), {"M": 7, "L": 100}) == (203,)
    assert parse_layout(str(flat)) == flat
    limited = IndexSet(space, (Constraint(Sym(0) - D0 - 1),), ("L",))
    assert parse_layout(str(flat.restrict(limited))) == flat.restrict(limited)
    assert flat.restrict(limited).apply((2, 3), {"M": 7, "L": 2}) is None
    assert parse_index_set(str(limited)) == limited


def test_compositions_through_run_time_extents() -> None:
    first = Translate(Space.box("N"), Space.box("M"), (1,))
    both = first.then(Expressions(Space.box("M"), Space.box("K"), (D0 * 2 + Sym(1),)))
    choice = both.restrict(IndexSet(Space.box("N"), (Constraint(Sym(0) - D0),), ("L",)))
    formulas = choice.formulas()
    assert formulas is not None
    assert len(formulas) == 1
    assert both.symbols == ("K", "M", "N")
    normal = normalise(choice)
    for n, m, limit in itertools.product((0, 3, 5), (0, 2, 4), (-1, 1, 9)):
        values = {"N": n, "M": m, "K": 7, "L": limit}
        for x in range(6):
            expected = ((x + 1) * 2 + m,) if x < n and x + 1 < m and x <= limit else None
            assert choice.apply((x,), values) == expected
            assert normal.apply((x,), values) == expected
            assert formulas[0].domain.holds((x,), values) == (expected is not None)


def test_an_access_map_of_the_ir_is_a_layout_map() -> None:
    access = parse_affine_map("(d0, d1)[s0, s1] -> (d0*s0 + d1, s1)")
    space = Space.box("N", 4)
    layout = of_affine_map(access, space, Space.box("Q", 99), ("N", "A"))
    assert layout.symbols == ("A", "N", "Q")
    assert layout.apply((1, 2), {"N": 5, "A": 8, "Q": 100}) == (7, 8)
    with pytest.raises(ShapeError, match="has 2 symbols"):
        of_affine_map(access, space, Space.box("Q", 99), ("N",))


def test_strides_and_row_major_order() -> None:
    assert row_major(Space.box(2, 3, 4)).strides == ((12, 4, 1),)
    assert row_major(Space()).apply(()) == (0,)
    assert row_major(Space.box(3, 0)).codomain == Space.box(0, prefix="y")
    assert strided(Space.box(4, 3), (1, 8)).codomain == Space.box(20, prefix="y")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Compose(Identity(Space.box(2, 3)), Identity(Space.box(3, 2))),
        lambda: Compose(Identity(named([2])), Identity(named([2], "b"))),
        lambda: Compose(Identity(Space.box("N")), Identity(Space.box("M"))),
        lambda: Recast(Space.box(2, 3), Space.box(5)),
        lambda: Recast(Space.box("N", 2), Space.box("N", 3)),
        lambda: Permute(Space.box(2, 3), (0, 0)),
        lambda: Permute(Space.box(2, 3), (1,)),
        lambda: Project(Space.box(2, 3), (2,)),
        lambda: MixedRadix(Space.box(2, 3), Space.box(6), ((1,),)),
        lambda: MixedRadix(Space.box(2), Space.box(6), ((1,), (1,))),
        lambda: BitLinear(Space.box(4), Space.box(4), (1,)),
        lambda: BitLinear(Space.box(4), Space.box(4), (1, 4)),
        lambda: BitLinear(Space.box("N"), Space.box(4), ()),
        lambda: FiniteTable(Space.box(2), Space.box(2), ((0,),)),
        lambda: FiniteTable(Space.box(1 << 40), Space.box(2), ()),
        lambda: Expressions(Space.box(2), Space.box(2), (D1,)),
        lambda: Expressions(Space.box(2), Space.box(2), (Sym(0),)),
        lambda: Identity(Space.box(2)).restrict(IndexSet(Space.box(3))),
        lambda: Piecewise(
            Space.box(2), Space.box(3), ((IndexSet(Space.box(2)), Identity(Space.box(2))),)
        ),
        lambda: Space.box(-1),
        lambda: Space.box("N+1"),
    ],
)
def test_what_does_not_fit_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ShapeError) as caught:
        make()
    assert caught.value.remedy is not None


def test_a_wrong_middle_space_is_named() -> None:
    with pytest.raises(ShapeError, match=r"into \[x0=2\] .* from \[x0=3\]"):
        Identity(Space.box(2)).then(Identity(Space.box(3)))


def test_names_that_are_no_words_are_quoted() -> None:
    space = Space((Axis('two "words"', 2), Axis("", "N")))
    assert parse_space(str(space)) == space
    assert parse_layout(str(Identity(space))) == Identity(space)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "a name at column 1"),
        ("wat([x=2] -> [y=2], (1))", "the name of a kind of map at column 1"),
        ("identity([x=2]", '"\\)" at column 15'),
        ("identity([x=2]) x", "the end at column 17"),
        ("strides([x=2] -> [y=2], ((1.5)))", '"," at column 28'),
        ("transform([x=2] -> [y=2], unknown)", "a registered transform at column 27"),
        ("piecewise([x=2] -> [x=2], {d0 > 0}: identity([x=2]))", "the end"),
        ("compose(" * 120, "at most 100 nested maps"),
        ('identity(["\\q"=2])', "a quoted name"),
        ("identity([x=2, y=])", "a name at column 18"),
    ],
)
def test_bad_text_names_the_column(text: str, wanted: str) -> None:
    with pytest.raises(ParseError, match=wanted) as caught:
        parse_layout(text)
    assert caught.value.remedy is not None


@given(cases(), st.data())
def test_broken_text_is_refused_or_another_map(case: Case, data: st.DataObject) -> None:
    text = str(case.map)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        added = data.draw(st.text('()[]{}=->,.:"\\d0129 xs%^<none', max_size=3))
        text = text[:place] + added + text[place + cut :]
    with suppress(TileError):
        found = parse_layout(text, REGISTRY)
        assert parse_layout(str(found), REGISTRY) == found


def test_registered_transforms_are_looked_up_by_name() -> None:
    text = "transform([x=2] -> [y=2], negated)"
    assert parse_layout(text, REGISTRY).apply((1,)) == (-1,)
    with pytest.raises(ParseError):
        parse_layout(text)


def test_constants_are_formulas_of_no_coordinate() -> None:
    layout = Expressions(Space.box(3), Space.box(8), (Const(5),))
    assert [layout.apply((x,)) for x in range(3)] == [(5,)] * 3
