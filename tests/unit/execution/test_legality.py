"""Which remaps are legal for whom: the law that fails, and the proof where none does."""

from itertools import product

import pytest

from tests.unit.execution.oracle import structure_of
from tilenest.errors import RemapError, ShapeError, VerifyError
from tilenest.execution import (
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    Reanchor,
    RemapProof,
    check,
    compose,
    fuse,
    judge,
    permute,
    split,
)
from tilenest.execution.remap import remap_of
from tilenest.layouts import BitLinear, Constraint, DimRef, Expressions, IndexSet
from tilenest.records import replace

GEMM = structure_of(("m", "parallel", 12), ("n", "parallel", 8), ("k", "serial", 10))
ACCUMULATOR = Observer("accumulator", "anchor", PrefixCut(2))
MULTIPLY = Observer("multiply", "anchor", PrefixCut(3))
SPREAD = Observer("spread", "frontier", PrefixCut(2))
SCRATCH = Observer("scratch", "owner", PrefixCut(2))
OUTPUT = Observer("output", "owner", PrefixCut(0))
EVERYBODY = (ACCUMULATOR, MULTIPLY, SPREAD, SCRATCH, OUTPUT)


def proof_of(proofs: tuple[RemapProof, ...], observer: Observer) -> RemapProof:
    (found,) = [proof for proof in proofs if proof.observer == observer]
    return found


def refused(
    remap: ExecRemap, *observers: Observer, law: str, reanchors: tuple[Reanchor, ...] = ()
) -> RemapError:
    with pytest.raises(RemapError, match=f"breaks the law '{law}'") as error:
        check(remap, observers, reanchors)
    assert error.value.remedy
    return error.value


def chain(*steps: ExecRemap) -> ExecRemap:
    first, *rest = steps
    for step in rest:
        first = compose(first, step)
    return first


def test_a_blocked_gemm_keeps_every_observer() -> None:
    tiled = split(GEMM, "m", 4)
    both = compose(tiled, split(tiled.new, "k", 4))
    order = ["m.0", "n", "m.1", "k.0", "k.1"]
    ordered = compose(both, permute(both.new, order))
    remap = compose(ordered, fuse(ordered.new, "m.0", "n"))
    proofs = check(remap, EVERYBODY)
    assert len(proofs) == 1 + len(EVERYBODY) and proofs[0].observer is None
    assert all(fact.answer.is_proven for proof in proofs for fact in proof.facts)
    cuts = {observer.name: proof_of(proofs, observer).new_cut.depth for observer in EVERYBODY}
    assert cuts == {"accumulator": 2, "multiply": 4, "spread": 2, "scratch": 2, "output": 0}
    prefix = proof_of(proofs, ACCUMULATOR).prefix_map
    assert prefix is not None
    # Block 13 of m.0 x n is block 1 of m and column 5.
    assert prefix.apply((13, 2)) == (1 * 4 + 2, 5)


def test_an_anchor_is_found_at_the_border_of_a_nest() -> None:
    levels = (*GEMM.levels[:1], replace(GEMM.levels[1], extent=1), GEMM.levels[2])
    proofs = check(
        permute(ExecStructure(levels), ["m", "n", "k"]), [Observer("a", "anchor", PrefixCut(1))]
    )
    # The unit level n shares the nest of m: both cuts decide it, operations live at the second.
    assert proofs[1].new_cut == PrefixCut(2)


@pytest.mark.parametrize("extents", list(product((1, 3), repeat=3)))
def test_who_looks_stays_between_the_levels_it_was_between(extents: tuple[int, ...]) -> None:
    sized = zip("abc", ("parallel", "serial", "serial"), extents, strict=True)
    levels = [structure_of(level, nest=level[0]).levels[0] for level in sized]
    same = permute(ExecStructure(tuple(levels)), ["a", "b", "c"])
    everybody = [
        Observer(kind, kind, PrefixCut(depth))
        for kind in ("anchor", "frontier", "owner")
        for depth in range(4)
    ]
    for proof in check(same, everybody)[1:]:
        assert proof.new_cut == proof.old_cut
    halved = compose(same, split(same.new, "a", 1))
    deeper = check(halved, [Observer("a", "anchor", PrefixCut(depth)) for depth in range(4)])
    assert [proof.new_cut.depth for proof in deeper[1:]] == [0, 2, 3, 4]


