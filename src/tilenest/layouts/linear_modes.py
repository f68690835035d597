"""Maps as constants and modes: the common ground of the layout formats of other systems.

In: layout maps from one space with known extents. Out: the modes of its axes, each a digit of a
coordinate with a stride for every result, so that the results are a constant and the sum of strides
times digits. The modes are read off values along each axis and then proven with `questions.equal`:
a map that merely looks like this on its axes is refused, with the witness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.errors import ShapeError
from tilenest.layouts.answers import Answer
from tilenest.layouts.deciding import DEFAULT_BUDGET
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr
from tilenest.layouts.layout_leaves import Expressions, MixedRadix
from tilenest.layouts.layout_map import LayoutMap, Point
from tilenest.layouts.questions import equal
from tilenest.layouts.spaces import Space
from tilenest.records import record

_MOST_FACTOR = 1 << 10


@record
class LinearMode:
    """The digit `(coordinate // below) % extent` of one axis, and its stride in every result."""

    axis: int
    below: int
    extent: int
    strides: Point


@record
class LinearModes:
    """Results as a constant and modes; the modes of an axis from its lowest digit up."""

    constants: Point
    modes: tuple[LinearMode, ...]


def linear_modes(maps: Sequence[LayoutMap], budget: int = DEFAULT_BUDGET) -> LinearModes:
    """The modes of several maps from one space, their results side by side; refused with the reason
    where there are none."""
    for layout in maps:
        check_known(layout)
    domain = maps[0].domain
    origin = (0,) * domain.rank
    constants = _values(maps, origin)

    def along(axis: int) -> Callable[[int], Point]:
        def moved(x: int) -> Point:
            values = _values(maps, (*origin[:axis], x, *origin[axis + 1 :]))
            return tuple(a - b for a, b in zip(values, constants, strict=True))

        return moved

    modes: list[LinearMode] = []
    for axis, extent in enumerate(domain.shape({})):
        modes += _modes_along(axis, extent, along(axis))
    found = LinearModes(constants, tuple(modes))
    _prove(maps, found, budget)
    return found


def affine(
    domain: Space, codomain: Space, strides: Sequence[Sequence[int]], constants: Sequence[int]
) -> LayoutMap:
    """The map with these strides and a constant for each result: one step, so that a sum which is
    negative without its constant stays defined."""
    if not any(constants):
        return MixedRadix(domain, codomain, tuple(map(tuple, strides)))
    results: list[IndexExpr] = []
    for row, constant in zip(strides, constants, strict=True):
        total: IndexExpr = Const(constant)
        for axis, stride in enumerate(row):
            total += DimRef(axis) * stride
        results.append(total)
    return Expressions(domain, codomain, tuple(results))


def check_known(layout: LayoutMap) -> None:
    """Refuse a map that depends on run-time numbers, or has no point."""
    if layout.symbols or layout.domain.size == 0:
        raise ShapeError(
            f"a map from {layout.domain} to {layout.codomain} has no strides to read off",
            remedy="use a map without run-time numbers, and extents of at least 1",
        )


def check_equal(found: LayoutMap, layout: LayoutMap, form: str, budget: int) -> None:
    """Refuse a map that what was read off its values does not give back."""
    answer: Answer = equal(found, layout, budget)
    if not answer.is_proven:
        raise ShapeError(
            f"the map is not proven to be {form}: {answer}",
            remedy="write the map in that form, or keep it as a layout map",
        )


def _modes_along(axis: int, extent: int, moved: Callable[[int], Point]) -> list[LinearMode]:
    """Digits from the lowest up. One ends where its values leave their stride, at a divisor of the
    extent if anywhere: elsewhere there are no strides, and the proof finds out."""
    modes: list[LinearMode] = []
    below = 1
    while below < extent:
        strides = moved(below)
        runs = (
            run
            for run in _divisors(extent // below)
            if moved(below * run) != tuple(run * stride for stride in strides)
        )
        run = next(runs, extent // below)
        modes.append(LinearMode(axis, below, run, strides))
        below *= run
    return modes


def _divisors(number: int) -> list[int]:
    """The divisors between 1 and a number, in order; of a rest without small factors, only it."""
    found = {1}
    rest = number
    for factor in range(2, _MOST_FACTOR):
        while rest % factor == 0:
            found |= {factor * divisor for divisor in found}
            rest //= factor
        if rest == 1:
            break
    if rest > 1:
        found |= {rest * divisor for divisor in found}
    return sorted(found - {1, number})


def _values(maps: Sequence[LayoutMap], point: Point) -> Point:
    found: list[int] = []
    for layout in maps:
        value = layout.apply(point)
        if value is None:
            raise ShapeError(
                f"the map is undefined at {point}", remedy="use a map defined on all of its domain"
            )
        found += value
    return tuple(found)


def _prove(maps: Sequence[LayoutMap], found: LinearModes, budget: int) -> None:
    domain = maps[0].domain
    results = [_sum(domain, found, place) for place in range(len(found.constants))]
    for layout in maps:
        rank = layout.codomain.rank
        own, results = results[:rank], results[rank:]
        candidate = Expressions(domain, layout.codomain, tuple(own))
        check_equal(candidate, layout, "a sum of strides times digits", budget)


def _sum(domain: Space, found: LinearModes, place: int) -> IndexExpr:
    total: IndexExpr = Const(found.constants[place])
    extents = domain.shape({})
    for mode in found.modes:
        digit = DimRef(mode.axis) // mode.below
        if mode.below * mode.extent != extents[mode.axis]:
            digit = digit % mode.extent
        total += digit * mode.strides[place]
    return total
