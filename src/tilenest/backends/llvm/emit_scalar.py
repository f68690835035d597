"""Constants, the table of scalar functions, and casts, on scalars and lanes alike.

In: the `scalar.*` operations. Out: LLVM operands. One entry a function and kind of dtype; the two
halves are widened to float32, computed there and rounded after every function, which gives the same
result as one rounding of the exact one.
"""

from collections.abc import Callable, Sequence

from tilenest.backends.llvm.casts import cast
from tilenest.backends.llvm.emit_frame import Frame, known_index
from tilenest.backends.llvm.float_order import maximum, minimum
from tilenest.backends.llvm.integers import (
    floor_divide,
    floor_remainder,
    shift_left,
    shift_right,
)
from tilenest.backends.llvm.math_erf import erf
from tilenest.backends.llvm.math_exp import exp, exp2, expm1, tanh
from tilenest.backends.llvm.math_log import log, log1p, log2
from tilenest.backends.llvm.math_trig import cos, sin
from tilenest.backends.llvm.registers import cast_name, number_constant, register_type
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value
from tilenest.dialects import SCALAR_FUNCTIONS, Apply, Bitcast, Cast, Constant
from tilenest.ir import DType, element_dtype

Function = Callable[..., Value]
"""(f, operands...) -> result"""


def emit_constant(frame: Frame, op: Constant) -> None:
    number = op.value
    assert isinstance(number, bool | int | float)
    frame.bind(op.results, [number_constant(op.result.type, number)])


def emit_apply(frame: Frame, op: Apply) -> None:
    f, dtype = frame.text, element_dtype(op.arguments[-1].type)
    operands = [frame.value(value) for value in op.arguments]
    shift = _power_of_two(op)
    if shift is not None:
        by_bits = f.ashr(operands[0], shift) if op.function == "floordiv" else None
        result = by_bits or f.and_(operands[0], (1 << shift) - 1)
    else:
        result = apply_function(frame, op.function, dtype, operands)
    frame.bind(op.results, [result])


def _power_of_two(op: Apply) -> int | None:
    """The exponent, where an index is divided by a fixed power of two."""
    if op.function not in ("floordiv", "mod"):
        return None
    divisor = known_index(op.arguments[1])
    if divisor is None or divisor <= 0 or divisor & (divisor - 1):
        return None
    return divisor.bit_length() - 1 if element_dtype(op.result.type).is_signed else None


def emit_cast(frame: Frame, op: Cast) -> None:
    source, target = (cast_name(element_dtype(v.type)) for v in (op.value, op.result))
    frame.bind(op.results, [cast(frame.text, frame.value(op.value), source, target)])


def emit_bitcast(frame: Frame, op: Bitcast) -> None:
    value, kind = frame.value(op.value), register_type(op.result.type)
    assert value.type.bits == kind.bits, "a bitcast keeps the width"
    same = value.type == kind
    frame.bind(op.results, [value if same else frame.text.bitcast(value, kind)])


def apply_function(frame: Frame, name: str, dtype: DType, operands: Sequence[Value]) -> Value:
    """One function of the table; `dtype` is that of the last operand."""
    f = frame.text
    if dtype.is_float and dtype.bits == 16:
        return _apply_half(f, name, dtype, operands)
    if dtype.is_float and name in _ORDERS:
        return _ORDERS[name](f, frame.machine, *operands)
    return FUNCTIONS[name, _kind(dtype)](f, *operands)


def _kind(dtype: DType) -> str:
    return "i" if dtype.kind == "x" else dtype.kind


def _apply_half(f: FunctionText, name: str, dtype: DType, operands: Sequence[Value]) -> Value:
    if name in _ON_HALF_BITS:
        return _ON_HALF_BITS[name](f, *operands)
    if name == "fma":
        return _fused_half(f, dtype, operands)
    wide = [cast(f, operand, dtype.name, "float32") for operand in operands]
    result = FUNCTIONS[name, "f"](f, *wide)
    if SCALAR_FUNCTIONS[name].result == "bool":
        return result
    return cast(f, result, "float32", dtype.name)


def _on_bits(combine: Callable[[FunctionText, Value], Value]) -> Function:
    def function(f: FunctionText, value: Value) -> Value:
        bits = f.bitcast(value, value.type.with_element("i16"))
        return f.bitcast(combine(f, bits), value.type)

    return function


def _fused_half(f: FunctionText, dtype: DType, operands: Sequence[Value]) -> Value:
    """Rounded once: the product is exact in double, and the sum is rounded to odd, so that the
    rounding to 16 bits goes as that of the exact sum would."""
    x, y, z = (cast(f, operand, dtype.name, "float64") for operand in operands)
    product = f.fmul(x, y)
    total = f.fadd(product, z)
    back = f.fsub(total, product)
    lost = f.fadd(f.fsub(product, f.fsub(total, back)), f.fsub(z, back))
    integers = total.type.with_element("i64")
    bits, lost_bits = f.bitcast(total, integers), f.bitcast(lost, integers)
    is_even = f.icmp("eq", f.and_(bits, 1), 0)
    is_rounded = f.and_(is_even, f.fcmp("one", lost, 0.0))
    step = f.or_(f.ashr(f.xor(bits, lost_bits), 63), 1)
    odd = f.bitcast(f.add(bits, f.select(is_rounded, step, 0)), total.type)
    return cast(f, odd, "float64", dtype.name)


