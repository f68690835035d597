"""Bitwise index expressions: exclusive or, and, shifts.

In: index expressions. Out: `xor`, `bit_and`, `shift_left` and `shift_right` of them in canonical
form. Integers are endless two's complement, as Python's are. A shift by 0 to 63 multiplies by, or
floors through, a power of two; by any other count nothing of the number is left: 0, or -1 for a
negative number shifted right. A constant shift and an `and` with one run of ones are arithmetic, so
they come out as products, quotients and remainders; the nodes stand for the rest.
"""

from __future__ import annotations

from collections import Counter

from tilenest.layouts.index_expr import BitExpr, Const, IndexExpr, Operand, as_index_expr
from tilenest.records import record

_MOST_SHIFT = 63


@record(eq=False)
class Xor(BitExpr):
    """The bits in which two operands differ; a constant comes last."""

    left: IndexExpr
    right: IndexExpr

    rank = 7
    sign = "^"

    def value_of(self, left: int, right: int) -> int:
        return left ^ right

    def joined(self, left: IndexExpr, right: IndexExpr) -> IndexExpr:
        return xor(left, right)


@record(eq=False)
class And(BitExpr):
    """The bits that two operands share; a constant comes last."""

    left: IndexExpr
    right: IndexExpr

    rank = 8
    sign = "&"

    def value_of(self, left: int, right: int) -> int:
        return left & right

    def joined(self, left: IndexExpr, right: IndexExpr) -> IndexExpr:
        return bit_and(left, right)


@record(eq=False)
class ShiftLeft(BitExpr):
    """An operand times two to a power; 0 for a power outside 0 to 63."""

    left: IndexExpr
    right: IndexExpr

    rank = 9
    sign = "<<"

    def value_of(self, left: int, right: int) -> int:
        return left << right if 0 <= right <= _MOST_SHIFT else 0

    def joined(self, left: IndexExpr, right: IndexExpr) -> IndexExpr:
        return shift_left(left, right)


@record(eq=False)
class ShiftRight(BitExpr):
    """An operand floored through two to a power; 0 or -1, its sign, outside 0 to 63."""

    left: IndexExpr
    right: IndexExpr

    rank = 10
    sign = ">>"

    def value_of(self, left: int, right: int) -> int:
        return _shifted_right(left, right)

    def joined(self, left: IndexExpr, right: IndexExpr) -> IndexExpr:
        return shift_right(left, right)


_UNIT: dict[type[Xor | And], int] = {Xor: 0, And: -1}


def xor(left: Operand, right: Operand) -> IndexExpr:
    """`left ^ right`: equal operands cancel, wherever they stand in a chain."""
    operands, constant = _chain(Xor, as_index_expr(left), as_index_expr(right))
    kept = [operand for operand, count in Counter(operands).items() if count % 2]
    return _joined_chain(Xor, kept, constant)


def bit_and(left: Operand, right: Operand) -> IndexExpr:
    """`left & right`: an operand counts once, and a run of ones selects by division."""
    operands, mask = _chain(And, as_index_expr(left), as_index_expr(right))
    if mask == 0:
        return Const(0)
    kept = list(dict.fromkeys(operands))
    low = (mask & -mask).bit_length() - 1
    run = mask >> low
    # One run of ones, up to a last bit or without end.
    if kept and run & (run + 1) == 0 and low + run.bit_length() < _MOST_SHIFT:
        inner = _joined_chain(And, kept, -1)
        chosen = inner // (1 << low)
        return (chosen if run == -1 else chosen % (run + 1)) * (1 << low)
    return _joined_chain(And, kept, mask)


def shift_left(value: Operand, count: Operand) -> IndexExpr:
    """`value << count`; by a constant of at most 62, a product."""
    number, by = as_index_expr(value), as_index_expr(count)
    if isinstance(by, Const):
        if not 0 <= by.value <= _MOST_SHIFT:
            return Const(0)
        if by.value < _MOST_SHIFT:
            return number * (1 << by.value)
    if number == Const(0):
        return number
    return ShiftLeft(number, by)


def shift_right(value: Operand, count: Operand) -> IndexExpr:
    """`value >> count`; by a constant of at most 62, a quotient."""
    number, by = as_index_expr(value), as_index_expr(count)
    if isinstance(by, Const):
        if 0 <= by.value < _MOST_SHIFT:
            return number // (1 << by.value)
        if isinstance(number, Const):
            return Const(_shifted_right(number.value, by.value))
    if number in (Const(0), Const(-1)):
        return number
    return ShiftRight(number, by)


def _chain(kind: type[Xor | And], left: IndexExpr, right: IndexExpr) -> tuple[list[IndexExpr], int]:
    """The operands of two chains of one kind, and their constants joined."""
    operands: list[IndexExpr] = []
    constant = _UNIT[kind]
    waiting = [right, left]
    while waiting:
        part = waiting.pop()
        if type(part) is Const:
            constant = constant ^ part.value if kind is Xor else constant & part.value
        elif isinstance(part, kind):
            waiting += [part.right, part.left]
        else:
            operands.append(part)
    return operands, constant


def _joined_chain(kind: type[Xor | And], operands: list[IndexExpr], constant: int) -> IndexExpr:
    ordered = sorted(operands, key=lambda operand: operand.order)
    if constant != _UNIT[kind] or not ordered:
        ordered.append(Const(constant))
    result = ordered[0]
    for operand in ordered[1:]:
        result = kind(result, operand)
    return result


def _shifted_right(value: int, count: int) -> int:
    return value >> (count if 0 <= count <= _MOST_SHIFT else max(value.bit_length(), 1))
