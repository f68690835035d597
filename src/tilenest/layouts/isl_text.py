"""Index expressions and sets as isl text, and isl's results as index expressions again.

In: formulas and index sets; isl sets and maps. Out: text that isl reads, or None where a formula is
not quasi-affine (a product of variables, a divisor known at run time, bits that no sum of quotients
tells); constraints and expressions. Coordinate i is `x<i>`; a symbol keeps its letters, so that
sets built apart agree on the parameters they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Scope
from tilenest.layouts.index_bits import And, Xor
from tilenest.layouts.index_expr import (
    Add,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Sym,
)
from tilenest.layouts.index_range import Ranges, bounds
from tilenest.layouts.spaces import Constraint, IndexSet

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_LARGEST_TEXT = 4000
_LARGEST_CHAIN = 4


class NotQuasiAffineError(Exception):
    """Raised inside the translation, and caught there or by who asked for the text."""


def parameter(name: str) -> str:
    """The name of a symbol in isl text: letters and digits only."""
    return "s_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c)}_" for c in name)


def map_text(formula: Formula) -> str:
    """A formula as an isl map, of the points where it is defined; or NotQuasiAffineError."""
    space = formula.domain.space
    writer = _Writer(formula.symbols, Scope(space, formula.symbols).ranges)
    texts = [writer.text(result) for result in formula.results]
    conditions = set_conditions(formula.domain)
    for result, text in zip(formula.results, texts, strict=True):
        interval = bounds(result, writer.ranges)
        if interval is None or interval[0] < _INT64_MIN or interval[1] > _INT64_MAX:
            conditions.append(f"{_INT64_MIN} <= {text} <= {_INT64_MAX}")
    names = {*formula.symbols, *formula.domain.symbols, *formula.codomain.symbols}
    return _whole(names, f"{_tuple(space.rank)} -> [{', '.join(texts)}]", conditions)


def set_text(index_set: IndexSet) -> str:
    """An index set as an isl set; or NotQuasiAffineError."""
    space = index_set.space
    return _whole(index_set.symbols, _tuple(space.rank), set_conditions(index_set))


def set_conditions(index_set: IndexSet) -> list[str]:
    """The box and the constraints of a set, each as isl text."""
    space = index_set.space
    conditions = [
        f"0 <= x{place} < {parameter(extent) if isinstance(extent, str) else extent}"
        for place, extent in enumerate(space.extents)
    ]
    writer = _Writer(index_set.symbols, Scope(space, index_set.symbols).ranges)
    for constraint in index_set.constraints:
        sign = "=" if constraint.is_equality else ">="
        conditions.append(f"{writer.text(constraint.expression)} {sign} 0")
    return conditions


def _whole(names: Sequence[str] | set[str], body: str, conditions: list[str]) -> str:
    parameters = ", ".join(parameter(name) for name in sorted(names))
    text = f"[{parameters}] -> {{ {body} : {' and '.join(conditions) or 'true'} }}"
    if len(text) > 8 * _LARGEST_TEXT:
        raise NotQuasiAffineError
    return text


def _tuple(rank: int) -> str:
    return f"[{', '.join(f'x{place}' for place in range(rank))}]"


class _Writer:
    """Writes expressions over some symbols, whose leaves have these ranges."""

    def __init__(self, symbols: Sequence[str], ranges: Ranges) -> None:
        self.symbols = symbols
        self.ranges = ranges

    def text(self, expr: IndexExpr) -> str:
        """An expression as isl text, in brackets where it needs them."""
        result = self._text(expr)
        if len(result) > _LARGEST_TEXT:
            raise NotQuasiAffineError
        return result

    def _text(self, expr: IndexExpr) -> str:
        match expr:
            case Const(value):
                return f"({value})"
            case DimRef(position):
                return f"x{position}"
            case Sym(position):
                return parameter(self.symbols[position])
            case Add(operands):
                return f"({' + '.join(self.text(operand) for operand in operands)})"
            case Mul(left, Const(value)):
                return f"({value} * {self.text(left)})"
            case FloorDiv(dividend, Const(value)):
                return _quotient(self.text(dividend), value)
            case Mod(dividend, Const(value)):
                return _remainder(self.text(dividend), value)
            case And(left, right):
                return self._shared_bits(left, right)
            case Xor(left, right):
                both = self._shared_bits(left, right)
                return f"({self.text(left)} + {self.text(right)} - 2 * {both})"
        raise NotQuasiAffineError

    def _shared_bits(self, left: IndexExpr, right: IndexExpr) -> str:
        """The bits two numbers share, as a sum over single bits of at most a few quotients."""
        if isinstance(right, Const):
            return self._masked(left, right.value)
        narrow = [self._width(left), self._width(right)]
        known = [width for width in narrow if width is not None]
        if not known or min(known) > _LARGEST_CHAIN:
            raise NotQuasiAffineError
        first, second = self.text(left), self.text(right)
        bits = [
            f"{1 << place} * floor(({_bit(first, place)} + {_bit(second, place)})/2)"
            for place in range(min(known))
        ]
        return f"({' + '.join(bits) or '0'})"

    def _masked(self, expr: IndexExpr, mask: int) -> str:
        """`expr & mask`: for each run of ones, the digit that stands there."""
        if mask < 0:
            return f"({self.text(expr)} - {self._masked(expr, ~mask)})"
        text, parts = self.text(expr), ["0"]
        while mask:
            low = (mask & -mask).bit_length() - 1
            run = mask >> low
            length = ((run + 1) & -(run + 1)).bit_length() - 1
            digit = _remainder(_quotient(text, 1 << low), 1 << length)
            parts.append(f"{1 << low} * {digit}")
            mask &= ~(((1 << length) - 1) << low)
        return f"({' + '.join(parts)})"

    def _width(self, expr: IndexExpr) -> int | None:
        """How many bits hold every value of a number that is never negative."""
        interval = bounds(expr, self.ranges)
        return None if interval is None or interval[0] < 0 else interval[1].bit_length()


def _bit(text: str, place: int) -> str:
    return _remainder(_quotient(text, 1 << place), 2)


def _quotient(text: str, by: int) -> str:
    if by == 0:
        return "(0)"
    if by == 1:
        return text
    return f"floor(({'' if by > 0 else '-'}{text})/{abs(by)})"


def _remainder(text: str, by: int) -> str:
    if by == 0:
        return "(0)"
    return f"({text} mod {by})" if by > 0 else f"(-((-{text}) mod {-by}))"


def constraints_of(basic_set: Any, symbols: Sequence[str], kinds: Any) -> tuple[Constraint, ...]:
    """The constraints of an isl basic set with known divisions; `kinds` is isl's `dim_type`."""
    reader = _Reader(symbols, kinds)
    return tuple(
        Constraint(reader.row(item), bool(item.is_equality()))
        for item in basic_set.get_constraints()
    )


