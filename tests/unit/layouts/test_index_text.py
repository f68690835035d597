"""Every index expression that can be built is printed, read back, and walked over.

What is too deep or too large for that cannot be built: that is an error with a remedy. The judges
are Python's own evaluation of the text, and brute force over a small domain.
"""

import random
import sys
from collections.abc import Callable

import pytest

from tilenest.errors import ParseError, ShapeError
from tilenest.layouts import (
    AffineMap,
    Const,
    DimRef,
    Expressions,
    IndexExpr,
    Space,
    Sym,
    are_disjoint,
    bit_and,
    bounds,
    equal,
    is_injective,
    is_surjective,
    normalise,
    parse_affine_map,
    parse_index_expr,
    shift_left,
    shift_right,
    simplify,
    xor,
)
from tilenest.layouts.kinds import MOST_NODES, MOST_OPERATIONS, MOST_PLACES

D0, D1, S0 = DimRef(0), DimRef(1), Sym(0)
FRAMES = 450
"""Less than half of Python's stack: what is below belongs to the caller."""
STEPS: dict[str, Callable[[IndexExpr], IndexExpr]] = {
    "collatz": lambda e: (e * 3 + 1) // 2,
    "signs": lambda e: -(e // 2),
    "sums": lambda e: (e // 3 + 1) % 7 * D0,
    "bits": lambda e: xor(5 - e, D0),
    "masks": lambda e: bit_and(e + 1, D0 + D1),
    "shifts": lambda e: shift_right(e, D0) + 1,
    "powers": lambda e: e * D0,
    "divisors": lambda e: (1 - e) // (D0 + 2),
    "doubling": lambda e: e // 2 + e % 3,
    "squares": lambda e: e * e + 1,
    "wide": lambda e: e + D0 % (e.size + 3),
}


def random_step(draw: random.Random, made: list[IndexExpr]) -> IndexExpr:
    """One more operation on the latest expression and on any other, or a small number."""
    one = made[-1] if draw.random() < 0.8 else draw.choice(made)
    other = draw.choice([*made[-3:], D0, D1, S0, DimRef(MOST_PLACES - 1)])
    number = draw.choice([-7, -1, 2, 3, 16])
    match draw.choice(["+", "-", "*", "//", "%", "^", "&", "<<", "neg", "number"]):
        case "+":
            return one + other
        case "-":
            return other - one
        case "*":
            return one * draw.choice([D0, D1, S0, D0 + 3])
        case "//":
            return one // draw.choice([D0 + 2, S0, Const(3)])
        case "%":
            return one % draw.choice([D1, S0 + 5, Const(7)])
        case "^":
            return xor(one, other)
        case "&":
            return bit_and(one, other)
        case "<<":
            return shift_left(one, draw.choice([D1, S0]))
        case "neg":
            return -one
    return one * number + number


def deepest(step: Callable[[IndexExpr], IndexExpr]) -> IndexExpr:
    """The last expression that can still be built."""
    found: list[IndexExpr] = [D0]

    def grow() -> None:
        for _ in range(10_000):
            found.append(step(found[-1]))

    with pytest.raises(ShapeError, match="an index formula has over") as caught:
        grow()
    assert caught.value.remedy is not None
    return found[-1]


def within_frames(work: Callable[[], object]) -> None:
    """Work with a stack that ends a little above the caller's."""
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(used + FRAMES)
    try:
        work()
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("name", STEPS)
def test_what_can_be_built_is_read_back(name: str) -> None:
    expr = deepest(STEPS[name])
    assert parse_index_expr(str(expr)) == expr
    map_ = AffineMap(2, 0, (expr,) * 3)
    assert parse_affine_map(str(map_)) == map_


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions_are_read_back(seed: int) -> None:
    draw = random.Random(seed)
    made: list[IndexExpr] = [D0]
    for _ in range(400):
        try:
            made.append(random_step(draw, made))
        except ShapeError:
            made.append(draw.choice(made))
    for expr in made[:: 1 + seed % 7]:
        assert parse_index_expr(str(expr)) == expr
        assert expr.size <= MOST_NODES
        assert expr.depth <= MOST_OPERATIONS


@pytest.mark.parametrize("name", STEPS)
def test_walks_take_little_of_the_stack(name: str) -> None:
    expr = deepest(STEPS[name])
    ranges: dict[DimRef | Sym, tuple[int, int]] = {D0: (0, 2), D1: (0, 2)}
    point = expr.evaluate((2, 1))
    space = Space.box(3, 3)
    layout = Expressions(space, Space.box(3), (expr,))
    other = Expressions(space, Space.box(3), (D1,))
    assert hash(expr) == hash(expr.substitute((D0, D1)))

    def walk() -> None:
        assert simplify(expr, ranges).evaluate((2, 1)) == point
        interval = bounds(expr, ranges)
        assert interval is None or interval[0] <= point <= interval[1]
        assert str(expr)
        assert layout.apply((2, 1)) == ((point,) if -(1 << 63) <= point < 1 << 63 else None)
        for question in (is_injective, is_surjective, normalise):
            question(layout)
        equal(layout, other)
        are_disjoint(layout, other)

    within_frames(walk)


def test_proofs_about_deep_formulas_agree_with_brute_force() -> None:
    space = Space.box(4, 3)
    for name, step in STEPS.items():
        layout = Expressions(space, Space.box(64), (deepest(step),))
        values = [layout.apply(point) for point in space.points()]
        kept = [value for value in values if value is not None]
        answer = is_injective(layout)
        assert answer.is_proven or answer.is_disproven, name
        assert answer.is_proven == (len(set(kept)) == len(kept)), name


def test_brackets_and_signs_nest_as_deep_as_the_text_is_long() -> None:
    assert parse_index_expr("(" * 1500 + "d0" + ")" * 1500) == D0
    assert parse_index_expr("-" * 2000 + "d0") == D0
    assert parse_index_expr("-(-" * 500 + "d0" + ")" * 500) == D0
    with pytest.raises(ParseError, match="a shorter formula") as caught:
        parse_index_expr(" + ".join(["d0"] * 10_000))
    assert len(str(caught.value)) < 1000


NOT_MATCHED = ("(" * 9000, "d0)", "(d0))", "((d0)", "()", "-", "d0 - ", "d0(d0)")


@pytest.mark.parametrize("text", NOT_MATCHED)
def test_brackets_that_do_not_match_are_refused(text: str) -> None:
    with pytest.raises(ParseError, match="at column"):
        parse_index_expr(text)


def test_signs_bind_as_in_python() -> None:
    for text in ("-d0*3//2", "-d0//2 - -d1%3", "2 - (-3)*d0", "-(d0 - d1)%5", "-3//2*d0", "7--d0"):
        for point in ((0, 0), (5, 3), (-4, 9)):
            expected = eval(text, {"d0": point[0], "d1": point[1]})
            assert parse_index_expr(text).evaluate(point) == expected, text
