"""Order, subsets and meetings, by isl for all extents and by every point where isl cannot read."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilenest.errors import ShapeError
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    Expressions,
    FiniteTable,
    IndexSet,
    Permute,
    Space,
    Sym,
    xor,
)
from tilenest.layouts.answers import Verdict
from tilenest.layouts.relations import implies, is_empty, is_monotone, never_coincide

D0, D1 = DimRef(0), DimRef(1)
ROWS = Space.box("n", 4)


def test_order_for_all_extents() -> None:
    split = Expressions(Space.box("n"), ROWS, (D0 // 4, D0 % 4), ("n",))
    assert is_monotone(split).is_proven
    answer = is_monotone(Permute(ROWS, (1, 0)))
    assert answer.witness is not None
    first, second = answer.witness.points
    assert first < second
    assert first[::-1] >= second[::-1]


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_order_of_a_table(order: list[int], missing: set[int]) -> None:
    space = Space.box(5)
    entries = tuple(None if x in missing else (y,) for x, y in enumerate(order))
    kept = [y for x, y in enumerate(order) if x not in missing]
    answer = is_monotone(FiniteTable(space, space, entries))
    assert answer.is_proven == (kept == sorted(kept))
    assert answer.engine == "enumeration"


def test_without_a_budget_a_table_stays_unknown() -> None:
    table = FiniteTable(Space.box(2), Space.box(2), ((0,), (1,)))
    assert is_monotone(table, 0).verdict is Verdict.UNKNOWN
    pairs = IndexSet(table.domain.product(table.domain))
    assert never_coincide(table, table, pairs, 0).verdict is Verdict.UNKNOWN


def test_subsets_and_emptiness() -> None:
    tail = IndexSet(ROWS, (Constraint(D0 - Sym(0) + 4),))
    both = IndexSet(ROWS, (*tail.constraints, Constraint(2 - D1)))
    assert implies(both, tail).is_proven
    answer = implies(tail, both)
    assert answer.witness is not None
    values = dict(answer.witness.symbols)
    assert tail.holds(answer.witness.points[0], values)
    assert not both.holds(answer.witness.points[0], values)
    assert is_empty(IndexSet(ROWS, (Constraint(D0 - Sym(0)),))).is_proven
    assert is_empty(IndexSet(Space.box(3, 0, "n"))).is_proven
    found = is_empty(IndexSet(ROWS, (Constraint(D0 - 7), Constraint(D1 - 3))))
    assert found.witness is not None
    assert found.witness.points[0][0] >= 7
    with pytest.raises(ShapeError, match="does not lie in"):
        implies(tail, IndexSet(Space.box(4, "n")))


def test_products_of_coordinates_are_tried_point_by_point() -> None:
    space = Space.box(4, 4)
    hyperbola = IndexSet(space, (Constraint(D0 * D1 - 6),))
    far = IndexSet(space, (Constraint(D0 + D1 - 5),))
    assert implies(hyperbola, far).is_proven
    assert implies(far, hyperbola).is_proven
    assert implies(IndexSet(space, (Constraint(D0 * D1 - 4),)), far).is_disproven


def test_meetings() -> None:
    line = Space.box("n")
    store = Expressions(line, line, (D0,), ("n",))
    load = Expressions(line, line, (D0 - 1,), ("n",)).restrict(
        IndexSet(line, (Constraint(D0 - 1),))
    )
    pairs = line.product(Space.box("n", prefix="y"))
    same = IndexSet(pairs, (Constraint(D0 - D1, is_equality=True),))
    assert never_coincide(store, load, same).is_proven
    met = never_coincide(store, load, IndexSet(pairs))
    assert met.witness is not None
    (x,), (y,) = met.witness.points
    assert x == y - 1
    with pytest.raises(ShapeError, match="the pairs lie in"):
        never_coincide(store, load, IndexSet(line))


def test_meetings_of_bits_and_tables() -> None:
    space = Space.box(5, 3)
    twisted = Expressions(space, Space.box(16), (xor(D0 * 3, D1 * 5),))
    pairs = space.product(Space.box(5, 3, prefix="y"))
    later = IndexSet(pairs, (Constraint(D0 * 3 + D1 - DimRef(2) * 3 - DimRef(3) - 1),))
    points = list(product(range(5), range(3)))
    values = {(a, b): 3 * a ^ 5 * b for a, b in points}
    meets = any(
        values[p] == values[q]
        for p, q in product(points, points)
        if 3 * p[0] + p[1] > 3 * q[0] + q[1]
    )
    assert never_coincide(twisted, twisted, later).is_disproven == meets
    table = FiniteTable(Space.box(2), Space.box(4), ((1,), (3,)))
    other = Expressions(Space.box(2), Space.box(4), (D0 * 2,))
    pairs = Space.box(2).product(Space.box(2, prefix="y"))
    assert never_coincide(table, other, IndexSet(pairs)).is_proven
    shifted = Expressions(Space.box(2), Space.box(4), (D0 * 2 + Const(1),))
    answer = never_coincide(table, shifted, IndexSet(pairs))
    assert answer.witness is not None
    assert answer.witness.points == ((0,), (0,))
