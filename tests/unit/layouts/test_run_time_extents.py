"""Maps over extents known at run time: every answer holds at every value that is put in.

The maps are chains through spaces whose extents are names, so that a name may stand for an extent
inside and for no axis outside. The tables come from plain Python at one choice of the values.
"""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.layouts.oracle import Tree, build, value_of
from tilenest.layouts import (
    Answer,
    Const,
    Constraint,
    DimRef,
    Expressions,
    IndexSet,
    LayoutMap,
    MixedRadix,
    Space,
    Sym,
    are_disjoint,
    covers,
    equal,
    image,
    implies,
    inverse,
    is_bounded,
    is_injective,
    is_monotone,
    is_surjective,
    is_total,
    normalise,
    preimage,
)

Point = tuple[int, ...]
Table = dict[Point, Point]
NAMES = ("m", "n")
VALUES = [dict(zip(NAMES, pair, strict=True)) for pair in product((0, 1, 2, 3, 5), repeat=2)]
extents: st.SearchStrategy[int | str] = st.sampled_from(["m", "n", "n", 1, 2, 3])
spaces = st.lists(extents, min_size=0, max_size=2).map(lambda sizes: Space.box(*sizes))


class Step(NamedTuple):
    """A map by formulas as plain trees; undefined where the condition is negative."""

    map: LayoutMap
    results: tuple[Tree, ...]
    condition: Tree


def trees(rank: int) -> st.SearchStrategy[Tree]:
    leaves: list[st.SearchStrategy[Tree]] = [
        st.integers(-3, 4),
        st.tuples(st.just("s"), st.integers(0, 1)),
    ]
    if rank:
        leaves += [st.tuples(st.just("d"), st.integers(0, rank - 1))] * 3
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from("+-"), inner, inner),
            st.tuples(st.sampled_from(["*", "//", "%"]), inner, st.integers(1, 4)),
        ),
        max_leaves=3,
    )


@st.composite
def steps(draw: st.DrawFn, domain: Space) -> Step:
    codomain = draw(spaces)
    results = draw(st.tuples(*[trees(domain.rank)] * codomain.rank))
    condition = draw(st.just(0) | trees(domain.rank))
    formulas = tuple(build(tree) for tree in results)
    layout: LayoutMap = Expressions(domain, codomain, formulas, NAMES)
    if condition != 0:
        kept = IndexSet(domain, (Constraint(build(condition)),), NAMES)
        layout = layout.restrict(kept)
    return Step(layout, results, condition)


@st.composite
def chains(draw: st.DrawFn) -> list[Step]:
    found = [draw(steps(draw(spaces)))]
    for _ in range(draw(st.integers(0, 2))):
        found.append(draw(steps(found[-1].map.codomain)))
    return found


def joined(chain: list[Step]) -> LayoutMap:
    layout = chain[0].map
    for step in chain[1:]:
        layout = layout.then(step.map)
    return layout


def points_of(space: Space, values: Mapping[str, int]) -> list[Point]:
    sizes = [values[n] if isinstance(n, str) else n for n in space.extents]
    return list(product(*map(range, sizes)))


def table_of(chain: list[Step], values: Mapping[str, int]) -> Table:
    symbols = [values[name] for name in NAMES]
    found = {point: point for point in points_of(chain[0].map.domain, values)}
    for step in chain:
        inside = set(points_of(step.map.domain, values))
        found = {
            start: tuple(value_of(tree, at, symbols) for tree in step.results)
            for start, at in found.items()
            if at in inside and value_of(step.condition, at, symbols) >= 0
        }
    return found


class Truth:
    """What the questions mean, at one choice of the values."""

    def __init__(self, chain: list[Step], values: Mapping[str, int]) -> None:
        self.table = table_of(chain, values)
        self.points = set(points_of(chain[0].map.domain, values))
        self.places = set(points_of(chain[-1].map.codomain, values))
        self.image = set(self.table.values())

    def holds(self) -> dict[str, bool]:
        return {
            "total": len(self.table) == len(self.points),
            "bounded": self.image <= self.places,
            "injective": len(self.image) == len(self.table),
            "surjective": self.places <= self.image,
        }


