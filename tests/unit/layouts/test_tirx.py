"""TIRx tile layouts: what shard, replica and offset mean, as correspondences and back."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilenest.errors import ShapeError
from tilenest.layouts import (
    DimRef,
    Expressions,
    Identity,
    LayoutCorr,
    MixedRadix,
    Project,
    Recast,
    Space,
    Translate,
    parse_space,
)
from tilenest.layouts.tirx import TileLayout, from_correspondence, tile_layout, to_correspondence

Part = tuple[int, int, str]
Places = dict[tuple[int, ...], set[frozenset[tuple[str, int]]]]


def meaning(
    shard: Sequence[Part],
    replica: Sequence[Part],
    offset: Mapping[str, int],
    shape: Sequence[int],
) -> Places:
    """Every place of every logical point, by walking all digits; coordinates at 0 are left out."""
    found: Places = defaultdict(set)
    points = product(*map(range, shape))
    digits = product(*(range(extent) for extent, _, _ in shard))
    for point, moved in zip(points, digits, strict=True):
        for copied in product(*(range(extent) for extent, _, _ in replica)):
            place = defaultdict(int, offset)
            for x, (_, stride, axis) in zip([*moved, *copied], [*shard, *replica], strict=True):
                place[axis] += x * stride
            found[point].add(frozenset((axis, x) for axis, x in place.items() if x))
    return dict(found)


def meaning_of(corr: LayoutCorr) -> Places:
    found: Places = defaultdict(set)
    names = [axis.name for axis in corr.codomain.axes]
    for point, place in corr.pairs():
        found[point].add(frozenset((n, x) for n, x in zip(names, place, strict=True) if x))
    return dict(found)


def check(
    shard: Sequence[Part],
    replica: Sequence[Part],
    offset: Mapping[str, int],
    shape: Sequence[int] | None = None,
) -> None:
    layout = tile_layout(shard, replica, offset)
    logical = [extent for extent, _, _ in shard] if shape is None else shape
    expected = meaning(shard, replica, offset, logical)
    corr = to_correspondence(layout, shape)
    assert meaning_of(corr) == expected
    back = from_correspondence(corr)
    assert meaning_of(to_correspondence(back, logical)) == expected, f"{layout} as {back}"


def test_small_layouts_go_there_and_back() -> None:
    digits = [(2, 1, "lane"), (3, 2, "lane"), (2, 4, "reg"), (2, 0, "reg"), (1, 5, "warp")]
    for shard in product(digits, repeat=2):
        for replica in ([], [(2, 6, "lane")], [(2, 0, "warp"), (3, 1, "warp")]):
            for offset in ({}, {"lane": 5}, {"block": 2}):
                check(shard, replica, offset)


@st.composite
def parts(draw: st.DrawFn, most: int) -> list[Part]:
    axes = st.sampled_from(["lane", "warp", "reg", "block"])
    part = st.tuples(st.sampled_from([1, 2, 3, 4]), st.integers(-3, 8), axes)
    return draw(st.lists(part, min_size=1 if most > 2 else 0, max_size=most))


@given(parts(4), parts(2), st.booleans())
def test_layouts_go_there_and_back(shard: list[Part], replica: list[Part], is_flat: bool) -> None:
    needed: dict[str, int] = defaultdict(int)
    for extent, stride, axis in [*shard, *replica]:
        needed[axis] -= min(stride, 0) * (extent - 1)
    check(shard, replica, needed, [prod(e for e, _, _ in shard)] if is_flat else None)


def test_the_tile_of_eight_by_sixteen_with_offset_and_replicas() -> None:
    shard = [(8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg")]
    layout = tile_layout(shard, [(2, 4, "warp")], {"warp": 5})
    assert str(layout) == "S[8:4@lane, 2:1@warp, 4:1@lane, 2:1@reg] + R[2:4@warp] + 5@warp"
    corr = to_correspondence(layout, (8, 16))
    assert meaning_of(corr) == meaning(shard, [(2, 4, "warp")], {"warp": 5}, (8, 16))
    assert corr.codomain == parse_space("[lane=32, warp=11, reg=2]")
    assert corr.placed()[3, 11] == ((13, 6, 1), (13, 10, 1))
    replication = corr.replication()
    assert (replication.covered, replication.least, replication.most) == (128, 2, 2)
    assert from_correspondence(corr) == layout


def test_a_plain_map_is_a_layout_without_replicas() -> None:
    logical = Space.box(4, 6)
    physical = parse_space("[bank=8, row=8]")
    layout = MixedRadix(logical, physical, ((0, 1), (2, 0)))
    assert str(from_correspondence(LayoutCorr.from_map(layout))) == "S[4:2@row, 6:1@bank]"
    split = Expressions(logical, physical, (DimRef(1) % 3, DimRef(0) + DimRef(1) // 3 * 4))
    assert str(from_correspondence(LayoutCorr.from_map(split))) == ("S[4:1@row, 2:4@row, 3:1@bank]")


BOX = Space.box(4)
LINE = parse_space("[m=8]")
PLANE = parse_space("[m=8, n=8]")


@pytest.mark.parametrize(
    ("corr", "why"),
    [
        (LayoutCorr(Identity(BOX), MixedRadix(BOX, PLANE, ((1,), (1,)))), "moves 2 physical axes"),
        (LayoutCorr(Identity(BOX), MixedRadix(BOX, LINE, ((3,),))), "not proven to stay in .m=8."),
        (
            LayoutCorr(Identity(BOX), Expressions(BOX, LINE, (DimRef(0) * DimRef(0) % 8,))),
            "not proven .*witness",
        ),
        (
            LayoutCorr(Translate(BOX, Space.box(8), (2,)), MixedRadix(BOX, LINE, ((1,),))),
            "reach 4 of the 8 points of .x0=8., from 2 on",
        ),
        (
            LayoutCorr(MixedRadix(BOX, Space.box(8), ((2,),)), MixedRadix(BOX, LINE, ((1,),))),
            "steps by 2 where 1 is next",
        ),
        (
            LayoutCorr(
                MixedRadix(Space.box(2, 2), Space.box(3), ((1, 1),)),
                MixedRadix(Space.box(2, 2), LINE, ((1, 2),)),
            ),
            "steps by 1 where 2 is next",
        ),
        (
            LayoutCorr(Identity(BOX), Project(BOX, ())),
            "does not name physical axes",
        ),
        (
            LayoutCorr.from_map(MixedRadix(Space.box("n"), LINE, ((0,),))),
            "has no strides",
        ),
        (
            LayoutCorr.from_map(MixedRadix(BOX, Space(LINE.axes * 2), ((1,), (0,)))),
            "does not name physical axes",
        ),
    ],
)
def test_correspondences_that_are_no_tile_layout_are_refused(corr: LayoutCorr, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        from_correspondence(corr)


@pytest.mark.parametrize(
    ("shard", "offset", "why"),
    [
        ([(0, 1, "m")], {}, "an extent below 1"),
        ([(4, -1, "m")], {"m": 2}, "starts below 0, at -1, on axis 'm'"),
    ],
)
def test_layouts_have_to_fit(shard: list[Part], offset: dict[str, int], why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        tile_layout(shard, (), offset)


def test_shapes_and_offsets_have_to_fit() -> None:
    layout = tile_layout([(4, 1, "m"), (2, 4, "m")])
    with pytest.raises(ShapeError, match=r"shards 8 points, and .i0=3, i1=3. has 9"):
        to_correspondence(layout, (3, 3))
    with pytest.raises(ShapeError, match="an axis two offsets"):
        TileLayout(layout.shard, (), (("m", 1), ("m", 2)))
    corr = to_correspondence(layout, (8,))
    assert corr.left == Project(corr.occurrences, (0, 1)).then(
        Recast(Space.box(4, 2, prefix="s"), Space.box(8, prefix="i"))
    )
