"""Joins and epilogues: several results from one traversal, and pointwise work after a fold.

In: fused work on values. Out: fewer traversals of the same domains.

    %e = map_reduce_post(%x, %m) {exp}             %e, %s = map_reduce_post(%x, %m) {exp; sum}
    %s = map_reduce_post(%e) fold {sum}      ->
    %q = map_reduce_post(%s) {divide by n}         (in the post region of %s)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.decisions import Decision
from tilenest.dialects import Access, MapReducePost, ResultSpec
from tilenest.ir import (
    Builder,
    Function,
    Region,
    Rewriter,
    Type,
    Value,
    clone_region,
    fuse_locations,
)
from tilenest.layouts import DimRef, IndexExpr
from tilenest.passes.compose import Composer, never
from tilenest.plan import Epilogue, Join, plan_epilogue, plan_join
from tilenest.records import replace


def join(function: Function, rewriter: Rewriter) -> list[Decision]:
    """Apply joins, then epilogues, until there are none."""
    decisions: list[Decision] = []
    for apply_next in (_join_next, _follow_next):
        # What was applied may let an op before it follow.
        while _sweep(function, apply_next, rewriter, decisions):
            pass
    return decisions


_Next = Callable[[Function, MapReducePost, Rewriter], tuple[Decision, MapReducePost] | None]
"""Applies one thing to an op: why, and the op that is there now."""


def _sweep(
    function: Function, apply_next: _Next, rewriter: Rewriter, decisions: list[Decision]
) -> bool:
    """Apply all there is, op by op; whether there was anything."""
    before = len(decisions)
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        current = op if op.parent is not None else None
        while current is not None and (done := apply_next(function, current, rewriter)):
            decisions.append(done[0])
            current = done[1]
    return len(decisions) > before


def _join_next(
    function: Function, op: MapReducePost, rewriter: Rewriter
) -> tuple[Decision, MapReducePost] | None:
    found = plan_join(function, op, rewriter.analyses)
    if found is None:
        return None
    decision = Decision(
        _subject(found.producer),
        "join with its consumer",
        "two traversals",
        "the consumer reads every element once, in place",
        found.producer.location,
    )
    return decision, _apply_join(found, rewriter)


def _follow_next(
    function: Function, op: MapReducePost, rewriter: Rewriter
) -> tuple[Decision, MapReducePost] | None:
    found = plan_epilogue(function, op, rewriter.analyses)
    if found is None:
        return None
    decision = Decision(
        _subject(found.fold),
        "run the consumer in its epilogue",
        "a separate op",
        "the consumer alone reads the folded cells",
        found.fold.location,
    )
    return decision, _apply_epilogue(found, rewriter)


def _subject(op: MapReducePost) -> str:
    name = op.results[0].name
    return f"value %{name}" if name else f"value of {op.NAME}"


# Joins -----------------------------------------------------------------------------------------


def _apply_join(found: Join, rewriter: Rewriter) -> MapReducePost:
    producer, consumer = found.producer, found.consumer
    composer = Composer(consumer.extents, lambda op: op is producer)
    composer.location(consumer.location)
    producer_dims = tuple(DimRef(d) for d in found.dims)
    here = tuple(DimRef(d) for d in range(consumer.rank))
    states = [_states(composer, op) for op in (producer, consumer)]
    first = composer.inline(producer, producer_dims, states[0])
    second = composer.inline(consumer, here, states[1])
    results = len(producer.specs), len(consumer.specs)
    yields = [*first[: results[0]], *second[: results[1]]]
    yields += [*first[results[0] :], *second[results[1] :]]
    seeds, posts = _moved(composer, producer, producer_dims), _moved(composer, consumer, here)
    block = composer.finish(yields)
    fresh = MapReducePost(
        inputs=composer.inputs,
        seeds=[*producer.seeds, *consumer.seeds],
        posts=[*producer.posts, *consumer.posts],
        symbols=composer.symbols,
        extents=composer.extents,
        input_access=composer.shared(composer.input_access),
        seed_access=composer.shared([*seeds[0], *posts[0]]),
        post_access=composer.shared([*seeds[1], *posts[1]]),
        specs=(*_moved_specs(producer, found.dims), *consumer.specs),
        result_types=[value.type for value in (*producer.results, *consumer.results)],
        regions=[
            Region([block]),
            *(_permuted_post(region, producer, found.dims) for region in producer.regions[1:]),
            *(clone_region(region, {}) for region in consumer.regions[1:]),
        ],
        location=fuse_locations((consumer.location, producer.location)),
    )
    rewriter.builder_before(consumer if found.at_consumer else producer).insert(fresh)
    _hand_over([*producer.results, *consumer.results], fresh.results, rewriter)
    rewriter.erase(consumer)
    rewriter.erase(producer)
    return fresh


def _states(composer: Composer, op: MapReducePost) -> list[Value]:
    arguments = op.fold_block.arguments[op.rank + len(op.inputs) :]
    return [composer.state(argument.type, argument.name) for argument in arguments]


def _moved(
    composer: Composer, op: MapReducePost, dims: tuple[IndexExpr, ...]
) -> tuple[list[Access], list[Access]]:
    """The accesses of seeds and posts over the composer's domain."""
    return (
        [
            composer.place(a, dims, op.symbols, v)
            for a, v in zip(op.seed_access, op.seeds, strict=True)
        ],
        [
            composer.place(a, dims, op.symbols, v)
            for a, v in zip(op.post_access, op.posts, strict=True)
        ],
    )


