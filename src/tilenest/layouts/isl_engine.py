"""Proofs about quasi-affine maps by isl, for all values of the run-time extents at once.

In: maps as formulas on disjoint domains, and index sets. Out: answers, None where a formula is not
quasi-affine. Every claim is asked as the emptiness of the set that breaks it: an empty set proves
the claim, a sample of it is a witness, which plain evaluation has to confirm. Beyond a budget of
steps the answer is UNKNOWN. Only points inside spaces count: an image is cut to the codomain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilenest.errors import ShapeError
from tilenest.layouts.answers import Answer, proven, unknown
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Formulas
from tilenest.layouts.isl_sets import (
    BudgetError,
    IslSet,
    ascending_pairs,
    isl_box,
    isl_map,
    isl_range,
    isl_set,
    kinds,
    not_ascending_pairs,
    sample,
    within_budget,
)
from tilenest.layouts.isl_text import NotQuasiAffineError, constraints_of, expression_of
from tilenest.layouts.mixed_engine import are_same_size
from tilenest.layouts.spaces import IndexSet, Space
from tilenest.layouts.witnesses import (
    Values,
    collision_at,
    different_at,
    disorder_at,
    meeting_at,
    missed_at,
    out_of_bounds_at,
    outside_at,
    undefined_at,
)

ENGINE = "isl"
Sets = tuple[IndexSet, ...]
# What names symbols.
_Named = Space | IndexSet | Formula


def is_total(formulas: Formulas) -> Answer | None:
    """Whether the map has a value at every point of its domain's space."""

    def violations() -> IslSet:
        return isl_box(formulas[0].domain.space).subtract(isl_map(formulas).domain())

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        return undefined_at(ENGINE, formulas, point, values, "a point without a value")

    return _decided(violations, judge, _spaces(formulas), "every point has a value")


def is_bounded(formulas: Formulas) -> Answer | None:
    """Whether every value lies in the codomain."""

    def violations() -> IslSet:
        return isl_map(formulas).subtract_range(isl_box(formulas[0].codomain)).domain()

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        return out_of_bounds_at(ENGINE, formulas, point, values, "a value out of the codomain")

    return _decided(violations, judge, _spaces(formulas), "every value is in the codomain")


def is_injective(formulas: Formulas) -> Answer | None:
    """Whether no two points have one value."""
    rank = formulas[0].domain.space.rank

    def violations() -> IslSet:
        points = isl_map(formulas)
        pairs = points.apply_range(points.reverse())
        return pairs.intersect(ascending_pairs(points.domain())).wrap()

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        pair = point[:rank], point[rank:]
        return collision_at(ENGINE, formulas, pair, values, "two points with one value")

    return _decided(violations, judge, _spaces(formulas), "no two points have one value")


def is_surjective(formulas: Formulas) -> Answer | None:
    """Whether every point of the codomain is a value; it is where spaces have one size and no two
    of the points share a place, which isl often finds sooner."""
    if are_same_size(formulas[0].domain.space, formulas[0].codomain):
        facts = is_injective(formulas), is_bounded(formulas), is_total(formulas)
        if all(fact is not None and fact.is_proven for fact in facts):
            return proven(ENGINE, "no place is hit twice, and there are as many points as places")
    return covers(formulas, IndexSet(formulas[0].codomain))


def covers(formulas: Formulas, wanted: IndexSet) -> Answer | None:
    """Whether every point of a set of places is a value."""

    def violations() -> IslSet:
        return isl_set(wanted).subtract(isl_range(formulas))

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        return missed_at(ENGINE, wanted, point, values, "a place that no point reaches")

    spaces = [*_spaces(formulas), wanted, wanted.space]
    return _decided(violations, judge, spaces, "every place is reached")


def equal(f: Formulas, g: Formulas) -> Answer | None:
    """Whether two maps of one space are defined at the same points and agree there."""

    def violations() -> IslSet:
        left, right = isl_map(f), isl_map(g)
        return left.subtract(right).domain().union(right.subtract(left).domain())

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        return different_at(ENGINE, f, g, point, values, "a point where the maps differ")

    spaces = [*_spaces(f), *_spaces(g)]
    return _decided(violations, judge, spaces, "the maps agree at every point")


def are_disjoint(f: Formulas, g: Formulas) -> Answer | None:
    """Whether no value of one map is a value of the other."""
    pair = IndexSet(f[0].domain.space.product(g[0].domain.space))
    return never_coincide(f, g, pair)


def never_coincide(f: Formulas, g: Formulas, pairs: IndexSet) -> Answer | None:
    """Whether f(x) != g(y) for every pair in a set over the coordinates of x, then those of y."""
    rank = f[0].domain.space.rank

    def violations() -> IslSet:
        meeting = isl_map(f).apply_range(isl_map(g).reverse()).wrap().flatten()
        return meeting.intersect(isl_set(pairs))

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        pair = point[:rank], point[rank:]
        return meeting_at(ENGINE, f, g, pair, values, "two points that meet")

    spaces = [*_spaces(f), *_spaces(g), pairs, pairs.space]
    return _decided(violations, judge, spaces, "no two points meet")


