"""CuTe layouts from text.

In: a text as CuTe prints it: `(4,(2,3)):(1,(4,8))`, strides left out for the compact ones, `_4` for
an integer known when compiling, and `Sw<2,0,3> o 0 o (8,8):(8,1)` for a swizzle after an offset and
a layout. Out: the layout; `str` of one is such a text. Anything else is a ParseError that names the
column.
"""

from __future__ import annotations

import re

from tilenest.errors import ParseError
from tilenest.layouts.cute.int_tuples import IntTuple
from tilenest.layouts.cute.layout import Layout, make_layout
from tilenest.layouts.cute.swizzle import Swizzle, Swizzled
from tilenest.layouts.kinds import check_kind

_TOKEN = re.compile(r"\s*(Sw?<|_?-?[0-9]{1,100}|[(),:>o])")
_MOST_NESTED = 60
_REMEDY = "write a layout as CuTe prints it, such as (4,(2,3)):(1,(4,8)) or Sw<2,0,3> o 8:1"


def parse(text: str) -> Layout | Swizzled:
    """The layout a text stands for."""
    reader = _Reader(text)
    found = reader.swizzled() if reader.token in ("Sw<", "S<") else reader.layout()
    reader.finish()
    return found


class _Reader:
    """One text, the token under the eye, and how far it is read."""

    def __init__(self, text: str) -> None:
        check_kind(text, str, "the text of a layout")
        self.text = text
        self.start = self.end = 0
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """Step to the next token and give the last one."""
        last = self.token
        found = _TOKEN.match(self.text, self.end)
        self.token = found[1] if found else ""
        self.start, self.end = (found.start(1), found.end()) if found else (self.end, self.end)
        return last

    def expect(self, symbol: str) -> None:
        if self.token != symbol:
            raise self.error(f'"{symbol}"')
        self.advance()

    def finish(self) -> None:
        if self.token or self.text[self.end :].strip():
            raise self.error("the end")

    def error(self, wanted: str) -> ParseError:
        shown = self.text if len(self.text) <= 200 else f"{self.text[:200]}..."
        return ParseError(f'expected {wanted} at column {self.start + 1} of "{shown}"', _REMEDY)

    def swizzled(self) -> Swizzled:
        self.advance()
        bits = self.number()
        self.expect(",")
        base = self.number()
        self.expect(",")
        shift = self.number()
        self.expect(">")
        self.expect("o")
        shape = self.int_tuple()
        offset = 0
        if isinstance(shape, int) and self.token == "o":
            self.advance()
            offset, shape = shape, self.int_tuple()
        return Swizzled(Swizzle(bits, base, shift), self.layout_of(shape), offset)

    def layout(self) -> Layout:
        return self.layout_of(self.int_tuple())

    def layout_of(self, shape: IntTuple) -> Layout:
        if self.token != ":":
            return make_layout(shape)
        self.advance()
        return make_layout(shape, self.int_tuple())

    def int_tuple(self, depth: int = 0) -> IntTuple:
        if self.token != "(":
            return self.number()
        if depth > _MOST_NESTED:
            raise self.error(f"at most {_MOST_NESTED} parentheses inside one another")
        self.advance()
        parts: list[IntTuple] = []
        while self.token != ")":
            parts.append(self.int_tuple(depth + 1))
            if self.token != ")":
                self.expect(",")
        self.advance()
        return tuple(parts)

    def number(self) -> int:
        if not self.token.lstrip("_-").isdigit():
            raise self.error("a number")
        return int(self.advance().lstrip("_"))
