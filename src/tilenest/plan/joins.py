"""Which ops share one traversal, and which follow a fold into its epilogue.

In: a function of fused work on values, and one op of it. Out: the next join or epilogue for it.

A join: a consumer that reads a pointwise result of a producer at each point of the same domain
becomes further results of the producer (softmax stores exp(x - m) and sums it in one traversal).
An epilogue: a pointwise op over the cells of one folded result, which alone reads that result, runs
between the fold and its store (a mean divides, a row sum is stored to the array).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilenest.analysis import Dominance, MemoryEffects, effects_of, may_overlap
from tilenest.dialects import MapReducePost
from tilenest.ir import Asker, BufType, Function, Operation, OpResult, Use, Value, ViewType
from tilenest.layouts import Const, DimRef
from tilenest.records import record


@record
class Join:
    """Put both into one op, where the consumer stands or where the producer does."""

    producer: MapReducePost
    consumer: MapReducePost
    dims: tuple[int, ...]
    """the consumer's loop dim that runs each loop dim of the producer"""
    at_consumer: bool


@record
class Epilogue:
    """Run `consumer` in the epilogue of the fold's result."""

    fold: MapReducePost
    result: int
    consumer: MapReducePost
    dims: tuple[int, ...]
    """the fold's loop dim that runs each loop dim of the consumer"""


def plan_join(function: Function, consumer: MapReducePost, ask: Asker) -> Join | None:
    """The first producer that a consumer can join."""
    if consumer.outputs:
        return None
    for producer, result, position in _tile_inputs(consumer):
        dims = _common_dims(producer, result, consumer, position)
        if dims is not None and producer.parent is consumer.parent:
            place = _place_of(producer, consumer, _Around(function, ask))
            if place is not None:
                return Join(producer, consumer, dims, place)
    return None


def plan_epilogue(function: Function, consumer: MapReducePost, ask: Asker) -> Epilogue | None:
    """The first fold in whose epilogue a consumer can run."""
    if consumer.folded_results or len(consumer.specs) != 1 or consumer.spec(0).is_masked:
        return None
    for fold, result, position in _tile_inputs(consumer):
        dims = _cell_dims(fold, result, consumer, position)
        if dims is not None and _may_follow(fold, result, consumer, _Around(function, ask)):
            return Epilogue(fold, result, consumer, dims)
    return None


class _Around:
    """What is known of the function, as far as it is asked."""

    def __init__(self, function: Function, ask: Asker) -> None:
        self._function = function
        self._ask = ask

    def is_kept(self, memory: Iterable[Value], first: Operation, last: Operation) -> bool:
        """Whether nothing writes to any of the memory between two operations."""
        found = self._ask.get(MemoryEffects, self._function)
        return not any(found.is_written_between(view, first, last) for view in memory)

    def come_after(self, uses: Iterable[Use], op: Operation) -> bool:
        """Whether uses are by `op` itself or by what follows it."""
        dominance = self._ask.get(Dominance, self._function)
        return all(dominance.dominates(op, use.operation) for use in uses)

    def sees(self, op: Operation, value: Value) -> bool:
        """Whether a value is there before an operation runs."""
        return self._ask.get(Dominance, self._function).sees(op, value)


def _tile_inputs(op: MapReducePost) -> Iterator[tuple[MapReducePost, int, int]]:
    """Producer, its result, and the input position of each input that is work's result."""
    for position, value in enumerate(op.inputs):
        if isinstance(value, OpResult) and isinstance(value.owner, MapReducePost):
            yield value.owner, value.index, position


