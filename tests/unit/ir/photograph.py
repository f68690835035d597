"""Everything about a module that a rollback must restore, by identity and in order.

In: a module. Out: plain tuples. Two photographs are equal when every list holds the same objects in
the same order, uses and edges included, and everything written on them is the same.
"""

from __future__ import annotations

from typing import Any

from tilenest.ir import Block, Module, Operation, Region, Value, print_module


def photograph(module: Module) -> tuple[Any, ...]:
    functions = tuple(
        (id(f), f.id, f.name, f.result_types, tuple(f.attributes.items()), of_region(f.region))
        for f in module.functions
    )
    text = print_module(module, locations=True)
    return module.form, tuple(module.attributes.items()), functions, text


def of_region(region: Region) -> tuple[Any, ...]:
    return (id(region), id(region.parent), tuple(of_block(block) for block in region.blocks))


def of_block(block: Block) -> tuple[Any, ...]:
    return (
        id(block),
        block.id,
        tuple(of_value(argument) for argument in block.arguments),
        tuple((id(edge), id(edge.operation)) for edge in block.incoming),
        tuple(of_operation(op) for op in block.operations),
    )


def of_operation(op: Operation) -> tuple[Any, ...]:
    return (
        id(op),
        op.id,
        op.segments,
        op.location,
        tuple(op.attributes.items()),
        tuple((id(use), use.index, id(use.value), id(use.holder)) for use in op.operand_uses),
        tuple((id(edge), id(edge.block), id(edge.holder)) for edge in op.edges),
        tuple(of_value(result) for result in op.results),
        tuple(of_region(region) for region in op.regions),
    )


def of_value(value: Value) -> tuple[Any, ...]:
    uses = tuple((id(use), id(use.operation)) for use in value.uses)
    return (id(value), value.id, value.index, value.name, value.type, uses)
