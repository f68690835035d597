"""Scalar regions on lanes: one copy of a region's arithmetic for scalars or for vectors.

Values that do not depend on the vector dim stay scalars and are splatted where they meet a vector,
so everything invariant can leave the loop."""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import SCALAR_FUNCTIONS, Apply, Bitcast, Cast, Constant
from tilenest.ir import Block, Operation, Value, bool_, element_dtype
from tilenest.nests.emitter import Emitter, lane_type, lanes_of


def evaluate(block: Block, arguments: Sequence[Value], emitter: Emitter) -> list[Value]:
    """Emit the block's operations on `arguments` (scalars and vectors); the values it yields."""
    values: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    for op in block.operations:
        if op.TERMINATOR:
            return [values.get(value, value) for value in op.operands]
        values[op.result] = _emit(op, [values.get(v, v) for v in op.operands], emitter)
    raise AssertionError("the region has no terminator")


def apply_function(function: str, arguments: Sequence[Value], emitter: Emitter) -> Value:
    """One table function on scalars and vectors mixed."""
    lanes = max(lanes_of(value) for value in arguments)
    spread = [emitter.spread(value, lanes) for value in arguments]
    is_comparison = SCALAR_FUNCTIONS[function].result == "bool"
    dtype = bool_ if is_comparison else element_dtype(spread[-1].type)
    return emitter.apply(function, *spread, type_=lane_type(dtype, lanes))


def _emit(op: Operation, arguments: Sequence[Value], emitter: Emitter) -> Value:
    match op:
        case Constant():
            value = op.value
            assert isinstance(value, bool | int | float)
            return emitter.constant(value, op.result.type)
        case Apply():
            return apply_function(op.function, arguments, emitter)
        case Cast():
            type_ = lane_type(element_dtype(op.result.type), lanes_of(arguments[0]))
            return emitter.emit(Cast(value=arguments[0], result_types=[type_]))
        case Bitcast():
            type_ = lane_type(element_dtype(op.result.type), lanes_of(arguments[0]))
            return emitter.emit(Bitcast(value=arguments[0], result_types=[type_]))
    raise AssertionError(f"{op.NAME} in a scalar region")
