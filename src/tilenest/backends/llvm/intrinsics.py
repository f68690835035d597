"""Calls of LLVM's `llvm.*` functions as methods; each declares what it calls once.

In and out as in `instructions`. Only intrinsics that become instructions on vectors of any width
appear here; what LLVM would scalarise or send to a libm (`llvm.exp`, saturating casts) is written
out in `math_*` and `casts`.
"""

from collections.abc import Sequence
from typing import Protocol

from tilenest.backends.llvm.instructions import Instructions, matched
from tilenest.backends.llvm.values import (
    I1,
    POINTER,
    LlvmType,
    Operand,
    Value,
    constant,
)


class Declarations(Protocol):
    """Where a function tells its module what it calls."""

    def declare(
        self, name: str, result: LlvmType | None, parameters: Sequence[LlvmType], /
    ) -> None: ...


class Intrinsics(Instructions):
    """Instructions plus intrinsic calls, declared through `_module`."""

    __slots__ = ("_module",)

    def __init__(self, module: Declarations) -> None:
        super().__init__()
        self._module = module

    def intrinsic(self, name: str, result: LlvmType | None, arguments: Sequence[Value]) -> Value:
        """Call `name`, which already carries its type suffix."""
        self._module.declare(name, result, [argument.type for argument in arguments])
        return self.call_pointer(Value(POINTER, f"@{name}"), result, arguments)

    def _unary(self, name: str, value: Value) -> Value:
        return self.intrinsic(f"llvm.{name}.{value.type.suffix}", value.type, (value,))

    def _pair(self, name: str, left: Operand, right: Operand) -> Value:
        left, right = matched(left, right)
        return self.intrinsic(f"llvm.{name}.{left.type.suffix}", left.type, (left, right))

    def fma(self, left: Value, right: Operand, addend: Operand) -> Value:
        """left * right + addend with one rounding."""
        left, right = matched(left, right)
        left, addend = matched(left, addend)
        return self.intrinsic(f"llvm.fma.{left.type.suffix}", left.type, (left, right, addend))

    def sqrt(self, value: Value) -> Value:
        return self._unary("sqrt", value)

    def floor(self, value: Value) -> Value:
        return self._unary("floor", value)

    def ceil(self, value: Value) -> Value:
        return self._unary("ceil", value)

    def truncate(self, value: Value) -> Value:
        """Towards zero; `trunc` is the integer instruction."""
        return self._unary("trunc", value)

    def round_even(self, value: Value) -> Value:
        return self._unary("roundeven", value)

    def fabs(self, value: Value) -> Value:
        return self._unary("fabs", value)

    def copysign(self, magnitude: Operand, sign: Value) -> Value:
        return self._pair("copysign", magnitude, sign)

    def maximum(self, left: Operand, right: Operand) -> Value:
        """NaN if either is, and -0 below +0."""
        return self._pair("maximum", left, right)

    def minimum(self, left: Operand, right: Operand) -> Value:
        return self._pair("minimum", left, right)

    def smax(self, left: Operand, right: Operand) -> Value:
        return self._pair("smax", left, right)

    def smin(self, left: Operand, right: Operand) -> Value:
        return self._pair("smin", left, right)

    def umax(self, left: Operand, right: Operand) -> Value:
        return self._pair("umax", left, right)

    def umin(self, left: Operand, right: Operand) -> Value:
        return self._pair("umin", left, right)

    def abs(self, value: Value) -> Value:
        """Integer magnitude; the most negative number stays itself."""
        name = f"llvm.abs.{value.type.suffix}"
        return self.intrinsic(name, value.type, (value, constant(I1, 0)))

    def count_leading_zeros(self, value: Value) -> Value:
        """The width for zero."""
        name = f"llvm.ctlz.{value.type.suffix}"
        return self.intrinsic(name, value.type, (value, constant(I1, 0)))

    def vector_reduce(self, operation: str, vector: Value) -> Value:
        """`add`, `mul`, `and`, `or`, `xor`, `smax`, `smin`, `umax`, `umin`, `fmaximum`,
        `fminimum`: one scalar whose value doesn't depend on the order of the lanes."""
        if vector.type.lanes == 1:
            return vector
        name = f"llvm.vector.reduce.{operation}.{vector.type.suffix}"
        return self.intrinsic(name, vector.type.with_lanes(1), (vector,))

    def masked_load(
        self, kind: LlvmType, pointer: Value, mask: Value, otherwise: Value, *, align: int
    ) -> Value:
        """Lanes where `mask` is false are not touched and give `otherwise`."""
        assert kind.lanes > 1, "a scalar has no lanes to mask"
        name = f"llvm.masked.load.{kind.suffix}.p0"
        self._module.declare(name, kind, (POINTER, mask.type, kind))
        arguments = f"ptr align {align} {pointer.text}, {mask.typed}, {otherwise.typed}"
        return self._define(kind, f"call {kind.text} @{name}({arguments})")

    def masked_store(self, value: Value, pointer: Value, mask: Value, *, align: int) -> None:
        kind = value.type
        assert kind.lanes > 1, "a scalar has no lanes to mask"
        name = f"llvm.masked.store.{kind.suffix}.p0"
        self._module.declare(name, None, (kind, POINTER, mask.type))
        arguments = f"{value.typed}, ptr align {align} {pointer.text}, {mask.typed}"
        self._lines.append(f"  call void @{name}({arguments})")

    def masked_gather(
        self, kind: LlvmType, pointers: Value, mask: Value, otherwise: Value, *, align: int
    ) -> Value:
        assert kind.lanes > 1, "a scalar has no lanes to mask"
        name = f"llvm.masked.gather.{kind.suffix}.{pointers.type.suffix}"
        self._module.declare(name, kind, (pointers.type, mask.type, kind))
        places = f"{pointers.type.text} align {align} {pointers.text}"
        arguments = f"{places}, {mask.typed}, {otherwise.typed}"
        return self._define(kind, f"call {kind.text} @{name}({arguments})")

    def masked_scatter(self, value: Value, pointers: Value, mask: Value, *, align: int) -> None:
        """Coinciding addresses are written in lane order."""
        assert value.type.lanes > 1, "a scalar has no lanes to mask"
        name = f"llvm.masked.scatter.{value.type.suffix}.{pointers.type.suffix}"
        self._module.declare(name, None, (value.type, pointers.type, mask.type))
        places = f"{pointers.type.text} align {align} {pointers.text}"
        self._lines.append(f"  call void @{name}({value.typed}, {places}, {mask.typed})")
