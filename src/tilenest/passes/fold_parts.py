"""Fold a reduction in parts side by side, where its states meet by a function of the module.

In: an `exec.reduce` over a pure body with known bounds, whose contract lets pieces meet. Out: a
fold of every part, from the identity or the lift of its first contribution; one of the parts by
the merge, from the seed; and one of what is left over.

    %s = exec.reduce (0)..(70) [%seed] { update }, merge @m
    becomes   %parts = map_reduce_post over (16, 4) fold { update } seed identity
              %met = map_reduce_post(%parts at (d0)) over (16) fold { @m } seed %seed
              %s = map_reduce_post over (6) fold { update } seed %met
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import Reductions, Regrouping
from tilenest.dialects import Access, Constant, Reduce, ReductionContract
from tilenest.ir import (
    Block,
    Builder,
    Function,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    element_dtype,
    module_of,
)
from tilenest.layouts import Dim, DimRef, IndexExpr, as_index_expr
from tilenest.passes.compose import Composer
from tilenest.passes.fold_steps import FoldStep, StepComposer, bind_indices, counts_of, fold_step
from tilenest.passes.pieces import FoldedResult, insert_fold, insert_pointwise

_PARTS = 16
"""Parts side by side: no number of any machine, since the parts show in the rounding."""
_LEAST = 4
"""Contributions of a part; fewer are not worth it to let parts meet."""


def folded_parts(op: Reduce, lifted: Sequence[Value], rewriter: Rewriter) -> list[Value] | None:
    """The final states where partial ones meet by a function of the module: parts from the
    identity, or from what is `lifted` of their first contribution where there is none, which meet
    the seed in their order, and then what is left over, one by one. None where the contract forbids
    it, or it is not worth it.

    Parts take turns where the order is open, and otherwise are contiguous, so that they meet in
    source order.
    """
    answers = rewriter.analyses.get(Reductions, op)
    merge = _merge_of(op) if all(a.allows(Regrouping.PIECES) for a in answers) else None
    take_turns = all(answer.allows(Regrouping.LANES) for answer in answers)
    axis = op.rank - 1 if take_turns else 0
    each, left = divmod(counts_of(op)[axis], _PARTS)
    if merge is None or each < _LEAST:
        return None
    begun = int(any(answer.law.identity is None for answer in answers))
    if begun and op.rank > 1:
        # What a part has behind its first contribution is no box.
        return None
    part: IndexExpr = DimRef(0)
    turn = DimRef(1 + axis) + begun
    place = turn * _PARTS + part if take_turns else part * each + turn
    parts = _stretch(op, axis, each - begun, place, (_PARTS,))
    rest = _stretch(op, axis, left, as_index_expr(each * _PARTS) + DimRef(axis), ())
    if parts is None or rest is None:
        return None
    builder = rewriter.builder_before(op)
    dim = Dim(None, _PARTS)
    if begun:
        first = part if take_turns else part * each
        starts = [_insert_lift(op, value, first, dim, builder) for value in lifted]
    else:
        starts = [
            builder.insert(Constant(value=answer.law.identity, result_types=[seed.type])).result
            for answer, seed in zip(answers, op.initial, strict=True)
        ]
    partial = _insert_chain(builder, parts, starts, (dim,))
    met = _meet(op, merge, partial, builder)
    return met if left == 0 else _insert_chain(builder, rest, met, ())


def _merge_of(op: Reduce) -> Block | None:
    """The scalar function that partial states meet by."""
    function = op.parent_function
    module = None if function is None else module_of(function)
    if module is None or not all(isinstance(seed.type, ScalarType) for seed in op.initial):
        return None
    for name in op.contract.functions:
        body = module.function(name).body
        if all(inner.TERMINATOR or inner.IS_ELEMENTWISE for inner in body.operations):
            return body
    return None


def _stretch(
    op: Reduce, axis: int, count: int, place: IndexExpr, kept: tuple[int, ...]
) -> FoldStep | None:
    """The step of all states where one axis has `count` points, which stand at `place`."""
    counts = counts_of(op)
    counts[axis] = count
    places: list[IndexExpr] = [DimRef(len(kept) + other) for other in range(op.rank)]
    places[axis] = place
    return fold_step(op, range(len(op.initial)), [*kept, *counts], places, ())


def _insert_lift(op: Reduce, lifted: Value, place: IndexExpr, dim: Dim, builder: Builder) -> Value:
    """A state of the contributions that stand at `place`."""
    composer = StepComposer([dim.extent], op)
    composer.location(op.location)
    bind_indices(op, composer, [place])
    element = composer.element(lifted, ())
    type_ = TileType(element_dtype(element.type), (dim,))
    return insert_pointwise(builder, composer, element, type_).result


def _insert_chain(
    builder: Builder, fold: FoldStep, seeds: Sequence[Value], kept: tuple[Dim, ...]
) -> list[Value]:
    """A fold in order for every coordinate of the kept dims, which come first; tiles of seeds have
    them as well."""
    composer = fold.composer
    chain = ReductionContract("fold_left")
    dims = tuple(range(len(kept)))
    every, each = Access(composer.map(())), Access(composer.map([DimRef(d) for d in dims]))
    results = [
        FoldedResult(dims, chain, seed, each if isinstance(seed.type, TileType) else every)
        for seed in seeds
    ]
    dtypes = [element_dtype(seed.type) for seed in seeds]
    types = [TileType(dtype, kept) if kept else ScalarType(dtype) for dtype in dtypes]
    return list(insert_fold(builder, composer, fold.nexts, results, types).results)


def _meet(op: Reduce, merge: Block, parts: Sequence[Value], builder: Builder) -> list[Value]:
    """The seeds and then every part, by the merge; what came before on the contract's side."""
    composer = Composer([_PARTS])
    composer.location(op.location)
    fold = FoldStep(op, range(len(parts)), composer)
    elements = [composer.read(part, Access(composer.map([DimRef(0)]))) for part in parts]
    fold.states = [composer.state(seed.type) for seed in op.initial]
    sides = [fold.states, elements]
    if op.contract.orientation == "element_first":
        sides.reverse()
    fold.nexts = composer.paste(merge, [*sides[0], *sides[1]], {})
    return _insert_chain(builder, fold, op.initial, ())


def drop_merges(function: Function, names: frozenset[str], rewriter: Rewriter) -> None:
    """Functions that no reduction's states meet by any more have no use."""
    module = module_of(function) if names else None
    if module is not None:
        left = [op.contract.functions for op in module.walk() if isinstance(op, Reduce)]
        for name in names.difference(*left):
            rewriter.remove_function(module.function(name))
