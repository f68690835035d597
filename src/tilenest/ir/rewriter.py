"""The one mutator: every change a pass makes to a module goes through a `Rewriter`.

In: operations, values, blocks. Out: the changed module. New operations inherit the location of what
they stand beside or replace. A misuse is an assertion before anything has changed. What is not in
a module yet, a builder makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tilenest.ir.builder import Builder
from tilenest.ir.core import Block, Function, Operation, OpResult, Value
from tilenest.ir.kinds import fits
from tilenest.ir.module import Module

OpT = TypeVar("OpT", bound=Operation)


class Rewriter:
    """Changes modules."""

    __slots__ = ()

    # Insertion and movement ----------------------------------------------------------------

    def builder_before(self, anchor: Operation) -> Builder:
        """A builder whose insertions stand before `anchor` and inherit its location."""
        return Builder.before_op(anchor)

    def builder_after(self, anchor: Operation) -> Builder:
        return Builder.after_op(anchor)

    def insert_before(self, operation: OpT, anchor: Operation) -> OpT:
        return self.builder_before(anchor).insert(operation)

    def move_before(self, operation: Operation, anchor: Operation) -> None:
        """Link an operation of the module elsewhere, with all that hangs below."""
        block = anchor.parent
        assert block is not None, f"the {anchor.NAME} is detached"
        operation.move(block, anchor)

    # Replacement ---------------------------------------------------------------------------

    def erase(self, operation: Operation) -> None:
        """Remove an operation none of whose results is used; its own uses go with it."""
        operation.erase()

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

    def replace_keeping_regions(self, operation: OpT, old: Operation) -> OpT:
        """Put a detached op without regions where `old` is, with its regions and its uses."""
        assert not operation.regions, "the new operation has regions of its own"
        for result, value in zip(old.results, operation.results, strict=True):
            value.name = value.name or result.name
            self.replace_all_uses(result, value)
        builder = self.builder_before(old)
        builder.before = old.next
        old.detach()
        operation.regions[:], old.regions[:] = old.regions, []
        for region in operation.regions:
            region.parent = operation
        return builder.insert(operation)

    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Move the uses of one value to another, walking only the old one's list."""
        old.replace_all_uses_with(new)

    # Operands, results, attributes ---------------------------------------------------------

    def set_operand(self, operation: Operation, index: int, value: Value) -> None:
        operation.set_operand(index, value)

    def set_operands(self, operation: Operation, group: str, values: Sequence[Value]) -> None:
        """Replace the operands of one declared group."""
        arity = dict(operation.SPEC.groups)[group]
        assert arity == "many" or len(values) == 1 or (arity == "optional" and not values)
        operation.set_group(group, values)

    def remove_result(self, operation: Operation, index: int) -> None:
        """Drop a result that nothing uses."""
        result = operation.results[index]
        assert not result.has_uses, f"{operation.NAME}: result {index} is still used"
        del operation.results[index]
        for place, kept in enumerate(operation.results):
            kept.index = place

    def remove_argument(self, block: Block, index: int) -> None:
        """Drop an argument that nothing uses."""
        block.remove_argument(index)

    def set_attribute(self, operation: Operation, name: str, value: Any) -> None:
        kinds = {field.name: field.kind for field in operation.SPEC.attributes}
        assert name in kinds, f"{operation.NAME} declares no attribute {name}"
        assert fits(value, kinds[name]), f"{value!r} is no value of `{name}`"
        operation.attributes[name] = value

    def set_function_attribute(self, function: Function, name: str, value: Any) -> None:
        function.attributes[name] = value

    def set_form(self, module: Module, form: str) -> None:
        """Name the stage that a module has reached."""
        module.form = form