def check(answer: Answer, question: str, chain: list[Step]) -> None:
    if answer.is_proven:
        for values in VALUES:
            assert Truth(chain, values).holds()[question], f"{answer} at {values}"
    if answer.is_disproven:
        assert answer.witness is not None
        values = dict.fromkeys(NAMES, 1) | dict(answer.witness.symbols)
        spaces_passed = [chain[0].map.domain, *(step.map.codomain for step in chain)]
        assert all(values[name] >= 0 for space in spaces_passed for name in space.symbols), answer
        if max(values.values()) <= 8:
            assert not Truth(chain, values).holds()[question], answer


@given(chains())
def test_a_normal_form_is_its_own(chain: list[Step]) -> None:
    normal = normalise(joined(chain))
    assert normalise(normal) == normal


@given(chains(), st.sampled_from([0, 1 << 10]))
@settings(max_examples=60)
def test_the_questions_hold_at_every_value(chain: list[Step], budget: int) -> None:
    layout = joined(chain)
    check(is_total(layout, budget=budget), "total", chain)
    check(is_bounded(layout, budget), "bounded", chain)
    check(is_injective(layout, budget), "injective", chain)
    check(is_surjective(layout, budget), "surjective", chain)
    check(covers(layout, IndexSet(layout.codomain), budget), "surjective", chain)


@given(chains())
@settings(max_examples=60)
def test_image_preimage_and_inverse_hold_at_every_value(chain: list[Step]) -> None:
    layout = joined(chain)
    places, back = image(layout)[0], inverse(layout, 0)[0]
    sources = preimage(layout, IndexSet(layout.codomain))[0]
    for values in VALUES:
        truth = Truth(chain, values)
        if places is not None:
            found = {p for p in truth.places if any(s.holds(p, values) for s in places)}
            assert found == truth.image & truth.places
        if sources is not None:
            kept = [p for p in truth.points for s in sources if s.holds(p, values)]
            inside = {p for p, place in truth.table.items() if place in truth.places}
            assert len(kept) == len(inside)
            assert set(kept) == inside
        if back is not None:
            wanted = {place: p for p, place in truth.table.items() if place in truth.places}
            assert {p: back.apply(p, values) for p in truth.places if p in wanted} == wanted
            assert all(back.apply(p, values) is None for p in truth.places - set(wanted))


def test_an_extent_on_the_way_is_never_negative() -> None:
    inner, outer = Space.box("n", "n"), Space.box(1)
    start = MixedRadix(Space.box(7, "m"), inner, ((0, 4), (1, 0)))
    # The only value is 0 for n from 0 to 6; a witness below 0 would be none.
    layout = start.then(Expressions(inner, outer, (Sym(0) % 7,)))
    answer = is_surjective(layout)
    assert answer.is_disproven
    assert answer.witness is not None
    assert min(value for _, value in answer.witness.symbols) >= 0
    # A name that is no extent may be any number.
    kept = IndexSet(Space(), (Constraint(Sym(0)),), ("n",))
    free = is_total(Expressions(Space(), outer, (Const(0),)).restrict(kept))
    assert free.is_disproven
    assert free.witness is not None
    assert dict(free.witness.symbols)["n"] < 0


def test_a_witness_has_a_value_for_every_run_time_number() -> None:
    """A number that only the condition of a set names, or nothing at all, is one of them."""
    space, places = Space.box(4), Space.box(5, prefix="y")
    behind = IndexSet(space, (Constraint(DimRef(0) - 1),), ("K", "L"))
    broken = Expressions(space, places, (Const(0),)).restrict(behind)
    assert broken.symbols == ("K", "L")
    other = Expressions(space, places, (Const(0),))
    inside = IndexSet(space)
    answers = [
        is_injective(broken),
        is_total(broken),
        is_surjective(broken),
        is_monotone(broken),
        equal(broken, other),
        are_disjoint(broken, other),
        implies(inside, behind),
        inverse(broken)[1],
    ]
    for answer in answers:
        assert answer.is_disproven
        assert answer.witness is not None
        assert [name for name, _ in answer.witness.symbols] == ["K", "L"]
