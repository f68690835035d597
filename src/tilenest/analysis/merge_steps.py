"""Which reductions of a Candidate program a tree policy may regroup.

In: an `exec.reduce`. Out: for every state the name of a known associative (+) when the body
computes `state (+) f(elements)`, elementwise or on scalars, in any bracketing; None otherwise, and
for every state when the body stores to views, since then the order of contributions is observable.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis.merges import MERGES
from tilenest.dialects import Apply, Map, Reduce, Store
from tilenest.ir import Block, BlockArgument, Module, OpResult, Value

_TREES = ("unordered_tree", "ordered_tree")


def merge_steps(op: Reduce) -> tuple[str | None, ...]:
    """The combine function of each state, in order."""
    states = op.body.arguments[op.rank :]
    if any(isinstance(inner, Store) for inner in op.walk()):
        return (None,) * len(states)
    dependent = _dependent_on(op.body, states)
    nexts = op.body.terminator.operands
    return tuple(
        state_step(state, following, dependent)
        for state, following in zip(states, nexts, strict=True)
    )


def unmerged_reductions(module: Module) -> Iterator[Reduce]:
    """Reductions under a tree policy with a state that has no known merge."""
    for op in module.walk():
        if isinstance(op, Reduce) and op.policy in _TREES and None in merge_steps(op):
            yield op


def state_step(state: Value, following: Value, dependent: set[Value]) -> str | None:
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
    is_chain = isinstance(inner, Value) and state_step(state, inner, dependent) == function
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
    if isinstance(argument, BlockArgument) and argument.block is owner.body:
        source = _input_of(owner, argument)
        return source if source in dependent else None
    return owner if any(s in dependent for s in _sources(owner, argument)) else None


def _input_of(op: Map, element: BlockArgument) -> Value | None:
    rank = len(op.body.arguments) - len(op.inputs)
    return op.inputs[element.index - rank] if element.index >= rank else None


def _sources(op: Map, element: Value) -> Iterator[Value]:
    """The values outside the map that something inside is computed from."""
    if isinstance(element, BlockArgument) and element.block is op.body:
        source = _input_of(op, element)
        if source is not None:
            yield source
    elif isinstance(element, OpResult):
        for operand in element.owner.operands:
            yield from _sources(op, operand)


def _dependent_on(body: Block, states: list[BlockArgument]) -> set[Value]:
    dependent: set[Value] = set(states)
    for op in body.walk():
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    dependent.update(block.arguments)
    return dependent
