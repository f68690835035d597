"""Patches of different instances that surely lay over one element.

In: the end of a parallel that updates values. Out: the first pair of patches that do not combine by
one function and that two instances lay over one element whenever the nest runs, with the instances.
`parallel` promises that its instances do not meet, so what is not sure is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from tilenest.analysis.composed_accesses import ComposedAccess, compose
from tilenest.analysis.meetings import Relation, surely_meet
from tilenest.analysis.structure import constant_of, is_defined_above, trip_counts
from tilenest.dialects import BoundPatch, Parallel, YieldUpdates
from tilenest.ir import Value
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
    windows = {
        place: compose(end, bound.touch(owner.results[bound.patch.result]))
        for place, bound in patches
    }
    points = list(_points(owner))
    for place, one in patches:
        for other_place, other in patches:
            if _may_clash(one, other):
                found = _meeting(owner, windows[place], windows[other_place], points)
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
    owner: Parallel, one: ComposedAccess, other: ComposedAccess, points: list[_Point]
) -> tuple[_Point, _Point] | None:
    for x, y in product(points, repeat=2):
        relation = Relation(
            lambda value: is_defined_above(value, owner), given=(_at(owner, x), _at(owner, y))
        )
        if x != y and surely_meet(one, other, relation):
            return x, y
    return None


def _at(owner: Parallel, point: _Point) -> Mapping[Value, int]:
    return dict(zip(owner.body.arguments, point, strict=False))
