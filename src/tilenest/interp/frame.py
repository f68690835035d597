"""One running function: its values, and how blocks, regions and calls are run.

In: a table from op class to a handler, and blocks. Out: what the block's terminator hands over. A
handler gets the frame and its op and returns one run-time value per result; a terminator's are
those it hands over. The frame checks that every array has the dtype and shape its type says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilenest.errors import InternalError, OutOfMemory, TileError
from tilenest.interp.values import (
    Array,
    Pointer,
    Remapped,
    RuntimeValue,
    Storage,
    View,
    numpy_dtype,
    shape_of,
)
from tilenest.ir import Block, Module, Operation, ScalarType, TileType, Value, VectorType


@dataclass(slots=True)
class Frame:
    """The values of one call; `order` draws the order of independent instances."""

    module: Module
    handlers: Mapping[type[Operation], Handler]
    order: np.random.Generator | None = None
    following: Block | None = None
    """The block a branch goes on with, until that one runs."""
    lifted: bool = False
    """Inside a scalar region: a scalar is an array of all its instances."""
    values: dict[Value, RuntimeValue] = field(default_factory=dict)

    def copy(self) -> Frame:
        """A frame that knows the same values, and keeps to itself what it computes further."""
        return replace(self, values=dict(self.values))

    def run(self, block: Block, arguments: Sequence[RuntimeValue]) -> Sequence[RuntimeValue]:
        """Run a block, and those it goes on with; the last terminator's values."""
        going_on: Block | None = block
        while going_on is not None:
            self.values.update(zip(going_on.arguments, arguments, strict=True))
            arguments = self.run_operations(going_on.operations)
            going_on, self.following = self.following, None
        return arguments

    def run_lifted(self, block: Block, arguments: Sequence[Array]) -> list[Array]:
        """Run a scalar region on arrays that broadcast with each other."""
        with self.lifting():
            return [as_array(value) for value in self.run(block, arguments)]

    def run_operations(self, operations: Iterable[Operation]) -> Sequence[RuntimeValue]:
        """Run operations up to a terminator; its values."""
        for op in operations:
            handed = self.step(op)
            if op.TERMINATOR:
                return handed
        raise InternalError("a block has no terminator")

    @contextmanager
    def lifting(self) -> Iterator[None]:
        """Scalars are arrays of any shape for the duration of the context."""
        saved, self.lifted = self.lifted, True
        try:
            yield
        finally:
            self.lifted = saved

    def step(self, op: Operation) -> Sequence[RuntimeValue]:
        """Run one operation and record its results."""
        handler = self.handlers.get(type(op))
        if handler is None:
            raise InternalError(f"{op.NAME} has no meaning in the interpreter")
        try:
            produced = handler(self, op)
        except TileError as error:
            raise error.with_location(op.location)  # noqa: B904 - the same error, placed
        except MemoryError as error:
            raise OutOfMemory(
                f"{op.NAME} needs more memory than the system gives: {error}",
                remedy="compute on smaller tiles, in a nest over parts of the arrays",
                location=op.location,
            ) from error
        if not op.TERMINATOR:
            for result, value in zip(op.results, produced, strict=True):
                self._check(op, result, value)
                self.values[result] = value
        return produced

    def call(self, name: str, arguments: Sequence[RuntimeValue]) -> Sequence[RuntimeValue]:
        """Run another function of the module with values of its own."""
        callee = Frame(self.module, self.handlers, self.order)
        return callee.run(self.module.function(name).body, arguments)

    def array(self, value: Value) -> Array:
        """A scalar, tile or vector."""
        return as_array(self.values[value])

    def arrays(self, values: Sequence[Value]) -> list[Array]:
        return [as_array(self.values[value]) for value in values]

    def integer(self, value: Value) -> int:
        """An index as an unbounded integer."""
        return int(self.array(value))

    def integers(self, values: Sequence[Value]) -> list[int]:
        return [int(self.array(value)) for value in values]

    def storage(self, value: Value) -> Storage:
        """A buf, or a view of storage itself."""
        found = self.values[value]
        assert isinstance(found, Storage), value
        return found

    def view(self, value: Value) -> View:
        """Any view."""
        found = self.values[value]
        assert isinstance(found, Storage | Remapped), value
        return found

    def pointer(self, value: Value) -> Pointer:
        found = self.values[value]
        assert isinstance(found, Pointer), value
        return found

    def _check(self, op: Operation, result: Value, value: RuntimeValue) -> None:
        type_ = result.type
        if not isinstance(type_, ScalarType | TileType | VectorType):
            return
        array = as_array(value)
        fits = self.lifted or array.shape == shape_of(type_)
        if array.dtype != numpy_dtype(type_.dtype) or not fits:
            raise InternalError(
                f"{op.NAME} made {array.dtype} of shape {array.shape} where {type_} was declared"
            )


Handler = Callable[[Frame, Any], Sequence[RuntimeValue]]


def as_array(value: RuntimeValue) -> Array:
    assert isinstance(value, np.ndarray), value
    return value
