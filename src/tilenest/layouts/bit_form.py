"""Index expressions as linear forms over the bits of their coordinates.

In: an expression and the width of each coordinate in bits. Out: `constant ^ columns[j] ^ ...` over
the bits j that are set, or None. The form follows from the structure alone: exclusive or, a shift,
a mask, a sum in which no bit carries, a difference in which none is borrowed, division by a power
of two. It is never guessed from values, since a formula may agree with a linear one on every single
bit and differ where two are set. Integers are endless two's complement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

from tilenest.layouts.bit_matrix import Elimination, sum_of_columns
from tilenest.layouts.index_bits import (
    And,
    ShiftLeft,
    ShiftRight,
    Xor,
    bit_and,
    shift_left,
    shift_right,
    xor,
)
from tilenest.layouts.index_expr import (
    Add,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    as_index_expr,
    split_terms,
)
from tilenest.records import record

_WORD = 64


@record
class BitForm:
    """`constant ^ columns[j] ^ ...` over the set bits j of the packed coordinates."""

    constant: int
    columns: tuple[int, ...]

    def at(self, bits: int) -> int:
        return self.constant ^ sum_of_columns(self.columns, bits)

    @property
    def varying(self) -> int:
        """The bits that depend on the point."""
        return reduce(or_, self.columns, 0)

    @property
    def support(self) -> int:
        """The bits that are set at some point."""
        return self.constant | self.varying

    def __xor__(self, other: BitForm) -> BitForm:
        columns = zip(self.columns, other.columns, strict=True)
        return BitForm(self.constant ^ other.constant, tuple(a ^ b for a, b in columns))

    def __and__(self, mask: int) -> BitForm:
        return BitForm(self.constant & mask, tuple(column & mask for column in self.columns))

    def times(self, factor: int) -> BitForm:
        """Every part times a number: right for a power of two, and for a form of one bit."""
        return BitForm(self.constant * factor, tuple(column * factor for column in self.columns))

    def shifted_right(self, count: int) -> BitForm:
        return BitForm(self.constant >> count, tuple(column >> count for column in self.columns))

    def extreme(self, base: int, free: Sequence[int], largest: bool) -> tuple[int, int]:
        """The largest or smallest value where only the `free` bits vary from `base`, and where."""
        start = self.at(base)
        columns = [self.columns[place] for place in free]
        height = max(number.bit_length() for number in (start, *columns)) + 1
        # With the sign flipped, two's complement is ordered as its bits are.
        sign, mask = 1 << (height - 1), (1 << height) - 1
        elimination = Elimination(column & mask for column in columns)
        shifted = (start & mask) ^ sign
        if largest:
            value, chosen = elimination.largest(shifted)
        else:
            value, chosen = elimination.smallest(shifted)
        bits = sum(1 << place for at, place in enumerate(free) if chosen >> at & 1)
        return value - sign, base ^ bits

    def interval(self) -> tuple[int, int]:
        """The smallest and the largest value over all bits."""
        free = range(len(self.columns))
        return self.extreme(0, free, False)[0], self.extreme(0, free, True)[0]


@record
class Packing:
    """Where the bits of each coordinate stand in a packed point, the first coordinate lowest."""

    widths: tuple[int, ...]

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(accumulate(self.widths, initial=0))[:-1]

    @property
    def size(self) -> int:
        return sum(self.widths)

    def pack(self, point: Sequence[int]) -> int:
        return sum(x << start for x, start in zip(point, self.starts, strict=True))

    def unpack(self, bits: int) -> tuple[int, ...]:
        fields = zip(self.starts, self.widths, strict=True)
        return tuple(bits >> start & ((1 << width) - 1) for start, width in fields)


def packing_of(extents: Sequence[int]) -> Packing:
    """As many bits a coordinate as its largest value has."""
    return Packing(tuple(max(extent - 1, 0).bit_length() for extent in extents))


def bit_form(expr: IndexExpr, packing: Packing) -> BitForm | None:
    """The linear form of an expression of these coordinates, or None."""
    return _Deriver(packing).form(expr)


def bit_expression(form: BitForm, packing: Packing) -> IndexExpr:
    """A linear form as an expression: for each coordinate, one masked shift a diagonal."""
    total: IndexExpr = as_index_expr(form.constant)
    used = form.constant
    for term, mask in _diagonals(form, packing):
        total = xor(total, term) if used & mask else total + term
        used |= mask
    return total


def _diagonals(form: BitForm, packing: Packing) -> Iterator[tuple[IndexExpr, int]]:
    """(`coordinate shifted & mask`, mask) for every shift that carries bits into the value."""
    for place, (start, width) in enumerate(zip(packing.starts, packing.widths, strict=True)):
        masks: dict[int, int] = {}
        for bit in range(width):
            column = form.columns[start + bit]
            for target in range(column.bit_length()):
                if column >> target & 1:
                    masks[target - bit] = masks.get(target - bit, 0) | 1 << target
        for shift in sorted(masks, reverse=True):
            mask = masks[shift]
            if shift >= 0:
                yield shift_left(bit_and(DimRef(place), mask >> shift), shift), mask
            else:
                yield bit_and(shift_right(DimRef(place), -shift), mask), mask


class _Deriver:
    """Derives forms over one packing, each node once."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self.known: dict[IndexExpr, BitForm | None] = {}

    def form(self, expr: IndexExpr) -> BitForm | None:
        if expr not in self.known:
            self.known[expr] = self._derive(expr)
        return self.known[expr]

    def _derive(self, expr: IndexExpr) -> BitForm | None:
        match expr:
            case Const(value):
                return self._constant(value)
            case DimRef(position):
                return self._coordinate(position)
            case Add() | Mul(_, Const()):
                return self._sum(expr)
            case FloorDiv(dividend, Const(by)) | Mod(dividend, Const(by)) if by > 0:
                return self._divided(self.form(dividend), by, isinstance(expr, FloorDiv))
            case Xor(left, right):
                a, b = self.form(left), self.form(right)
                return None if a is None or b is None else a ^ b
            case And(left, right):
                a, b = self.form(left), self.form(right)
                return None if a is None or b is None else _shared(a, b)
            case ShiftLeft(left, Const(count)) | ShiftRight(left, Const(count)):
                return _shifted(self.form(left), count, isinstance(expr, ShiftLeft))
        return None

    def _constant(self, value: int) -> BitForm:
        return BitForm(value, (0,) * self.packing.size)

    def _coordinate(self, position: int) -> BitForm:
        start, width = self.packing.starts[position], self.packing.widths[position]
        places = range(self.packing.size)
        return BitForm(0, tuple((1 << p - start) if 0 <= p - start < width else 0 for p in places))

    def _sum(self, expr: IndexExpr) -> BitForm | None:
        terms, constant = split_terms(expr)
        added: list[BitForm] = []
        taken: list[BitForm] = []
        for unit, coefficient in terms.items():
            form = self.form(unit)
            part = None if form is None else _scaled(form, abs(coefficient))
            if part is None:
                return None
            (added if coefficient > 0 else taken).append(part)
        first = _combined([self._constant(constant), *added], taken)
        if first is None and constant < 0:
            return _combined(added, [*taken, self._constant(-constant)])
        return first

    def _divided(self, form: BitForm | None, by: int, is_quotient: bool) -> BitForm | None:
        if form is None:
            return None
        if by & (by - 1) == 0:
            return form.shifted_right(by.bit_length() - 1) if is_quotient else form & (by - 1)
        low, high = form.interval()
        if low < 0 or high >= by:
            return None
        return self._constant(0) if is_quotient else form


