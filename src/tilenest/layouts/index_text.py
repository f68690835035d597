"""Reading index expressions and affine maps back from their text.

In: what `str` of an expression or a map prints, or the same written by hand with Python's
precedence, such as `d0*6 + d2 + s0` and `(d0, d1)[s0] -> (d0 + s0, d1)`. Out: the canonical
expression or map. Anything else is a ParseError naming the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tilenest.errors import ParseError
from tilenest.layouts.affine_map import AffineMap
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Sym

_Item = TypeVar("_Item")
_TOKEN = re.compile(r"\s*(->|//|[ds]?[0-9]+|[-+*%(),\[\]]|\S)")
_REMEDY = "write a sum such as d0*6 + d2 + s0, or a map such as (d0, d1)[s0] -> (d0 + s0, d1)"


def parse_index_expr(text: str) -> IndexExpr:
    """The expression a text such as `d0*6 + d2 + s0` stands for."""
    reader = _Reader(text)
    expr = reader.sum()
    reader.finish()
    return expr


def parse_affine_map(text: str) -> AffineMap:
    """The map a text such as `(d0, d1)[s0] -> (d0 + s0, d1)` stands for."""
    reader = _Reader(text)
    n_dims = reader.names("(", "d", ")")
    n_syms = reader.names("[", "s", "]") if reader.peek() == "[" else 0
    reader.expect("->")
    results = tuple(reader.items("(", reader.sum, ")"))
    reader.finish()
    for result in results:
        if result.dim_mask >> n_dims or result.sym_mask >> n_syms:
            raise ParseError(f'result {result} of "{text}" uses an undeclared name', _REMEDY)
    return AffineMap(n_dims, n_syms, results)


class _Reader:
    """Tokens of one text, and how far they are read."""

    def __init__(self, text: str) -> None:
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
            if operator == "*":
                result = result * factor
            else:
                result = result // factor if operator == "//" else result % factor
        return result

    def factor(self) -> IndexExpr:
        token = self.peek()
        if token == "-":
            self.take()
            # The most negative constant only fits with its sign.
            if self.peek().isdigit():
                return Const(-int(self.take()))
            return -self.factor()
        if token == "(":
            self.take()
            inner = self.sum()
            self.expect(")")
            return inner
        if token[-1:].isdigit():
            self.take()
            if token.isdigit():
                return Const(int(token))
            position = int(token[1:])
            return DimRef(position) if token[0] == "d" else Sym(position)
        raise self.error("a dimension, symbol, integer or parenthesis")
