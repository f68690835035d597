"""Clean-up of Machine IR that code generation does not do: equal pure operations merge, invariants
leave loops.

In: a Machine module. A pure operation equal to one that dominates it takes that one's results;
then every pure operation whose operands are defined outside a loop moves in front of it. No
Machine operation traps, so neither changes what runs. Loads are placed by the nest builder, which
knows what its nest writes."""

from __future__ import annotations

from tilenest.dialects import (
    Apply,
    Bitcast,
    Cast,
    Constant,
    For,
    LaneMask,
    Lanes,
    Offset,
    ReduceLanes,
    Splat,
)
from tilenest.ir import Block, Module, Operation, Rewriter, Value

_PURE = (Apply, Bitcast, Cast, Constant, LaneMask, Lanes, Offset, ReduceLanes, Splat)
Known = dict[tuple[object, ...], Operation]


def simplify_machine(module: Module) -> None:
    """Merge equal pure operations, hoist invariants, drop what nothing uses."""
    rewriter = Rewriter()
    for function in module.functions:
        _merge(function.body, [{}], rewriter)
        _hoist(function.body, rewriter)
        _drop_unused(function.body, rewriter)


def _merge(block: Block, scopes: list[Known], rewriter: Rewriter) -> None:
    for op in block.operations:
        if isinstance(op, _PURE):
            key = _key(op)
            found = next((scope[key] for scope in scopes if key in scope), None)
            if found is None:
                scopes[-1][key] = op
            else:
                rewriter.replace_op(op, [found.result])
            continue
        for region in op.regions:
            for nested in region.blocks:
                _merge(nested, [*scopes, {}], rewriter)


def _key(op: Operation) -> tuple[object, ...]:
    attributes = tuple((name, repr(value)) for name, value in op.attributes.items())
    return (type(op), op.result.type, tuple(op.operands), attributes)


def _hoist(block: Block, rewriter: Rewriter) -> None:
    for op in block.operations:
        for region in op.regions:
            for nested in region.blocks:
                _hoist(nested, rewriter)
        if isinstance(op, For):
            _hoist_from(op, rewriter)


def _hoist_from(loop: For, rewriter: Rewriter) -> None:
    inside: set[Value] = set(loop.body.arguments)
    for op in loop.body.operations:
        if isinstance(op, _PURE) and not any(value in inside for value in op.operands):
            rewriter.move_before(op, loop)
        else:
            inside.update(op.results)


def _drop_unused(block: Block, rewriter: Rewriter) -> None:
    for op in reversed(block.operations):
        for region in op.regions:
            for nested in region.blocks:
                _drop_unused(nested, rewriter)
        if isinstance(op, _PURE) and not op.result.has_uses:
            rewriter.erase(op)