def test_levels_of_one_instance_do_not_hold_an_anchor_where_it_would_run_twice() -> None:
    levels = structure_of(("a", "parallel", 1)), structure_of(("b", "serial", 3), nest="other")
    moved = permute(ExecStructure(levels[0].levels + levels[1].levels), ["b", "a"])
    proofs = check(moved, [Observer("a", "anchor", PrefixCut(1))])
    assert proofs[1].new_cut == PrefixCut(0)


def test_a_split_across_an_owner_cut_is_refused() -> None:
    tiled = split(GEMM, "m", 4)
    across = compose(tiled, permute(tiled.new, ["m.0", "n", "k", "m.1"]))
    error = refused(across, SCRATCH, law="prefix once")
    assert "owner 'scratch' at depth 2" in str(error)
    refused(across, ACCUMULATOR, law="prefix once")
    assert check(across, [MULTIPLY])


def test_a_permutation_past_an_ordered_level_is_refused_for_who_sees_its_order() -> None:
    steps = structure_of(("t", "serial", 6), ("x", "parallel", 5))
    outward = permute(steps, ["x", "t"])
    own = Observer("own", "owner", PrefixCut(2))
    field = Observer("field", "owner", PrefixCut(0))
    assert check(outward, [own])
    error = refused(outward, own, field, law="owner order")
    assert "field" in str(error) and "witness" in str(error)


def test_a_parallel_level_may_move_below_an_ordered_one() -> None:
    inward = permute(GEMM, ["k", "m", "n"])
    assert check(inward, [MULTIPLY, OUTPUT])
    refused(inward, SCRATCH, law="prefix once")


def test_permuted_serial_levels_are_refused() -> None:
    serial = structure_of(("i", "serial", 3), ("j", "serial", 4))
    refused(permute(serial, ["j", "i"]), law="order")
    pipelined = structure_of(("i", "pipeline", 3), ("j", "serial", 4))
    refused(permute(pipelined, ["j", "i"]), law="order")


@pytest.mark.parametrize(
    ("policy", "is_legal"),
    [
        ("unordered_tree", True),
        ("ordered_tree", False),
        ("fold_left", False),
        ("fold_right", False),
    ],
)
def test_contributions_are_permuted_only_where_the_policy_has_no_order(
    policy: str, is_legal: bool
) -> None:
    reduction = structure_of(("i", f"reduce:{policy}", 3), ("j", f"reduce:{policy}", 4))
    swapped = permute(reduction, ["j", "i"])
    if is_legal:
        assert check(swapped, [])
    else:
        refused(swapped, law="order")
    assert check(fuse(reduction, "i", "j"), [])


def test_a_dropped_tail_predicate_is_refused() -> None:
    tail = split(GEMM, "k", 4)
    assert check(tail, EVERYBODY)
    whole = replace(tail, active=IndexSet(tail.new.space))
    error = refused(whole, law="active")
    assert "predicate" in str(error.remedy)
    short = replace(
        tail, active=IndexSet(tail.new.space, (Constraint(8 - DimRef(2) * 4 - DimRef(3)),))
    )
    refused(short, law="all")


