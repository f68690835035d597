"""What the engines' tests judge by: every point of small spaces, evaluated one by one.

`Truth` holds the values of a map at one choice of its run-time extents, as a dictionary made with
plain evaluation; its methods say what each question means in the words of sets. `ENGINES` are the
judged, in the order in which questions try them.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Any

from tilenest.layouts.answers import Answer
from tilenest.layouts.engines import engines
from tilenest.layouts.formula import Formula
from tilenest.layouts.index_expr import IndexExpr, as_index_expr
from tilenest.layouts.spaces import Constraint, IndexSet, Space

Extent = int | str
Point = tuple[int, ...]
ENGINES: tuple[Any, ...] = engines().in_order
LARGEST = 64
INT64 = range(-(2**63), 2**63)


def formula(
    extents: Iterable[Extent],
    codomain: Iterable[Extent],
    results: Iterable[IndexExpr | int],
    constraints: Iterable[Constraint] = (),
) -> Formula:
    """A formula over x0, x1, ... whose symbols are the extents' names, sorted."""
    domain, target = Space.box(*extents), Space.box(*codomain)
    extra = tuple(sorted({*target.symbols} - {*domain.symbols}))
    return Formula(
        IndexSet(domain, tuple(constraints), extra),
        target,
        tuple(as_index_expr(result) for result in results),
        tuple(sorted({*domain.symbols, *target.symbols})),
    )


def points_of(extents: Iterable[Extent], values: Mapping[str, int]) -> list[Point]:
    sizes = [values[extent] if isinstance(extent, str) else extent for extent in extents]
    return list(product(*map(range, sizes)))


def value_at(
    formulas: tuple[Formula, ...], point: Point, values: Mapping[str, int]
) -> Point | None:
    """Where a map sends a point, None where it is undefined; its pieces must not overlap."""
    found = []
    for piece in formulas:
        inner = [values[name] for name in piece.domain.symbols]
        if not all(c.is_met(point, inner) for c in piece.domain.constraints):
            continue
        symbols = [values[name] for name in piece.symbols]
        found.append(tuple(result.evaluate(point, symbols) for result in piece.results))
    assert len(found) <= 1, "the pieces overlap"
    is_defined = found and all(result in INT64 for result in found[0])
    return found[0] if is_defined else None


class Truth:
    """A map as a dictionary, at one choice of the run-time extents."""

    def __init__(self, formulas: tuple[Formula, ...], values: Mapping[str, int]) -> None:
        first = formulas[0]
        self.points = points_of(first.domain.space.extents, values)
        self.places = set(points_of(first.codomain.extents, values))
        found = {point: value_at(formulas, point, values) for point in self.points}
        self.value = {point: value for point, value in found.items() if value is not None}

    def is_total(self) -> bool:
        return len(self.value) == len(self.points)

    def is_bounded(self) -> bool:
        return self.places.issuperset(self.value.values())

    def is_injective(self) -> bool:
        return len(set(self.value.values())) == len(self.value)

    def is_surjective(self) -> bool:
        return self.places.issubset(self.value.values())

    def is_monotone(self) -> bool:
        ordered = [self.value[point] for point in sorted(self.value)]
        return all(a < b for a, b in pairwise(ordered))

    def equal(self, other: "Truth") -> bool:
        return self.value == other.value

    def are_disjoint(self, other: "Truth") -> bool:
        return not set(self.value.values()) & set(other.value.values())


def refutes(
    question: str,
    maps: tuple[tuple[Formula, ...], ...],
    points: tuple[Point, ...],
    values: Mapping[str, int],
) -> bool:
    """Whether points refute a claim, by evaluating there; that a place is missed, everywhere where
    the domain is not large."""
    codomain = maps[0][0].codomain
    if question == "is_surjective":
        return _is_inside(points[0], codomain, values) and not _is_reached(
            maps[0], points[0], values
        )
    spaces = [maps[-1 if at else 0][0].domain.space for at in range(len(points))]
    if not all(_is_inside(p, space, values) for p, space in zip(points, spaces, strict=True)):
        return False
    first = value_at(maps[0], points[0], values)
    if question == "is_total":
        return first is None
    if question == "equal":
        return first != value_at(maps[1], points[0], values)
    if first is None:
        return False
    if question == "is_bounded":
        return not _is_inside(first, codomain, values)
    second = value_at(maps[-1], points[1], values)
    if question == "is_monotone":
        return second is not None and points[0] < points[1] and first >= second
    is_pair = points[0] != points[1] or question == "are_disjoint"
    return is_pair and first == second


def _is_reached(formulas: tuple[Formula, ...], place: Point, values: Mapping[str, int]) -> bool:
    """Whether a point is found that goes to a place; where there are many, none is looked for."""
    space = formulas[0].domain.space
    sizes = [values[n] if isinstance(n, str) else n for n in space.extents]
    if not 0 < prod(sizes) <= LARGEST**2:
        return False
    points = points_of(space.extents, values)
    return any(value_at(formulas, point, values) == place for point in points)


def _is_inside(point: Point, space: Space, values: Mapping[str, int]) -> bool:
    sizes = [values[n] if isinstance(n, str) else n for n in space.extents]
    return all(0 <= x < size for x, size in zip(point, sizes, strict=True))


def check(
    answer: Answer | None,
    question: str,
    maps: tuple[tuple[Formula, ...], ...],
    choices: Iterable[Mapping[str, int]],
) -> str:
    """Assert that an answer is right for every choice of the extents; its verdict, or `none`.

    A witness is evaluated whatever the size; a proof is tried where there are choices.
    """
    if answer is None:
        return "none"
    if answer.is_proven:
        for values in choices:
            assert _holds(question, maps, values), f"{question} at {values}: {answer}: {maps}"
    elif answer.is_disproven:
        assert answer.witness is not None
        values = dict(answer.witness.symbols)
        points = answer.witness.points
        assert refutes(question, maps, points, values), f"{question}: {answer}: {maps}"
        if choices and all(value <= LARGEST for value in values.values()):
            assert not _holds(question, maps, values), f"{question}: {answer}: {maps}"
    return answer.verdict.value


@lru_cache(maxsize=256)
def _truth(formulas: tuple[Formula, ...], chosen: tuple[tuple[str, int], ...]) -> Truth:
    """Each map is asked many questions by several engines."""
    return Truth(formulas, dict(chosen))


def _holds(question: str, maps: tuple[tuple[Formula, ...], ...], values: Mapping[str, int]) -> bool:
    chosen = tuple(sorted(values.items()))
    first, *rest = (_truth(formulas, chosen) for formulas in maps)
    return bool(getattr(first, question)(*rest))
