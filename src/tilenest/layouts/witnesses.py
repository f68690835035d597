"""Witnesses are believed only after their formulas were evaluated.

In: a claim about a map given as formulas on disjoint domains, and points and symbol values that an
engine says break it. Out: a disproof when plain evaluation agrees, UNKNOWN with the reason when it
does not: a fault in an engine may cost an answer and never makes a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.layouts.answers import Answer, Witness, disproven, unknown
from tilenest.layouts.formula_algebra import Formulas
from tilenest.layouts.spaces import IndexSet

INT64 = range(-(1 << 63), 1 << 63)
Point = tuple[int, ...]
Values = Mapping[str, int]


def value_at(formulas: Formulas, point: Point, values: Values) -> Point | None:
    """Where the map sends a point, None where it is undefined."""
    for formula in formulas:
        if formula.domain.holds(point, values):
            symbols = [values[name] for name in formula.symbols]
            results = tuple(result.evaluate(point, symbols) for result in formula.results)
            return results if all(result in INT64 for result in results) else None
    return None


def at_rest(*maps: Formulas) -> dict[str, int]:
    """0 for every symbol of some maps: the values a witness shows where none of them matters."""
    pieces = [piece for formulas in maps for piece in formulas]
    names = (piece.symbols + piece.domain.symbols + piece.codomain.symbols for piece in pieces)
    return dict.fromkeys((name for group in names for name in group), 0)


def undefined_at(
    engine: str, formulas: Formulas, point: Point, values: Values, reason: str
) -> Answer:
    """The map has no value at a point of its domain's space."""
    is_right = (
        formulas[0].domain.space.holds(point, values) and value_at(formulas, point, values) is None
    )
    return _judged(engine, is_right, (point,), values, reason)


def out_of_bounds_at(
    engine: str, formulas: Formulas, point: Point, values: Values, reason: str
) -> Answer:
    """The map sends a point out of its codomain."""
    value = value_at(formulas, point, values)
    is_right = value is not None and not formulas[0].codomain.holds(value, values)
    return _judged(engine, is_right, (point,), values, reason)


def collision_at(
    engine: str, formulas: Formulas, pair: tuple[Point, Point], values: Values, reason: str
) -> Answer:
    """The map sends two different points to one."""
    left, right = (value_at(formulas, point, values) for point in pair)
    is_right = pair[0] != pair[1] and left is not None and left == right
    return _judged(engine, is_right, pair, values, reason)


def missed_at(engine: str, wanted: IndexSet, place: Point, values: Values, reason: str) -> Answer:
    """The map reaches no point `place`, which belongs to `wanted`: that half is evaluated."""
    return _judged(engine, wanted.holds(place, values), (place,), values, reason)


def different_at(
    engine: str, f: Formulas, g: Formulas, point: Point, values: Values, reason: str
) -> Answer:
    """Two maps differ at a point, in their value or in whether they have one."""
    is_right = f[0].domain.space.holds(point, values) and value_at(f, point, values) != value_at(
        g, point, values
    )
    return _judged(engine, is_right, (point,), values, reason)


def meeting_at(
    engine: str, f: Formulas, g: Formulas, pair: tuple[Point, Point], values: Values, reason: str
) -> Answer:
    """Two maps send a point each to the same place."""
    left, right = value_at(f, pair[0], values), value_at(g, pair[1], values)
    return _judged(engine, left is not None and left == right, pair, values, reason)


def disorder_at(
    engine: str, formulas: Formulas, pair: tuple[Point, Point], values: Values, reason: str
) -> Answer:
    """The map does not keep the lexicographic order of two points."""
    left, right = (value_at(formulas, point, values) for point in pair)
    is_right = pair[0] < pair[1] and left is not None and right is not None and left >= right
    return _judged(engine, is_right, pair, values, reason)


def outside_at(
    engine: str, inner: IndexSet, outer: IndexSet, point: Point, values: Values, reason: str
) -> Answer:
    """A point belongs to one set and not to another that should hold it."""
    is_right = inner.holds(point, values) and not outer.holds(point, values)
    return _judged(engine, is_right, (point,), values, reason)


def _judged(
    engine: str, is_right: bool, points: Sequence[Point], values: Values, reason: str
) -> Answer:
    if not is_right:
        return unknown(engine, f"{reason}, but its witness does not evaluate to that")
    return disproven(engine, reason, Witness(tuple(points), tuple(sorted(values.items()))))
