"""Target scopes as a partial order, and bindings of levels to them."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.execution.oracle import structure_of
from tilenest.errors import VerifyError
from tilenest.execution import (
    Binding,
    ExecStructure,
    Fact,
    Observer,
    PrefixCut,
    TargetScope,
    TargetScopes,
    bind,
    check_bindings,
    first_failure,
)
from tilenest.layouts import DimRef, Expressions, Space

# A matrix engine beside the lanes of a group: neither contains the other.
SCOPES = TargetScopes(
    (
        TargetScope("device"),
        TargetScope("group", ("device",)),
        TargetScope("warp", ("group",), 4, is_convergent=True),
        TargetScope("lane", ("warp",), 32, is_convergent=True),
        TargetScope("engine", ("group", "device"), 1),
    )
)
GRID = structure_of(
    ("b", "parallel", 6), ("k", "serial", 3), ("w", "parallel", 4), ("l", "parallel", 32)
)

LAWS = ("containment", "capacity", "ancestor", "unit")


def failed(facts: tuple[Fact, ...]) -> str:
    failure = first_failure(facts)
    assert failure is not None
    return failure.law


def units(structure: ExecStructure, *results: object, axes: Space, depth: int) -> Expressions:
    domain = structure.prefix_space(PrefixCut(depth))
    return Expressions(domain, axes, results)  # type: ignore[arg-type]  # formulas of each test


def space_of(**extents: int) -> Space:
    names = {name.replace("_", "."): extent for name, extent in extents.items()}
    base = Space.box(*names.values())
    axes = tuple(type(a)(name, a.extent) for a, name in zip(base.axes, names, strict=True))
    return Space(axes)


def test_containment_is_a_partial_order() -> None:
    names = [scope.name for scope in SCOPES.scopes]
    chain = {"device": 0, "group": 1, "warp": 2, "lane": 3}
    for inner, outer in product(names, names):
        if inner in chain and outer in chain:
            assert SCOPES.is_within(inner, outer) is (chain[inner] >= chain[outer])
    assert SCOPES.is_within("engine", "group") and SCOPES.is_within("engine", "device")
    assert not SCOPES.is_within("engine", "warp") and not SCOPES.is_within("warp", "engine")


def test_scopes_in_a_circle_and_unknown_scopes_are_refused() -> None:
    with pytest.raises(VerifyError, match="circle"):
        TargetScopes((TargetScope("a", ("b",)), TargetScope("b", ("a",))))
    with pytest.raises(VerifyError, match="no scope 'c'"):
        TargetScopes((TargetScope("a", ("c",)),))
    with pytest.raises(VerifyError, match="share a name"):
        TargetScopes((TargetScope("a"), TargetScope("a")))


def test_levels_bound_to_nested_scopes_fit() -> None:
    bindings = bind(GRID, [("b", "group"), ("w", "warp"), ("l", "lane")])
    facts = check_bindings(GRID, bindings, SCOPES)
    assert first_failure(facts) is None
    assert bindings[2].map.apply((5, 2, 3, 31)) == (5, 3, 31)


def test_a_child_in_a_scope_that_the_parent_does_not_contain_is_refused() -> None:
    upside_down = bind(GRID, [("b", "lane"), ("w", "warp")])
    assert failed(check_bindings(GRID, upside_down, SCOPES)) == "containment"
    beside = bind(GRID, [("b", "warp"), ("w", "engine")])
    assert failed(check_bindings(GRID, beside, SCOPES)) == "containment"


def test_a_child_in_another_unit_than_its_parent_is_refused() -> None:
    outer = Binding("b", "group", units(GRID, DimRef(0), axes=space_of(group=6), depth=1))
    place = space_of(group=6, warp=4)
    strayed = units(GRID, (DimRef(0) + DimRef(2)) % 6, DimRef(2), axes=place, depth=3)
    facts = check_bindings(GRID, (outer, Binding("w", "warp", strayed)), SCOPES)
    assert failed(facts) == "ancestor"
    failure = first_failure(facts)
    assert failure is not None and failure.answer.witness is not None
    ((b, _, w),) = failure.answer.witness.points
    assert (b + w) % 6 != b


def test_levels_share_a_scope_within_its_capacity() -> None:
    shared = structure_of(("r", "parallel", 4), ("c", "parallel", 8))
    bindings = bind(shared, [("r", "lane"), ("c", "lane")])
    assert first_failure(check_bindings(shared, bindings, SCOPES)) is None
    assert [axis.name for axis in bindings[1].map.codomain.axes] == ["lane.r", "lane.c"]
    larger = structure_of(("r", "parallel", 5), ("c", "parallel", 8))
    facts = check_bindings(larger, bind(larger, [("r", "lane"), ("c", "lane")]), SCOPES)
    assert failed(facts) == "capacity"
    run_time = structure_of(("r", "parallel", "R"), ("c", "parallel", 8))
    facts = check_bindings(run_time, bind(run_time, [("r", "lane"), ("c", "lane")]), SCOPES)
    assert failed(facts) == "capacity"
    free = bind(run_time, [("r", "device"), ("c", "lane")])
    assert first_failure(check_bindings(run_time, free, SCOPES)) is None


def test_units_take_turns_where_there_are_fewer_than_instances() -> None:
    many = structure_of(("x", "parallel", 10))
    turns = space_of(warp=4, time=3)
    dealt = Binding("x", "warp", units(many, DimRef(0) % 4, DimRef(0) // 4, axes=turns, depth=1))
    assert first_failure(check_bindings(many, [dealt], SCOPES)) is None
    once = space_of(warp=4)
    crowded = Binding("x", "warp", units(many, DimRef(0) % 4, axes=once, depth=1))
    assert failed(check_bindings(many, [crowded], SCOPES)) == "unit"
    missing = Binding("x", "warp", units(many, DimRef(0), axes=once, depth=1))
    assert failed(check_bindings(many, [missing], SCOPES)) == "capacity"


def test_what_converges_stands_on_whole_units_that_act_together() -> None:
    vote = Observer("vote", "convergence", PrefixCut(3))
    bound = bind(GRID, [("b", "group"), ("w", "warp"), ("l", "lane")])
    assert first_failure(check_bindings(GRID, bound, SCOPES, [vote])) is None
    everyone = Observer("everyone", "convergence", PrefixCut(0))
    assert failed(check_bindings(GRID, bound, SCOPES, [everyone])) == "convergence"
    parts = structure_of(("r", "parallel", 4), ("c", "parallel", 8))
    half = Observer("half", "convergence", PrefixCut(1))
    facts = check_bindings(parts, bind(parts, [("r", "lane"), ("c", "lane")]), SCOPES, [half])
    assert failed(facts) == "convergence"


def outer_and_inner(
    n_outer: int | str, n_inner: int | str, scopes: tuple[str, str]
) -> tuple[ExecStructure, tuple[Binding, ...]]:
    grid = structure_of(("a", "parallel", n_outer), ("b", "parallel", n_inner))
    return grid, bind(grid, [("a", scopes[0]), ("b", scopes[1])])


EXTENTS = (0, 1, 2, 5)


@pytest.mark.parametrize("scopes", list(product([s.name for s in SCOPES.scopes], repeat=2)))
def test_what_is_disproven_shows_instances(scopes: tuple[str, str]) -> None:
    """Each rule holds where no instance breaks it, and what is shown breaks it."""
    for n_outer, n_inner in product(EXTENTS, EXTENTS):
        grid, bindings = outer_and_inner(n_outer, n_inner, scopes)
        instances = list(product(range(n_outer), range(n_inner)))
        group = Observer("group", "convergence", PrefixCut(1))
        facts = check_bindings(grid, bindings, SCOPES, [group])
        known = {fact.law: fact.answer for fact in facts if fact.law != "capacity"}
        assert known["containment"].is_proven == (
            not instances or SCOPES.is_within(scopes[1], scopes[0])
        )
        apart = [(p, q) for p in instances for q in instances if p[0] == q[0] and p[1] != q[1]]
        parts = [(p, q) for p in instances for q in instances if p[0] != q[0] and p[1] == q[1]]
        breaks = [] if SCOPES.scope(scopes[1]).is_convergent else apart
        breaks += parts if scopes[0] == scopes[1] else []
        assert known["convergence"].is_proven == (not breaks)
        for law, wrong in (("containment", [(p,) for p in instances]), ("convergence", breaks)):
            if not known[law].is_proven:
                witness = known[law].witness
                assert witness is not None and witness.points in wrong
                assert "disproven" in str(known[law])


def test_instances_are_shown_of_run_time_extents() -> None:
    grid, bindings = outer_and_inner("M", "N", ("warp", "engine"))
    facts = check_bindings(grid, bindings, SCOPES, [Observer("all", "convergence", PrefixCut(0))])
    answers = {fact.law: fact.answer for fact in facts}
    for law, count in (("containment", 1), ("convergence", 2)):
        witness = answers[law].witness
        assert witness is not None and len(witness.points) == count
        sizes = dict(witness.symbols)
        for point in witness.points:
            assert all(0 <= at < sizes[name] for at, name in zip(point, "MN", strict=False))


@pytest.mark.parametrize("by", [1, 3])
def test_a_unit_beyond_those_there_are_is_shown(by: int) -> None:
    """Units are counted over all axes of their scope; there are four."""
    grid = structure_of(("x", "parallel", 3), ("y", "parallel", 2))
    place = space_of(warp_x=3, warp_y=2)
    binding = Binding("y", "warp", units(grid, DimRef(0), DimRef(1) * by, axes=place, depth=2))
    facts = check_bindings(grid, [binding], SCOPES)
    (answer,) = [fact.answer for fact in facts if fact.law == "capacity"]
    assert answer.is_disproven and answer.witness is not None
    ((x, y),) = answer.witness.points
    assert x * 2 + y * by >= 4
    low = Binding("y", "warp", units(grid, DimRef(0) % 2, DimRef(1), axes=place, depth=2))
    (answer,) = [f.answer for f in check_bindings(grid, [low], SCOPES) if f.law == "capacity"]
    assert answer.is_proven


def test_bindings_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(VerifyError, match="bind parallel levels"):
        check_bindings(GRID, bind(GRID, [("k", "warp")]), SCOPES)
    with pytest.raises(VerifyError, match="no scope 'core'"):
        check_bindings(GRID, bind(GRID, [("b", "core")]), SCOPES)
    (first,) = bind(GRID, [("b", "group")])
    with pytest.raises(VerifyError, match="prefix that ends with the level"):
        check_bindings(GRID, [Binding("w", "group", first.map)], SCOPES)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_facts_are_those_of_all_instances(data: st.DataObject) -> None:
    n_outer, n_inner = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    grid = structure_of(("a", "parallel", n_outer), ("k", "serial", 2), ("b", "parallel", n_inner))
    groups, warps = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    turn, by, shift = (data.draw(st.integers(low, 3)) for low in (0, 1, 0))
    place = space_of(group=groups, warp=warps)
    group = (DimRef(0) + shift) % 4
    strayed = (DimRef(0) + shift + DimRef(1) * turn) % 4
    outer = Binding("a", "group", units(grid, group, axes=space_of(group=groups), depth=1))
    inner = units(grid, strayed, DimRef(2) // by, axes=place, depth=3)
    facts = check_bindings(grid, (outer, Binding("b", "warp", inner)), SCOPES)
    instances = list(product(range(n_outer), range(2), range(n_inner)))
    placed = {(a, k, b): ((a + shift + k * turn) % 4, b // by) for a, k, b in instances}
    known = {law: [f.answer.is_proven for f in facts if f.law == law] for law in LAWS}
    outside = [(g, w) for g, w in placed.values() if g >= groups or w >= warps]
    assert known["containment"] == [True] and known["capacity"][1] == (not outside)
    if not outside:
        enclosed = [g == (a + shift) % 4 for (a, _, _), (g, _) in placed.items()]
        assert known["ancestor"] == [all(enclosed)]
    at_once = {(k, *placed[a, k, b]) for a, k, b in instances}
    assert known["unit"][1] == (len(at_once) == len(instances))


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_containment_is_the_closure_of_what_stands_where(pairs: set[tuple[int, int]]) -> None:
    edges = {(inner, outer) for inner, outer in pairs if inner > outer}
    scopes = TargetScopes(
        tuple(
            TargetScope(f"s{n}", tuple(f"s{outer}" for inner, outer in sorted(edges) if inner == n))
            for n in range(6)
        )
    )
    reached = {(n, n) for n in range(6)}
    for _ in range(6):
        reached |= {(a, d) for a, b in reached for c, d in edges if b == c}
    found = {(a, b) for a, b in product(range(6), range(6)) if scopes.is_within(f"s{a}", f"s{b}")}
    assert found == reached
