"""Index expressions: value, canonical form, ranges and text, judged by plain Python trees."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.oracle import Tree, any_tree, build, dims, leaves, syms, value_of
from tilenest.errors import ParseError, ShapeError
from tilenest.layouts import (
    Add,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    LinearForm,
    Mod,
    Mul,
    Sym,
    bit_and,
    bounds,
    parse_index_expr,
    shift_left,
    shift_right,
    simplify,
    xor,
)

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)
S0 = Sym(0)
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


@given(any_tree, dims, syms)
def test_value(tree: Tree, point: tuple[int, ...], symbols: tuple[int, ...]) -> None:
    assert build(tree).evaluate(point, symbols) == value_of(tree, point, symbols)


@given(any_tree, st.lists(leaves | any_tree, min_size=5, max_size=5), dims, syms)
def test_substitute(
    tree: Tree, parts: list[Tree], point: tuple[int, ...], symbols: tuple[int, ...]
) -> None:
    new_dims, new_syms = [build(part) for part in parts[:3]], [build(part) for part in parts[3:]]
    values = [value_of(part, point, symbols) for part in parts]
    replaced = build(tree).substitute(new_dims, new_syms)
    assert replaced.evaluate(point, symbols) == value_of(tree, values[:3], values[3:])


intervals = st.tuples(st.integers(-4, 4), st.integers(0, 3)).map(lambda p: (p[0], p[0] + p[1]))


@given(any_tree, st.tuples(*[intervals] * 5))
def test_simplify_and_bounds_over_every_point(tree: Tree, box: tuple[tuple[int, int], ...]) -> None:
    expr = build(tree)
    ranges: dict[DimRef | Sym, tuple[int, int]] = {DimRef(place): box[place] for place in range(3)}
    ranges |= {Sym(place): box[3 + place] for place in range(2)}
    simpler = simplify(expr, ranges)
    interval = bounds(expr, ranges)
    assert interval is not None
    for point in product(*(range(low, high + 1) for low, high in box)):
        value = value_of(tree, point[:3], point[3:])
        assert simpler.evaluate(point[:3], point[3:]) == value
        assert interval[0] <= value <= interval[1]


@given(any_tree, dims, syms)
def test_simplify_without_ranges(
    tree: Tree, point: tuple[int, ...], symbols: tuple[int, ...]
) -> None:
    assert simplify(build(tree), {}).evaluate(point, symbols) == value_of(tree, point, symbols)


@given(any_tree)
def test_text_round_trip(tree: Tree) -> None:
    expr = build(tree)
    assert parse_index_expr(str(expr)) == expr
    assert str(parse_index_expr(str(expr))) == str(expr)


@given(any_tree, any_tree)
def test_equal_nodes_have_equal_hashes(left: Tree, right: Tree) -> None:
    a, b = build(left), build(right)
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)
    assert (a - b) + b == a
    assert a * b == b * a


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (S0 + D2 + D0 * 6, "d0*6 + d2 + s0"),
        (3 - D0, "-d0 + 3"),
        (D1 - D0 * 2 - 5, "d0*-2 + d1 - 5"),
        ((D0 + 1) * (S0 + 2), "d0*2 + s0 + d0*s0 + 2"),
        (D0 * 0, "0"),
        (D0 - D0, "0"),
        (D0 // 1, "d0"),
        (D0 % 1, "0"),
        (D0 // 0, "0"),
        (D0 % 0, "0"),
        (0 // D0, "0"),
        (Const(-7) // 2, "-4"),
        (Const(-7) % 4, "1"),
        (Const(7) // Const(-2), "-4"),
        ((D0 * 6 + D1 + 13) // 6, "d0 + (d1 + 1)//6 + 2"),
        ((D0 * 6 + D1 + 13) % 6, "(d1 + 1)%6"),
        ((D0 * 4 + D1 * 2) // 6, "(d0*2 + d1)//3"),
        ((D0 * 4 + 2) % 6, "((d0*2 + 1)%3)*2"),
        (D0 // 4 // 3, "d0//12"),
        (D0 % 12 % 4, "d0%4"),
        (D0 // -4, "(-d0)//4"),
        (D0 // S0, "d0//s0"),
        (D0 * INT64_MIN + D1, "d0*-9223372036854775808 + d1"),
        (D0 + INT64_MIN, "d0 + -9223372036854775808"),
    ],
)
def test_canonical_form(expr: IndexExpr, text: str) -> None:
    assert str(expr) == text
    assert parse_index_expr(text) == expr


def test_nodes_can_be_matched() -> None:
    six_and_one = D0 * 6 + 1
    assert six_and_one == Add((Mul(D0, Const(6)), Const(1)))
    match D0 // 3 + D1 % 3:
        case Add((FloorDiv(DimRef(a), Const(b)), Mod(DimRef(c), Const(d)))):
            assert (a, b, c, d) == (0, 3, 1, 3)
        case other:
            pytest.fail(f"unexpected {other!r}")


def test_numpy_integers_become_python_integers() -> None:
    expr = D0 * np.int8(100) + np.int8(100)
    assert expr == D0 * 100 + 100
    assert expr.evaluate([INT64_MAX]) == 100 * INT64_MAX + 100


@pytest.mark.parametrize(
    "overflow",
    [
        lambda: Const(2**63),
        lambda: Const(INT64_MAX) + 1,
        lambda: D0 * INT64_MAX * 2,
        lambda: (D0 + INT64_MAX) + 1,
        lambda: -Const(INT64_MIN),
        lambda: Const(INT64_MIN) // -1,
    ],
)
def test_a_constant_never_wraps(overflow: object) -> None:
    assert callable(overflow)
    with pytest.raises(ShapeError, match="does not fit 64 bits"):
        overflow()


def test_a_nested_quotient_whose_divisors_overflow_stays_nested() -> None:
    expr = D0 // INT64_MAX // 4
    assert expr.evaluate([INT64_MAX * 9]) == 2


def test_linear_form() -> None:
    expr = D2 * 3 + S0 * -2 + D0 + 7
    assert expr.linear() == LinearForm(((0, 1), (2, 3)), ((0, -2),), 7)
    assert Const(4).linear() == LinearForm((), (), 4)
    assert (D0 // 2 + D1).linear() is None
    assert (D0 * S0).linear() is None


def test_coefficient_and_used_leaves() -> None:
    expr = D0 * 6 + D2 * S0 + Sym(3) // 2
    assert [expr.coefficient(dim) for dim in range(3)] == [6, 0, None]
    assert expr.used_dims() == {0, 2}
    assert expr.used_syms() == {0, 3}


@pytest.mark.parametrize(
    ("expr", "simpler"),
    [
        ((D0 * 6 + D1) // 6, D0),
        ((D0 * 6 + D1) % 6, D1),
        ((D0 * 12 + D1) // 24, D0 // 2),
        ((D0 * 12 + D1) % 24, (D0 % 2) * 12 + D1),
        ((D1 + 6) // 6, Const(1)),
        ((D1 - 6) % 6, D1),
        ((D2 // 4) * 4 + D2 % 4, D2),
        ((D2 // 12) * 12 + (D2 // 4 % 3) * 4 + D2 % 4, D2),
        (D1 // S0, Const(0)),
        (D1 % S0, D1),
        (bit_and(D1, 23), D1),
        (bit_and(D1, 21), bit_and(D1, 5)),
        (xor(bit_and(D1, 15), D0), xor(D1, D0)),
    ],
)
def test_simplify_finds(expr: IndexExpr, simpler: IndexExpr) -> None:
    ranges: dict[DimRef | Sym, tuple[int, int]] = {D1: (0, 5), S0: (6, 99)}
    assert simplify(expr, ranges) == simpler


def test_bounds_without_a_range() -> None:
    assert bounds(D0 + 1, {}) is None
    assert bounds(D0 * D0, {}) is None
    assert bounds(D0 // 3, {}) is None
    assert bounds(D0 % 5, {}) == (0, 4)
    assert bounds(D0 % S0, {D0: (0, 9)}) is None


@pytest.mark.parametrize(
    ("text", "column"),
    [("", 1), ("d0 +", 5), ("d0 d1", 4), ("(d0", 4), ("d0 + x1", 6), ("d0 | 2", 4), ("d*2", 1)],
)
def test_bad_text_names_the_column(text: str, column: int) -> None:
    with pytest.raises(ParseError, match=f"at column {column} of") as caught:
        parse_index_expr(text)
    assert caught.value.remedy is not None


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (xor(D0, xor(D1, D0)), "d1"),
        (xor(xor(D1, 3), xor(D0, 5)), "((d0 ^ d1) ^ 6)"),
        (bit_and(bit_and(D0, 6), bit_and(D1, 3)), "((d1%4) & (((d0//2)%4)*2))"),
        (bit_and(D0, -8), "(d0//8)*8"),
        (bit_and(D0, 5), "(d0 & 5)"),
        (shift_left(D0, 3), "d0*8"),
        (shift_left(D0, 63), "(d0 << 63)"),
        (shift_left(D0, 64), "0"),
        (shift_right(D0, D1), "(d0 >> d1)"),
        (shift_right(Const(-5), 99), "-1"),
        (xor(D0 + 1, D1) * 4 - bit_and(D0, 5), "((d0 + 1) ^ d1)*4 - (d0 & 5)"),
    ],
)
def test_canonical_form_of_bits(expr: IndexExpr, text: str) -> None:
    assert parse_index_expr(str(expr)) == expr
    assert parse_index_expr(text) == expr


def test_bits_are_read_with_the_precedence_of_python() -> None:
    expr = parse_index_expr("d0 ^ d1 >> 2 & 3 + d2 << 1")
    assert expr == xor(D0, bit_and(shift_right(D1, 2), shift_left(3 + D2, 1)))


def test_bounds_of_bits() -> None:
    ranges: dict[DimRef | Sym, tuple[int, int]] = {D0: (0, 5), D1: (0, 12)}
    assert bounds(xor(D0, D1), ranges) == (0, 15)
    assert bounds(bit_and(D0, 5 + D1), ranges) == (0, 5)
    assert bounds(xor(D0, D2), ranges) is None
    assert bounds(shift_left(D0, D1), ranges) == (0, 5 << 12)