def expression_of(aff: Any, symbols: Sequence[str], kinds: Any) -> IndexExpr:
    """An isl affine expression on a set, as an index expression; it has no fraction there."""
    return _Reader(symbols, kinds).aff(aff)


class _Reader:
    """Reads isl's rows; a symbol that is not among `symbols` is a NotQuasiAffineError."""

    def __init__(self, symbols: Sequence[str], kinds: Any) -> None:
        self.places = {parameter(name): Sym(place) for place, name in enumerate(symbols)}
        self.kinds = kinds

    def row(self, item: Any) -> IndexExpr:
        """The sum that an isl constraint compares with 0."""
        total: IndexExpr = Const(_whole_number(item.get_constant_val()))
        for place in range(item.dim(self.kinds.set)):
            value = item.get_coefficient_val(self.kinds.set, place)
            total += DimRef(place) * _whole_number(value)
        total += self._parameters(item, 1)
        for place in range(item.dim(self.kinds.div)):
            value = _whole_number(item.get_coefficient_val(self.kinds.div, place))
            if value:
                total += self.aff(item.get_div(place)) * value
        return total

    def aff(self, aff: Any) -> IndexExpr:
        """The floor of an isl affine expression."""
        by = _whole_number(aff.get_denominator_val())
        total: IndexExpr = Const(_scaled(aff.get_constant_val(), by))
        for place in range(aff.dim(self.kinds.in_)):
            value = aff.get_coefficient_val(self.kinds.in_, place)
            total += DimRef(place) * _scaled(value, by)
        total += self._parameters(aff, by)
        for place in range(aff.dim(self.kinds.div)):
            value = _scaled(aff.get_coefficient_val(self.kinds.div, place), by)
            if value:
                total += self.aff(aff.get_div(place)) * value
        return total // by

    def _parameters(self, item: Any, by: int) -> IndexExpr:
        total: IndexExpr = Const(0)
        for place in range(item.dim(self.kinds.param)):
            value = _scaled(item.get_coefficient_val(self.kinds.param, place), by)
            if value:
                name = item.get_dim_name(self.kinds.param, place)
                if name not in self.places:
                    raise NotQuasiAffineError
                total += self.places[name] * value
        return total


def _whole_number(value: Any) -> int:
    return _scaled(value, 1)


def _scaled(value: Any, by: int) -> int:
    """A rational of isl times a multiple of its denominator."""
    denominator = value.get_den_val()
    numerator: int = value.mul(denominator).to_python()
    return numerator * by // int(denominator.to_python())
