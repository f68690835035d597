"""The function being written, and what its operations have become so far.

In: a Machine function and the text it is written to. Out: a `Frame` that every emitter takes: it
maps IR values to LLVM operands, knows the processor, walks nested blocks, and keeps stack slots
apart, in a first block of their own, so that none is ever allocated inside a loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.text import Block, FunctionText
from tilenest.backends.llvm.values import LlvmType, Value, llvm_type
from tilenest.dialects import Constant
from tilenest.ir import Block as IrBlock
from tilenest.ir import Operation, OpResult
from tilenest.ir import Value as IrValue

Emit = Callable[["Frame", Any], None]
"""Writes one operation and binds its results."""

_DUMMY_BYTES = 64


@dataclass(slots=True)
class Frame:
    """One function under construction."""

    text: FunctionText
    machine: HostMachineInfo
    emitters: Mapping[type[Operation], Emit]
    fault: Value | None
    """where a fault is recorded, in a module that checks anything"""
    values: dict[IrValue, Value] = field(default_factory=dict)
    _slots: Block = field(init=False)
    _body: Block = field(init=False)
    _dummy: Value | None = field(init=False, default=None)
    _helpers: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._slots = self.text.current
        self._body = self.text.begin(self.text.block("body"))

    def close(self) -> None:
        """End the block of stack slots; nothing may follow."""
        self.text.resume(self._slots)
        self.text.branch(self._body)

    def value(self, value: IrValue) -> Value:
        return self.values[value]

    def optional(self, value: IrValue | None) -> Value | None:
        return None if value is None else self.values[value]

    def bind(self, results: Sequence[IrValue], values: Sequence[Value]) -> None:
        self.values.update(zip(results, values, strict=True))

    def emit_block(self, block: IrBlock) -> list[Value]:
        """Write the operations; the operands of the terminator that hands values on."""
        for op in block.operations:
            if op.TERMINATOR:
                return [self.values[value] for value in op.operands]
            self.emitters[type(op)](self, op)
        raise AssertionError("the block has no terminator")

    def return_unless_zero(self, status: Value) -> None:
        """Leave the function with `status` when it tells of a failure."""
        f = self.text
        failed, succeeded = f.block("failed"), f.block("succeeded")
        f.branch_if(f.icmp("eq", status, 0), succeeded, failed)
        f.begin(failed)
        f.ret(status)
        f.begin(succeeded)

    def unique_symbol(self, stem: str) -> str:
        """A name no other function of the module has, for one that this function needs."""
        self._helpers += 1
        return f"{stem}.{self.text.name}.{self._helpers}"

    def slot(self, kind: LlvmType, count: int = 1, *, align: int = 0) -> Value:
        """Stack storage that lives as long as the function runs."""
        current = self.text.current
        self.text.resume(self._slots)
        pointer = self.text.alloca(kind, count, align)
        self.text.resume(current)
        return pointer

    def dummy(self) -> Value:
        """Where reads and writes that must not happen go instead: one scalar of any type."""
        if self._dummy is None:
            self._dummy = self.slot(llvm_type("i8"), _DUMMY_BYTES, align=_DUMMY_BYTES)
        return self._dummy


def known_index(value: IrValue) -> int | None:
    """The number behind an index, where it is one."""
    owner = value.owner if isinstance(value, OpResult) else None
    number = owner.value if isinstance(owner, Constant) else None
    return number if isinstance(number, int) else None
