"""The ways to rearrange levels, against events moved one by one."""

from collections.abc import Sequence
from itertools import permutations, product
from typing import Literal

import pytest

from tests.unit.execution import oracle
from tests.unit.execution.oracle import Events, every_event, structure_of
from tilenest.errors import RemapError, VerifyError
from tilenest.execution import (
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    check,
    coalesce,
    compose,
    fuse,
    identity,
    insert_unit,
    permute,
    remove_unit,
    reshape,
    split,
    unite,
)

KINDS: tuple[Literal["anchor", "frontier", "owner"], ...] = ("anchor", "frontier", "owner")
EXTENTS = (0, 1, 2, 3, 5, 8)


def events_of(remap: ExecRemap) -> Events:
    """Every new instance that runs, by the remap's own account."""
    found = {point: remap.apply(point) for point in remap.new.space.points()}
    return {new: old for new, old in found.items() if old is not None}


def same_extents(remap: ExecRemap, extents: Sequence[int]) -> bool:
    return remap.new.space.extents == tuple(extents)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("factor", [1, 2, 3, 5, 9])
def test_split(extent: int, factor: int) -> None:
    remap = split(structure_of(("a", "serial", 2), ("b", "serial", extent)), "b", factor)
    assert same_extents(remap, (2, -(-extent // factor), factor))
    assert events_of(remap) == oracle.split(every_event((2, extent)), 1, factor)
    assert check(remap, ())


@pytest.mark.parametrize("extents", list(product(EXTENTS, EXTENTS)))
def test_fuse(extents: tuple[int, int]) -> None:
    remap = fuse(
        structure_of(("a", "parallel", extents[0]), ("b", "parallel", extents[1])), "a", "b"
    )
    assert same_extents(remap, (extents[0] * extents[1],))
    assert events_of(remap) == oracle.fuse(every_event(extents), 0, extents)
    assert check(remap, ())


@pytest.mark.parametrize("extents", [(0, 3), (1, 1), (2, 3), (3, "N"), ("M", "N")])
def test_unite(extents: tuple[int | str, int | str]) -> None:
    """Two nests become one; no instance moves, whatever the extents of run time are."""
    apart = ExecStructure(
        tuple(
            ExecLevel(name, name, "parallel", extent, nest=f"nest of {name}")
            for name, extent in zip("ab", extents, strict=True)
        )
    )
    remap = unite(apart, "a", "b")
    assert apart.is_boundary(1) and not remap.new.is_boundary(1)
    assert [level.identity for level in remap.new.levels] == ["a", "b"]
    observers = [
        Observer(f"at {depth}", kind, PrefixCut(depth)) for kind in KINDS for depth in range(3)
    ]
    assert check(remap, observers)
    if all(isinstance(extent, int) for extent in extents):
        assert all(new == old for new, old in events_of(remap).items())


def test_levels_that_are_not_alike_are_not_united() -> None:
    with pytest.raises(RemapError, match="different kinds cannot be united"):
        unite(structure_of(("a", "parallel", 2), ("b", "serial", 3)), "a", "b")


def test_fuse_takes_more_levels_in_the_middle() -> None:
    levels = [(name, "parallel", extent) for name, extent in zip("abcd", (2, 3, 1, 2), strict=True)]
    remap = fuse(structure_of(*levels), "b", "c", "d")
    assert events_of(remap) == oracle.fuse(every_event((2, 3, 1, 2)), 1, (3, 1, 2))
    assert [level.identity for level in remap.new.levels] == ["a", "b+c+d"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("extents", [(2, 3, 2), (1, 5, 3), (2, 0, 3)])
def test_permute(order: tuple[int, ...], extents: tuple[int, ...]) -> None:
    names = "abc"
    structure = structure_of(*((n, "parallel", e) for n, e in zip(names, extents, strict=True)))
    remap = permute(structure, [names[at] for at in order])
    assert events_of(remap) == oracle.permute(every_event(extents), order)
    assert check(remap, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((6,), (2, 3)),
        ((2, 3), (3, 2)),
        ((5,), (2, 3)),
        ((2, 3, 2), (5, 3)),
        ((8,), (2, 2, 2)),
        ((3, 0), (2, 2)),
        ((1, 1), ()),
        ((1,), (1, 1)),
    ],
)
def test_reshape(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    levels = [(f"x{at}", "serial", extent) for at, extent in enumerate(old)]
    structure = structure_of(("a", "parallel", 2), *levels)
    remap = reshape(structure, [name for name, _, _ in levels], new)
    assert same_extents(remap, (2, *new))
    assert events_of(remap) == oracle.reshape(every_event((2, *old)), 1, old, new)
    assert check(remap, ())


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_unit_levels_come_and_go(depth: int) -> None:
    structure = structure_of(("a", "parallel", 3), ("b", "serial", 2))
    unit = ExecLevel("u", "u", "parallel", 1)
    put = insert_unit(structure, depth, unit)
    wanted = {(*p[:depth], 0, *p[depth:]): p for p in every_event((3, 2))}
    assert events_of(put) == wanted and check(put, ())
    back = compose(put, remove_unit(put.new, "u"))
    assert back.new == structure
    assert events_of(back) == every_event((3, 2)) and check(back, ())


def test_coalesce_drops_units_and_joins_what_a_nest_holds() -> None:
    structure = structure_of(
        ("a", "parallel", 2),
        ("u", "parallel", 1),
        ("b", "parallel", 3),
        ("k", "serial", 2),
        ("v", "pipeline", 1),
    )
    remap = coalesce(structure)
    assert [level.identity for level in remap.new.levels] == ["a+b", "k"]
    dropped: Events = {(p[0], p[2], p[3]): p for p in every_event((2, 1, 3, 2, 1))}
    assert events_of(remap) == oracle.fuse(dropped, 0, (2, 3))
    assert coalesce(remap.new).new == remap.new
    assert check(remap, ())


def test_a_chain_is_its_steps_one_after_the_other() -> None:
    first = split(structure_of(("m", "parallel", 5), ("n", "parallel", 3)), "m", 2)
    second = permute(first.new, ["n", "m.1", "m.0"])
    chain = compose(first, second)
    assert events_of(chain) == oracle.permute(oracle.split(every_event((5, 3)), 0, 2), (2, 1, 0))
    assert chain.provenance == first.provenance + second.provenance
    assert str(chain).startswith("split m by 2 into m.0, m.1; permute")
    unchanged = compose(identity(first.old), chain)
    assert events_of(unchanged) == events_of(chain) and str(identity(first.old)) == "identity"


def test_a_level_that_comes_back_keeps_its_kind_scope_and_nest() -> None:
    structure = structure_of(("m", "parallel", 8), ("k", "reduce:fold_left", 6))
    chain = split(structure, "k", 3)
    joined = compose(chain, fuse(chain.new, "k.0", "k.1"))
    before, after = structure.levels[1], joined.new.levels[1]
    assert (after.family, after.scope, after.nest, after.extent) == (
        before.family,
        before.scope,
        before.nest,
        before.extent,
    )


def test_names_stay_apart_when_a_name_is_taken() -> None:
    structure = structure_of(("m", "serial", 8), ("m.0", "serial", 2))
    assert [level.identity for level in split(structure, "m", 4).new.levels] == [
        "m_1.0",
        "m_1.1",
        "m.0",
    ]


@pytest.mark.parametrize("extent", [8, 7, "N"])
def test_the_halves_of_a_split_take_their_name_back(extent: int | str) -> None:
    structure = structure_of(("m", "serial", extent), ("k", "serial", 3))
    halved = split(split(structure, "k", 2).new, "m", 4).new
    first, second, *_ = halved.levels
    assert (first.name, second.name) == ("m_outer", "m_inner")
    back = fuse(halved, "m.0", "m.1").new
    assert [level.identity for level in back.levels] == ["m", "k.0", "k.1"]
    assert [level.name for level in back.levels] == ["m", "k_outer", "k_inner"]
    # Not where another level has it by now.
    taken = insert_unit(halved, 0, ExecLevel("m", "m", "serial", 1)).new
    other = fuse(taken, "m.0", "m.1").new.levels[1]
    assert (other.identity, other.name) == ("m.0+m.1", "m_outer_m_inner")
    swapped = permute(halved, ["m.1", "m.0", "k.0", "k.1"]).new
    assert fuse(swapped, "m.1", "m.0").new.levels[0].identity == "m.1+m.0"


@pytest.mark.parametrize("extent", [64, "N"])
def test_names_stay_short_and_apart_however_many_steps_there_are(extent: int | str) -> None:
    """Halves that change places are no halves; the names of what they make are bounded."""
    structure = structure_of(("m", "parallel", extent), ("k", "parallel", 6))
    for turn in range(24):
        one, other = (level.identity for level in structure.levels)
        structure = split(split(structure, one, 2).new, other, 3).new
        a, b, c, d = (level.identity for level in structure.levels)
        structure = permute(structure, [a, c, b, d] if turn % 2 else [c, a, d, b]).new
        ends = [level.identity for level in structure.levels]
        structure = fuse(fuse(structure, *ends[:2]).new, *ends[2:]).new
        for said in ("identity", "name"):
            names = [getattr(level, said) for level in structure.levels]
            assert len(set(names)) == 2 and all(len(name) <= 64 for name in names)
        if isinstance(extent, str):
            assert all(len(name) <= 64 for name in structure.symbols)
            structure = structure_of(
                *((level.identity, "parallel", level.extent) for level in structure.levels)
            )


def test_steps_that_are_no_rearrangement_are_refused() -> None:
    structure = structure_of(("m", "parallel", 4), ("n", "parallel", 3), ("k", "serial", "K"))
    with pytest.raises(RemapError, match="blocks of 0"):
        split(structure, "m", 0)
    with pytest.raises(RemapError, match="different kinds"):
        fuse(structure, "n", "k")
    with pytest.raises(RemapError, match="do not follow one another"):
        fuse(structure, "m", "k")
    with pytest.raises(RemapError, match="do not follow one another"):
        fuse(structure, "n", "m")
    with pytest.raises(RemapError, match="no order of the levels"):
        permute(structure, ["m", "n"])
    with pytest.raises(RemapError, match="12 instances do not fit"):
        reshape(structure, ["m", "n"], [11])
    with pytest.raises(RemapError, match="known extents"):
        reshape(structure, ["k"], [2, 2])
    with pytest.raises(RemapError, match="cannot be removed"):
        remove_unit(structure, "m")
    with pytest.raises(RemapError, match="cannot be inserted"):
        insert_unit(structure, 4, ExecLevel("u", "u", "serial", 1))
    with pytest.raises(VerifyError, match="no level 'z'"):
        split(structure, "z", 2)
    with pytest.raises(RemapError, match="begins at other levels"):
        compose(split(structure, "m", 2), split(structure, "m", 2))
    two_nests = (
        structure_of(("a", "serial", 2)).levels
        + structure_of(("b", "serial", 2), nest="other").levels
    )
    with pytest.raises(RemapError, match="different nests"):
        reshape(type(structure)(two_nests), ["a", "b"], [4])
