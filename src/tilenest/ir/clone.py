"""Copying operations and regions with their values remapped.

In: a module, an operation, region or block, and a map from old values to new ones. Out: copies with
names and locations kept; the map gains everything defined inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilenest.ir.builder import Builder
from tilenest.ir.core import Block, Function, Operation, Region, Value
from tilenest.ir.module import Module

ValueMap = dict[Value, Value]


def clone_operation(operation: Operation, values: ValueMap) -> Operation:
    """A detached copy; operands and nested values go through `values`, which gains the results."""
    copy = object.__new__(type(operation))
    operands = [values.get(value, value) for value in operation.operands]
    groups = operation.SPEC.split(operands, operation.segments)
    fields: dict[str, Any] = {
        name: group if arity == "many" else (group[0] if group else None)
        for (name, arity), group in zip(operation.SPEC.groups, groups, strict=True)
    }
    Operation.__init__(
        copy,
        result_types=[result.type for result in operation.results],
        location=operation.location,
        **fields,
        **operation.attributes,
    )
    for old, new in zip(operation.results, copy.results, strict=True):
        new.name = old.name
        values[old] = new
    for region in operation.regions:
        cloned = clone_region(region, values)
        cloned.parent = copy
        copy.regions.append(cloned)
    return copy


def clone_region(region: Region, values: ValueMap) -> Region:
    """A detached copy of a region and everything in it."""
    copy = Region()
    for block in region.blocks:
        fresh = Block()
        for argument in block.arguments:
            values[argument] = fresh.add_argument(argument.type, argument.name)
        copy.append(fresh)
        for op in block.operations:
            fresh.append(clone_operation(op, values))
    return copy


def clone_module(module: Module) -> Module:
    """A copy that shares nothing that can change with the original."""
    copy = Module(module.form, module.attributes)
    for function in module.functions:
        types = [argument.type for argument in function.arguments]
        fresh = Function(function.name, types, function.result_types, function.attributes)
        values: ValueMap = {}
        for old, new in zip(function.arguments, fresh.arguments, strict=True):
            new.name = old.name
            values[old] = new
        for op in function.body.operations:
            fresh.body.append(clone_operation(op, values))
        copy.add(fresh)
    return copy


def inline_block(block: Block, arguments: Iterable[Value], builder: Builder) -> list[Value]:
    """Copy the block's operations at the builder with `arguments` for its arguments; the
    terminator is not copied, its (remapped) operands are returned."""
    values: ValueMap = dict(zip(block.arguments, arguments, strict=True))
    for op in block.operations:
        if op.TERMINATOR:
            return [values.get(value, value) for value in op.operands]
        builder.insert(clone_operation(op, values))
    raise AssertionError("the block has no terminator")
