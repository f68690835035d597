"""The one mutator: every change a pass makes to a module goes through a `Rewriter`.

In: operations, values, blocks. Out: the changed module, and on an open transaction the way back.
New operations inherit the location of what they stand beside or replace; what replaces several
things stands for all their places. A misuse is an assertion before anything has changed
(`preconditions`). What is not in a module yet, a builder makes. `analyses` are answers about what
the rewriter changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir import inverses, movement, preconditions
from tilenest.ir.analyses import AnalysisManager
from tilenest.ir.builder import Builder
from tilenest.ir.clone import ValueMap, clone_operation
from tilenest.ir.contents import ModuleContents, module_of
from tilenest.ir.core import Block, BlockArgument, Function, Operation, OpResult, Region, Value
from tilenest.ir.edits import Edit, EditKind, function_of
from tilenest.ir.locations import fuse_locations
from tilenest.ir.transactions import Hook, Recorder, Transaction
from tilenest.ir.types import Type

OpT = TypeVar("OpT", bound=Operation)


class Rewriter:
    """Changes modules."""

    __slots__ = ("_recorder", "analyses")

    def __init__(self) -> None:
        self._recorder = Recorder()
        self.analyses = AnalysisManager()
        self._recorder.listeners.append(self.analyses)

    def transaction(self, before_step: Hook | None = None) -> AbstractContextManager[Transaction]:
        """All or nothing: an exception undoes all that was done inside, to the order of the uses;
        so does `rollback` of what this gives. `before_step` is called before every primitive."""
        assert before_step is None or callable(before_step), f"{before_step!r} cannot be called"
        return self._recorder.transaction(before_step)

    # Insertion and movement ----------------------------------------------------------------

    def builder_before(self, anchor: Operation) -> Builder:
        """A builder whose insertions stand before `anchor` and inherit its location."""
        return Builder.before_op(anchor, self._recorder)

    def builder_after(self, anchor: Operation) -> Builder:
        return Builder.after_op(anchor, self._recorder)

    def builder_at_end(self, block: Block) -> Builder:
        assert isinstance(block, Block), f"{block!r} is no block"
        return Builder(block, None, self._recorder)

    def insert_before(self, operation: OpT, anchor: Operation) -> OpT:
        return self.builder_before(anchor).insert(operation)

    def clone_before(self, operation: OpT, anchor: Operation, values: ValueMap) -> OpT:
        """Insert a copy, its operands mapped by `values`, which gains what it defines."""
        builder = self.builder_before(anchor)
        preconditions.require_operation(operation)
        preconditions.require_values(values)
        preconditions.require_values(values.values())
        copy = clone_operation(operation, values)
        assert isinstance(copy, type(operation))
        return builder.insert(copy)

    def detach(self, operation: Operation) -> Operation:
        """Take an operation out of the module, to be inserted again: uses keep their identity."""
        block = preconditions.block_of(operation)
        self._recorder.before(inverses.of_erasure, operation)
        self._recorder.tell(EditKind.ERASED, block, operation)
        operation.detach()
        return operation

    def move_before(self, operation: Operation, anchor: Operation) -> None:
        """Link an operation elsewhere, with all that hangs below; uses stay as they are."""
        self.splice(operation, operation, preconditions.block_of(anchor), anchor)

    def splice(
        self, first: Operation, last: Operation, block: Block, before: Operation | None = None
    ) -> None:
        """Link the operations of a block from `first` to `last` elsewhere, in order."""
        source = preconditions.block_of(first)
        preconditions.require_operation(last)
        preconditions.require_place(before, block)
        run = movement.run_of(first, last)
        assert before not in run, "a move before what moves"
        movement.refuse_own_region(run, block)
        leaves, comes = self._kinds_of_move(source, block)
        self._recorder.before(inverses.of_run, run, block)
        for operation in run:
            self._recorder.tell(leaves, source, operation)
        for operation in run:
            operation.move(block, before)
        for operation in run:
            self._recorder.tell(comes, block, operation)

    def _kinds_of_move(self, source: Block, target: Block | Region) -> tuple[EditKind, EditKind]:
        """What a move is at its start and at its end, as far as anybody hears of it."""
        if not self._recorder.is_heard or function_of(source) is function_of(target):
            return EditKind.MOVED, EditKind.MOVED
        return EditKind.ERASED, EditKind.INSERTED

    # Replacement ---------------------------------------------------------------------------

    def erase(self, operation: Operation) -> None:
        """Remove an operation none of whose results is used; its own uses go with it."""
        preconditions.require_operation(operation)
        preconditions.refuse_used(operation.results, f"result of the {operation.NAME}")
        self.detach(operation)

    def replace_op(self, operation: Operation, values: Sequence[Value]) -> None:
        """Let `values` stand for the results, then erase; names and places carry over."""
        preconditions.require_replacement(operation, values)
        for result, value in zip(operation.results, values, strict=True):
            self._inherit(result, value)
            self.replace_all_uses(result, value)
        self.erase(operation)

    def _inherit(self, old: OpResult, new: Value) -> None:
        """Name and location of what is replaced go to what replaces it."""
        if new.name is None and old.name is not None:
            self.set_name(new, old.name)
        if isinstance(new, OpResult) and new.owner.location is not old.owner.location:
            self.set_location(new.owner, (new.owner.location, old.owner.location))

    def replace_keeping_regions(self, operation: OpT, old: Operation) -> OpT:
        """Put a detached op without regions where `old` is, with its regions and its uses."""
        preconditions.require_successor_of(old, operation)
        for result, value in zip(old.results, operation.results, strict=True):
            if value.name is None and result.name is not None:
                self.set_name(value, result.name)
            self.replace_all_uses(result, value)
        builder = self.builder_before(old)
        builder.before = old.next
        self.detach(old)
        self._recorder.before(inverses.of_regions, operation, old)
        operation.regions[:], old.regions[:] = old.regions, []
        for region in operation.regions:
            region.parent = operation
        return builder.insert(operation)

    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Move the uses of one value to another of its type, walking only the old one's list."""
        preconditions.require_same_type(old, new)
        if old is not new:
            self._move_uses(old, new)

    def replace_by_storage(self, old: Value, storage: Value) -> None:
        """Let a buf stand for a tile, a tile array or another buf of its dtype: what uses it is
        then written anew for storage."""
        preconditions.require_storage(old, storage)
        self._move_uses(old, storage)

    def _move_uses(self, old: Value, new: Value) -> None:
        users = list(old.users) if self._recorder.is_heard else ()
        self._recorder.before(inverses.of_replacement, old)
        old.replace_all_uses_with(new)
        for user in users:
            self._recorder.tell(EditKind.OPERANDS, user.parent, user, values=(old, new))

    # Operands, results, attributes ---------------------------------------------------------

    def set_operand(self, operation: Operation, index: int, value: Value) -> None:
        """Let a slot hold another value of the type it has; `set_operands` gives other types."""
        preconditions.require_operation(operation)
        preconditions.require_index(index, operation.operand_uses, f"slot of the {operation.NAME}")
        preconditions.require_same_type(operation.operand_uses[index].value, value)
        self._recorder.before(inverses.of_operand, operation, index)
        changed = (operation.operand_uses[index].value, value)
        operation.set_operand(index, value)
        self._recorder.tell(EditKind.OPERANDS, operation.parent, operation, values=changed)

    def set_operands(self, operation: Operation, group: str, values: Sequence[Value]) -> None:
        """Replace the operands of one declared group."""
        preconditions.require_group(operation, group, values)
        self._recorder.before(inverses.of_group, operation, group)
        start, stop = operation.SPEC.group_range(operation.segments, group)
        changed = (*operation.operands[start:stop], *values)
        operation.set_group(group, values)
        self._recorder.tell(EditKind.OPERANDS, operation.parent, operation, values=changed)

    def set_successor(self, operation: Operation, group: str, block: Block) -> None:
        """Let a terminator go on with another block; the operands for it stay."""
        index = preconditions.successor_index(operation, group, block)
        self._recorder.before(inverses.of_successor, operation, index)
        operation.set_successor(index, block)
        self._recorder.tell(EditKind.SUCCESSORS, operation.parent, operation)

    def add_result(self, operation: Operation, type_: Type, name: str | None = None) -> OpResult:
        preconditions.require_operation(operation)
        preconditions.require_declaration(type_, name)
        self._recorder.before(inverses.of_results, operation)
        result = operation.add_result(type_, name)
        self._recorder.tell(EditKind.DEFINITIONS, operation.parent, operation)
        return result

    def remove_result(self, operation: Operation, index: int) -> None:
        """Drop a result that nothing uses."""
        preconditions.require_operation(operation)
        what = f"result of the {operation.NAME}"
        preconditions.require_index(index, operation.results, what)
        preconditions.refuse_used([operation.results[index]], what)
        self._recorder.before(inverses.of_results, operation)
        del operation.results[index]
        for place, kept in enumerate(operation.results):
            kept.index = place
        self._recorder.tell(EditKind.DEFINITIONS, operation.parent, operation)

    def set_attribute(self, operation: Operation, name: str, value: Any) -> None:
        preconditions.require_attribute(operation, name, value)
        self._recorder.before(inverses.of_attributes, operation)
        operation.attributes[name] = value
        self._recorder.tell(EditKind.ATTRIBUTE, operation.parent, operation, name)

    def set_location(self, operation: Operation, places: Iterable[SourceLocation | None]) -> None:
        """Let an operation stand for one place, or for several of which the first is its own."""
        preconditions.require_operation(operation)
        fused = fuse_locations(preconditions.known_places(places))
        self._recorder.before(inverses.of_location, operation)
        operation.location = fused
        self._recorder.tell(EditKind.LABEL, operation.parent, operation)

    def set_name(self, value: Value, name: str | None) -> None:
        preconditions.require_values((value,))
        preconditions.require_name(name)
        self._recorder.before(inverses.of_name, value)
        value.name = name
        self._recorder.tell(EditKind.LABEL, value.defining_block)

    # Blocks --------------------------------------------------------------------------------

    def add_argument(self, block: Block, type_: Type, name: str | None = None) -> BlockArgument:
        return self.builder_at_end(block).add_argument(type_, name)

    def remove_argument(self, block: Block, index: int) -> None:
        """Drop an argument that nothing uses."""
        assert isinstance(block, Block), f"{block!r} is no block"
        preconditions.require_index(index, block.arguments, "argument of the block")
        preconditions.refuse_used([block.arguments[index]], "argument of the block")
        self._recorder.before(inverses.of_arguments, block)
        block.remove_argument(index)
        self._recorder.tell(EditKind.DEFINITIONS, block)

    def insert_block(self, block: Block, region: Region, before: Block | None = None) -> Block:
        """Link a detached block, with what it holds."""
        preconditions.require_free_block(block, region, before)
        self._recorder.before(inverses.of_new_block, block)
        region.insert(block, before)
        self._recorder.tell(EditKind.INSERTED, block)
        return block

    def split_block(self, operation: Operation) -> Block:
        """A new block after the operation's own, which takes it and all that follows."""
        block = preconditions.block_of(operation)
        assert block.parent is not None and block.operations.last is not None, (
            "a block in no region"
        )
        rest = self.insert_block(Block(), block.parent, block.next)
        self.splice(operation, block.operations.last, rest)
        return rest

    def erase_block(self, block: Block) -> None:
        """Remove a block that no other one goes on with and whose values nothing outside uses."""
        movement.refuse_needed(block)
        self._recorder.before(inverses.of_block_erasure, block)
        self._recorder.tell(EditKind.ERASED, block)
        movement.detach_block(block)

    def move_block(self, block: Block, region: Region, before: Block | None = None) -> None:
        """Link a block elsewhere, with all it holds."""
        preconditions.require_movable(block, region, before)
        leaves, comes = self._kinds_of_move(block, region)
        self._recorder.before(inverses.of_block_move, block, region)
        self._recorder.tell(leaves, block)
        movement.move_block(block, region, before)
        self._recorder.tell(comes, block)

    def inline_region_before(self, region: Region, block: Block) -> None:
        """Move all blocks of a region before a block of another one; the region is left empty."""
        target, moving = preconditions.blocks_to_inline(region, block)
        for moved in moving:
            self.move_block(moved, target, block)

    # Functions and modules -----------------------------------------------------------------

    def insert_function(
        self, function: Function, module: ModuleContents, before: Function | None = None
    ) -> Function:
        """Put a function that is in no module into one."""
        assert isinstance(function, Function), f"{function!r} is no function"
        assert function.siblings is None, f"@{function.name} is in a module"
        preconditions.require_room(function, module, before)
        self._place_function(function, module, before)
        return function

    def move_function(
        self, function: Function, module: ModuleContents, before: Function | None = None
    ) -> None:
        """Put a function elsewhere, in its module or another one."""
        preconditions.module_around(function)
        preconditions.require_room(function, module, before)
        self.remove_function(function)
        self._place_function(function, module, before)

    def remove_function(self, function: Function) -> None:
        module = preconditions.module_around(function)
        self._recorder.before(inverses.of_function_place, function)
        self._recorder.publish(Edit(EditKind.FUNCTION, module, function, None, None))
        module.functions.remove(function)

    def _place_function(
        self, function: Function, module: ModuleContents, before: Function | None
    ) -> None:
        self._recorder.before(inverses.of_function_place, function)
        module.functions.insert_before(before, function)
        self._recorder.publish(Edit(EditKind.FUNCTION, module, function, None, None))

    def set_function_attribute(self, function: Function, name: str, value: Any) -> None:
        preconditions.require_extra(function, name, value)
        self._recorder.before(inverses.of_attributes, function)
        function.attributes[name] = value
        edit = Edit(EditKind.FUNCTION, module_of(function), function, None, None, name)
        self._recorder.publish(edit)

    def set_form(self, module: ModuleContents, form: str) -> None:
        """Name the stage that a module has reached."""
        preconditions.require_form(module, form)
        self._recorder.before(inverses.of_form, module)
        module.form = form
        self._recorder.publish(Edit(EditKind.MODULE, module, None, None, None, "form"))