def _moved_specs(op: MapReducePost, dims: Sequence[int]) -> tuple[ResultSpec, ...]:
    return tuple(replace(spec, dims=tuple(dims[d] for d in spec.dims)) for spec in op.specs)


def _permuted_post(region: Region, op: MapReducePost, dims: Sequence[int]) -> Region:
    """An epilogue whose index arguments stand in the joined domain's order."""
    copy = clone_region(region, {})
    arguments = copy.block.arguments
    head = [arguments[dims.index(d)] for d in range(op.rank)]
    Builder(copy.block).order_arguments([*head, *arguments[op.rank :]])
    return copy


def _hand_over(old: Sequence[Value], new: Sequence[Value], rewriter: Rewriter) -> None:
    for was, is_now in zip(old, new, strict=True):
        rewriter.set_name(is_now, was.name)
        rewriter.replace_all_uses(was, is_now)


# Epilogues -------------------------------------------------------------------------------------


def _apply_epilogue(found: Epilogue, rewriter: Rewriter) -> MapReducePost:
    fold, consumer, result = found.fold, found.consumer, found.result
    folded = fold.folded_results.index(result)
    composer = Composer(fold.extents, never)
    composer.symbols += fold.symbols
    final = _final_value(composer, fold, folded)
    dims = tuple(DimRef(d) for d in found.dims)
    cell = tuple(DimRef(d) for d in fold.spec(result).dims)
    composer.bind(fold.results[result], cell, final)
    (element,) = composer.inline(consumer, dims, [])
    outputs = [
        composer.place(a, dims, consumer.symbols, v)
        for a, v in zip(consumer.output_access, consumer.outputs, strict=True)
    ]
    post = composer.finish([element], states_first=True)
    return _replace_fold(found, composer, Region([post]), folded, outputs, rewriter)


def _final_value(composer: Composer, fold: MapReducePost, folded: int) -> Value:
    """The fold's present epilogue, pasted; its operands become reads of the composer."""
    block = fold.post_block(folded)
    state = composer.state(block.arguments[fold.rank].type)
    first, count = _post_range(fold, folded)
    extras = [
        composer.read(fold.posts[i], fold.access("post", i)) for i in range(first, first + count)
    ]
    indices = composer.block.arguments[: fold.rank]
    (final,) = composer.paste(block, [*indices, state, *extras], {})
    return final


def _post_range(fold: MapReducePost, folded: int) -> tuple[int, int]:
    counts = [fold.spec(result).posts for result in fold.folded_results]
    return sum(counts[:folded]), counts[folded]


def _replace_fold(
    found: Epilogue,
    composer: Composer,
    post: Region,
    folded: int,
    outputs: Sequence[Access],
    rewriter: Rewriter,
) -> MapReducePost:
    fold, consumer, result = found.fold, found.consumer, found.result
    first, count = _post_range(fold, folded)
    posts = [*fold.posts[:first], *composer.inputs, *fold.posts[first + count :]]
    accesses = [
        *fold.post_access[:first],
        *composer.input_access,
        *fold.post_access[first + count :],
    ]
    specs = list(fold.specs)
    specs[result] = replace(
        specs[result],
        dims=_result_dims(found),
        posts=len(composer.inputs),
    )
    types: list[Type] = [value.type for value in fold.results]
    if consumer.results:
        types[result] = consumer.results[0].type
    regions = [clone_region(region, {}) for region in fold.regions]
    regions[1 + folded] = post
    fresh = MapReducePost(
        inputs=fold.inputs,
        seeds=fold.seeds,
        posts=posts,
        outputs=consumer.outputs,
        symbols=composer.symbols,
        extents=fold.extents,
        input_access=composer.shared(fold.input_access),
        seed_access=composer.shared(fold.seed_access),
        post_access=composer.shared(accesses),
        output_access=composer.shared(outputs),
        specs=tuple(specs),
        result_types=[] if consumer.outputs else types,
        regions=regions,
        location=fuse_locations((fold.location, consumer.location)),
    )
    rewriter.builder_before(consumer).insert(fresh)
    if consumer.results:
        kept = [r for r in fold.results if r.index != result]
        _hand_over(consumer.results, [fresh.results[result]], rewriter)
        _hand_over(kept, [fresh.results[r.index] for r in kept], rewriter)
    rewriter.erase(consumer)
    rewriter.erase(fold)
    return fresh


def _result_dims(found: Epilogue) -> tuple[int, ...]:
    """The fold's loop dims in the order of the consumer's axes."""
    return tuple(found.dims[d] for d in found.consumer.spec(0).dims)
