"""CuTe layouts and their operators, each judged by the values it has to have."""

from collections import Counter
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.layouts.cute_cases import (
    flat_layouts,
    is_some_layout,
    layouts,
    leaves,
    modes_of,
    value,
    values,
)
from tilenest.errors import ShapeError
from tilenest.layouts import cute
from tilenest.layouts.cute import Layout, parse


def made(text: str) -> Layout:
    found = parse(text)
    assert isinstance(found, Layout)
    return found


@given(layouts())
def test_a_layout_is_its_values_in_colexicographic_order(layout: Layout) -> None:
    expected = values(layout)
    assert list(layout.values()) == expected
    assert layout.size == len(expected)
    assert layout.cosize == max(expected) - min(expected) + 1
    for place, wanted in enumerate(expected):
        coordinate = cute.idx2crd(place, layout.shape)
        assert layout(coordinate) == layout(place) == wanted
        assert cute.crd2idx(coordinate, layout.shape) == place


def test_coordinates_may_be_coarser_than_the_shape() -> None:
    layout = made("(3,(2,3)):(3,(12,1))")
    assert layout((1, 5)) == layout((1, (1, 2))) == layout(16) == 17
    assert cute.idx2crd(16, layout.shape) == (1, (1, 2))


@pytest.mark.parametrize(
    ("coordinate", "why"),
    [
        (18, "18 is no place in the 18 coordinates"),
        (-1, "-1 is no place"),
        ((1, 2, 3), "no coordinate of"),
        (((1, 0), 2), "no coordinate of"),
        ((3, 0), "3 is no coordinate of 3"),
        ((0, 6), "6 is no place in the 6"),
    ],
)
def test_coordinates_outside_a_layout_are_refused(coordinate: cute.IntTuple, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        made("(3,(2,3)):(3,(12,1))")(coordinate)


@pytest.mark.parametrize(
    ("shape", "stride", "why"),
    [
        ((2, 3), (1, 2, 6), "not nested as the shape"),
        ((2, 3), 1, "not nested as the shape"),
        ((2, (3, 4)), (1, 2), "not nested as the shape"),
        ((2, 0), (1, 2), "extent below 1"),
        (-3, 1, "extent below 1"),
    ],
)
def test_shapes_and_strides_have_to_fit(
    shape: cute.IntTuple, stride: cute.IntTuple, why: str
) -> None:
    with pytest.raises(ShapeError, match=why):
        Layout(shape, stride)


@given(layouts())
def test_coalesce_and_flatten_keep_the_function(layout: Layout) -> None:
    flat, short = cute.flatten(layout), cute.coalesce(layout)
    assert values(flat) == values(short) == values(layout)
    assert flat.rank == len(leaves(layout.shape))
    modes = modes_of(short)
    assert modes == [(1, 0)] or all(extent > 1 for extent, _ in modes)
    assert all(n * d != e for (n, d), (_, e) in pairwise(modes))


def test_composition_with_one_mode_is_pointwise_and_refused_only_where_no_layout_is_it() -> None:
    verdicts: Counter[bool] = Counter()
    for outer in flat_layouts((2, 3, 4, 6), (0, 1, 3, 4, 10), (1, 2)):
        table = values(outer)
        for extent, stride in product(range(1, 9), range(7)):
            if (extent - 1) * stride >= len(table):
                continue
            expected = [table[stride * i] for i in range(extent)]
            try:
                found = cute.composition(outer, Layout(extent, stride))
            except ShapeError:
                assert not is_some_layout(expected), f"{outer} o {extent}:{stride}"
                verdicts[False] += 1
            else:
                assert values(found) == expected, f"{outer} o {extent}:{stride}"
                verdicts[True] += 1
    assert verdicts[True] > 8000
    assert verdicts[False] > 500


def test_composition_of_small_layouts_is_pointwise() -> None:
    verdicts: Counter[bool] = Counter()
    inners = list(flat_layouts((2, 3, 4), (0, 1, 2, 3, 4), (2,)))
    for outer in flat_layouts((2, 4, 6), (1, 3, 20), (2,)):
        table = values(outer)
        for inner in inners:
            places = values(inner)
            try:
                found = cute.composition(outer, inner)
            except ShapeError:
                verdicts[False] += 1
            else:
                assert values(found) == [table[i] for i in places], f"{outer} o {inner}"
                verdicts[True] += 1
    assert verdicts[True] > 3000


@given(layouts(), layouts(strides=(0, 1, 2, 3, 4, 6, 8, 12, 24)))
def test_composition_is_pointwise_and_keeps_the_inner_nesting(outer: Layout, inner: Layout) -> None:
    try:
        found = cute.composition(outer, inner)
    except ShapeError:
        assume(False)
    table = values(outer)
    assert values(found) == [table[i] for i in values(inner)]
    nested = cute.composition(outer, cute.joined(*inner.modes()))
    assert list(nested.values()) == list(found.values())
    assert [mode.size for mode in nested.modes()] == [mode.size for mode in inner.modes()]


def test_known_compositions() -> None:
    assert str(cute.composition(made("(6,2):(8,2)"), made("(4,3):(3,1)"))) == "((2,2),3):((24,2),8)"
    assert str(cute.composition(made("20:2"), made("(5,4):(4,1)"))) == "(5,4):(8,2)"
    assert str(cute.composition(made("(8,4,3):(1,8,32)"), (4, made("2:2")))) == (
        "(4,2,3):(1,16,32)"
    )


@pytest.mark.parametrize(
    ("outer", "inner", "why"),
    [
        ("(6,2):(1,7)", "3:4", "2 steps of 4 fit an extent of 6, and 2 does not divide 3"),
        ("(4,3):(1,7)", "6:1", "4 steps of 1 fit an extent of 4, and 4 does not divide 6"),
        ("(4,2):(1,10)", "(2,2):(3,2)", "add up to 5 inside a mode of extent 4"),
        ("8:1", "9:1", "run from 0 to 8, and the places of 8:1 from 0 to 7"),
        ("8:1", "2:-1", "run from -1 to 0"),
    ],
)
def test_what_cannot_be_composed_says_which_condition_fails(
    outer: str, inner: str, why: str
) -> None:
    with pytest.raises(ShapeError, match=why):
        cute.composition(made(outer), made(inner))


def test_complements_are_disjoint_and_cover() -> None:
    accepted = 0
    for layout in flat_layouts((1, 2, 3, 4), (0, 1, 2, 3, 4, 6, 8), (1, 2)):
        for cotarget in (1, 5, 12, 24):
            try:
                rest = cute.complement(layout, cotarget)
            except ShapeError:
                continue
            sums = [a + b for a in set(values(layout)) for b in values(rest)]
            assert len(set(sums)) == len(sums), f"{layout} in {cotarget}: {rest}"
            assert set(range(cotarget)) <= set(sums), f"{layout} in {cotarget}: {rest}"
            # Ordered, and no longer than the target needs.
            assert values(rest) == sorted(values(rest))
            accepted += 1
    assert accepted > 1500


def test_known_complements() -> None:
    known = {
        "4:1": "6:4",
        "6:4": "4:1",
        "(4,6):(1,4)": "1:0",
        "4:2": "(2,3):(1,8)",
        "(2,4):(1,6)": "3:2",
        "(2,2):(1,6)": "(3,2):(2,12)",
    }
    for layout, rest in known.items():
        assert str(cute.complement(made(layout), 24)) == rest


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ("(2,2):(2,3)", "its stride 3 is no multiple of 4"),
        ("4:-1", "its stride -1 is no multiple of 1"),
        ("(2,2):(1,1)", "its stride 1 is no multiple of 2"),
    ],
)
def test_what_has_no_complement_names_the_stride(layout: str, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        cute.complement(made(layout), 24)


def test_divides_of_small_layouts() -> None:
    accepted = 0
    tilers = list(flat_layouts((2, 3, 4), (1, 2, 3, 4, 6), (1, 2)))
    for layout in (made(text) for text in ("24:1", "(4,6):(7,1)", "((2,2),6):((6,3),20)")):
        table = values(layout)
        for tiler in tilers:
            try:
                found = cute.logical_divide(layout, tiler)
            except ShapeError:
                continue
            tile, _rest = found.modes()
            assert values(tile) == [table[i] for i in values(tiler)]
            assert sorted(values(found)) == sorted(table)
            copies = cute.complement(tiler, layout.size)
            expected = [table[i + j] for j in values(copies) for i in values(tiler)]
            assert values(found) == expected
            accepted += 1
    assert accepted > 30


def test_known_divides() -> None:
    found = cute.logical_divide(made("(4,2,3):(2,1,8)"), made("4:2"))
    assert str(found) == "((2,2),(2,3)):((4,1),(2,8))"
    layout, tiler = made("(9,(4,8)):(59,(13,1))"), (made("3:3"), made("(2,4):(1,8)"))
    assert str(cute.logical_divide(layout, tiler)) == (
        "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    )
    assert str(cute.zipped_divide(layout, tiler)) == (
        "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"
    )
    assert str(cute.tiled_divide(layout, tiler)) == ("((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))")


@given(st.sampled_from([1, 2, 3, 4, 6, 12]), st.sampled_from([1, 2, 4, 8]), layouts(depth=0))
def test_zipped_and_tiled_divides_regroup_the_logical_one(rows: int, columns: int, last: Layout):
    layout = cute.joined(made("12:5"), made("(2,4):(100,7)"), last)
    logical = cute.logical_divide(layout, (rows, columns))
    zipped = cute.zipped_divide(layout, (rows, columns))
    tiled = cute.tiled_divide(layout, (rows, columns))
    for a, b, c, d in product(range(rows), range(columns), range(12 // rows), range(8 // columns)):
        for e in range(last.size):
            wanted = layout((a + rows * c, b + columns * d, e))
            assert logical(((a, c), (b, d), e)) == wanted
            assert zipped(((a, b), (c, d, e))) == wanted
            assert tiled(((a, b), c, d, e)) == wanted


@pytest.mark.parametrize(
    ("tiler", "why"),
    [
        ("5:1", "5:1 does not divide 24:1: its tiles of 5 and their 5 places make 25 of 24"),
        ("2:0", "make 48 of 24"),
        ("(2,2):(2,3)", "has no complement"),
    ],
)
def test_what_does_not_divide_says_why(tiler: str, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        cute.logical_divide(made("24:1"), made(tiler))


def test_too_many_tilers_are_refused() -> None:
    for operator in (cute.composition, cute.logical_divide, cute.logical_product):
        with pytest.raises(ShapeError, match="3 tilers do not fit the 2 modes"):
            operator(made("(4,4):(1,4)"), (2, 2, 2))


def test_products_of_small_layouts() -> None:
    accepted = 0
    tilers = list(flat_layouts((1, 2, 3), (0, 1, 2, 3), (1, 2)))
    for block in flat_layouts((2, 3), (1, 2, 3, 4, 6), (1, 2)):
        for tiler in tilers:
            try:
                found = cute.logical_product(block, tiler)
            except ShapeError:
                continue
            where = values(cute.complement(block, block.size * tiler.cosize))
            expected = [a + where[j] for j in values(tiler) for a in values(block)]
            assert values(found) == expected
            # Different copies share no value.
            copies = {j: {a + where[j] for a in values(block)} for j in set(values(tiler))}
            assert sum(map(len, copies.values())) == len(set().union(*copies.values()))
            accepted += 1
    assert accepted > 1000


def test_known_products() -> None:
    block = made("(2,2):(4,1)")
    assert str(cute.logical_product(block, made("6:1"))) == "((2,2),(2,3)):((4,1),(2,8))"
    assert str(cute.logical_product(block, made("(4,2):(2,1)"))) == "((2,2),(4,2)):((4,1),(8,2))"
    one, other = made("(2,5):(5,1)"), made("(3,4):(1,3)")
    assert str(cute.blocked_product(one, other)) == "((2,3),(5,4)):((5,10),(1,30))"
    assert str(cute.raked_product(one, other)) == "((3,2),(4,5)):((10,5),(30,1))"


@given(*[st.integers(1, 4)] * 4, st.booleans(), st.booleans())
def test_blocked_and_raked_products_are_kronecker_sums(
    m: int, n: int, p: int, q: int, by_row: bool, tiles_by_row: bool
) -> None:
    block = Layout((m, n), (n, 1) if by_row else (1, m))
    tiler = Layout((p, q), (q, 1) if tiles_by_row else (1, p))
    inside = np.arange(m * n).reshape((m, n), order="C" if by_row else "F")
    tiles = np.arange(p * q).reshape((p, q), order="C" if tiles_by_row else "F")
    one = np.ones((m, n), int)
    blocked = np.kron(np.ones((p, q), int), inside) + m * n * np.kron(tiles, one)
    raked = np.kron(inside, np.ones((p, q), int)) + m * n * np.kron(one, tiles)
    for layout, array in (
        (cute.blocked_product(block, tiler), blocked),
        (cute.raked_product(block, tiler), raked),
    ):
        found = [[layout((i, j)) for j in range(n * q)] for i in range(m * p)]
        np.testing.assert_array_equal(found, array)


def test_blocked_product_fills_missing_modes() -> None:
    found = cute.blocked_product(made("(2,3):(1,2)"), made("4:1"))
    assert str(found) == "((2,4),(3,1)):((1,6),(2,0))"


@given(st.sampled_from([2, 3]), st.sampled_from([1, 2, 4]))
def test_zipped_and_tiled_products_regroup_the_logical_one(rows: int, columns: int) -> None:
    block = made("(2,3):(1,4)")
    tiler = (rows, made(f"{columns}:1"))
    logical = cute.logical_product(block, tiler)
    zipped = cute.zipped_product(block, tiler)
    tiled = cute.tiled_product(block, tiler)
    for a, b, c, d in product(range(2), range(3), range(rows), range(columns)):
        wanted = logical(((a, c), (b, d)))
        assert zipped(((a, b), (c, d))) == tiled(((a, b), c, d)) == wanted


def test_right_inverses_are_inverse_on_the_right_and_longest_by_stride() -> None:
    lengths: Counter[int] = Counter()
    for layout in flat_layouts((1, 2, 3, 4), (0, 1, 2, 3, 4, 6, 8), (1, 2)):
        table, found = values(layout), values(cute.right_inverse(layout))
        assert [table[i] for i in found] == list(range(len(found))), str(layout)
        if sorted(table) == list(range(len(table))):
            assert len(found) == len(table), str(layout)
        lengths[len(found)] += 1
    assert len(lengths) > 8


def test_left_inverses_are_inverse_on_the_left() -> None:
    accepted = 0
    for layout in flat_layouts((1, 2, 3, 4), (0, 1, 2, 3, 4, 6, 8, 12), (1, 2)):
        try:
            found = cute.left_inverse(layout)
        except ShapeError:
            continue
        modes = modes_of(found)
        assert all(value(modes, x) == i for i, x in enumerate(values(layout))), str(layout)
        assert max(values(layout)) < prod(extent for extent, _ in modes)
        accepted += 1
    assert accepted > 200


@pytest.mark.parametrize(
    ("layout", "why"),
    [("(2,3):(1,0)", "stride 0"), ("(2,2):(1,1)", "no multiple of 2"), ("3:-1", "no complement")],
)
def test_what_has_no_left_inverse_says_why(layout: str, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        cute.left_inverse(made(layout))
