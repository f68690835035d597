"""Remaps of levels whose extents are known at run time only: proven for all of them at once."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.execution import oracle
from tests.unit.execution.oracle import every_event, structure_of
from tilenest.errors import RemapError, VerifyError
from tilenest.execution import (
    Definition,
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    RemapProof,
    check,
    coalesce,
    compose,
    fuse,
    identity,
    judge,
    legality,
    pairs,
    permute,
    split,
)
from tilenest.execution.remap import remap_of
from tilenest.layouts import Const, Constraint, DimRef, IndexExpr, Ranges, Sym
from tilenest.records import replace

GEMM = structure_of(("m", "parallel", "M"), ("n", "parallel", 8), ("k", "serial", "K"))
EVERYBODY = (
    Observer("accumulator", "anchor", PrefixCut(2)),
    Observer("multiply", "anchor", PrefixCut(3)),
    Observer("spread", "frontier", PrefixCut(3)),
    Observer("scratch", "owner", PrefixCut(2)),
    Observer("output", "owner", PrefixCut(0)),
    Observer("group", "convergence", PrefixCut(1)),
)
SIZES = ({"M": 0, "K": 3}, {"M": 1, "K": 0}, {"M": 5, "K": 4}, {"M": 8, "K": 9})


def events_of(remap: ExecRemap, sizes: dict[str, int]) -> oracle.Events:
    values = remap.new.values(sizes)
    found = {point: remap.apply(point, sizes) for point in remap.new.space.points(values)}
    return {new: old for new, old in found.items() if old is not None}


@pytest.mark.parametrize("sizes", SIZES)
def test_a_split_of_a_run_time_extent(sizes: dict[str, int]) -> None:
    remap = split(GEMM, "k", 4)
    wanted = oracle.split(every_event((sizes["M"], 8, sizes["K"])), 2, 4)
    assert events_of(remap, sizes) == wanted
    assert remap.new.values(sizes)["K_by_4"] == -(-sizes["K"] // 4)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_fusion_with_a_known_inner_extent(sizes: dict[str, int]) -> None:
    remap = fuse(GEMM, "m", "n")
    wanted = oracle.fuse(every_event((sizes["M"], 8, sizes["K"])), 0, (sizes["M"], 8))
    assert events_of(remap, sizes) == wanted
    assert remap.new.levels[0].extent == "M_times_8"


@pytest.mark.parametrize("sizes", SIZES)
def test_a_chain_of_run_time_extents(sizes: dict[str, int]) -> None:
    first = split(GEMM, "m", 4)
    second = permute(first.new, ["m.0", "n", "m.1", "k"])
    third = split(second.new, "m.0", 2)
    remap = compose(compose(first, second), third)
    moved = oracle.split(every_event((sizes["M"], 8, sizes["K"])), 0, 4)
    wanted = oracle.split(oracle.permute(moved, (0, 2, 1, 3)), 0, 2)
    assert events_of(remap, sizes) == wanted


def test_split_fuse_and_permute_are_proven_for_every_extent() -> None:
    tiled = split(GEMM, "m", 4)
    blocked = compose(tiled, split(tiled.new, "k", 16))
    ordered = compose(blocked, permute(blocked.new, ["m.0", "m.1", "n", "k.0", "k.1"]))
    rejoined = compose(ordered, fuse(ordered.new, "k.0", "k.1"))
    for remap in (tiled, blocked, ordered, rejoined):
        assert check(remap, EVERYBODY)
    joined = fuse(GEMM, "m", "n")
    assert check(joined, [observer for observer in EVERYBODY if observer.kind != "convergence"])


def test_illegal_remaps_are_disproven_at_some_extent() -> None:
    inward = permute(GEMM, ["k", "m", "n"])
    with pytest.raises(RemapError, match=r"'prefix once' of anchor 'accumulator'.* at K="):
        check(inward, EVERYBODY)
    tail = split(GEMM, "k", 4)
    with pytest.raises(RemapError, match="'active' of the levels"):
        check(replace(tail, active=replace(tail.active, constraints=())), [])


def test_an_anchor_outside_a_split_level_runs_where_that_level_is_empty() -> None:
    remap = split(structure_of(("m", "parallel", "M"), ("k", "serial", "K")), "k", 4)
    anchor = Observer("start", "anchor", PrefixCut(1))
    (_, proof) = check(remap, [anchor])
    assert proof.prefix_map is not None
    values = remap.new.values({"M": 3, "K": 0})
    assert [proof.prefix_map.apply((m,), values) for m in range(3)] == [(0,), (1,), (2,)]


def test_nested_splits_ask_where_nests_begin_and_add_what_can_cancel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every split leaves a predicate and a definition; only a few of their pairs are looked at."""
    asked: dict[str, int] = {"cuts": 0, "sums": 0}
    at, is_beyond = legality._Judge.at, pairs._is_beyond

    def counted_at(judge: legality._Judge, observer: Observer, cut: PrefixCut) -> RemapProof:
        asked["cuts"] += 1
        return at(judge, observer, cut)

    def counted_is_beyond(expression: IndexExpr, ranges: Ranges) -> bool:
        asked["sums"] += 1
        return is_beyond(expression, ranges)

    monkeypatch.setattr(legality._Judge, "at", counted_at)
    monkeypatch.setattr(pairs, "_is_beyond", counted_is_beyond)
    rows = ExecStructure((ExecLevel("m", "m", "parallel", "M", nest="rows"),))
    remap = split(rows, "m", 2)
    for _ in range(11):
        remap = compose(remap, split(remap.new, remap.new.levels[0].identity, 2))
    leaf = rows.leaf
    observers = [Observer("store", "anchor", leaf), Observer("spread", "frontier", leaf)]
    assert all(proof.failure is None for proof in check(remap, observers))
    boundaries = [depth for depth in range(14) if remap.new.is_boundary(depth)]
    assert asked["cuts"] <= len(observers) * len(boundaries)
    constraints = len(remap.active.constraints)
    assert asked["sums"] < 20 * constraints, asked