def _fmin(f: FunctionText, x: Value, y: Value) -> Value:
    return _ignoring_nan(f, x, y, f.minimum(x, y))


def _fmax(f: FunctionText, x: Value, y: Value) -> Value:
    return _ignoring_nan(f, x, y, f.maximum(x, y))


def _ignoring_nan(f: FunctionText, x: Value, y: Value, chosen: Value) -> Value:
    rest = f.select(f.fcmp("uno", y, y), x, chosen)
    return f.select(f.fcmp("uno", x, x), y, rest)


def _rsqrt(f: FunctionText, x: Value) -> Value:
    return f.fdiv(1.0, f.sqrt(x))


def _negate(f: FunctionText, x: Value) -> Value:
    return f.sub(0, x)


def _same(_: FunctionText, x: Value) -> Value:
    return x


def _fcmp(predicate: str) -> Function:
    return lambda f, x, y: f.fcmp(predicate, x, y)


def _icmp(predicate: str) -> Function:
    return lambda f, x, y: f.icmp(predicate, x, y)


def _integer_functions(*, is_signed: bool) -> dict[str, Function]:
    sign = "s" if is_signed else "u"
    return {
        "add": FunctionText.add,
        "sub": FunctionText.sub,
        "mul": FunctionText.mul,
        "floordiv": lambda f, x, y: floor_divide(f, x, y, is_signed=is_signed),
        "mod": lambda f, x, y: floor_remainder(f, x, y, is_signed=is_signed),
        "neg": _negate,
        "abs": FunctionText.abs if is_signed else _same,
        "minimum": FunctionText.smin if is_signed else FunctionText.umin,
        "maximum": FunctionText.smax if is_signed else FunctionText.umax,
        "shl": shift_left,
        "shr": lambda f, x, y: shift_right(f, x, y, is_signed=is_signed),
        **_bit_functions(),
        **_orders(sign),
    }


def _bit_functions() -> dict[str, Function]:
    return {
        "and": FunctionText.and_,
        "or": FunctionText.or_,
        "xor": FunctionText.xor,
        "not": FunctionText.not_,
        "eq": _icmp("eq"),
        "ne": _icmp("ne"),
        "where": FunctionText.select,
    }


def _orders(sign: str) -> dict[str, Function]:
    return {name: _icmp(sign + name) for name in ("lt", "le", "gt", "ge")}


_BOOL_FUNCTIONS: dict[str, Function] = {
    "minimum": FunctionText.and_,
    "maximum": FunctionText.or_,
    **_bit_functions(),
    **_orders("u"),
}
_FLOAT_FUNCTIONS: dict[str, Function] = {
    "add": FunctionText.fadd,
    "sub": FunctionText.fsub,
    "mul": FunctionText.fmul,
    "div": FunctionText.fdiv,
    "neg": FunctionText.fneg,
    "abs": FunctionText.fabs,
    "minimum": FunctionText.minimum,
    "maximum": FunctionText.maximum,
    "fmin": _fmin,
    "fmax": _fmax,
    "fma": FunctionText.fma,
    "eq": _fcmp("oeq"),
    "ne": _fcmp("une"),
    "lt": _fcmp("olt"),
    "le": _fcmp("ole"),
    "gt": _fcmp("ogt"),
    "ge": _fcmp("oge"),
    "where": FunctionText.select,
    "sqrt": FunctionText.sqrt,
    "rsqrt": _rsqrt,
    "floor": FunctionText.floor,
    "ceil": FunctionText.ceil,
    "trunc": FunctionText.truncate,
    "rint": FunctionText.round_even,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": log2,
    "log1p": log1p,
    "tanh": tanh,
    "erf": erf,
    "sin": sin,
    "cos": cos,
}

FUNCTIONS: dict[tuple[str, str], Function] = {
    (name, kind): function
    for kind, functions in (
        ("b", _BOOL_FUNCTIONS),
        ("i", _integer_functions(is_signed=True)),
        ("u", _integer_functions(is_signed=False)),
        ("f", _FLOAT_FUNCTIONS),
    )
    for name, function in functions.items()
}
"""By name and kind of dtype; an index counts as a signed integer."""

_ORDERS: dict[str, Function] = {"minimum": minimum, "maximum": maximum}

_ON_HALF_BITS: dict[str, Function] = {
    "neg": _on_bits(lambda f, bits: f.xor(bits, 0x8000)),
    "abs": _on_bits(lambda f, bits: f.and_(bits, 0x7FFF)),
    "where": FunctionText.select,
}
