"""Remaps of levels whose extents are known at run time only: proven for all of them at once."""

import pytest

from tests.unit.execution import oracle
from tests.unit.execution.oracle import every_event, structure_of
from tilenest.errors import RemapError
from tilenest.execution import (
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    RemapProof,
    check,
    compose,
    fuse,
    legality,
    pairs,
    permute,
    split,
)
from tilenest.layouts import IndexExpr, Ranges
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
    constraints = len(remap.active.constraints) + len(remap.domain.constraints)
    assert asked["sums"] < 20 * constraints, asked
