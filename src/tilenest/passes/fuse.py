"""Inline producers into the ops that read them, as the edge plan says.

In: lifted work on values. Out: the same results from fewer ops: each op that
stays has the regions of its inlined producers in its own, reads their inputs at composed maps, and
equal reads are one input. Producers that are left without a consumer are dropped.

    %t = map_reduce_post(%v at (d0 + s0)) {load}        gone
    %y = map_reduce_post(%t at (d1)) {exp}              %y = map_reduce_post(%v at (d1 + s0)) {exp}
"""

from __future__ import annotations

from collections.abc import Collection

from tilenest.analysis import constant_of, is_splat
from tilenest.decisions import Decision
from tilenest.dialects import Access, Constant, MapReducePost
from tilenest.ir import Function, Operation, OpResult, Region, Rewriter, clone_region
from tilenest.layouts import AffineMap, DimRef
from tilenest.passes.compose import Composer
from tilenest.plan import plan_edges


def fuse(function: Function, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Rebuild every op that stays and reads an inlined producer."""
    plan = plan_edges(function, rewriter.analyses)
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        _seed_with_scalars(op, rewriter)
        if op not in plan.inlined and _reads_any(op, plan.inlined):
            rebuild(op, plan.inlined, rewriter)
    for producer in reversed([op for op in function.walk() if op in plan.inlined]):
        rewriter.erase(producer)
    return plan.decisions


def _reads_any(op: MapReducePost, inlined: Collection[Operation]) -> bool:
    return any(isinstance(v, OpResult) and v.owner in inlined for v in op.inputs)


def _seed_with_scalars(op: MapReducePost, rewriter: Rewriter) -> None:
    """A seed whose elements are all one scalar is that scalar."""
    seeds, accesses = list(op.seeds), list(op.seed_access)
    for i, seed in enumerate(seeds):
        scalar = is_splat(seed)
        if scalar is None:
            continue
        number = constant_of(scalar)
        if number is not None:
            constant = Constant(value=number, result_types=[scalar.type])
            scalar = rewriter.builder_before(op).insert(constant).result
        seeds[i] = scalar
        accesses[i] = Access(AffineMap(op.rank, len(op.symbols), ()))
    if seeds == op.seeds:
        return
    rewriter.set_operands(op, "seeds", seeds)
    rewriter.set_attribute(op, "seed_access", tuple(accesses))


def rebuild(op: MapReducePost, inlined: Collection[Operation], rewriter: Rewriter) -> MapReducePost:
    """Replace `op` by one that evaluates the inlined producers itself."""
    composer = Composer(op.extents, lambda producer: producer in inlined)
    composer.location(op.location)
    first_state = op.rank + len(op.inputs)
    states = [
        composer.state(argument.type, argument.name)
        for argument in op.fold_block.arguments[first_state:]
    ]
    here = tuple(DimRef(d) for d in range(op.rank))
    yields = composer.inline(op, here, states)
    seeds, posts, outputs = (
        [composer.place(a, here, op.symbols, value) for a, value in group]
        for group in (
            zip(op.seed_access, op.seeds, strict=True),
            zip(op.post_access, op.posts, strict=True),
            zip(op.output_access, op.outputs, strict=True),
        )
    )
    block = composer.finish(yields)
    fresh = MapReducePost(
        inputs=composer.inputs,
        seeds=op.seeds,
        posts=op.posts,
        outputs=op.outputs,
        symbols=composer.symbols,
        upper=op.upper,
        extents=op.extents,
        clipped=op.clipped,
        input_access=composer.shared(composer.input_access),
        seed_access=composer.shared(seeds),
        post_access=composer.shared(posts),
        output_access=composer.shared(outputs),
        specs=op.specs,
        sched=op.sched,
        result_types=[result.type for result in op.results],
        regions=[Region([block]), *(clone_region(region, {}) for region in op.regions[1:])],
        location=op.location,
    )
    rewriter.builder_before(op).insert(fresh)
    rewriter.replace_op(op, fresh.results)
    return fresh
