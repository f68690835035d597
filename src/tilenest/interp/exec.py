"""The meaning of structured execution: nests, stages, conditionals, terminators.

In: index domains and states. Out: the final states. A parallel domain is visited in a drawn order
when the run has one, everything else in lexicographic order (`fold_right`: in reverse).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from tilenest.dialects import If, Nest, Parallel, Pipeline, Reduce, Return, Serial, Yield
from tilenest.interp.frame import Frame, Handler
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


def hand_over(frame: Frame, op: Return | Yield) -> list[RuntimeValue]:
    return [frame.values[value] for value in op.values]


def parallel(frame: Frame, op: Parallel) -> list[RuntimeValue]:
    domain = points(frame, op)
    if frame.order is not None:
        frame.order.shuffle(domain)
    for point in domain:
        frame.run(op.body, indices(point))
    return []


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
    Return: hand_over,
    Yield: hand_over,
    Parallel: parallel,
    Serial: serial,
    Reduce: reduce,
    Pipeline: pipeline,
    If: conditional,
}
