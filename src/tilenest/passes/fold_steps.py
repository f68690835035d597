"""The step of an `exec.reduce` as the region of a fold, over a domain that a pass chooses.

In: a reduce over a pure body, the extents of loop dims, and where contributions and states stand in
them. Out: a composer with the next states; nothing where the body reads its states anywhere but at
their own coordinates, or uses what is not there in front of the reduce.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import constant_of, is_defined_above, trip_counts
from tilenest.dialects import Load, Reduce
from tilenest.ir import OpResult, ScalarType, Value, element_dtype
from tilenest.layouts import DimRef, IndexExpr, as_index_expr
from tilenest.passes.compose import Composer


class FoldStep:
    """A group of states, and the composer that holds their common step."""

    def __init__(self, op: Reduce, group: Sequence[int], composer: Composer) -> None:
        self.op = op
        self.group = group
        self.composer = composer
        self.nexts: list[Value] = []
        self.states: list[Value] = []


class _StatesElsewhere(Exception):  # noqa: N818  # a signal inside this file
    """The body reads a state where a fold does not have it."""


class StepComposer(Composer):
    """Inlines the whole body, loads of single elements included; states answer at their place."""

    def __init__(self, extents: Sequence[int], op: Reduce) -> None:
        super().__init__(extents, lambda producer: producer.parent is op.body)
        self._op = op

    def _sources(
        self, value: Value, coordinates: tuple[IndexExpr, ...]
    ) -> list[tuple[Value, tuple[IndexExpr, ...]]]:
        is_load = isinstance(value, OpResult) and isinstance(value.owner, Load)
        return [] if is_load else super()._sources(value, coordinates)

    def _evaluate(self, value: Value, coordinates: tuple[IndexExpr, ...]) -> Value:
        if value in self._op.body.arguments[self._op.rank :]:
            raise _StatesElsewhere
        owner = getattr(value, "owner", None)
        if isinstance(owner, Load) and owner.parent is self._op.body:
            results = [self.simplified(self.symbol(origin)) for origin in owner.origins]
            return self.read(owner.view, self.access(owner.view, results, owner.bounds))
        return super()._evaluate(value, coordinates)


def fold_step(
    op: Reduce,
    group: Sequence[int],
    extents: Sequence[int],
    places: Sequence[IndexExpr],
    own: tuple[DimRef, ...],
) -> FoldStep | None:
    """The step of a group of states over a domain whose points are contributions, counted at
    `places`, and coordinates `own` of the states."""
    composer = StepComposer(extents, op)
    composer.location(op.location)
    bind_indices(op, composer, places)
    fold = FoldStep(op, group, composer)
    for i in group:
        argument = op.body.arguments[op.rank + i]
        state = composer.state(ScalarType(element_dtype(argument.type)), argument.name)
        composer.bind(argument, own, state)
        fold.states.append(state)
    try:
        fold.nexts = [composer.element(op.body.terminator.operands[i], own) for i in group]
    except _StatesElsewhere:
        return None
    outside = (*composer.inputs, *composer.symbols)
    return fold if all(is_defined_above(value, op) for value in outside) else None


def counts_of(op: Reduce) -> list[int]:
    return [count or 0 for count in trip_counts(op)]


def bind_indices(op: Reduce, composer: Composer, places: Sequence[IndexExpr]) -> None:
    """Index arguments follow the loop dims, counted from the other end when folding right."""
    for axis, (count, place) in enumerate(zip(counts_of(op), places, strict=True)):
        lower, step = constant_of(op.lower[axis]), constant_of(op.step[axis])
        assert lower is not None and step is not None
        counted = as_index_expr(count - 1) - place if op.policy == "fold_right" else place
        composer.index_bindings[op.body.arguments[axis]] = counted * int(step) + int(lower)
