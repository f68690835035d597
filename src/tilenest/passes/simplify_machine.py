"""Clean-up of Machine IR that code generation does not do: equal pure operations merge, invariants
leave loops.

In: a Machine module. A pure operation equal to one that dominates it takes that one's results;
then every pure operation whose operands are defined outside a loop moves in front of it. No
Machine operation traps, so neither changes what runs. Loads are placed by the nest builder, which
knows what its nest writes."""

from __future__ import annotations

from tilenest.analysis import is_computation
from tilenest.ir import Block, Module, Operation, RegionUse, Rewriter, Value

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
        if is_computation(op):
            key = _key(op)
            found = next((scope[key] for scope in scopes if key in scope), None)
            if found is None:
                scopes[-1][key] = op
            else:
                rewriter.replace_op(op, found.results)
            continue
        for region in op.regions:
            for nested in region.blocks:
                _merge(nested, [*scopes, {}], rewriter)


def _key(op: Operation) -> tuple[object, ...]:
    attributes = tuple((name, repr(value)) for name, value in op.attributes.items())
    types = tuple(result.type for result in op.results)
    return (type(op), types, op.segments, tuple(op.operands), attributes)


def _hoist(block: Block, rewriter: Rewriter) -> None:
    for op in block.operations:
        for region in op.regions:
            for nested in region.blocks:
                _hoist(nested, rewriter)
        if op.REGION_USE is RegionUse.REPEATED:
            _hoist_from(op, rewriter)


def _hoist_from(loop: Operation, rewriter: Rewriter) -> None:
    inside: set[Value] = set(loop.body.arguments)
    for op in loop.body.operations:
        if is_computation(op) and not any(value in inside for value in op.operands):
            rewriter.move_before(op, loop)
        else:
            inside.update(op.results)


def _drop_unused(block: Block, rewriter: Rewriter) -> None:
    for op in reversed(block.operations):
        for region in op.regions:
            for nested in region.blocks:
                _drop_unused(nested, rewriter)
        if is_computation(op) and not any(result.has_uses for result in op.results):
            rewriter.erase(op)
