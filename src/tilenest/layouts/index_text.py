"""Reading index expressions and affine maps back from their text.

In: what `str` of an expression or a map prints, or the same written by hand with Python's
operators and precedence, such as `d0*6 + (d2 ^ s0)` and `(d0, d1)[s0] -> (d0 + s0, d1)`. Out: the
canonical expression or map. Anything else is a ParseError naming the column. Every expression that
can be built can be read: its own limits, a ShapeError, are the only ones. Operators wait in a list,
so that brackets may nest as deep as the text is long.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tilenest.errors import ParseError
from tilenest.layouts.affine_map import AffineMap
from tilenest.layouts.index_bits import bit_and, shift_left, shift_right, xor
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Sym
from tilenest.layouts.kinds import MOST_NODES, MOST_PLACES, check_kind

_Item = TypeVar("_Item")
_TOKEN = re.compile(r"\s*(->|//|<<|>>|[ds]?[0-9]+|\S)")
_LEVELS: Mapping[str, int] = {
    "(": 0,
    "^": 1,
    "&": 2,
    "<<": 3,
    ">>": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "//": 5,
    "%": 5,
    "negative": 6,
}
"""Python's precedence, loosest first; a bracket binds nothing before it closes."""
_OPERATIONS: Mapping[str, Callable[[IndexExpr, IndexExpr], IndexExpr]] = {
    "^": xor,
    "&": bit_and,
    "<<": shift_left,
    ">>": shift_right,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_MOST_TOKENS = 4 * MOST_NODES
"""Of one formula: an operator and two brackets around each node, and some to spare."""
_MOST_DIGITS = 20
_MOST_SHOWN = 200
_REMEDY = "write a sum such as d0*6 + d2 + s0, or a map such as (d0, d1)[s0] -> (d0 + s0, d1)"


def parse_index_expr(text: str) -> IndexExpr:
    """The expression a text such as `d0*6 + d2 + s0` stands for."""
    reader = _Reader(text)
    expr = reader.formula()
    reader.finish()
    return expr


def parse_affine_map(text: str) -> AffineMap:
    """The map a text such as `(d0, d1)[s0] -> (d0 + s0, d1)` stands for."""
    reader = _Reader(text)
    n_dims = reader.names("(", "d", ")")
    n_syms = reader.names("[", "s", "]") if reader.peek() == "[" else 0
    reader.expect("->")
    results = tuple(reader.items("(", reader.formula, ")"))
    reader.finish()
    for result in results:
        if result.dim_mask >> n_dims or result.sym_mask >> n_syms:
            raise ParseError(f'result {result} of "{text}" uses an undeclared name', _REMEDY)
    return AffineMap(n_dims, n_syms, results)


class _Reader:
    """Tokens of one text, and how far they are read."""

    def __init__(self, text: str) -> None:
        check_kind(text, str, "the text of a formula")
        self.text = text
        self.tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def expect(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.error(f'"{wanted}"')
        self.place += 1

    def finish(self) -> None:
        if self.place < len(self.tokens):
            raise self.error("the end")

    def error(self, wanted: str) -> ParseError:
        is_past = self.place >= len(self.tokens)
        column = len(self.text) if is_past else self.tokens[self.place][1]
        is_long = len(self.text) > _MOST_SHOWN
        shown = f"{self.text[:_MOST_SHOWN]}..." if is_long else self.text
        return ParseError(f'expected {wanted} at column {column + 1} of "{shown}"', _REMEDY)

    def items(self, opening: str, item: Callable[[], _Item], closing: str) -> list[_Item]:
        self.expect(opening)
        found: list[_Item] = []
        while self.peek() != closing:
            if found:
                self.expect(",")
            found.append(item())
        self.expect(closing)
        return found

    def names(self, opening: str, letter: str, closing: str) -> int:
        count = 0

        def name() -> None:
            nonlocal count
            self.expect(f"{letter}{count}")
            count += 1

        self.items(opening, name, closing)
        return count

    def formula(self) -> IndexExpr:
        """Operands and operators, up to what cannot go on with them."""
        start = self.place
        operands: list[IndexExpr] = []
        waiting: list[str] = []
        n_open = 0
        while not operands or self.peek() in _OPERATIONS:
            if operands:
                _join(operands, waiting, _LEVELS[self.peek()])
                waiting.append(self.take())
            n_open += self.prefixes(waiting)
            operands.append(self.leaf(waiting))
            while n_open and self.peek() == ")":
                _join(operands, waiting, 1)
                waiting.pop()
                self.take()
                n_open -= 1
            if self.place - start > _MOST_TOKENS:
                raise self.error("a shorter formula")
        if n_open:
            raise self.error('")"')
        _join(operands, waiting, 1)
        return operands[0]

    def prefixes(self, waiting: list[str]) -> int:
        """Read signs and opening brackets; returns how many brackets."""
        n_open = 0
        while self.peek() in ("-", "("):
            token = self.take()
            waiting.append("(" if token == "(" else "negative")
            n_open += token == "("
        return n_open

    def leaf(self, waiting: list[str]) -> IndexExpr:
        token = self.peek()
        if _is_number(token):
            # The most negative constant only fits with its sign.
            if waiting and waiting[-1] == "negative":
                waiting.pop()
                return Const(-self.number(token, 1 << 63))
            return Const(self.number(token, (1 << 63) - 1))
        if _is_number(token[1:]):
            position = self.number(token[1:], MOST_PLACES - 1)
            return DimRef(position) if token[0] == "d" else Sym(position)
        raise self.error("a dimension, symbol, integer or parenthesis")

    def number(self, digits: str, most: int) -> int:
        if len(digits) > _MOST_DIGITS or int(digits) > most:
            raise self.error(f"a number of at most {most}")
        self.take()
        return int(digits)


def _join(operands: list[IndexExpr], waiting: list[str], level: int) -> None:
    """Apply the operators that bind at least as tightly as a level, the latest first."""
    while waiting and _LEVELS[waiting[-1]] >= level:
        sign = waiting.pop()
        last = operands.pop()
        if sign == "negative":
            operands.append(-last)
        else:
            operands.append(_OPERATIONS[sign](operands.pop(), last))


def _is_number(token: str) -> bool:
    """Other alphabets have digits as well."""
    return token.isascii() and token.isdigit()
