"""Patches of different instances that surely lay over one element.

In: the end of a parallel that updates values. Out: the first pair of patches that do not combine by
one function and that two instances lay over one element whenever the nest runs, with the instances.
`parallel` promises that its instances do not meet, so what is not sure is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilenest.analysis.access_leaves import Leaves
from tilenest.analysis.structure import constant_of, trip_counts
from tilenest.dialects import BoundPatch, Parallel, YieldUpdates
from tilenest.errors import ShapeError
from tilenest.ir import TileType, Value
from tilenest.layouts import Const, IndexExpr, Ranges, Sym, bounds, simplify
from tilenest.records import record

_TRIED = 3
"""Instances along each axis: neighbours meet, or those that a small remainder keeps apart."""
_Point = tuple[int, ...]


@record
class UpdateOverlap:
    """Two patches by their place in the list, and the instances that lay them."""

    first: int
    second: int
    instances: tuple[_Point, _Point]


def update_overlap(end: YieldUpdates) -> UpdateOverlap | None:
    """The first sure meeting of two instances of the parallel that the patches end."""
    owner = end.parent_op
    assert isinstance(owner, Parallel)
    patches = [
        (place, bound) for place, bound in enumerate(end.bound()) if not bound.patch.conditional
    ]
    points = list(_points(owner))
    for place, one in patches:
        for other_place, other in patches:
            if _may_clash(one, other):
                found = _meeting(owner, one, other, points)
                if found is not None:
                    return UpdateOverlap(place, other_place, found)
    return None


def _may_clash(one: BoundPatch, other: BoundPatch) -> bool:
    functions = one.patch.combine, other.patch.combine
    is_joined = functions[0] is not None and functions[0] == functions[1]
    return one.patch.result == other.patch.result and not is_joined


def _points(owner: Parallel) -> Iterator[_Point]:
    """Index values of a few instances that there surely are."""
    axes: list[list[int]] = []
    for axis, trips in zip(owner.inductions(), trip_counts(owner), strict=True):
        first, step = constant_of(axis.lower), constant_of(axis.step)
        if trips is None or not isinstance(first, int) or not isinstance(step, int):
            return
        axes.append([first + step * turn for turn in range(min(trips, _TRIED))])
    yield from product(*axes)


def _meeting(
    owner: Parallel, one: BoundPatch, other: BoundPatch, points: list[_Point]
) -> tuple[_Point, _Point] | None:
    leaves = Leaves()
    indices = owner.body.arguments[: owner.rank]
    places = [leaves.formula(index) for index in indices]
    ours = [leaves.formula(origin) for origin in one.origins]
    theirs = [leaves.formula(origin) for origin in other.origins]
    known: Ranges = dict(leaves.close().ranges)
    shape = _extents(owner.results[one.patch.result], len(ours))
    sizes = _extents(one.payload, len(ours)), _extents(other.payload, len(theirs))
    for x, y in product(points, repeat=2):
        if x != y:
            axes = zip(_at(ours, places, x), _at(theirs, places, y), *sizes, shape, strict=True)
            if all(_meet(a, b, (m, n), extent, known) for a, b, m, n, extent in axes):
                return x, y
    return None


def _at(origins: list[IndexExpr], places: list[IndexExpr], point: _Point) -> Iterator[IndexExpr]:
    """The origins in one instance, over the leaves that are no index of the nest."""
    chosen = dict(zip(places, point, strict=True))
    for origin in origins:
        symbols = [Sym(place) for place in range(max(origin.used_syms(), default=-1) + 1)]
        yield origin.substitute((), [Const(chosen[s]) if s in chosen else s for s in symbols])


def _meet(a: IndexExpr, b: IndexExpr, sizes: tuple[int, int], extent: int, known: Ranges) -> bool:
    """Whether two windows surely share an element of an axis."""
    found = bounds(a, known)
    try:
        apart = simplify(b - a, known)
    except ShapeError:
        # They are farther apart than numbers go.
        return False
    if found is None or not isinstance(apart, Const):
        return False
    first, last = max(0, apart.value), min(sizes[0], apart.value + sizes[1]) - 1
    low, high = found
    return first <= last and high + first < extent and low + last >= 0


def _extents(value: Value, rank: int) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TileType) else (1,) * rank