def _combined(added: Sequence[BitForm], taken: Sequence[BitForm]) -> BitForm | None:
    """A sum of forms minus others, where no bit is carried or borrowed."""
    if not added:
        return None
    total = added[0]
    for form in added[1:]:
        if total.support & form.support:
            return None
        total ^= form
    for form in taken:
        ones = total.constant & ~total.varying
        open_bits = form.support & ~ones
        # Where a subtracted bit may be set, the bit above it is always 1 or is the same bit.
        if total & open_bits != form & open_bits:
            return None
        total ^= form
    return total


def _scaled(form: BitForm, factor: int) -> BitForm | None:
    """A form times a positive number."""
    if form.support in (0, 1):
        return form.times(factor)
    total = form.times(0)
    for place in range(factor.bit_length()):
        if factor >> place & 1:
            part = form.times(1 << place)
            if part.support & total.support:
                return None
            total ^= part
    return total


def _shifted(form: BitForm | None, count: int, is_left: bool) -> BitForm | None:
    if form is None:
        return None
    if is_left:
        return form.times(1 << count if 0 <= count < _WORD else 0)
    widest = max(number.bit_length() for number in (form.constant, *form.columns))
    return form.shifted_right(count if 0 <= count < _WORD else widest + 1)


def _shared(a: BitForm, b: BitForm) -> BitForm | None:
    """`a & b`, where at each bit one of them is constant or they are equal or opposite."""
    same = ~(a ^ b).varying
    equal_bits = same & ~(a.constant ^ b.constant)
    fixed_a, fixed_b = ~a.varying, ~b.varying
    from_a = (fixed_b & b.constant) | equal_bits
    from_b = fixed_a & a.constant & ~from_a
    nothing = (fixed_a & ~a.constant) | (fixed_b & ~b.constant) | (same & ~equal_bits)
    if from_a | from_b | nothing != -1:
        return None
    return (a & from_a & ~nothing) ^ (b & from_b & ~nothing)
