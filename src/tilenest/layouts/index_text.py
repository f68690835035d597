"""Reading index expressions and affine maps back from their text.

In: what `str` of an expression or a map prints, or the same written by hand with Python's
operators and precedence, such as `d0*6 + (d2 ^ s0)` and `(d0, d1)[s0] -> (d0 + s0, d1)`. Out: the
canonical expression or map. Anything else is a ParseError naming the column, and so is a text whose
canonical form would be far larger than any program needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tilenest.errors import ParseError
from tilenest.layouts.affine_map import AffineMap
from tilenest.layouts.index_bits import bit_and, shift_left, shift_right, xor
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Sym, split_terms
from tilenest.layouts.kinds import check_kind

_Item = TypeVar("_Item")
_TOKEN = re.compile(r"\s*(->|//|<<|>>|[ds]?[0-9]+|\S)")
_BITWISE: tuple[dict[str, Callable[[IndexExpr, IndexExpr], IndexExpr]], ...] = (
    {"^": xor},
    {"&": bit_and},
    {"<<": shift_left, ">>": shift_right},
)
_MOST_TOKENS = 1000
_MOST_DIGITS = 20
_MOST_NAMES = 1000
_MOST_NESTED = 60
_MOST_PRODUCTS = 60
_MOST_TERMS = 1000
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
        self.depth = 0
        self.products = 0
        if len(self.tokens) > _MOST_TOKENS:
            raise ParseError(f"an index text has at most {_MOST_TOKENS} tokens", _REMEDY)

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
        return ParseError(f'expected {wanted} at column {column + 1} of "{self.text}"', _REMEDY)

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

    def formula(self, level: int = 0) -> IndexExpr:
        """A chain of the operators of one level of Python's precedence, loosest first."""
        if level == len(_BITWISE):
            return self.sum()
        result = self.formula(level + 1)
        while self.peek() in _BITWISE[level]:
            operator = self.take()
            right = self.formula(level + 1)
            self.limit_growth(operator)
            result = _BITWISE[level][operator](result, right)
        return result

    def sum(self) -> IndexExpr:
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self) -> IndexExpr:
        result = self.factor()
        while self.peek() in ("*", "//", "%"):
            operator = self.take()
            factor = self.factor()
            if operator != "*" or type(factor) is not Const:
                self.limit_growth(
                    operator, len(split_terms(result)[0]) * len(split_terms(factor)[0])
                )
            if operator == "*":
                result = result * factor
            else:
                result = result // factor if operator == "//" else result % factor
        return result

    def limit_growth(self, operator: str, terms: int = 0) -> None:
        """Products of sums expand, and all but products with constants and `^` nest."""
        self.products += operator != "^"
        if terms > _MOST_TERMS or self.products > _MOST_PRODUCTS:
            raise self.error("a smaller formula")

    def factor(self) -> IndexExpr:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise self.error(f"at most {_MOST_NESTED} nested parts")
        result = self.atom()
        self.depth -= 1
        return result

    def number(self, digits: str, most: int) -> int:
        if len(digits) > _MOST_DIGITS or int(digits) > most:
            raise self.error(f"a number of at most {most}")
        self.take()
        return int(digits)

    def atom(self) -> IndexExpr:
        token = self.peek()
        if token == "-":
            self.take()
            # The most negative constant only fits with its sign.
            if _is_number(self.peek()):
                return Const(-self.number(self.peek(), 1 << 63))
            return -self.factor()
        if token == "(":
            self.take()
            inner = self.formula()
            self.expect(")")
            return inner
        if _is_number(token[-1:]):
            if _is_number(token):
                return Const(self.number(token, (1 << 63) - 1))
            position = self.number(token[1:], _MOST_NAMES)
            return DimRef(position) if token[0] == "d" else Sym(position)
        raise self.error("a dimension, symbol, integer or parenthesis")


def _is_number(token: str) -> bool:
    """Other alphabets have digits as well."""
    return token.isascii() and token.isdigit()
