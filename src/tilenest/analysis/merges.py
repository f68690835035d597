"""Merge recognition: is one step of a fold `state (+) f(elements)` with a known associative (+)?

In: the body of a fold, its states and next states. Out: for every state the name of (+), or None
when only a chain is known. The form: the step is one of the functions below, one operand is the
state itself or such a step of it, the other depends on no state of the fold; `fma(a, b, state)`
counts as addition.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import Apply
from tilenest.ir import Block, OpResult, Value

MERGES = frozenset({"add", "mul", "minimum", "maximum", "and", "or", "xor"})


def known_merges(
    body: Block, states: Sequence[Value], nexts: Sequence[Value]
) -> tuple[str | None, ...]:
    """The combine function of each state, in order."""
    dependent = _dependent_values(body, states)
    return tuple(
        _merge_of(state, following, dependent)
        for state, following in zip(states, nexts, strict=True)
    )


def _merge_of(state: Value, following: Value, dependent: set[Value]) -> str | None:
    if not isinstance(following, OpResult) or not isinstance(following.owner, Apply):
        return None
    step = following.owner
    if step.function == "fma":
        first, second, last = step.arguments
        is_sum = last is state and first not in dependent and second not in dependent
        return "add" if is_sum else None
    if step.function not in MERGES:
        return None
    touched = [argument for argument in step.arguments if argument in dependent]
    if len(touched) != 1:
        return None
    is_chain = touched[0] is state or _merge_of(state, touched[0], dependent) == step.function
    return step.function if is_chain else None


def _dependent_values(body: Block, states: Sequence[Value]) -> set[Value]:
    dependent = set(states)
    for op in body.operations:
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
    return dependent
