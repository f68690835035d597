"""Copying operations, regions, functions and modules with their values remapped.

In: what to copy, and a map from old values to new ones. Out: copies with names and locations kept;
the map gains everything defined inside. Branches between copied blocks go between the copies; what
is not copied, blocks and values alike, is shared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilenest.ir.builder import Builder
from tilenest.ir.core import Block, Function, Operation, Region, Use, Value
from tilenest.ir.module import Module

ValueMap = dict[Value, Value]


def clone_operation(operation: Operation, values: ValueMap) -> Operation:
    """A detached copy; operands and nested values go through `values`, which gains the results."""
    return _Copier(values).operation(operation)


def clone_region(region: Region, values: ValueMap) -> Region:
    """A detached copy of a region and everything in it."""
    return _Copier(values).region(region)


def clone_function(function: Function, values: ValueMap, name: str | None = None) -> Function:
    """A copy that is in no module yet, by default under the same name."""
    copy = Function(name or function.name, (), function.result_types, function.attributes)
    copy.location = function.location
    copy.region = _Copier(values).region(function.region)
    copy.region.parent = copy
    for op in copy.region.operations():
        op._link_uses()
    return copy


def clone_module(module: Module) -> Module:
    """A copy that shares nothing that can change with the original."""
    copy = Module(module.form, module.attributes)
    copy.location = module.location
    for function in module.functions:
        copy.add(clone_function(function, {}))
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


class _Copier:
    """What has been copied so far."""

    def __init__(self, values: ValueMap) -> None:
        self.values = values
        self.blocks: dict[Block, Block] = {}
        self.unmapped: list[Use] = []
        """operands of copies whose value had no copy when they were made"""

    def operation(self, operation: Operation) -> Operation:
        copy = object.__new__(type(operation))
        Operation.__init__(
            copy,
            result_types=[result.type for result in operation.results],
            location=operation.location,
            **self._fields(operation),
            **operation.attributes,
        )
        for use in copy.operand_uses:
            mapped = self.values.get(use.value)
            if mapped is None:
                self.unmapped.append(use)
            else:
                use.value = mapped
        for old, new in zip(operation.results, copy.results, strict=True):
            new.name = old.name
            self.values[old] = new
        for region in operation.regions:
            copy.add_region(self.region(region))
        return copy

    def _fields(self, operation: Operation) -> dict[str, Any]:
        """The keywords that make the operation, with its own operands."""
        spec = operation.SPEC
        groups = spec.split(operation.operands, operation.segments)
        fields: dict[str, Any] = {
            name: group if arity == "many" else (group[0] if group else None)
            for (name, arity), group in zip(spec.groups, groups, strict=True)
        }
        for name, block in zip(spec.successors, operation.successors, strict=True):
            fields[name] = (self.blocks.get(block, block), fields[name])
        return fields

    def region(self, region: Region) -> Region:
        copy = Region()
        for block in region.blocks:
            fresh = self.blocks[block] = copy.append(Block())
            for argument in block.arguments:
                self.values[argument] = fresh.add_argument(argument.type, argument.name)
        start = len(self.unmapped)
        for block in region.blocks:
            for op in block.operations:
                self.blocks[block].append(self.operation(op))
        if len(region.blocks) > 1:
            self._revisit(start)
        return copy

    def _revisit(self, start: int) -> None:
        """Map what a later block of the region defines: it may dominate an earlier one."""
        waiting = self.unmapped[start:]
        del self.unmapped[start:]
        for use in waiting:
            mapped = self.values.get(use.value)
            if mapped is None:
                self.unmapped.append(use)
            else:
                use.value = mapped
