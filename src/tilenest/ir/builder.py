"""Where new operations go: an insertion point and a current source location.

In: operations, one after the other, and arguments of their block. Out: the same, linked in order;
operations are stamped with the location of the source being translated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir.core import Block, BlockArgument, Operation, Value
from tilenest.ir.types import Type

OpT = TypeVar("OpT", bound=Operation)


class Builder:
    """Inserts operations at the end of a block or before an operation, stamping locations."""

    __slots__ = ("before", "block", "location")

    def __init__(self, block: Block, before: Operation | None = None) -> None:
        self.block = block
        self.before = before
        self.location: SourceLocation | None = None

    @classmethod
    def before_op(cls, operation: Operation) -> Builder:
        block = operation.parent
        assert block is not None
        builder = cls(block, operation)
        builder.location = operation.location
        return builder

    @classmethod
    def after_op(cls, operation: Operation) -> Builder:
        block = operation.parent
        assert block is not None
        builder = cls(block, operation.next)
        builder.location = operation.location
        return builder

    def insert(self, operation: OpT) -> OpT:
        if operation.location is None:
            operation.location = self.location
        self.block.insert(operation, self.before)
        return operation

    def add_argument(self, type_: Type, name: str | None = None) -> BlockArgument:
        """A further argument of the block under construction."""
        return self.block.add_argument(type_, name)

    def order_arguments(self, arguments: Sequence[Value]) -> None:
        """Give the arguments of the block under construction another order."""
        self.block.order_arguments(arguments)

    @contextmanager
    def at_end(self, block: Block) -> Iterator[None]:
        """Insert at the end of `block` for the duration of the context."""
        saved = self.block, self.before
        self.block, self.before = block, None
        try:
            yield
        finally:
            self.block, self.before = saved
