"""What is known of an index expression when its dimensions and symbols lie in ranges.

In: an expression and inclusive ranges of its leaves. Out: `bounds`, an interval that holds every
value (not always the tightest), and `simplify`, an expression equal to the given one wherever the
leaves lie in their ranges. The work is interval arithmetic plus two identities: a remainder or
quotient splits at a common factor when the other part is provably below it, and a quotient and a
remainder by the same divisor combine to what was divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tilenest.layouts.index_bits import And, ShiftLeft, ShiftRight, bit_and
from tilenest.layouts.index_expr import (
    Add,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Sym,
    join_terms,
    split_terms,
)
from tilenest.layouts.kinds import check_kind

Interval = tuple[int, int]
Ranges = Mapping[DimRef | Sym, Interval]


def bounds(expr: IndexExpr, ranges: Ranges) -> Interval | None:
    """An inclusive interval holding every value, or None when a needed range is missing."""
    check_kind(ranges, Mapping, "the ranges")
    return _bounds(expr, ranges)


def _bounds(expr: IndexExpr, ranges: Ranges) -> Interval | None:
    match expr:
        case Const(value):
            return value, value
        case DimRef() | Sym():
            return ranges.get(expr)
        case Add(operands):
            low = high = 0
            for operand in operands:
                part = _bounds(operand, ranges)
                if part is None:
                    return None
                low += part[0]
                high += part[1]
            return low, high
        case Mul(left, right):
            return _bounds_of_product(_bounds(left, ranges), _bounds(right, ranges))
        case FloorDiv(dividend, divisor):
            return _bounds_of_quotient(_bounds(dividend, ranges), _bounds(divisor, ranges))
        case Mod(dividend, divisor):
            return _bounds_of_remainder(_bounds(dividend, ranges), _bounds(divisor, ranges))
        case BitExpr():
            return _bounds_of_bits(expr, _bounds(expr.left, ranges), _bounds(expr.right, ranges))
    check_kind(expr, IndexExpr, "what is bounded")
    raise AssertionError(f"unknown index expression {expr!r}")


def simplify(expr: IndexExpr, ranges: Ranges) -> IndexExpr:
    """An expression of equal value wherever the leaves lie in their ranges."""
    check_kind(expr, IndexExpr, "what is simplified")
    check_kind(ranges, Mapping, "the ranges")
    return _simplify(expr, ranges, {})


def _simplify(expr: IndexExpr, ranges: Ranges, known: dict[IndexExpr, IndexExpr]) -> IndexExpr:
    if isinstance(expr, Const):
        return expr
    found = known.get(expr)
    if found is not None:
        return found
    match expr:
        case Add(operands):
            total: IndexExpr = Const(0)
            for operand in operands:
                total += _simplify(operand, ranges, known)
            result = _recombine(total)
        case Mul(left, right):
            result = _simplify(left, ranges, known) * _simplify(right, ranges, known)
        case FloorDiv(dividend, divisor):
            result = _simplify_division(
                _simplify(dividend, ranges, known) // _simplify(divisor, ranges, known), ranges
            )
        case Mod(dividend, divisor):
            result = _simplify_division(
                _simplify(dividend, ranges, known) % _simplify(divisor, ranges, known), ranges
            )
        case BitExpr():
            left, right = _simplify(expr.left, ranges, known), _simplify(expr.right, ranges, known)
            result = _simplify_mask(expr.joined(left, right), ranges)
        case _:
            interval = ranges.get(expr) if isinstance(expr, DimRef | Sym) else None
            is_fixed = interval is not None and interval[0] == interval[1]
            result = Const(interval[0]) if is_fixed and interval else expr
    known[expr] = result
    return result


def _simplify_mask(expr: IndexExpr, ranges: Ranges) -> IndexExpr:
    """A mask without the bits that the masked number never has."""
    if isinstance(expr, And) and isinstance(expr.right, Const):
        interval = bounds(expr.left, ranges)
        if interval is not None and interval[0] >= 0:
            bits = (1 << interval[1].bit_length()) - 1
            kept = expr.right.value & bits
            return expr.left if kept == bits else bit_and(expr.left, kept)
    return expr


def _simplify_division(expr: IndexExpr, ranges: Ranges) -> IndexExpr:
    """Resolve each quotient and remainder in a sum whose dividend is known well enough."""
    terms, constant = split_terms(expr)
    result: IndexExpr = Const(constant)
    for unit, coefficient in terms.items():
        known = _simplify_unit(unit, ranges) if isinstance(unit, FloorDiv | Mod) else unit
        result += known * coefficient
    return result


def _simplify_unit(unit: FloorDiv | Mod, ranges: Ranges) -> IndexExpr:
    dividend, divisor = unit.dividend, unit.divisor
    interval = bounds(dividend, ranges)
    by = bounds(divisor, ranges)
    if interval is not None and by is not None and by[0] > 0:
        low, high = interval
        quotient = low // by[0]
        if by[0] == by[1] and quotient == high // by[0]:
            return Const(quotient) if isinstance(unit, FloorDiv) else dividend - quotient * by[0]
        if low >= 0 and high < by[0]:
            return Const(0) if isinstance(unit, FloorDiv) else dividend
    if isinstance(divisor, Const):
        return _split_at_factor(unit, divisor.value, ranges)
    return unit


def _split_at_factor(unit: FloorDiv | Mod, by: int, ranges: Ranges) -> IndexExpr:
    """Divide `g*x + r` by `g*c` through x alone where r is provably in [0, g)."""
    terms, constant = split_terms(unit.dividend)
    for factor in sorted({gcd(value, by) for value in terms.values()} - {1}, reverse=True):
        whole = {part: value // factor for part, value in terms.items() if value % factor == 0}
        rest = join_terms(
            {part: value for part, value in terms.items() if value % factor}, constant % factor
        )
        interval = bounds(rest, ranges)
        if interval is None or interval[0] < 0 or interval[1] >= factor:
            continue
        quotient = join_terms(whole, constant // factor)
        if isinstance(unit, FloorDiv):
            return _simplify_division(quotient // (by // factor), ranges)
        return _simplify_division(quotient % (by // factor), ranges) * factor + rest
    return unit


def _recombine(expr: IndexExpr) -> IndexExpr:
    """Replace `(x//c)*c*k + (x%c)*k` by `x*k`."""
    terms, constant = split_terms(expr)
    for unit, coefficient in tuple(terms.items()):
        if not isinstance(unit, Mod) or not isinstance(unit.divisor, Const):
            continue
        quotient = unit.dividend // unit.divisor
        if terms.get(quotient) == coefficient * unit.divisor.value:
            del terms[unit], terms[quotient]
            return _recombine(join_terms(terms, constant) + unit.dividend * coefficient)
    return expr


def _bounds_of_product(left: Interval | None, right: Interval | None) -> Interval | None:
    if left is None or right is None:
        return None
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _bounds_of_quotient(dividend: Interval | None, divisor: Interval | None) -> Interval | None:
    if dividend is None:
        return None
    if divisor is not None and divisor[0] > 0:
        corners = [a // b for a in dividend for b in divisor]
        return min(corners), max(corners)
    # Whatever the divisor, a quotient is no farther from 0 than its dividend.
    farthest = max(abs(dividend[0]), abs(dividend[1]))
    return -farthest, farthest


def _bounds_of_remainder(dividend: Interval | None, divisor: Interval | None) -> Interval | None:
    if divisor is None:
        return None
    low, high = divisor
    if dividend is not None and low > 0:
        if dividend[0] >= 0 and dividend[1] < low:
            return dividend
        if low == high and dividend[0] // low == dividend[1] // low:
            return dividend[0] % low, dividend[1] % low
    return min(low + 1, 0), max(high - 1, 0)


def _bounds_of_bits(
    expr: BitExpr, left: Interval | None, right: Interval | None
) -> Interval | None:
    """Bits stay below the highest of both operands; shifts move between 0 and their extremes."""
    if left is None:
        return None
    if isinstance(expr, ShiftRight):
        return min(left[0], 0), max(left[1], 0)
    if right is None:
        return None
    if isinstance(expr, ShiftLeft):
        farthest = 1 << max(0, min(right[1], 63))
        return min(left[0] * farthest, 0), max(left[1] * farthest, 0)
    if isinstance(expr, And) and (left[0] >= 0 or right[0] >= 0):
        return 0, min(part[1] for part in (left, right) if part[0] >= 0)
    bits = max((end if end >= 0 else ~end).bit_length() for end in (*left, *right))
    is_positive = left[0] >= 0 and right[0] >= 0
    return 0 if is_positive else -(1 << bits), (1 << bits) - 1
