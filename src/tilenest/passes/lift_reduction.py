"""Lift an `exec.reduce` over a pure body to a fold, or make it a loop.

In: a reduce whose body is already lifted. Out: map_reduce_posts on values, one a group of states
that depend on each other, with the reduce's axes as folded loop dims; an `exec.serial` in the
policy's order where the body has effects, nested regions, run-time bounds, or reads its states
anywhere but at their own coordinates. A tree without a known merge folds as a chain.

    %s = exec.reduce (0)..(64) [%z] { (%i, %a): %e = %x.at(i); yield %a + %e }
    becomes   %s = map_reduce_post(%x at (d0, d1)) fold { (.., %e, %a): yield %a + %e } seed %z
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import (
    constant_of,
    is_defined_above,
    proven_laws,
    trip_counts,
)
from tilenest.dialects import (
    Access,
    Apply,
    Constant,
    Load,
    MapReducePost,
    Reduce,
    ReductionContract,
    Serial,
    StateLaw,
)
from tilenest.ir import (
    INDEX,
    Builder,
    OpResult,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    element_dtype,
)
from tilenest.layouts import DimRef, IndexExpr, as_index_expr
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import FoldedResult, insert_fold
from tilenest.records import replace


def lift_reduction(op: Reduce, rewriter: Rewriter) -> None:
    """Replace `op`, directly in its block, by folds or by a loop."""
    _drop_unchanged_states(op, rewriter)
    groups = _state_groups(op) if _is_pure_body(op) else None
    folds = None if groups is None else [_fold_of(op, group) for group in groups]
    if folds is None or any(fold is None for fold in folds):
        _make_loop(op, rewriter)
        return
    assert groups is not None
    results: dict[int, Value] = {}
    for group, fold in zip(groups, folds, strict=True):
        assert fold is not None
        made = fold.insert(rewriter.builder_before(op))
        results.update(zip(group, made.results, strict=True))
    rewriter.replace_op(op, [results[i] for i in range(len(op.results))])


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
        found = frozenset[int]().union(*(reach.get(v, frozenset()) for v in inner.operands))
        reach.update(dict.fromkeys(inner.results, found))
    groups: list[set[int]] = []
    for i, following in enumerate(op.body.terminator.operands):
        joined = {i, *reach.get(following, frozenset())}
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return sorted(sorted(group) for group in groups)


class _Fold:
    """A group of states, and the composer that holds their common step."""

    def __init__(self, op: Reduce, group: Sequence[int], composer: Composer) -> None:
        self.op = op
        self.group = group
        self.composer = composer
        self.nexts: list[Value] = []
        self.states: list[Value] = []

    def insert(self, builder: Builder) -> MapReducePost:
        op, composer = self.op, self.composer
        shown = proven_laws(composer.block, self.states, self.nexts)
        laws = [_claimed(op.contract, i, law) for i, law in zip(self.group, shown, strict=True)]
        is_merged = all(law.merge is not None for law in laws)
        rank = composer.rank - op.rank
        kept = tuple(range(rank))
        results = []
        for i, law in zip(self.group, laws, strict=True):
            seed = op.initial[i]
            place = [DimRef(d) for d in kept] if isinstance(seed.type, TileType) else []
            access = Access(composer.map(place))
            # A right fold is a left fold whose maps count down; a tree may always be a chain.
            policy = op.policy if op.contract.is_tree and is_merged else "fold_left"
            contract = replace(op.contract, policy=policy, laws=(law,))
            results.append(FoldedResult(kept, contract, seed, access))
        types = [op.results[i].type for i in self.group]
        return insert_fold(builder, composer, self.nexts, results, types)


def _claimed(contract: ReductionContract, state: int, shown: StateLaw) -> StateLaw:
    """The law of a state: what its scalar step shows, within what the reduction claims."""
    if not contract.laws or contract.laws[state].merge == shown.merge:
        return shown
    return StateLaw()


class _StaysLoop(Exception):  # noqa: N818  # a signal inside this file
    """The body does something a fold cannot express."""


class _FoldComposer(Composer):
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
            raise _StaysLoop
        owner = getattr(value, "owner", None)
        if isinstance(owner, Load) and owner.parent is self._op.body:
            results = [self.simplified(self.symbol(origin)) for origin in owner.origins]
            return self.read(owner.view, self.access(owner.view, results, owner.bounds))
        return super()._evaluate(value, coordinates)


def _fold_of(op: Reduce, group: Sequence[int]) -> _Fold | None:
    types = [op.initial[i].type for i in group]
    spaces = {t.dims if isinstance(t, TileType) else () for t in types}
    if len(spaces) > 1:
        return None
    (space,) = spaces
    counts = [count or 0 for count in trip_counts(op)]
    composer = _FoldComposer([*(dim.extent for dim in space), *counts], op)
    composer.location(op.location)
    _bind_indices(op, composer, len(space))
    fold = _Fold(op, group, composer)
    own = tuple(DimRef(d) for d in range(len(space)))
    for i, type_ in zip(group, types, strict=True):
        state = composer.state(
            ScalarType(element_dtype(type_)), op.body.arguments[op.rank + i].name
        )
        composer.bind(op.body.arguments[op.rank + i], own, state)
        fold.states.append(state)
    try:
        fold.nexts = [composer.element(op.body.terminator.operands[i], own) for i in group]
    except _StaysLoop:
        return None
    outside = (*composer.inputs, *composer.symbols)
    return fold if all(is_defined_above(value, op) for value in outside) else None


def _bind_indices(op: Reduce, composer: Composer, kept: int) -> None:
    """Index arguments become folded loop dims, counted from the other end when folding right."""
    for axis, count in enumerate(trip_counts(op)):
        assert count is not None
        lower, step = constant_of(op.lower[axis]), constant_of(op.step[axis])
        assert lower is not None and step is not None
        place: IndexExpr = DimRef(kept + axis)
        if op.policy == "fold_right":
            place = as_index_expr(count - 1) - place
        composer.index_bindings[op.body.arguments[axis]] = place * int(step) + int(lower)


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
        counts = [_count(builder, *bounds) for bounds in zip(lower, upper, step, strict=True)]
        for axis in range(op.rank):
            _count_down(op, axis, counts[axis], lower[axis], step[axis], rewriter)
        zero, one = _number(builder, 0), _number(builder, 1)
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


def _count(builder: Builder, lower: Value, upper: Value, step: Value) -> Value:
    """max(0, ceil((upper - lower) / step)) at run time."""
    span = _arithmetic(builder, "sub", lower, upper)
    count = _arithmetic(builder, "neg", _arithmetic(builder, "floordiv", span, step))
    return _arithmetic(builder, "maximum", count, _number(builder, 0))


def _count_down(
    op: Reduce, axis: int, count: Value, lower: Value, step: Value, rewriter: Rewriter
) -> None:
    """Let the body's index argument count iterations, and compute the coordinate from the last."""
    argument = op.body.arguments[axis]
    first = op.body.operations.first
    assert first is not None
    builder = rewriter.builder_before(first)
    last = _arithmetic(builder, "sub", count, _number(builder, 1))
    left = _arithmetic(builder, "sub", last, argument)
    subtraction = left.owner
    coordinate = _arithmetic(builder, "add", _arithmetic(builder, "mul", left, step), lower)
    rewriter.replace_all_uses(argument, coordinate)
    rewriter.set_operand(subtraction, 1, argument)


def _arithmetic(builder: Builder, function: str, *arguments: Value) -> OpResult:
    op = Apply(arguments=list(arguments), function=function, result_types=[INDEX])
    return builder.insert(op).result


def _number(builder: Builder, value: int) -> OpResult:
    return builder.insert(Constant(value=value, result_types=[INDEX])).result
