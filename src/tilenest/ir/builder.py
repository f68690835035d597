"""Where new operations go: an insertion point and a current source location.

In: operations, one after the other, and arguments of their block. Out: the same, linked in order;
operations are stamped with the location of the source being translated. A builder of a rewriter
notes what it does in the rewriter's recorder; one that makes something new needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir import inverses, preconditions
from tilenest.ir.core import Block, BlockArgument, Operation, Value
from tilenest.ir.edits import EditKind
from tilenest.ir.transactions import Recorder
from tilenest.ir.types import Type

OpT = TypeVar("OpT", bound=Operation)


class Builder:
    """Inserts operations at the end of a block or before an operation, stamping locations."""

    __slots__ = ("_recorder", "before", "block", "location")

    def __init__(
        self, block: Block, before: Operation | None = None, recorder: Recorder | None = None
    ) -> None:
        self.block = block
        self.before = before
        self.location: SourceLocation | None = None
        self._recorder = recorder

    @classmethod
    def before_op(cls, operation: Operation, recorder: Recorder | None = None) -> Builder:
        block = preconditions.block_of(operation)
        builder = cls(block, operation, recorder)
        builder.location = operation.location
        return builder

    @classmethod
    def after_op(cls, operation: Operation, recorder: Recorder | None = None) -> Builder:
        block = preconditions.block_of(operation)
        builder = cls(block, operation.next, recorder)
        builder.location = operation.location
        return builder

    def insert(self, operation: OpT) -> OpT:
        preconditions.require_free(operation, self.block, self.before)
        recorder = self._recorder
        if recorder is not None:
            recorder.before(inverses.of_insertion, operation)
        self.block.insert(operation, self.before)
        if operation.location is None:
            operation.location = self.location
        if recorder is not None:
            recorder.tell(EditKind.INSERTED, self.block, operation)
        return operation

    def add_argument(self, type_: Type, name: str | None = None) -> BlockArgument:
        """A further argument of the block under construction."""
        preconditions.require_declaration(type_, name)
        self._before_arguments()
        argument = self.block.add_argument(type_, name)
        self._after_arguments()
        return argument

    def order_arguments(self, arguments: Sequence[Value]) -> None:
        """Give the arguments of the block under construction another order."""
        preconditions.require_order(self.block, arguments)
        self._before_arguments()
        self.block.order_arguments(arguments)
        self._after_arguments()

    def _before_arguments(self) -> None:
        if self._recorder is not None:
            self._recorder.before(inverses.of_arguments, self.block)

    def _after_arguments(self) -> None:
        if self._recorder is not None:
            self._recorder.tell(EditKind.DEFINITIONS, self.block)

    @contextmanager
    def at_end(self, block: Block) -> Iterator[None]:
        """Insert at the end of `block` for the duration of the context."""
        saved = self.block, self.before
        self.block, self.before = block, None
        try:
            yield
        finally:
            self.block, self.before = saved
