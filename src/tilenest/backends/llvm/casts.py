"""Conversions between dtypes with the meaning of the design, on scalars and vectors.

In: an operand and two dtype names. Out: the operand of the target's type. Floats round once to
nearest even, float to integer saturates with NaN giving 0, integers wrap, everything but zero is
true. bool travels as i1 and bfloat16 as the i16 of its bits. The forms here are those LLVM keeps in
vector registers with AVX2 alone: no saturating intrinsic, no bfloat type, no double to half.
"""

from typing import Final

from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import FLOAT_BITS, Value

ELEMENTS: Final = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "half",
    "bfloat16": "i16",
    "float32": "float",
    "float64": "double",
}
_MANTISSA = {"float": 24, "double": 53}


def cast(f: FunctionText, value: Value, source: str, target: str) -> Value:
    """`value` of dtype `source` as dtype `target`."""
    if source == target:
        return value
    if _is_float(source):
        return _from_float(f, value, source, target)
    if target == "bool":
        return f.icmp("ne", value, 0)
    if not _is_float(target):
        return _integer_to_integer(f, value, source, target)
    if target == "bfloat16":
        return float_to_bfloat16(f, _integer_to_wide_float(f, value, source))
    # Any integer a half can hold is exact in the float LLVM goes through.
    element = ELEMENTS[target]
    return f.sitofp(value, element) if _is_signed(source) else f.uitofp(value, element)


def bfloat16_to_float(f: FunctionText, bits: Value) -> Value:
    """Exact."""
    return f.bitcast(f.shl(f.zext(bits, "i32"), 16), bits.type.with_element("float"))


def float_to_bfloat16(f: FunctionText, x: Value) -> Value:
    """Nearest even from float or double; NaN stays quiet and keeps its sign."""
    narrow = _round_to_odd(f, x) if x.type.element == "double" else x
    bits = f.bitcast(narrow, narrow.type.with_element("i32"))
    high = f.lshr(bits, 16)
    bias = f.add(f.and_(high, 1), 0x7FFF)
    rounded = f.lshr(f.add(bits, bias), 16)
    is_nan = f.fcmp("uno", narrow, narrow)
    return f.trunc(f.select(is_nan, f.or_(high, 0x40), rounded), "i16")


def float_to_integer(f: FunctionText, x: Value, element: str, *, is_signed: bool) -> Value:
    """Towards zero from float or double, saturating; NaN gives 0."""
    bits = int(element[1:])
    x = f.select(f.fcmp("ord", x, x), x, 0.0)
    low = -(2 ** (bits - 1)) if is_signed else 0
    high = 2 ** (bits - 1) - 1 if is_signed else 2**bits - 1
    x = f.select(f.fcmp("olt", x, low), low, x)
    if bits < _MANTISSA[x.type.element]:
        x = f.select(f.fcmp("ogt", x, high), high, x)
        return _narrow_conversion(f, x, element, is_signed)
    # The largest integer is no float: what lies above is set aside, not clamped.
    is_above = f.fcmp("oge", x, high + 1)
    inside = f.select(is_above, 0.0, x)
    whole = f.fptosi(inside, element) if is_signed else f.fptoui(inside, element)
    return f.select(is_above, high, whole)


def _narrow_conversion(f: FunctionText, x: Value, element: str, is_signed: bool) -> Value:
    if element == "i32":
        return f.fptosi(x, element) if is_signed else f.fptoui(x, element)
    return f.trunc(f.fptosi(x, "i32"), element)


def _from_float(f: FunctionText, value: Value, source: str, target: str) -> Value:
    if source == "bfloat16":
        value = bfloat16_to_float(f, value)
        source = "float32"
    if target == source:
        return value
    if target == "bool":
        return f.fcmp("une", value, 0.0)
    if _is_float(target):
        return _float_to_float(f, value, target)
    if source == "float16":
        value = f.fpext(value, "float")
    return float_to_integer(f, value, ELEMENTS[target], is_signed=_is_signed(target))


def _float_to_float(f: FunctionText, x: Value, target: str) -> Value:
    if target == "bfloat16":
        return float_to_bfloat16(f, f.fpext(x, "float") if x.type.element == "half" else x)
    element = ELEMENTS[target]
    if x.type.element == "double" and element == "half":
        return f.fptrunc(_round_to_odd(f, x), "half")
    is_wider = FLOAT_BITS[element] > x.type.bits
    return f.fpext(x, element) if is_wider else f.fptrunc(x, element)


def _round_to_odd(f: FunctionText, x: Value) -> Value:
    """Double to a float that rounds on to a narrower format as the double would: towards zero,
    the last bit set if anything was lost."""
    near = f.fptrunc(x, "float")
    back = f.fpext(near, "double")
    bits = f.bitcast(near, near.type.with_element("i32"))
    is_away = f.fcmp("ogt", f.fabs(back), f.fabs(x))
    towards_zero = f.add(bits, f.sext(is_away, "i32"))
    is_inexact = f.fcmp("one", back, x)
    return f.bitcast(f.or_(towards_zero, f.zext(is_inexact, "i32")), near.type)


def _integer_to_wide_float(f: FunctionText, value: Value, source: str) -> Value:
    """A float or double that rounds on to bfloat16 as the integer would."""
    signed = _is_signed(source)
    if value.type.bits < 24:
        return f.sitofp(value, "float") if signed else f.uitofp(value, "float")
    if value.type.bits == 64:
        # Twelve low bits become one that says whether any was set; 52 stay.
        low = f.and_(value, 0xFFF)
        sticky = f.shl(f.zext(f.icmp("ne", low, 0), "i64"), 11)
        is_wide = f.icmp("ugt", f.abs(value) if signed else value, 1 << 40)
        value = f.select(is_wide, f.or_(f.sub(value, low), sticky), value)
    return f.sitofp(value, "double") if signed else f.uitofp(value, "double")


def _integer_to_integer(f: FunctionText, value: Value, source: str, target: str) -> Value:
    element = ELEMENTS[target]
    width = int(element[1:])
    if width == value.type.bits:
        return value
    if width < value.type.bits:
        return f.trunc(value, element)
    return f.sext(value, element) if _is_signed(source) else f.zext(value, element)


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _is_signed(dtype: str) -> bool:
    return dtype.startswith("int")