# Products of run-time extents -------------------------------------------------------------------

PAIR = structure_of(("i", "parallel", "M"), ("j", "parallel", "N"))
CUBE = structure_of(("i", "parallel", "M"), ("j", "parallel", "N"), ("k", "parallel", "K"))
STEPS = structure_of(("i", "serial", "M"), ("j", "serial", "N"))
SQUARE = structure_of(("i", "parallel", "N"), ("j", "parallel", "N"))
FEW = (0, 1, 2, 3, 5)


def fused(structure: ExecStructure, *steps: tuple[str, ...]) -> ExecRemap:
    remap = identity(structure)
    for levels in steps:
        remap = compose(remap, fuse(remap.new, *levels))
    return remap


FUSED = {
    "two": fused(PAIR, ("i", "j")),
    "three": fused(CUBE, ("i", "j", "k")),
    "outer first": fused(CUBE, ("i", "j"), ("i+j", "k")),
    "inner first": fused(CUBE, ("j", "k"), ("i", "j+k")),
    "one name twice": fused(SQUARE, ("i", "j")),
    "ordered": fused(STEPS, ("i", "j")),
    "a number between": fused(
        structure_of(("i", "parallel", "M"), ("j", "parallel", 3), ("k", "parallel", "K")),
        ("i", "j", "k"),
    ),
    "coalesced": coalesce(CUBE),
}


def everybody(structure: ExecStructure) -> list[Observer]:
    return [
        Observer("leaf", "anchor", structure.leaf),
        Observer("spread", "frontier", structure.leaf),
        Observer("scratch", "owner", structure.leaf),
        Observer("output", "owner", PrefixCut(0)),
    ]


def sizes_of(structure: ExecStructure) -> list[dict[str, int]]:
    names = structure.symbols
    return [dict(zip(names, chosen, strict=True)) for chosen in product(FEW, repeat=len(names))]


@pytest.mark.parametrize("name", FUSED)
def test_fused_run_time_extents_are_proven(name: str) -> None:
    remap = FUSED[name]
    assert len(remap.new.levels) == 1
    assert all(proof.failure is None for proof in check(remap, everybody(remap.old)))
    for sizes in sizes_of(remap.old):
        extents = remap.old.space.shape(sizes)
        assert events_of(remap, sizes) == oracle.fuse(every_event(extents), 0, extents)


