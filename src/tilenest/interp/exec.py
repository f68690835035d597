"""The meaning of structured execution: nests, stages, conditionals, terminators.

In: index domains and states. Out: the final states. A parallel domain is visited in a drawn order
when the run has one, everything else in lexicographic order (`fold_right`: in reverse). No domain
is ever listed: it may have more points than memory has room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from tilenest.dialects import CarryingNest, If, Nest, Parallel, Pipeline, Reduce, Serial, Yield
from tilenest.errors import TargetError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.phases import run_in_phases, waits
from tilenest.interp.updates import Instance, lay_over
from tilenest.interp.values import Array, RuntimeValue
from tilenest.ir import Operation
from tilenest.records import record

Point = tuple[int, ...]
MOST_DRAWN = 1 << 16
"""Of a larger domain, runs of neighbours are visited in a drawn order."""
MOST_WAITING = 1 << 10
"""Instances that wait for each other are all begun before any ends."""


@record
class Domain:
    """The points of a nest in lexicographic order, by their places in it."""

    axes: tuple[tuple[int, int, int], ...]
    """lower, upper, step: as Python's ranges, but that a step of 0 visits nothing"""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(
            max(-((lower - upper) // step), 0) if step else 0 for lower, upper, step in self.axes
        )

    @property
    def places(self) -> range:
        return range(prod(self.shape))

    def point(self, place: int) -> Point:
        coordinates = []
        for (lower, _, step), count in zip(reversed(self.axes), reversed(self.shape), strict=True):
            place, digit = divmod(place, count)
            coordinates.append(lower + digit * step)
        return tuple(reversed(coordinates))


def domain_of(frame: Frame, op: Nest) -> Domain:
    bounds = frame.integers(op.lower), frame.integers(op.upper), frame.integers(op.step)
    return Domain(tuple(zip(*bounds, strict=True)))


def visited(places: range, order: np.random.Generator | None) -> Iterator[int]:
    """Every place once: in turn, or as drawn."""
    if order is None:
        return iter(places)
    length = max(-(-places.stop // MOST_DRAWN), 1)
    starts = list(places[::length])
    order.shuffle(starts)
    return (place for start in starts for place in places[start : start + length])


def indices(point: Point) -> list[Array]:
    return [np.asarray(coordinate, np.int64) for coordinate in point]


def hand_over(frame: Frame, op: Yield) -> list[RuntimeValue]:
    return [frame.values[value] for value in op.values]


def parallel(frame: Frame, op: Parallel) -> list[RuntimeValue]:
    """Instances in a drawn order; what they patch is laid over in the order of the domain."""
    domain = domain_of(frame, op)
    visits = visited(domain.places, frame.order)
    entry = [frame.values[value] for value in op.initial]
    patched: dict[int, Instance] = {}

    def run(visit: int, own: Frame) -> None:
        point = domain.point(visit)
        updates = own.run(op.body, [*indices(point), *entry])
        if updates:
            patched[visit] = Instance(point, updates)

    if waits(op.body):
        _check_waiting(domain)
        run_in_phases([partial(run, visit, frame.copy()) for visit in visits])
    else:
        for visit in visits:
            run(visit, frame)
    if not op.results:
        return []
    return lay_over(entry, [patched[visit] for visit in sorted(patched)])


def _check_waiting(domain: Domain) -> None:
    if domain.places.stop > MOST_WAITING:
        raise TargetError(
            f"{domain.places.stop} instances wait for each other, and the interpreter begins at "
            f"most {MOST_WAITING} before one ends",
            remedy="synchronize fewer instances, each of which does more",
        )


def reduce(frame: Frame, op: Reduce) -> Sequence[RuntimeValue]:
    domain = domain_of(frame, op)
    places = reversed(domain.places) if op.policy == "fold_right" else domain.places
    return _carry(frame, op, map(domain.point, places))


def in_order(frame: Frame, op: Serial | Pipeline) -> Sequence[RuntimeValue]:
    domain = domain_of(frame, op)
    return _carry(frame, op, map(domain.point, domain.places))


def _carry(frame: Frame, op: CarryingNest, domain: Iterable[Point]) -> Sequence[RuntimeValue]:
    """Every region gets what those before it yielded for this point, the last one gives states."""
    states: Sequence[RuntimeValue] = [frame.values[value] for value in op.initial]
    for point in domain:
        known = [*indices(point), *states]
        produced: Sequence[RuntimeValue] = []
        for region in op.regions:
            entry = region.blocks.first
            assert entry is not None
            produced = frame.run(entry, known)
            known.extend(produced)
        states = produced
    return states


def conditional(frame: Frame, op: If) -> Sequence[RuntimeValue]:
    entry = op.regions[0 if frame.array(op.condition) else 1].blocks.first
    assert entry is not None
    return frame.run(entry, [])


HANDLERS: dict[type[Operation], Handler] = {
    Yield: hand_over,
    Parallel: parallel,
    Serial: in_order,
    Reduce: reduce,
    Pipeline: in_order,
    If: conditional,
}
