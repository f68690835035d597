"""Answers by trying every point: the last resort for small spaces, and the judge of witnesses.

In: layout maps, and values for run-time extents. Out: answers about those values alone; the caller
decides whether they speak for all values. Each loop ends at its first witness. How many points it
may try is the caller's business as well; `points_within` says how many a budget is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from tilenest.layouts.answers import Answer, Witness, disproven, proven, unknown
from tilenest.layouts.kinds import whole_number
from tilenest.layouts.layout_map import LayoutMap, Point, Values
from tilenest.layouts.spaces import IndexSet

ENGINE = "enumeration"
_FEW_NODES = 128


def points_within(budget: int, n_nodes: int) -> int:
    """How many points a budget lets try, each of which evaluates so many nodes of formulas.

    A budget counts points of small formulas; one of a large formula counts as several.
    """
    return whole_number(budget, "a budget of points") * _FEW_NODES // max(n_nodes, _FEW_NODES)


def is_total(f: LayoutMap, on: IndexSet, values: Values) -> Answer:
    """Whether the map is defined at every point of a set."""
    for point in on.points(values):
        if f.apply(point, values) is None:
            return _broken("a point without a value", (point,), values)
    return proven(ENGINE, "every point has a value")


def is_bounded(f: LayoutMap, values: Values) -> Answer:
    """Whether every value lies in the codomain."""
    for point in f.domain.points(values):
        value = f.apply(point, values)
        if value is not None and not f.codomain.holds(value, values):
            return _broken("a value outside the codomain", (point,), values)
    return proven(ENGINE, "every value lies in the codomain")


def is_injective(f: LayoutMap, values: Values, at_most: int) -> Answer:
    """Whether no two points meet, as far as the first `at_most` points tell."""
    seen: dict[Point, Point] = {}
    points = f.domain.points(values)
    for point in islice(points, at_most):
        value = f.apply(point, values)
        if value is None:
            continue
        other = seen.setdefault(value, point)
        if other != point:
            return _broken("two points that meet", (other, point), values)
    if next(points, None) is not None:
        return unknown(ENGINE, f"no two of the first {at_most} points meet")
    return proven(ENGINE, "no two points meet")


def covers(f: LayoutMap, wanted: Iterable[Point], values: Values) -> Answer:
    """Whether every wanted point is a value."""
    found = image(f, values)
    for point in wanted:
        if point not in found:
            return _broken("a point that is no value", (point,), values)
    return proven(ENGINE, "every point is a value")


def equal(f: LayoutMap, g: LayoutMap, values: Values) -> Answer:
    """Whether two maps of one domain agree at every point."""
    for point in f.domain.points(values):
        if f.apply(point, values) != g.apply(point, values):
            return _broken("a point where the maps differ", (point,), values)
    return proven(ENGINE, "the maps agree at every point")


def are_disjoint(f: LayoutMap, g: LayoutMap, values: Values) -> Answer:
    """Whether the maps share no value."""
    places = _first_points(f, values)
    for point in g.domain.points(values):
        value = g.apply(point, values)
        if value is not None and value in places:
            return _broken("two points that meet", (places[value], point), values)
    return proven(ENGINE, "no two points meet")


def image(f: LayoutMap, values: Values) -> frozenset[Point]:
    """Every value of the map."""
    return frozenset(_first_points(f, values))


def preimage(f: LayoutMap, accepts: Callable[[Point], bool], values: Values) -> tuple[Point, ...]:
    """The points whose value is accepted, in row-major order."""
    pairs = ((point, f.apply(point, values)) for point in f.domain.points(values))
    return tuple(point for point, value in pairs if value is not None and accepts(value))


def _first_points(f: LayoutMap, values: Values) -> dict[Point, Point]:
    """Each value with the first point that has it."""
    found: dict[Point, Point] = {}
    for point in f.domain.points(values):
        value = f.apply(point, values)
        if value is not None:
            found.setdefault(value, point)
    return found


def _broken(reason: str, points: tuple[Point, ...], values: Values) -> Answer:
    return disproven(ENGINE, reason, Witness(points, tuple(sorted(values.items()))))
