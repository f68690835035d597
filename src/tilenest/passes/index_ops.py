"""Index expressions, constants and scalar functions as operations at the level of a nest.

In: an expression over symbols only, and the symbols' values; or a constant; or a function and its
arguments. Out: the value, computed where the builder stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import BIT_FUNCTIONS
from tilenest.dialects import Apply, Constant
from tilenest.ir import INDEX, Builder, OpResult, Type, Value
from tilenest.layouts import Add, BitExpr, Const, FloorDiv, IndexExpr, Mod, Mul, Sym


def emit_index(builder: Builder, expr: IndexExpr, symbols: Sequence[Value]) -> Value:
    """The value of an expression without loop dims."""
    match expr:
        case Const(value):
            return index_number(builder, value)
        case Sym(position):
            return symbols[position]
        case Add(operands):
            total = emit_index(builder, operands[0], symbols)
            for operand in operands[1:]:
                total = apply_scalar(builder, "add", total, emit_index(builder, operand, symbols))
            return total
        case Mul(left, right):
            function = "mul"
        case FloorDiv(left, right):
            function = "floordiv"
        case Mod(left, right):
            function = "mod"
        case BitExpr():
            left, right, function = expr.left, expr.right, BIT_FUNCTIONS[type(expr)]
        case _:
            raise AssertionError(f"{expr} depends on a loop")
    return apply_scalar(
        builder, function, emit_index(builder, left, symbols), emit_index(builder, right, symbols)
    )


def index_number(builder: Builder, number: int) -> OpResult:
    """A constant index."""
    return scalar_constant(builder, number, INDEX)


def scalar_constant(builder: Builder, value: bool | int | float, type_: Type) -> OpResult:
    """A constant of any scalar type."""
    return builder.insert(Constant(value=value, result_types=[type_])).result


def apply_scalar(
    builder: Builder, function: str, *arguments: Value, result_type: Type = INDEX
) -> OpResult:
    """The value of a scalar function."""
    op = Apply(arguments=list(arguments), function=function, result_types=[result_type])
    return builder.insert(op).result
