"""The one mutator: every change a pass makes to a module goes through a `Rewriter`.

In: operations, values, blocks. Out: the changed module; a count of changes and a `Change` for every
listener, so that cached facts can be dropped. New operations inherit the location of what they
stand beside or replace. A misuse is an assertion before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir.builder import Builder
from tilenest.ir.core import Block, BlockArgument, Function, Operation, OpResult, Value
from tilenest.ir.kinds import fits
from tilenest.ir.module import Module
from tilenest.ir.types import Type
from tilenest.records import record

OpT = TypeVar("OpT", bound=Operation)


class ChangeKind(Enum):
    """What happened to an operation, or to the one that holds a changed block."""

    INSERTED = "inserted"
    ERASED = "erased"
    MOVED = "moved"
    OPERANDS = "operands"
    ATTRIBUTES = "attributes"
    ARGUMENTS = "arguments"
    FUNCTIONS = "functions"


@record
class Change:
    """One change; `operation` is None when a function itself changed."""

    kind: ChangeKind
    operation: Operation | None


Listener = Callable[[Change], None]


class Rewriter:
    """Changes modules and tells whoever subscribed."""

    __slots__ = ("_listeners", "changes")

    def __init__(self) -> None:
        self.changes = 0
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every change."""
        self._listeners.append(listener)

    def _changed(self, kind: ChangeKind, operation: Operation | None) -> None:
        self.changes += 1
        for listener in self._listeners:
            listener(Change(kind, operation))

    def _inserted(self, operation: Operation) -> None:
        self._changed(ChangeKind.INSERTED, operation)

    # Insertion -----------------------------------------------------------------------------

    def builder_before(self, anchor: Operation) -> Builder:
        """A builder whose insertions are told to the listeners."""
        builder = Builder.before_op(anchor)
        builder.on_insert = self._inserted
        return builder

    def builder_after(self, anchor: Operation) -> Builder:
        builder = Builder.after_op(anchor)
        builder.on_insert = self._inserted
        return builder

    def builder_at_end(self, block: Block) -> Builder:
        builder = Builder(block)
        builder.on_insert = self._inserted
        return builder

    def insert_before(self, operation: OpT, anchor: Operation) -> OpT:
        return self._insert(operation, _block_of(anchor), anchor, anchor.location)

    def insert_after(self, operation: OpT, anchor: Operation) -> OpT:
        return self._insert(operation, _block_of(anchor), anchor.next, anchor.location)

    def insert_at_end(self, operation: OpT, block: Block) -> OpT:
        owner = block.parent_op
        return self._insert(operation, block, None, None if owner is None else owner.location)

    def _insert(
        self,
        operation: OpT,
        block: Block,
        before: Operation | None,
        location: SourceLocation | None,
    ) -> OpT:
        if operation.location is None:
            operation.location = location
        block.insert(operation, before)
        self._inserted(operation)
        return operation

    # Replacement ---------------------------------------------------------------------------

    def erase(self, operation: Operation) -> None:
        """Remove an operation none of whose results is used; its own uses go with it."""
        operation.erase()
        self._changed(ChangeKind.ERASED, operation)

    def replace_op(self, operation: Operation, values: Sequence[Value]) -> None:
        """Let `values` stand for the results, then erase; names and location carry over."""
        types = [value.type for value in values]
        expected = [result.type for result in operation.results]
        assert types == expected, f"{operation.NAME}: {types} cannot replace {expected}"
        for result, value in zip(operation.results, values, strict=True):
            if value.name is None:
                value.name = result.name
            if isinstance(value, OpResult) and value.owner.location is None:
                value.owner.location = operation.location
            self.replace_all_uses(result, value)
        self.erase(operation)

    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Move the uses of one value to another, walking only the old one's list."""
        users = list(old.users)
        old.replace_all_uses_with(new)
        for user in users:
            self._changed(ChangeKind.OPERANDS, user)

    def set_operand(self, operation: Operation, index: int, value: Value) -> None:
        operation.set_operand(index, value)
        self._changed(ChangeKind.OPERANDS, operation)

    def set_operands(self, operation: Operation, group: str, values: Sequence[Value]) -> None:
        """Replace the operands of one declared group."""
        arity = dict(operation.SPEC.groups)[group]
        assert arity == "many" or len(values) == 1 or (arity == "optional" and not values)
        operation.set_group(group, values)
        self._changed(ChangeKind.OPERANDS, operation)

    def set_attribute(self, operation: Operation, name: str, value: Any) -> None:
        kinds = {field.name: field.kind for field in operation.SPEC.attributes}
        assert name in kinds, f"{operation.NAME} declares no attribute {name}"
        assert fits(value, kinds[name]), f"{value!r} is no value of `{name}`"
        operation.attributes[name] = value
        self._changed(ChangeKind.ATTRIBUTES, operation)

    def remove_result(self, operation: Operation, index: int) -> None:
        """Drop a result that nothing uses."""
        result = operation.results[index]
        assert not result.has_uses, f"{operation.NAME}: result {index} is still used"
        del operation.results[index]
        for place, kept in enumerate(operation.results):
            kept.index = place
        self._changed(ChangeKind.OPERANDS, operation)

    def replace_keeping_regions(self, operation: OpT, old: Operation) -> OpT:
        """Put a detached op without regions where `old` is, with its regions and its uses."""
        assert not operation.regions, "the new operation has regions of its own"
        for result, value in zip(old.results, operation.results, strict=True):
            value.name = value.name or result.name
            self.replace_all_uses(result, value)
        block, following = _block_of(old), old.next
        old.detach()
        operation.regions[:], old.regions[:] = old.regions, []
        for region in operation.regions:
            region.parent = operation
        return self._insert(operation, block, following, old.location)

    # Movement ------------------------------------------------------------------------------

    def move_before(self, operation: Operation, anchor: Operation) -> None:
        self._move(operation, _block_of(anchor), anchor)

    def move_after(self, operation: Operation, anchor: Operation) -> None:
        assert operation is not anchor, "an operation cannot follow itself"
        following = anchor.next
        if following is not operation:
            self._move(operation, _block_of(anchor), following)

    def move_to_end(self, operation: Operation, block: Block) -> None:
        self._move(operation, block, None)

    def _move(self, operation: Operation, block: Block, before: Operation | None) -> None:
        operation.move(block, before)
        self._changed(ChangeKind.MOVED, operation)

    def inline_block_before(
        self, block: Block, arguments: Sequence[Value], anchor: Operation
    ) -> list[Value]:
        """Move a block's operations before `anchor` with `arguments` for its arguments. The
        terminator stays behind; what it hands out is returned."""
        types = [value.type for value in arguments]
        expected = [argument.type for argument in block.arguments]
        assert types == expected, f"{types} cannot stand for the arguments {expected}"
        terminator = block.terminator
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.replace_all_uses(argument, value)
        for operation in block.operations:
            if operation is not terminator:
                self.move_before(operation, anchor)
        return terminator.operands

    # Blocks and functions ------------------------------------------------------------------

    def add_argument(self, block: Block, type_: Type, name: str | None = None) -> BlockArgument:
        argument = block.add_argument(type_, name)
        self._changed(ChangeKind.ARGUMENTS, block.parent_op)
        return argument

    def remove_argument(self, block: Block, index: int) -> None:
        """Drop an argument that nothing uses."""
        block.remove_argument(index)
        self._changed(ChangeKind.ARGUMENTS, block.parent_op)

    def add_function(self, module: Module, function: Function) -> Function:
        module.add(function)
        self._changed(ChangeKind.FUNCTIONS, None)
        return function

    def remove_function(self, module: Module, function: Function) -> None:
        module.functions.remove(function)
        self._changed(ChangeKind.FUNCTIONS, None)


def _block_of(operation: Operation) -> Block:
    block = operation.parent
    assert block is not None, f"the {operation.NAME} is detached"
    return block
