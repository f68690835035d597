"""Integer division and shifts that never trap and have a result for every operand.

In: operands of one integer type, scalar or vector. Out: the operand holding the result. Division
rounds down and the remainder has the divisor's sign, as in Python; dividing by zero gives 0 and the
most negative number by -1 wraps. x86 has no vector division: up to 32 bits the quotient is taken in
floating point wide enough to be exact, 64 bits go through the scalar instruction lane by lane.
"""

from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value, constant


def floor_divide(f: FunctionText, left: Value, right: Value, *, is_signed: bool) -> Value:
    """left // right; 0 where right is 0."""
    quotient, _ = _divide(f, left, right, is_signed)
    return f.select(f.icmp("eq", right, 0), 0, quotient)


def floor_remainder(f: FunctionText, left: Value, right: Value, *, is_signed: bool) -> Value:
    """left % right; 0 where right is 0."""
    quotient, divisor = _divide(f, left, right, is_signed)
    return f.sub(left, f.mul(quotient, divisor))


def shift_left(f: FunctionText, value: Value, count: Value) -> Value:
    """Counts of the width and more (negative ones too) give 0."""
    return _shift_or_zero(f, f.shl(value, count), count)


def shift_right(f: FunctionText, value: Value, count: Value, *, is_signed: bool) -> Value:
    """Counts of the width and more (negative ones too) give 0, or -1 below zero if signed."""
    if is_signed:
        return f.ashr(value, f.umin(count, value.type.bits - 1))
    return _shift_or_zero(f, f.lshr(value, count), count)


def _shift_or_zero(f: FunctionText, shifted: Value, count: Value) -> Value:
    return f.select(f.icmp("ult", count, count.type.bits), shifted, 0)


def _divide(f: FunctionText, left: Value, right: Value, is_signed: bool) -> tuple[Value, Value]:
    """Floor quotient and the divisor used: 1 in place of one that would trap.

    A remainder by that 1 is 0, which is what both cases shall give; so is -2^n // 1 the wrapped
    quotient by -1.
    """
    is_unsafe = f.icmp("eq", right, 0)
    if is_signed:
        smallest = f.icmp("eq", left, constant(left.type, 1 << (left.type.bits - 1)))
        is_unsafe = f.or_(is_unsafe, f.and_(smallest, f.icmp("eq", right, -1)))
    divisor = f.select(is_unsafe, 1, right)
    if left.type.lanes > 1 and left.type.bits <= 32:
        return _quotient_by_float(f, left, divisor, is_signed), divisor
    if not is_signed:
        return f.udiv(left, divisor), divisor
    quotient = f.sdiv(left, divisor)
    remainder = f.sub(left, f.mul(quotient, divisor))
    has_other_sign = f.icmp("slt", f.xor(remainder, divisor), 0)
    is_above = f.and_(f.icmp("ne", remainder, 0), has_other_sign)
    return f.add(quotient, f.sext(is_above, left.type.element)), divisor


def _quotient_by_float(f: FunctionText, left: Value, right: Value, is_signed: bool) -> Value:
    """A fraction lies further from the next integer than the rounding of the division reaches:
    1 / |left| of itself against 2^-24 for 16 bits in float, 2^-53 for 32 bits in double."""
    element = "double" if left.type.bits == 32 else "float"
    if is_signed:
        parts = f.sitofp(left, element), f.sitofp(right, element)
    else:
        parts = f.uitofp(left, element), f.uitofp(right, element)
    whole = f.floor(f.fdiv(*parts))
    if left.type.bits == 32:
        return f.fptosi(whole, "i32") if is_signed else f.fptoui(whole, "i32")
    return f.trunc(f.fptosi(whole, "i32"), left.type.element)
