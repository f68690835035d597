"""The meaning of structured execution: nests, stages, conditionals, terminators.

In: index domains and states. Out: the final states. A parallel domain is visited in a drawn order
when the run has one, everything else in lexicographic order (`fold_right`: in reverse).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from tilenest.dialects import If, Nest, Parallel, Pipeline, Reduce, Serial, Yield
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.phases import run_in_phases, waits
from tilenest.interp.updates import Instance, lay_over
from tilenest.interp.values import Array, RuntimeValue
from tilenest.ir import Operation

Point = tuple[int, ...]


def points(frame: Frame, op: Nest) -> list[Point]:
    """The domain in lexicographic order."""
    bounds = zip(
        frame.integers(op.lower), frame.integers(op.upper), frame.integers(op.step), strict=True
    )
    # As Python's ranges, but that a step of 0 visits nothing.
    return list(itertools.product(*(range(*axis) if axis[2] else () for axis in bounds)))


def indices(point: Point) -> list[Array]:
    return [np.asarray(coordinate, np.int64) for coordinate in point]


def hand_over(frame: Frame, op: Yield) -> list[RuntimeValue]:
    return [frame.values[value] for value in op.values]


def parallel(frame: Frame, op: Parallel) -> list[RuntimeValue]:
    """Instances in a drawn order; what they patch is laid over in the order of the domain."""
    domain = points(frame, op)
    visits = list(range(len(domain)))
    if frame.order is not None:
        frame.order.shuffle(visits)
    entry = [frame.values[value] for value in op.initial]
    patched: dict[int, Instance] = {}

    def run(visit: int, own: Frame) -> None:
        updates = own.run(op.body, [*indices(domain[visit]), *entry])
        patched[visit] = Instance(domain[visit], updates)

    if waits(op.body):
        run_in_phases([partial(run, visit, frame.copy()) for visit in visits])
    else:
        for visit in visits:
            run(visit, frame)
    if not op.results:
        return []
    return lay_over(entry, [patched[visit] for visit in range(len(domain))])


def serial(frame: Frame, op: Serial) -> Sequence[RuntimeValue]:
    return _carry(frame, op, points(frame, op))


def reduce(frame: Frame, op: Reduce) -> Sequence[RuntimeValue]:
    domain = points(frame, op)
    return _carry(frame, op, reversed(domain) if op.policy == "fold_right" else domain)


def _carry(frame: Frame, op: Serial | Reduce, domain: Iterable[Point]) -> Sequence[RuntimeValue]:
    states: Sequence[RuntimeValue] = [frame.values[value] for value in op.initial]
    for point in domain:
        states = frame.run(op.body, [*indices(point), *states])
    return states


def pipeline(frame: Frame, op: Pipeline) -> Sequence[RuntimeValue]:
    states: Sequence[RuntimeValue] = [frame.values[value] for value in op.initial]
    for point in points(frame, op):
        known = [*indices(point), *states]
        produced: Sequence[RuntimeValue] = []
        for stage in op.regions:
            produced = frame.run(stage.block, known)
            known.extend(produced)
        states = produced
    return states


def conditional(frame: Frame, op: If) -> Sequence[RuntimeValue]:
    taken = op.regions[0 if frame.array(op.condition) else 1]
    return frame.run(taken.block, [])


HANDLERS: dict[type[Operation], Handler] = {
    Yield: hand_over,
    Parallel: parallel,
    Serial: serial,
    Reduce: reduce,
    Pipeline: pipeline,
    If: conditional,
}
