"""Lift an `exec.reduce` over a pure body to a fold, or make it a loop.

In: a reduce whose body is already lifted. Out: map_reduce_posts on values, one a group of states
that depend on each other, with the reduce's axes as folded loop dims; an `exec.serial` in the
policy's order where the body has effects, nested regions, run-time bounds, or reads its states
anywhere but at their own coordinates. A tree without a known merge folds as a chain; one whose
states meet by a function of the module folds in parts (`fold_parts`).

    %s = exec.reduce (0)..(64) [%z] { (%i, %a): %e = %x.at(i); yield %a + %e }
    becomes   %s = map_reduce_post(%x at (d0, d1)) fold { (.., %e, %a): yield %a + %e } seed %z
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import law_within, proven_laws, trip_counts
from tilenest.dialects import (
    Access,
    Load,
    MapReducePost,
    Reduce,
    Serial,
    StateLaw,
    Yield,
)
from tilenest.ir import (
    Block,
    Builder,
    Region,
    Rewriter,
    TileType,
    Value,
    inline_block,
)
from tilenest.layouts import DimRef
from tilenest.passes.fold_parts import drop_merges, folded_parts
from tilenest.passes.fold_steps import FoldStep, counts_of, fold_step
from tilenest.passes.hoist_checks import hoist_checks
from tilenest.passes.index_ops import apply_scalar, index_number
from tilenest.passes.loop_counts import emit_count
from tilenest.passes.pieces import FoldedResult, insert_fold
from tilenest.records import replace


def lift_reduction(op: Reduce, rewriter: Rewriter) -> None:
    """Replace `op`, directly in its block, by folds or by a loop."""
    lifted: Sequence[Value] = ()
    if op.lift is not None:
        op, lifted = _joined(op, rewriter)
    hoist_checks(op, rewriter)
    _drop_unchanged_states(op, rewriter)
    function, merges = op.parent_function, op.contract.functions
    results = None
    if _is_pure_body(op):
        results = folded_parts(op, lifted, rewriter) or _folds(op, rewriter)
    if results is None:
        _make_loop(op, rewriter)
    else:
        rewriter.replace_op(op, results)
    assert function is not None
    drop_merges(function, merges, rewriter)


def _joined(op: Reduce, rewriter: Rewriter) -> tuple[Reduce, list[Value]]:
    """The nest with lift and update in one region, and what is lifted in there."""
    assert op.lift is not None
    body = Block([argument.type for argument in op.lift.arguments])
    for argument, old in zip(body.arguments, op.update.arguments, strict=False):
        argument.name = old.name
    builder = Builder(body)
    lifted = inline_block(op.lift, body.arguments, builder)
    following = inline_block(op.update, [*body.arguments, *lifted], builder)
    builder.insert(Yield(values=following))
    joined = Reduce(
        lower=op.lower,
        upper=op.upper,
        step=op.step,
        initial=op.initial,
        regions=[Region([body])],
        result_types=[result.type for result in op.results],
        location=op.location,
        contract=op.contract,
        ordering=op.ordering,
    )
    rewriter.insert_before(joined, op)
    rewriter.replace_op(op, joined.results)
    return joined, lifted


def _folds(op: Reduce, rewriter: Rewriter) -> list[Value] | None:
    """The final states by a fold for each group."""
    groups = _state_groups(op)
    folds = [fold for group in groups if (fold := _fold_of(op, group)) is not None]
    if len(folds) < len(groups):
        return None
    results: dict[int, Value] = {}
    for group, fold in zip(groups, folds, strict=True):
        made = _insert(fold, rewriter.builder_before(op))
        results.update(zip(group, made.results, strict=True))
    return [results[i] for i in range(len(op.results))]


# What can be a fold ----------------------------------------------------------------------------


def _is_pure_body(op: Reduce) -> bool:
    counts = trip_counts(op)
    if any(count is None for count in counts):
        return False
    for inner in op.body.operations:
        if inner.TERMINATOR or inner.IS_ELEMENTWISE:
            continue
        if isinstance(inner, Load) and inner.mask is None and inner.other is None:
            continue
        if isinstance(inner, MapReducePost) and not inner.outputs and not inner.folded_results:
            continue
        return False
    return True


def _states(op: Reduce) -> list[Value]:
    return list(op.body.arguments[op.rank :])


def _state_groups(op: Reduce) -> list[list[int]]:
    """Positions of states that depend on each other through the body, in order."""
    states = _states(op)
    reach: dict[Value, frozenset[int]] = {s: frozenset([i]) for i, s in enumerate(states)}
    for inner in op.body.operations:
        used = (value for nested in inner.walk() for value in nested.operands)
        found = frozenset[int]().union(*(reach.get(value, frozenset()) for value in used))
        reach.update(dict.fromkeys(inner.results, found))
    groups: list[set[int]] = []
    for i, following in enumerate(op.body.terminator.operands):
        joined = {i, *reach.get(following, frozenset())}
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return sorted(sorted(group) for group in groups)


def _insert(fold: FoldStep, builder: Builder) -> MapReducePost:
    op, composer = fold.op, fold.composer
    shown = proven_laws(composer.block, fold.states, fold.nexts)
    claimed = [law_within(op.contract, i, law) for i, law in zip(fold.group, shown, strict=True)]
    # What is only trusted is not what the scalar step of the fold does.
    laws = [
        law if law.merge == own.merge else StateLaw()
        for law, own in zip(claimed, shown, strict=True)
    ]
    is_merged = all(law.merge is not None for law in laws)
    rank = composer.rank - op.rank
    kept = tuple(range(rank))
    results = []
    for i, law in zip(fold.group, laws, strict=True):
        seed = op.initial[i]
        place = [DimRef(d) for d in kept] if isinstance(seed.type, TileType) else []
        access = Access(composer.map(place))
        # A right fold is a left fold whose maps count down; a tree may always be a chain.
        policy = op.policy if op.contract.is_tree and is_merged else "fold_left"
        contract = replace(op.contract, policy=policy, laws=(law,))
        results.append(FoldedResult(kept, contract, seed, access))
    types = [op.results[i].type for i in fold.group]
    return insert_fold(builder, composer, fold.nexts, results, types)


def _fold_of(op: Reduce, group: Sequence[int]) -> FoldStep | None:
    types = [op.initial[i].type for i in group]
    spaces = {t.dims if isinstance(t, TileType) else () for t in types}
    if len(spaces) > 1:
        return None
    (space,) = spaces
    counts = counts_of(op)
    places = [DimRef(len(space) + axis) for axis in range(op.rank)]
    own = tuple(DimRef(d) for d in range(len(space)))
    return fold_step(op, group, [*(dim.extent for dim in space), *counts], places, own)


# What stays a loop -----------------------------------------------------------------------------


def _drop_unchanged_states(op: Reduce, rewriter: Rewriter) -> None:
    """A state that every contribution hands on as it is keeps its seed."""
    for i, following in enumerate(op.body.terminator.operands):
        argument = op.body.arguments[op.rank + i]
        if following is argument:
            rewriter.replace_all_uses(argument, op.initial[i])
            rewriter.replace_all_uses(op.results[i], op.initial[i])


def _make_loop(op: Reduce, rewriter: Rewriter) -> None:
    """An `exec.serial` over the same body; a right fold counts its axes down."""
    builder = rewriter.builder_before(op)
    lower, upper, step = op.lower, op.upper, op.step
    if op.policy == "fold_right":
        counts = [emit_count(builder, *bounds) for bounds in zip(lower, upper, step, strict=True)]
        for axis in range(op.rank):
            _count_down(op, axis, counts[axis], lower[axis], step[axis], rewriter)
        zero, one = index_number(builder, 0), index_number(builder, 1)
        lower, upper, step = [zero] * op.rank, counts, [one] * op.rank
    loop = Serial(
        lower=lower,
        upper=upper,
        step=step,
        initial=op.initial,
        result_types=[result.type for result in op.results],
        location=op.location,
    )
    rewriter.replace_keeping_regions(loop, op)


def _count_down(
    op: Reduce, axis: int, count: Value, lower: Value, step: Value, rewriter: Rewriter
) -> None:
    """Let the body's index argument count iterations, and compute the coordinate from the last."""
    argument = op.body.arguments[axis]
    first = op.body.operations.first
    assert first is not None
    builder = rewriter.builder_before(first)
    last = apply_scalar(builder, "sub", count, index_number(builder, 1))
    left = apply_scalar(builder, "sub", last, argument)
    subtraction = left.owner
    coordinate = apply_scalar(builder, "add", apply_scalar(builder, "mul", left, step), lower)
    rewriter.replace_all_uses(argument, coordinate)
    rewriter.set_operand(subtraction, 1, argument)
