"""Affine maps: composition, substitution and text, judged by plain Python trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.oracle import (
    N_DIMS,
    N_SYMS,
    Tree,
    any_tree,
    build,
    dims,
    syms,
    value_of,
)
from tilenest.errors import ParseError, ShapeError
from tilenest.layouts import AffineMap, Const, DimRef, Sym, parse_affine_map

D0, D1, S0 = DimRef(0), DimRef(1), Sym(0)
three_trees = st.lists(any_tree, min_size=N_DIMS, max_size=N_DIMS)


def build_map(trees: list[Tree]) -> AffineMap:
    return AffineMap(N_DIMS, N_SYMS, tuple(build(tree) for tree in trees))


@given(three_trees, three_trees, dims, syms, syms)
def test_compose_is_one_map_after_the_other(
    outer: list[Tree],
    inner: list[Tree],
    point: tuple[int, ...],
    outer_syms: tuple[int, ...],
    inner_syms: tuple[int, ...],
) -> None:
    middle = [value_of(tree, point, inner_syms) for tree in inner]
    expected = tuple(value_of(tree, middle, outer_syms) for tree in outer)
    both = build_map(outer).compose(build_map(inner))
    assert (both.n_dims, both.n_syms) == (N_DIMS, 2 * N_SYMS)
    assert both.evaluate(point, outer_syms + inner_syms) == expected


@given(three_trees, three_trees, dims, syms)
def test_with_dims_keeps_the_symbols(
    outer: list[Tree], inner: list[Tree], point: tuple[int, ...], symbols: tuple[int, ...]
) -> None:
    middle = [value_of(tree, point, symbols) for tree in inner]
    replaced = build_map(outer).with_dims([build(tree) for tree in inner], N_DIMS)
    assert replaced.n_syms == N_SYMS
    assert replaced.evaluate(point, symbols) == tuple(
        value_of(tree, middle, symbols) for tree in outer
    )


@given(three_trees)
def test_identity_is_the_unit_of_compose(trees: list[Tree]) -> None:
    this = build_map(trees)
    assert AffineMap.identity(3).compose(this) == this
    assert this.compose(AffineMap.identity(3)) == this


@given(three_trees, st.integers(0, 3), dims, syms)
def test_shift_syms(
    trees: list[Tree], offset: int, point: tuple[int, ...], symbols: tuple[int, ...]
) -> None:
    shifted = build_map(trees).shift_syms(offset, N_SYMS + 4)
    assert shifted.n_syms == N_SYMS + 4
    padded = (77,) * offset + symbols + (77,) * (4 - offset)
    expected = tuple(value_of(tree, point, symbols) for tree in trees)
    assert shifted.evaluate(point, padded) == expected


@given(three_trees)
def test_text_round_trip(trees: list[Tree]) -> None:
    this = build_map(trees)
    parsed = parse_affine_map(str(this))
    assert parsed == this
    assert hash(parsed) == hash(this)
    assert str(parsed) == str(this)


@pytest.mark.parametrize(
    "text",
    ["() -> ()", "(d0, d1)[s0] -> (d0 + s0, d1)", "(d0) -> (0)", "()[s0, s1] -> (s1)"],
)
def test_exact_text(text: str) -> None:
    assert str(parse_affine_map(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(d0) -> (d1)", "result d1 .* undeclared"),
        ("(d0) -> (s0)", "result s0 .* undeclared"),
        ("(d1) -> (d1)", 'expected "d0" at column 2'),
        ("(d0 d1) -> (d0)", 'expected "," at column 5'),
        ("(d0) -> (d0", 'expected "," at column 12'),
        ("(d0) (d0)", 'expected "->" at column 6'),
        ("(d0) -> (d0) d0", "expected the end at column 14"),
    ],
)
def test_bad_text(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_affine_map(text)


def test_constructors() -> None:
    assert AffineMap.identity(3).evaluate((5, 6, 7)) == (5, 6, 7)
    assert AffineMap.projection(3, (2, 0)).evaluate((5, 6, 7)) == (7, 5)
    assert AffineMap.constant(2, (4, -1)) == AffineMap(2, 0, (Const(4), Const(-1)))


def test_is_projection() -> None:
    assert AffineMap.projection(3, (2, 0)).is_projection()
    assert not AffineMap.projection(3, (2, 2)).is_projection()
    assert not AffineMap(2, 1, (D0 + S0,)).is_projection()
    assert not AffineMap.constant(1, (0,)).is_projection()


def test_a_result_outside_the_map_is_refused() -> None:
    with pytest.raises(ShapeError, match="1 dimensions"):
        AffineMap(1, 0, (D1,))
    with pytest.raises(ShapeError, match="0 symbols"):
        AffineMap(1, 0, (S0,))


@pytest.mark.parametrize("counts", [(1, -1), (-1, 0), (1, 1 << 20), (1 << 20, 1)])
def test_a_map_of_a_wrong_number_of_dimensions_is_refused(counts: tuple[int, int]) -> None:
    wrong = next(count for count in counts if not 0 <= count <= 1)
    for results in ((), (Const(0),)):
        with pytest.raises(ShapeError, match=f"a map has {wrong} ") as error:
            AffineMap(*counts, results)
        assert error.value.remedy
    with pytest.raises(ShapeError, match="a map has -2 dimensions"):
        AffineMap.identity(-2)