@pytest.mark.parametrize("structure", [PAIR, STEPS], ids=["parallel", "serial"])
def test_a_split_of_fused_run_time_extents_has_a_tail(structure: ExecStructure) -> None:
    joined = fuse(structure, "i", "j")
    remap = compose(joined, split(joined.new, "i+j", 4))
    assert len(remap.active.constraints) == 1, "nothing but the tail is tested at run time"
    assert all(proof.failure is None for proof in check(remap, everybody(structure)))
    for sizes in sizes_of(structure):
        extents = structure.space.shape(sizes)
        moved = oracle.fuse(every_event(extents), 0, extents)
        assert events_of(remap, sizes) == oracle.split(moved, 0, 4)


def test_tiles_of_run_time_extents_are_fused() -> None:
    tiled = compose(split(PAIR, "i", 4), split(split(PAIR, "i", 4).new, "j", 2))
    blocked = compose(tiled, permute(tiled.new, ["i.0", "j.0", "i.1", "j.1"]))
    remap = compose(blocked, fuse(blocked.new, "i.0", "j.0"))
    assert check(remap, everybody(PAIR))
    for sizes in sizes_of(PAIR):
        rows, columns = sizes["M"], sizes["N"]
        moved = oracle.split(oracle.split(every_event((rows, columns)), 0, 4), 2, 2)
        blocks = (-(-rows // 4), -(-columns // 2))
        wanted = oracle.fuse(oracle.permute(moved, (0, 2, 1, 3)), 0, blocks)
        assert events_of(remap, sizes) == wanted


def in_blocks(blocks: IndexExpr, last: IndexExpr) -> ExecRemap:
    """M instances in blocks of G, one more than the extent F of another level; blocks are counted
    over (M, G), and the last instance over (B, F, G, M)."""
    old = structure_of(("f", "serial", "F"), ("i", "serial", "M"))
    levels = structure_of(("f", "serial", "F"), ("o", "serial", "B"), ("n", "serial", "G")).levels
    size = Definition("G", Sym(0) + 1, ("F",))
    new = ExecStructure(levels, (size, Definition("B", blocks, ("M", "G"))))
    instance = DimRef(1) * Sym(2) + DimRef(2)
    return remap_of(old, new, [DimRef(0), instance], [Constraint(last - instance)])


def test_a_split_by_a_run_time_factor() -> None:
    all_blocks, last = (Sym(0) + Sym(1) - 1) // Sym(1), Sym(3) - 1
    remap = in_blocks(all_blocks, last)
    assert all(proof.failure is None for proof in judge(remap, everybody(remap.old)))
    for count, factor in product(FEW, (1, 2, 3)):
        wanted = oracle.split(every_event((factor - 1, count)), 1, factor)
        assert events_of(remap, {"M": count, "F": factor - 1}) == wanted
    # A block too few, one instance too many, one too few.
    for law, wrong in (
        ("all", in_blocks(Sym(0) // Sym(1), last)),
        ("active", in_blocks(all_blocks, last + 1)),
        ("all", in_blocks(all_blocks, last - 1)),
    ):
        (proof,) = judge(wrong, [])
        assert proof.failure is not None and proof.failure.law == law


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("active", [DimRef(0) // Sym(0), DimRef(0) % Sym(0)]),
        ("active", [DimRef(0) // Sym(2), DimRef(0) % Sym(2) + 1]),
        ("active", [DimRef(0) // Sym(2) + 1, DimRef(0) % Sym(2)]),
        ("active", [DimRef(0) // (Sym(2) + 1), DimRef(0) % (Sym(2) + 1)]),
        ("active", [DimRef(0) // Sym(2), DimRef(0)]),
        ("once", [DimRef(0) // Sym(2), DimRef(0) % Sym(2) * 0]),
        ("order", [Sym(0) - 1 - DimRef(0) // Sym(2), DimRef(0) % Sym(2)]),
        ("order", [DimRef(0) // Sym(2), Sym(2) - 1 - DimRef(0) % Sym(2)]),
    ],
)
def test_wrong_digits_are_not_proven(law: str, wrong: list[IndexExpr]) -> None:
    """Swapped factors, one too many, a digit lost, and ordered levels backwards."""
    right = fuse(STEPS, "i", "j")
    assert right.symbols == ("M", "M_times_N", "N")
    (proof,) = judge(remap_of(STEPS, right.new, wrong), [])
    assert proof.failure is not None and proof.failure.law == law
    assert not proof.failure.answer.is_proven


def test_a_level_that_is_no_product_is_not_proven() -> None:
    """The right digits of a level that is shorter or longer than the product."""
    digits = [DimRef(0) // Sym(2), DimRef(0) % Sym(2)]
    product = Sym(0) * Sym(1)
    for law, wrong in (("all", (product + 1) // 2), ("active", product + 1)):
        size = Definition("M_times_N", wrong, ("M", "N"))
        new = replace(fuse(PAIR, "i", "j").new, definitions=(size,))
        (proof,) = judge(remap_of(PAIR, new, digits), [])
        assert proof.failure is not None and proof.failure.law == law


def test_a_definition_says_nothing_of_the_old_levels() -> None:
    """As an axiom it would make any map right."""
    old = structure_of(("i", "serial", "N"))
    levels = structure_of(("j", "serial", 3)).levels
    three = Definition("N", Const(3), ())
    with pytest.raises(RemapError, match=r"defines N, a name of the old levels") as refused:
        remap_of(old, ExecStructure(levels, (three,)), [DimRef(0)], (), ["N is 3"])
    assert refused.value.remedy
    halves = split(old, "i", 2)
    other = Definition("N_by_2", Sym(0) // 2, ("N",))
    fewer = replace(halves.new, definitions=(other,))
    with pytest.raises(RemapError, match=r"defines N_by_2, a name of the old levels"):
        remap_of(halves.new, fewer, map(DimRef, range(2)))
    # Two steps, of which the second means something else by a name, are no remap either.
    (proof,) = judge(remap_of(old, fewer, halves.formula.results), [])
    assert proof.failure is not None and proof.failure.law == "all"


def test_an_extent_is_no_formula_that_may_be_negative() -> None:
    """Both of these are at least 0 for N = 3 alone, where each is 1. That extents are never less
    would say that N is 3."""
    more = Definition("more", Sym(0) * 2 - 5, ("N",))
    less = Definition("less", 7 - Sym(0) * 2, ("N",))
    levels = structure_of(("j", "serial", 3), ("a", "serial", "more"), ("b", "serial", "less"))
    with pytest.raises(VerifyError, match=r"the extent more = .* of N may be negative") as refused:
        ExecStructure(levels.levels, (more, less))
    assert refused.value.remedy
    assert ExecStructure(levels.levels[:1], (more, less)).depth == 1


def random_remap(data: st.DataObject) -> ExecRemap:
    kinds = [data.draw(st.sampled_from(["parallel", "serial"])) for _ in range(2)]
    names = [data.draw(st.sampled_from(["M", "N"])) for _ in kinds]
    pairs = zip(("i", "j"), kinds, names, strict=True)
    remap = identity(structure_of(*((name, kind, size) for name, kind, size in pairs)))
    for _ in range(data.draw(st.integers(1, 3))):
        levels = remap.new.levels
        at = data.draw(st.integers(0, len(levels) - 1))
        run = [level.identity for level in levels[at : at + 2]]
        match data.draw(st.sampled_from(["split", "fuse", "fuse", "permute"])):
            case "split":
                step = split(remap.new, run[0], data.draw(st.integers(2, 3)))
            case "fuse" if len({level.family for level in levels[at : at + 2]}) == 1:
                step = fuse(remap.new, *run)
            case _:
                order = data.draw(st.permutations([level.identity for level in levels]))
                step = permute(remap.new, order)
        remap = compose(remap, step)
    return remap


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_what_is_proven_of_random_chains_holds_at_every_extent(data: st.DataObject) -> None:
    remap = random_remap(data)
    (proof,) = judge(remap, [])
    proven = {fact.law for fact in proof.facts if fact.answer.is_proven}
    old, new = remap.old.levels, remap.new.levels
    names = remap.old.symbols
    for chosen in product((0, 1, 2, 3), repeat=len(names)):
        sizes = dict(zip(names, chosen, strict=True))
        events = events_of(remap, sizes)
        assert oracle.is_permutation(remap.old.space.shape(sizes), events)
        is_kept = oracle.keeps_order(old, new, events, len(old))
        assert is_kept or "order" not in proven, f"{remap} at {sizes}"