def _permutation(op: MapReducePost, position: int) -> tuple[int, ...] | None:
    """The loop dim each axis of an input reads, when the axes read all loop dims once."""
    access = op.access("input", position)
    results = access.map.results
    if access.bounds != "proven" or len(results) != op.rank:
        return None
    named = [result.position for result in results if isinstance(result, DimRef)]
    # A dim of extent 1 is read as the constant 0.
    units = [d for d in range(op.rank) if d not in named and op.extents[d] == 1]
    dims: list[int] = []
    for result in results:
        if isinstance(result, DimRef):
            dims.append(result.position)
        elif result == Const(0) and units:
            dims.append(units.pop(0))
    return tuple(dims) if sorted(dims) == list(range(op.rank)) else None


def _common_dims(
    producer: MapReducePost, result: int, consumer: MapReducePost, position: int
) -> tuple[int, ...] | None:
    if consumer.sched is not None:
        return None
    dims = _dims_of(producer, result, consumer, position)
    if dims is None or not _reads_only_at(consumer, producer, dims):
        return None
    if any(producer.extents[d] != consumer.extents[dims[d]] for d in range(producer.rank)):
        return None
    folds = {frozenset(dims[d] for d in producer.spec(j).dims) for j in producer.folded_results}
    folds |= {frozenset(consumer.spec(j).dims) for j in consumer.folded_results}
    return dims if len(folds) <= 1 else None


def _dims_of(
    producer: MapReducePost, result: int, consumer: MapReducePost, position: int
) -> tuple[int, ...] | None:
    """The consumer's loop dims that run the producer's where it reads one of its elements."""
    axes = _permutation(consumer, position)
    if producer.spec(result).policy is not None or axes is None or producer.rank != consumer.rank:
        return None
    kept = producer.spec(result).dims
    return tuple(axes[kept.index(d)] for d in range(producer.rank))


def _reads_only_at(consumer: MapReducePost, producer: MapReducePost, dims: tuple[int, ...]) -> bool:
    """Whether all that the consumer reads of the producer is made at the very point."""
    made_here = [
        isinstance(value, OpResult)
        and value.owner is producer
        and _dims_of(producer, value.index, consumer, position) == dims
        for position, value in enumerate(consumer.inputs)
    ]
    return sum(made_here) == sum(value in producer.results for value in consumer.operands)


def _place_of(producer: MapReducePost, consumer: MapReducePost, around: _Around) -> bool | None:
    """True to stand at the consumer, False at the producer, None when neither is right."""
    memory = effects_of(producer).reads | effects_of(consumer).reads
    if not around.is_kept(memory, producer, consumer):
        return None
    if around.come_after((use for r in producer.results for use in r.uses), consumer):
        return True
    others = (value for value in consumer.operands if value not in producer.results)
    if not all(around.sees(producer, value) for value in others):
        return None
    return False


def _cell_dims(
    fold: MapReducePost, result: int, consumer: MapReducePost, position: int
) -> tuple[int, ...] | None:
    spec = fold.spec(result)
    if spec.policy is None or fold.sched is not None or fold.parent is not consumer.parent:
        return None
    axes = _permutation(consumer, position)
    if axes is None:
        return None
    dims = tuple(spec.dims[axes.index(d)] for d in range(consumer.rank))
    same = all(fold.extents[dims[d]] == consumer.extents[d] for d in range(consumer.rank))
    return dims if same else None


def _may_follow(fold: MapReducePost, result: int, consumer: MapReducePost, around: _Around) -> bool:
    """Whether the fold may run where the consumer stands, with the consumer in its epilogue."""
    value = fold.results[result]
    if any(use.operation is not consumer for use in value.uses):
        return False
    if sum(v in fold.results for v in consumer.operands) != 1:
        return False
    others = [r for r in fold.results if r is not value]
    if not around.come_after((use for r in others for use in r.uses), consumer):
        return False
    if consumer.outputs and others:
        return False
    if any(access.bounds == "zero" for access in consumer.input_access):
        return False
    if not around.is_kept(effects_of(fold).reads, fold, consumer):
        return False
    views = [value for value in fold.inputs if isinstance(value.type, ViewType | BufType)]
    return not any(may_overlap(view, output) for view in views for output in consumer.outputs)