def test_maps_that_are_no_rearrangement_are_refused() -> None:
    line = structure_of(("k", "serial", 6))
    space = line.space
    backwards = Expressions(space, space, (5 - DimRef(0),))
    by = split(line, "k", 6)
    refused(replace(by, new=line, tau=backwards, active=IndexSet(space)), law="order")
    twice = Expressions(space, space, (DimRef(0) // 2,))
    refused(replace(by, new=line, tau=twice, active=IndexSet(space)), law="once")


def test_a_level_never_changes_its_kind() -> None:
    grid = structure_of(("x", "parallel", 4), ("t", "serial", 4))
    skewed = Expressions(grid.space, grid.space, ((DimRef(0) + DimRef(1)) % 4, DimRef(1)))
    remap = replace(permute(grid, ["x", "t"]), tau=skewed)
    refused(remap, law="kind")
    serialised = structure_of(("x", "serial", 4), ("t", "serial", 4))
    renamed = Expressions(serialised.space, grid.space, (DimRef(0), DimRef(1)))
    remap = replace(
        permute(grid, ["x", "t"]), new=serialised, tau=renamed, active=IndexSet(serialised.space)
    )
    refused(remap, law="kind")


def test_an_owner_is_not_split_by_a_level_that_combines() -> None:
    sums = structure_of(("x", "parallel", 3), ("r", "reduce:unordered_tree", 2))
    apart = structure_of(("p", "parallel", 6), ("r", "reduce:unordered_tree", 2))
    tau = Expressions(apart.space, sums.space, (DimRef(0) // 2, DimRef(1)))
    own = (Constraint(DimRef(0) % 2 - DimRef(1), is_equality=True),)
    remap = ExecRemap(sums, apart, tau, IndexSet(apart.space, own))
    assert check(remap, [Observer("term", "anchor", PrefixCut(2))])
    partial = Observer("partial", "owner", PrefixCut(2))
    error = refused(remap, partial, law="owner")
    assert "outermost" in str(error.remedy)


def test_a_skewed_wavefront_of_ordered_levels_keeps_their_order() -> None:
    grid = structure_of(("i", "serial", 4), ("j", "serial", 5))
    skewed = structure_of(("w", "serial", 4), ("j", "serial", 8))
    tau = Expressions(skewed.space, grid.space, (DimRef(0), DimRef(1) - DimRef(0)))
    inside = (Constraint(DimRef(1) - DimRef(0)), Constraint(4 - DimRef(1) + DimRef(0)))
    remap = ExecRemap(grid, skewed, tau, IndexSet(skewed.space, inside))
    assert check(remap, [Observer("step", "anchor", PrefixCut(2))])


def test_a_group_that_converges_stays_whole() -> None:
    group = structure_of(("g", "parallel", 4), ("lane", "parallel", 8))
    vote = Observer("vote", "convergence", PrefixCut(1))
    assert check(split(group, "lane", 4), [vote])
    apart = split(group, "lane", 4)
    mixed = compose(apart, permute(apart.new, ["lane.0", "g", "lane.1"]))
    refused(mixed, vote, law="participants")
    refused(fuse(group, "g", "lane"), vote, law="participants")


def test_work_that_may_repeat_is_re_anchored_and_effects_are_not() -> None:
    inward = permute(GEMM, ["k", "m", "n"])
    constant = Observer("constant", "anchor", PrefixCut(2), is_repeatable=True)
    refused(inward, constant, law="prefix once")
    proofs = check(inward, [constant], [Reanchor(constant, PrefixCut(3))])
    assert proofs[1].new_cut == PrefixCut(3)
    assert proofs[1].prefix_map.apply((7, 3, 4)) == (3, 4)
    moved = (Reanchor(ACCUMULATOR, PrefixCut(3)),)
    refused(inward, ACCUMULATOR, law="prefix once", reanchors=moved)
    refused(inward, constant, law="prefix", reanchors=(Reanchor(constant, PrefixCut(2)),))


def test_an_operation_is_spread_no_less_deep_than_it_stands() -> None:
    inward = permute(GEMM, ["k", "m", "n"])
    constant = Observer("constant", "anchor", PrefixCut(0), is_repeatable=True)
    spread = Observer("constant", "frontier", PrefixCut(0))
    assert check(inward, [constant, spread])[2].new_cut == PrefixCut(0)
    deeper = Reanchor(constant, PrefixCut(2))
    # The nest of m and n ends at depth 3.
    assert check(inward, [spread, constant], [deeper])[2].new_cut == PrefixCut(3)
    with pytest.raises(RemapError, match="its anchor is at depth 2"):
        check(inward, [constant, spread], [deeper, Reanchor(spread, PrefixCut(1))])


def test_huge_levels_are_decided_without_listing_them() -> None:
    huge = structure_of(
        ("x", "parallel", 1 << 40), ("y", "parallel", 1 << 40), ("t", "serial", 1 << 62)
    )
    observers = [
        Observer("start", "anchor", PrefixCut(2)),
        Observer("leaf", "anchor", PrefixCut(3)),
    ]
    tiled = split(huge, "t", 1000)
    assert check(compose(tiled, split(tiled.new, "x", 48)), observers)
    assert check(permute(huge, ["y", "x", "t"]), observers)
    with pytest.raises(ShapeError, match="extent"):
        fuse(huge, "x", "y")


def test_proofs_read_well() -> None:
    proofs = check(split(GEMM, "m", 4), [SCRATCH])
    first, *laws = str(proofs[1]).splitlines()
    assert first == "owner 'scratch' at depth 2: new depth 3"
    assert [line.strip().partition(":")[0] for line in laws] == [
        fact.law for fact in proofs[1].facts
    ]
    assert str(proofs[0]).startswith("the levels: ")


def test_memory_stays_with_its_owner() -> None:
    inward = permute(GEMM, ["k", "m", "n"])
    for depth in range(4):
        law = "prefix once" if depth == 3 else "prefix"
        refused(inward, SCRATCH, law=law, reanchors=(Reanchor(SCRATCH, PrefixCut(depth)),))


def test_an_anchor_above_an_empty_level_still_runs() -> None:
    empty = structure_of(("m", "parallel", 4), ("n", "parallel", 0))
    above = Observer("above", "anchor", PrefixCut(1))
    assert check(split(empty, "m", 2), [above])
    refused(fuse(empty, "m", "n"), above, law="prefix all")


def test_a_level_stays_in_its_scope() -> None:
    grid = ExecStructure(
        tuple(
            replace(level, scope=scope, nest=scope)
            for level, scope in zip(
                structure_of(("x", "parallel", 4), ("y", "parallel", 4)).levels,
                ("group", "worker"),
                strict=True,
            )
        )
    )
    assert check(permute(grid, ["y", "x"]), [Observer("leaf", "anchor", PrefixCut(2))])
    halved = split(grid, "x", 2)
    assert [level.scope for level in halved.new.levels] == ["group", "group", "worker"]
    with pytest.raises(RemapError, match="different kinds cannot be fused"):
        fuse(grid, "x", "y")
    with pytest.raises(VerifyError, match="levels of different kinds"):
        ExecStructure(tuple(replace(level, nest="one") for level in grid.levels))
    x, y = grid.levels
    for levels in ((replace(x, scope="worker"), y), (x, replace(y, scope="auto"))):
        error = refused(remap_of(grid, ExecStructure(levels), [DimRef(0), DimRef(1)]), law="kind")
        assert "scope" in str(error.remedy)
    refused(remap_of(grid, grid, [DimRef(1), DimRef(0)]), law="kind")


def test_laws_of_a_prefix_have_names_and_remedies_of_their_own() -> None:
    """The tail of a split that is known below an anchor only lets the anchor run too often."""
    old = structure_of(("m", "parallel", 5), ("k", "parallel", 4))
    above = Observer("above", "anchor", PrefixCut(1))
    right = split(old, "m", 2)
    assert check(right, [above])
    deep = Constraint((4 - DimRef(0) * 2 - DimRef(1)) * 4 + 3 - DimRef(2))
    wrong = remap_of(old, right.new, right.formula.results, [deep])
    assert next(judge(wrong, [])).failure is None
    late = refused(wrong, above, law="prefix active")
    moved = (Reanchor(above, PrefixCut(1)),)
    mixed = refused(permute(old, ["k", "m"]), above, law="prefix", reanchors=moved)
    assert len({late.remedy, mixed.remedy}) == 2
    names = [fact.law for fact in proof_of(check(right, [above]), above).facts]
    assert len(set(names)) == len(names)


def test_judge_says_what_is_known_and_refuses_nothing() -> None:
    proofs = list(judge(permute(GEMM, ["k", "m", "n"]), EVERYBODY))
    failed = {proof.observer.name for proof in proofs if proof.failure and proof.observer}
    assert failed == {"accumulator", "scratch"}


def test_observers_have_to_be_there() -> None:
    remap = split(GEMM, "m", 4)
    with pytest.raises(RemapError, match="does not observe"):
        check(remap, [MULTIPLY], [Reanchor(SCRATCH, PrefixCut(0))])
    with pytest.raises(VerifyError, match="no cut at depth 9"):
        check(remap, [Observer("deep", "anchor", PrefixCut(9))])
    with pytest.raises(VerifyError, match="no cut at depth 7"):
        check(remap, [SCRATCH], [Reanchor(SCRATCH, PrefixCut(7))])


def test_what_cannot_be_decided_is_refused() -> None:
    run_time = structure_of(("i", "parallel", "M"))
    # i*i + i is even, so that every instance stays where it is.
    i = DimRef(0)
    error = refused(remap_of(run_time, run_time, [i + (i * i + i) % 2]), law="active")
    assert "unknown" in str(error) and "numbers" in str(error.remedy)


def test_a_swizzle_of_independent_instances_is_legal() -> None:
    grid = structure_of(("x", "parallel", 4), ("y", "parallel", 4))
    # x stays, y becomes x ^ y.
    swizzled = BitLinear(grid.space, grid.space, (1, 2, 5, 10))
    remap = replace(permute(grid, ["x", "y"]), tau=swizzled)
    leaf = Observer("leaf", "anchor", PrefixCut(2))
    assert check(remap, [leaf])
