"""Rules `OP06` to `OP09`: constants, functions of the table, casts, on scalars and on lanes.

In: operations of the scalar dialect. Out: findings about dtypes, lanes and values.
"""

from __future__ import annotations

import math
import struct

from tilenest.dialects import SCALAR_FUNCTIONS, Apply, Bitcast, Cast, Constant
from tilenest.ir import BOOL, DType, Type, describe_type, element_dtype
from tilenest.verify.expectations import Findings, describe_types, lanes_of, op_rule, types_of

_FLOAT_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def _constant(op: Constant) -> Findings:
    results = types_of(op.results)
    if len(results) != 1 or lanes_of(results[0]) is None:
        yield f"gives {describe_types(results)}", "give one scalar or vector"
        return
    dtype = element_dtype(results[0])
    if not is_representable(op.value, dtype):
        yield f"{op.value!r} is no value of {dtype.text}", "round the number to the dtype first"


def is_representable(value: object, dtype: DType) -> bool:
    """True when the Python number is exactly a value of the dtype, and of its Python type."""
    if dtype.is_bool:
        return isinstance(value, bool)
    if dtype.is_float:
        return isinstance(value, float) and _is_exact(value, dtype)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return least <= value < least + (1 << dtype.bits)


def _is_exact(value: float, dtype: DType) -> bool:
    if not math.isfinite(value):
        return True
    try:
        if dtype.text == "bf16":
            bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
            return bits & 0xFFFF == 0 and struct.unpack("<f", struct.pack("<f", value))[0] == value
        code = _FLOAT_FORMATS[dtype.text]
        rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return False
    return rounded == value


def _apply(op: Apply) -> Findings:
    entry = SCALAR_FUNCTIONS.get(op.function)
    types = types_of(op.arguments)
    if entry is None:
        yield f"no scalar function is named {op.function!r}", "use a function of the table"
        return
    if len(types) != entry.arity or len(op.results) != 1:
        yield (
            f"{entry.name} has {len(types)} arguments and {len(op.results)} results",
            f"give it {entry.arity} arguments and one result",
        )
        return
    lanes = {lanes_of(type_) for type_ in [*types, op.result.type]}
    if None in lanes or len(lanes) != 1:
        found = describe_types([*types, op.result.type])
        yield f"mixes {found}", "use scalars only, or vectors of the same lanes"
        return
    yield from _apply_dtypes(op, types)


def _apply_dtypes(op: Apply, types: list[Type]) -> Findings:
    entry = SCALAR_FUNCTIONS[op.function]
    dtypes = [element_dtype(type_) for type_ in types]
    if entry.name == "where":
        if not dtypes[0].is_bool:
            yield f"the predicate of where is a {describe_type(types[0])}", "make it bool"
        dtypes = dtypes[1:]
    if len(set(dtypes)) != 1:
        found = describe_types(types)
        yield f"{entry.name} mixes element types: {found}", "cast the arguments to one dtype"
        return
    if dtypes[0].kind not in entry.domain:
        yield f"{entry.name} is not defined on {dtypes[0].text}", "cast the arguments"
    wanted = BOOL.dtype if entry.result == "bool" else dtypes[0]
    if element_dtype(op.result.type) is not wanted:
        found = describe_type(op.result.type)
        yield f"the result is {found}", f"{entry.name} gives {wanted.text}"


def _cast(op: Cast | Bitcast) -> Findings:
    types = types_of([op.value, *op.results])
    lanes = [lanes_of(type_) for type_ in types]
    if len(types) != 2 or lanes[0] is None or lanes[0] != lanes[1]:
        yield f"converts between {describe_types(types)}", "keep a scalar, or the lanes"
        return
    source, target = (element_dtype(type_) for type_ in types)
    if isinstance(op, Bitcast) and source.bits != target.bits:
        yield (
            f"reinterprets {source.bits} bits as {target.bits}",
            "use dtypes of the same width",
        )


SCALAR_RULES = (
    op_rule("OP06", "constants are values of their dtype", Constant, _constant),
    op_rule("OP07", "scalar functions get what the table says", Apply, _apply),
    op_rule("OP08", "casts keep lanes", Cast, _cast),
    op_rule("OP09", "bitcasts keep lanes and width", Bitcast, _cast),
)
