"""Where new operations go: an insertion point and a current source location.

In: operations, one after the other. Out: the same, linked in order and stamped with the location of
the source being translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir.core import Block, Operation

OpT = TypeVar("OpT", bound=Operation)


class Builder:
    """Inserts operations at the end of a block or before an operation, stamping locations."""

    __slots__ = ("before", "block", "location", "on_insert")

    def __init__(self, block: Block, before: Operation | None = None) -> None:
        self.block = block
        self.before = before
        self.location: SourceLocation | None = None
        self.on_insert: Callable[[Operation], None] | None = None

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
        if self.on_insert is not None:
            self.on_insert(operation)
        return operation

    @contextmanager
    def at_end(self, block: Block) -> Iterator[None]:
        """Insert at the end of `block` for the duration of the context."""
        saved = self.block, self.before
        self.block, self.before = block, None
        try:
            yield
        finally:
            self.block, self.before = saved