def is_monotone(formulas: Formulas) -> Answer | None:
    """Whether the map keeps strict lexicographic order: x before y puts f(x) before f(y)."""
    rank = formulas[0].domain.space.rank

    def violations() -> IslSet:
        points = isl_map(formulas)
        order = not_ascending_pairs(points.range())
        pairs = points.apply_range(order).apply_range(points.reverse())
        return pairs.intersect(ascending_pairs(points.domain())).wrap()

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        pair = point[:rank], point[rank:]
        return disorder_at(ENGINE, formulas, pair, values, "two points out of order")

    return _decided(violations, judge, _spaces(formulas), "order is kept")


def implies(inner: IndexSet, outer: IndexSet) -> Answer | None:
    """Whether a set is a subset of another one of the same space."""

    def violations() -> IslSet:
        return isl_set(inner).subtract(isl_set(outer))

    def judge(point: tuple[int, ...], values: Values) -> Answer:
        return outside_at(ENGINE, inner, outer, point, values, "a point of one set alone")

    spaces: list[_Named] = [inner, inner.space, outer, outer.space]
    return _decided(violations, judge, spaces, "every point is in the other set")


def image(formulas: Formulas) -> tuple[Answer, Sets] | None:
    """The points of the codomain that are values, as a union of sets."""
    names = _symbols(_spaces(formulas))
    return _built(lambda: _index_sets(isl_range(formulas), formulas[0].codomain, names))


def inverse(formulas: Formulas) -> tuple[Answer, Formulas] | None:
    """The map from values in the codomain to their points; where two points share a value, the
    disproof of injectivity."""
    answer = is_injective(formulas)
    if answer is None:
        return None
    if not answer.is_proven:
        return answer, ()
    return _built(lambda: _inverted(formulas))


def _inverted(formulas: Formulas) -> Formulas:
    codomain = formulas[0].codomain
    names = _symbols(_spaces(formulas))
    back = isl_map(formulas).reverse().intersect_domain(isl_box(codomain))
    pieces: list[tuple[IslSet, Any]] = []
    back.as_pw_multi_aff().coalesce().foreach_piece(lambda *piece: pieces.append(piece))
    inverted = []
    for domain, point in pieces:
        results = tuple(
            expression_of(point.get_at(place), names, kinds())
            for place in range(formulas[0].domain.space.rank)
        )
        inverted += [
            Formula(part, formulas[0].domain.space, results, names)
            for part in _index_sets(domain.make_disjoint(), codomain, names)
        ]
    return tuple(inverted)


def _index_sets(points: IslSet, space: Space, names: tuple[str, ...]) -> Sets:
    """An isl set inside a space as index sets, which may depend on symbols of these names."""
    box = isl_box(space)
    inside = points.intersect(box).compute_divs().coalesce()
    if inside.is_empty():
        return ()
    parts = inside.gist(box).compute_divs().get_basic_sets()
    return tuple(_index_set(part, space, names) for part in parts)


def _index_set(part: IslSet, space: Space, names: tuple[str, ...]) -> IndexSet:
    try:
        return IndexSet(space, constraints_of(part, space.symbols, kinds()))
    except NotQuasiAffineError:
        whole = IndexSet(space, extra=tuple(sorted({*names} - {*space.symbols})))
        return IndexSet(space, constraints_of(part, whole.symbols, kinds()), whole.extra)


def _decided(
    violations: Callable[[], IslSet],
    judge: Callable[[tuple[int, ...], Values], Answer],
    spaces: Sequence[_Named],
    reason: str,
) -> Answer | None:
    """Proven where no violation exists, otherwise judged by one of them."""
    names, extents = _symbols(spaces), _extents(spaces)
    try:
        found = within_budget(lambda: sample(violations(), names, extents))
    except NotQuasiAffineError:
        return None
    except BudgetError as error:
        return unknown(ENGINE, str(error))
    return proven(ENGINE, reason) if found is None else judge(*found)


def _built(build: Callable[[], tuple[Any, ...]]) -> tuple[Answer, tuple[Any, ...]] | None:
    """What was built, and the answer that says it is exact."""
    try:
        result = within_budget(build)
    except NotQuasiAffineError:
        return None
    except (BudgetError, ShapeError) as error:
        return unknown(ENGINE, str(error)), ()
    return proven(ENGINE, f"{len(result)} pieces"), result


def _spaces(formulas: Formulas) -> list[_Named]:
    """Everything that names symbols in a map."""
    return [item for f in formulas for item in (f.domain, f.domain.space, f.codomain, f)]


def _symbols(spaces: Sequence[_Named]) -> tuple[str, ...]:
    return tuple(sorted({name for space in spaces for name in space.symbols}))


def _extents(spaces: Sequence[_Named]) -> frozenset[str]:
    named = (space.symbols for space in spaces if isinstance(space, Space))
    inside = (space.extents for space in spaces if isinstance(space, Formula))
    return frozenset(name for names in (*named, *inside) for name in names)
