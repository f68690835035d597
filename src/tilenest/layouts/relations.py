"""Questions about pairs of points and pairs of sets: order, subsets, meetings.

In: layout maps, index sets, and how many points may be tried when isl does not decide. Out:
answers, as `questions` gives them. Monotone: x before y, as tuples are ordered, puts f(x) before
f(y), wherever f is defined. Implies: every point of one set is in another. Never coincide: no pair
of a set, the coordinates of x and then those of y, has f(x) equal to g(y).
"""

from __future__ import annotations

from itertools import pairwise

from tilenest.errors import ShapeError
from tilenest.layouts.answers import Answer, Witness, disproven, proven
from tilenest.layouts.deciding import DEFAULT_BUDGET, Question, decide
from tilenest.layouts.engines import engines
from tilenest.layouts.index_expr import Const
from tilenest.layouts.kinds import check_kind
from tilenest.layouts.layout_map import LayoutMap, Point, Values
from tilenest.layouts.spaces import Constraint, IndexSet

_ENUMERATION = "enumeration"
_NEVER = Constraint(Const(-1))


def is_monotone(f: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether the map keeps strict lexicographic order."""
    check_kind(f, LayoutMap, "what the question is about")
    formulas = f.formulas()

    def enumerated(values: Values) -> Answer:
        found = ((point, f.apply(point, values)) for point in f.domain.points(values))
        defined = [(point, value) for point, value in found if value is not None]
        for (x, first), (y, second) in pairwise(defined):
            if first >= second:
                return _broken("two points out of order", (x, y), values)
        return proven(_ENUMERATION, "every point is before the next")

    def is_broken(points: tuple[Point, ...], values: Values) -> bool:
        first, second = (f.apply(point, values) for point in points)
        if first is None or second is None:
            return False
        return points[0] < points[1] and first >= second

    return decide(
        Question(
            (f.domain,),
            f.n_nodes,
            f.symbols,
            lambda _: None,
            lambda: None if formulas is None else engines().isl.is_monotone(formulas),
            enumerated,
            is_broken,
        ),
        budget,
    )


def implies(inner: IndexSet, outer: IndexSet, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether a set is a subset of another one of the same space."""
    check_kind(inner, IndexSet, "the inner set")
    check_kind(outer, IndexSet, "the outer set")
    if inner.space != outer.space:
        raise ShapeError(
            f"the set {inner} does not lie in {outer.space}", remedy="compare sets of one space"
        )

    def enumerated(values: Values) -> Answer:
        for point in inner.points(values):
            if not outer.holds(point, values):
                return _broken("a point of one set alone", (point,), values)
        return proven(_ENUMERATION, "every point is in the other set")

    return decide(
        Question(
            (inner.space,),
            inner.n_nodes + outer.n_nodes,
            tuple(sorted({*inner.symbols, *outer.symbols})),
            lambda _: None,
            lambda: engines().isl.implies(inner, outer),
            enumerated,
            lambda w, values: inner.holds(w[0], values) and not outer.holds(w[0], values),
        ),
        budget,
    )


def never_coincide(
    f: LayoutMap, g: LayoutMap, pairs: IndexSet, budget: int = DEFAULT_BUDGET
) -> Answer:
    """Whether f(x) differs from g(y) for every pair (x, y) of a set."""
    check_kind(f, LayoutMap, "what the question is about")
    check_kind(g, LayoutMap, "what the question is about")
    check_kind(pairs, IndexSet, "the set of pairs")
    rank = f.domain.rank
    if pairs.space.extents != f.domain.product(g.domain).extents:
        raise ShapeError(
            f"the pairs lie in {pairs.space}, the maps' domains are {f.domain} and {g.domain}",
            remedy="give a set over the axes of the first domain, then those of the second",
        )
    left, right = f.formulas(), g.formulas()

    def meets(pair: tuple[Point, ...], values: Values) -> bool:
        first, second = f.apply(pair[0], values), g.apply(pair[1], values)
        return first is not None and first == second

    def enumerated(values: Values) -> Answer:
        for point in pairs.points(values):
            pair = point[:rank], point[rank:]
            if meets(pair, values):
                return _broken("two points that meet", pair, values)
        return proven(_ENUMERATION, "no pair meets")

    return decide(
        Question(
            (pairs.space,),
            f.n_nodes + g.n_nodes + pairs.n_nodes,
            tuple(sorted({*f.symbols, *g.symbols, *pairs.symbols})),
            lambda _: None,
            lambda: (
                None
                if left is None or right is None
                else engines().isl.never_coincide(left, right, pairs)
            ),
            enumerated,
            lambda w, values: pairs.holds(w[0] + w[1], values) and meets(w, values),
        ),
        budget,
    )


def is_empty(points: IndexSet, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether a set has no point, for all values of its symbols; a witness is one of its points."""
    check_kind(points, IndexSet, "the set")
    return implies(points, IndexSet(points.space, (_NEVER,)), budget)


def _broken(reason: str, points: tuple[Point, ...], values: Values) -> Answer:
    return disproven(_ENUMERATION, reason, Witness(points, tuple(sorted(values.items()))))
