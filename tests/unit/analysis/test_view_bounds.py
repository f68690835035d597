"""Where views of views lie in the view below, against every element."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tilenest.analysis import ends_of, stays_inside
from tilenest.dialects import Constant, Extent, views
from tilenest.ir import INDEX, Builder, Function, Value, ViewType, float32
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr, Ranges, xor

SHAPE = (4, 6)


def view(extents: tuple[int | None, ...] = SHAPE) -> tuple[Builder, Value]:
    function = Function("main", [ViewType(float32, extents, (None, 1))])
    return Builder(function.body), function.arguments[0]


@st.composite
def formulas(draw: Any) -> IndexExpr:
    d0, d1 = DimRef(0), DimRef(1)
    total: IndexExpr = (
        d0 * draw(st.integers(-2, 3)) + d1 * draw(st.integers(-2, 3)) + draw(st.integers(-3, 5))
    )
    by: int = draw(st.integers(1, 7))
    kinds = [total, total // by, total % by, xor(d1, d0 % 2) + (by - 4)]
    place: int = draw(st.integers(0, len(kinds) - 1))
    return kinds[place]


@settings(max_examples=200)
@given(st.tuples(formulas(), formulas()), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_what_stays_inside_lies_there(
    results: tuple[IndexExpr, ...], sizes: tuple[int, int]
) -> None:
    builder, below = view()
    remap = views.remap(builder.insert, below, AffineMap(2, 0, results), sizes)
    points = list(itertools.product(*map(range, sizes)))
    for axis, answer in enumerate(stays_inside(remap)):
        places = [results[axis].evaluate(point) for point in points]
        lies_inside = all(0 <= place < SHAPE[axis] for place in places)
        assert lies_inside or not answer
        if results[axis].linear() is not None:
            assert answer == lies_inside, "the ends of a sum are exact"


@settings(max_examples=200)
@given(formulas(), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_no_value_is_beyond_the_ends(expr: IndexExpr, sizes: tuple[int, int]) -> None:
    spans = {d: (Const(0), Const(size - 1)) for d, size in enumerate(sizes)}
    ranges: Ranges = {DimRef(d): (0, size - 1) for d, size in enumerate(sizes)}
    ends = ends_of(expr, spans, ranges)
    assert ends is not None
    low, high = (end.evaluate(()) for end in ends)
    values = [expr.evaluate(point) for point in itertools.product(*map(range, sizes))]
    assert low <= min(values) and max(values) <= high
    if expr.linear() is not None:
        assert (low, high) == (min(values), max(values))


def test_extents_of_run_time() -> None:
    builder, below = view((None, 6))
    insert = builder.insert
    rows = insert(Extent(view=below, axis=0, result_types=[INDEX])).result
    turned = views.transpose(insert, below)
    assert stays_inside(turned) == (True, True)
    lower = views.subview(insert, below, (1, 0), (rows, 6))
    assert stays_inside(lower) == (False, True)
    one = insert(Constant(value=1, result_types=[INDEX])).result
    assert stays_inside(views.subview(insert, below, (one, 0), (rows, 6))) == (False, True)
    assert stays_inside(views.subview(insert, below, (0, 1), (rows, 6))) == (True, False)
