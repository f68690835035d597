"""Merge recognition: is one step of a fold `state (+) f(elements)` with a known associative (+)?

In: the body of a fold on scalars or tiles, its states and next states. Out: for every state the
name of (+), or None where only a chain is known. The form: the step is one of the functions below,
in any bracketing, on scalars or in a map over tiles; one operand is the state itself or such a step
of it, the other depends on no state of the fold. `fma(a, b, state)` counts as addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilenest.dialects import Apply, Map, Reduce, Store
from tilenest.ir import Block, BlockArgument, Module, OpResult, Value

MERGES = frozenset({"add", "mul", "minimum", "maximum", "and", "or", "xor"})
TREE_POLICIES = ("unordered_tree", "ordered_tree")
"""the policies under which contributions may meet before they meet the seed"""


def known_merges(
    body: Block, states: Sequence[Value], nexts: Sequence[Value]
) -> tuple[str | None, ...]:
    """The combine function of each state, in order."""
    dependent = _dependent_on(body, states)
    return tuple(
        _merge_of(state, following, dependent)
        for state, following in zip(states, nexts, strict=True)
    )


def unmerged_reductions(module: Module) -> Iterator[Reduce]:
    """Reductions of a Candidate program under a tree policy with a state without a known merge."""
    for op in module.walk():
        if isinstance(op, Reduce) and op.policy in TREE_POLICIES and None in _reduction_merges(op):
            yield op


def _reduction_merges(op: Reduce) -> tuple[str | None, ...]:
    """None for every state when the body stores to views: the order of contributions shows."""
    states = op.body.arguments[op.rank :]
    if any(isinstance(inner, Store) for inner in op.walk()):
        return (None,) * len(states)
    return known_merges(op.body, states, op.body.terminator.operands)


def _merge_of(state: Value, following: Value, dependent: set[Value]) -> str | None:
    """(+) when `following` is built from `state` once and independent values by (+) alone."""
    step = _step_of(following)
    if step is None:
        return None
    operands = [_operand_of(following, argument, dependent) for argument in step.arguments]
    touched = [i for i, operand in enumerate(operands) if operand is not None]
    function = _merge_name(step, touched)
    if function is None:
        return None
    inner = operands[touched[0]]
    if inner is state:
        return function
    is_chain = isinstance(inner, Value) and _merge_of(state, inner, dependent) == function
    return function if is_chain else None


def _merge_name(step: Apply, touched: list[int]) -> str | None:
    """The merge that a step is when only these arguments depend on states."""
    if step.function == "fma":
        return "add" if touched == [2] else None
    return step.function if step.function in MERGES and len(touched) == 1 else None


def _step_of(value: Value) -> Apply | None:
    """The scalar function that makes a value: its own op, or the last one of its map."""
    owner = value.owner if isinstance(value, OpResult) else None
    if isinstance(owner, Map):
        yielded = owner.body.terminator.operands[0]
        owner = yielded.owner if isinstance(yielded, OpResult) else None
    return owner if isinstance(owner, Apply) else None


def _operand_of(value: Value, argument: Value, dependent: set[Value]) -> Value | Map | None:
    """What an argument of the step stands for: None where it depends on no state, the value itself
    where it is one, the map where it is computed inside the map from a dependent element."""
    assert isinstance(value, OpResult)
    owner = value.owner
    if not isinstance(owner, Map):
        return argument if argument in dependent else None
    if isinstance(argument, BlockArgument) or not _is_inside(owner, argument):
        source = _source_of(owner, argument)
        return source if source in dependent else None
    return owner if any(source in dependent for source in _sources(owner, argument)) else None


def _is_inside(op: Map, value: Value) -> bool:
    return value.defining_block is op.body


def _source_of(op: Map, element: Value) -> Value | None:
    """The value outside the map whose element this is; None for a coordinate."""
    if not isinstance(element, BlockArgument) or not _is_inside(op, element):
        return element
    rank = len(op.body.arguments) - len(op.inputs)
    return op.inputs[element.index - rank] if element.index >= rank else None


def _sources(op: Map, element: Value) -> Iterator[Value]:
    """The values outside the map that something inside is computed from."""
    if isinstance(element, OpResult) and _is_inside(op, element):
        for operand in element.owner.operands:
            yield from _sources(op, operand)
        return
    source = _source_of(op, element)
    if source is not None:
        yield source


def _dependent_on(body: Block, states: Sequence[Value]) -> set[Value]:
    dependent: set[Value] = set(states)
    for op in body.walk():
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    dependent.update(block.arguments)
    return dependent
