"""Index expressions as operations at the level of a nest.

In: an expression over symbols only, and the symbols' values. Out: the value, computed where the
builder stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import BIT_FUNCTIONS
from tilenest.dialects import Apply, Constant
from tilenest.ir import INDEX, Builder, Value
from tilenest.layouts import Add, BitExpr, Const, FloorDiv, IndexExpr, Mod, Mul, Sym


def emit_index(builder: Builder, expr: IndexExpr, symbols: Sequence[Value]) -> Value:
    """The value of an expression without loop dims."""
    match expr:
        case Const(value):
            return builder.insert(Constant(value=value, result_types=[INDEX])).result
        case Sym(position):
            return symbols[position]
        case Add(operands):
            total = emit_index(builder, operands[0], symbols)
            for operand in operands[1:]:
                total = _apply(builder, "add", total, emit_index(builder, operand, symbols))
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
    return _apply(
        builder, function, emit_index(builder, left, symbols), emit_index(builder, right, symbols)
    )


def _apply(builder: Builder, function: str, left: Value, right: Value) -> Value:
    op = Apply(arguments=[left, right], function=function, result_types=[INDEX])
    return builder.insert(op).result
