"""Checks of a fold's body that depend on no state, in a loop of their own in front of it.

In: a reduce whose body checks what it accesses. Out: a serial loop that makes the checks alone, and
the reduce without them: which accesses are made depends on no state, and what remains can be a
fold. A body with loops, or whose checks ask a state, stays as it is.

    reduce { check %o; s + load %v[%o] }     becomes   serial { check %o }
                                                       reduce { s + load %v[%o] }
"""

from __future__ import annotations

from tilenest.analysis import effects_of
from tilenest.dialects import Reduce, Serial, Yield
from tilenest.ir import (
    INDEX,
    Block,
    Builder,
    EffectKind,
    Operation,
    Region,
    RegionUse,
    Rewriter,
    Value,
    clone_operation,
)


def hoist_checks(op: Reduce, rewriter: Rewriter) -> None:
    """Move the checks of one reduce in front of it, where they can."""
    body = op.body
    checks = [inner for inner in body.operations if _only_checks(inner)]
    others = [inner for inner in body.operations if inner not in checks and not inner.TERMINATOR]
    if not checks or not all(_is_plain(inner) for inner in others):
        return
    needed: list[Operation] = []
    wanted: set[Value] = set()
    for inner in reversed(body.operations):
        if inner in checks or any(result in wanted for result in inner.results):
            needed.insert(0, inner)
            wanted.update(value for nested in inner.walk() for value in nested.operands)
    if any(state in wanted for state in body.arguments[op.rank :]):
        return
    block = Block([INDEX] * op.rank)
    values = dict[Value, Value](zip(body.arguments, block.arguments, strict=False))
    builder = Builder(block)
    for inner in needed:
        builder.insert(clone_operation(inner, values))
    builder.insert(Yield(values=[]))
    loop = Serial(
        lower=op.lower, upper=op.upper, step=op.step, initial=[], regions=[Region([block])]
    )
    rewriter.insert_before(loop, op)
    for inner in reversed(needed):
        if inner in checks or not any(result.has_uses for result in inner.results):
            rewriter.erase(inner)


def _is_plain(op: Operation) -> bool:
    """Whether an operation only computes, in no loop."""
    is_straight = not op.regions or op.REGION_USE is RegionUse.ELEMENTWISE
    return is_straight and effects_of(op).kinds <= {EffectKind.READ}


def _only_checks(op: Operation) -> bool:
    """Whether an operation does nothing but raise, in no loop."""
    kinds = effects_of(op).kinds
    is_check = EffectKind.FAULT in kinds and kinds <= {EffectKind.READ, EffectKind.FAULT}
    has_loop = any(inner.REGION_USE is RegionUse.REPEATED for inner in op.walk())
    return is_check and not op.results and not has_loop
