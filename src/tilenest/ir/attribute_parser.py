"""Reading types and attribute values back from their text.

In: a cursor at a type or a value, the record classes, the dims declared so far. Out: the interned
type or the equal value; `spelling` is the other direction. Bad text is a `ParseError` at its token.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tilenest.errors import TileError
from tilenest.ir.kinds import fits, record_kinds, refusal
from tilenest.ir.lexer import Cursor, Token
from tilenest.ir.types import (
    DTYPE_BY_TEXT,
    POINTER,
    STATE,
    TOKEN,
    ArrayType,
    BufType,
    DType,
    MemoryType,
    ScalarType,
    TileType,
    TupleType,
    Type,
    VectorType,
    ViewType,
)
from tilenest.ir.variables import Variable
from tilenest.layouts import AffineMap, Dim, parse_affine_map, positional_dim
from tilenest.records import REQUIRED, fields_of

MOST_NESTED = 64
"""How deep regions, and values in values, may nest in a text; far above any program."""

_MOST_DIGITS = 40
_INT64_MAX = (1 << 63) - 1
_WORDS: Mapping[str, Any] = {
    "none": None,
    "true": True,
    "false": False,
    "inf": math.inf,
    "nan": math.nan,
    "-inf": -math.inf,
}
_WHOLE_TYPES: Mapping[str, Type] = {"ptr": POINTER, "token": TOKEN, "state": STATE}
_BUILT_TYPES = ("tile", "view", "buf", "vector", "tuple", "array", "memory")
_TYPE_REMEDY = f"types are f32, index, ..., {'<>, '.join(_BUILT_TYPES)}<>, ptr, token, state"
ItemT = TypeVar("ItemT")


class AttributeParser:
    """Types and values at the cursor; `dims` are the declared axes by name."""

    def __init__(self, cursor: Cursor, records: Mapping[str, type]) -> None:
        self.cursor = cursor
        self.records = records
        self.dims: dict[str, Dim] = {}
        self._depth = 0

    def items(self, item: Callable[[], ItemT], closing: str) -> list[ItemT]:
        """Items between commas up to a closing mark, which is read too."""
        found: list[ItemT] = []
        while not self.cursor.accept(closing):
            if found:
                self.cursor.expect(",")
            found.append(item())
        return found

    def integer(self, least: int = -_INT64_MAX - 1, most: int = _INT64_MAX) -> int:
        token = self.cursor.expect_kind("integer", "an integer")
        return self._bounded(token, token.text, least, most)

    def _bounded(self, token: Token, text: str, least: int, most: int) -> int:
        # Python refuses to convert very long digit strings with an error of its own.
        value = int(text) if text.lstrip("-").isdecimal() and len(text) <= _MOST_DIGITS else None
        if value is None or not least <= value <= most:
            raise self.cursor.error(f"expected an integer from {least} to {most}", token)
        return value

    def string(self) -> str:
        token = self.cursor.expect_kind("string", "a string")
        try:
            text: str = json.loads(token.text)
        except ValueError as error:
            message = "the string has an escape or character that JSON refuses"
            raise self.cursor.error(message, token) from error
        return text

    # Types ---------------------------------------------------------------------------------

    def type(self) -> Type:
        token = self.cursor.expect_kind("name", "a type")
        if token.text in DTYPE_BY_TEXT:
            return ScalarType(DTYPE_BY_TEXT[token.text])
        if token.text in _WHOLE_TYPES:
            return _WHOLE_TYPES[token.text]
        if token.text not in _BUILT_TYPES:
            raise self.cursor.error(f"`{token.text}` is no type", token, _TYPE_REMEDY)
        self.cursor.expect("<")
        type_ = self._nested(getattr(self, f"_{token.text}"))
        self.cursor.expect(">")
        assert isinstance(type_, Type)
        return type_

    def is_at_type(self) -> bool:
        text = self.cursor.token.text
        return text in DTYPE_BY_TEXT or text in _WHOLE_TYPES or text in _BUILT_TYPES

    def types(self) -> list[Type]:
        """One type, or several in parentheses."""
        return self.items(self.type, ")") if self.cursor.accept("(") else [self.type()]

    def _dtype(self) -> DType:
        token = self.cursor.expect_kind("name", "an element type")
        dtype = DTYPE_BY_TEXT.get(token.text)
        if dtype is None:
            raise self.cursor.error(f"`{token.text}` is no element type", token)
        return dtype

    def _tile(self) -> Type:
        dtype, dims = self._dtype(), self._dims()
        if not dims:
            raise self.cursor.error("a tile has at least one dim", remedy="write the scalar type")
        return TileType(dtype, dims)

    def _memory(self) -> Type:
        return MemoryType(self._dtype(), self._dims())

    def _dims(self) -> tuple[Dim, ...]:
        dims: list[Dim | int] = []
        while self.cursor.accept(","):
            dims.append(self._dim_or_extent())
        last = len(dims) - 1
        return tuple(
            dim if isinstance(dim, Dim) else positional_dim(last - place, dim)
            for place, dim in enumerate(dims)
        )

    def _dim_or_extent(self) -> Dim | int:
        """A declared axis, a plain int that says its position, or just an extent."""
        token = self.cursor.token
        if token.kind == "value":
            self.cursor.take()
            dim = self.dims.get(token.text)
            if dim is None:
                raise self.cursor.error(
                    f"no dim {token.text} is declared",
                    token,
                    f'declare it at the top: dim {token.text} "name" = 16',
                )
            return dim
        extent = self.integer(0)
        return positional_dim(self.integer(0), extent) if self.cursor.accept("@") else extent

    def _view(self) -> Type:
        dtype = self._dtype()
        self.cursor.expect(",")
        shape = self._extents(0)
        self.cursor.expect(",")
        token = self.cursor.token
        strides = self._extents(-_INT64_MAX)
        if len(shape) != len(strides):
            raise self.cursor.error(f"{len(shape)} extents need as many strides", token)
        return ViewType(dtype, shape, strides)

    def _extents(self, least: int) -> tuple[int | None, ...]:
        self.cursor.expect("[")

        def extent() -> int | None:
            return None if self.cursor.accept("?") else self.integer(least)

        return tuple(self.items(extent, "]"))

    def _buf(self) -> Type:
        dtype = self._dtype()
        return BufType(dtype, self._extents_by_x() if self.cursor.accept(",") else ())

    def _extents_by_x(self) -> tuple[int, ...]:
        token = self.cursor.token
        if token.kind not in ("shape", "integer"):
            raise self.cursor.error(f"expected extents such as 6x16, found {self.cursor.found()}")
        self.cursor.take()
        return tuple(self._bounded(token, text, 0, _INT64_MAX) for text in token.text.split("x"))

    def _vector(self) -> Type:
        token = self.cursor.expect_kind("shape", "lanes such as 16xf32")
        lanes, _, name = token.text.partition("x")
        if name not in DTYPE_BY_TEXT:
            raise self.cursor.error(f"`{name}` is no element type", token)
        return VectorType(DTYPE_BY_TEXT[name], self._bounded(token, lanes, 1, _INT64_MAX))

    def _tuple(self) -> Type:
        items: list[Type] = []
        while not self.cursor.at(">"):
            if items:
                self.cursor.expect(",")
            items.append(self.type())
        return TupleType(tuple(items))

    def _array(self) -> Type:
        token = self.cursor.token
        element = self.type()
        if not isinstance(element, TileType):
            raise self.cursor.error("the slots of an array are tiles", token)
        self.cursor.expect(",")
        shape = self._extents_by_x()
        is_filled = self.cursor.accept(",")
        if is_filled:
            self.cursor.expect("filled")
        return ArrayType(element, shape, bool(is_filled))

    # Values --------------------------------------------------------------------------------

    def value_of(self, kind: Any, what: str) -> Any:
        """A value that must be of a declared kind."""
        token = self.cursor.token
        value = self.value()
        if not fits(value, kind):
            message, remedy = refusal(what, value, kind)
            raise self.cursor.error(message, token, remedy)
        return value

    def value(self) -> Any:
        """Any attribute value."""
        token = self.cursor.token
        match token.kind:
            case "string":
                return self.string()
            case "integer":
                return self._number_or_dim()
            case "float":
                self.cursor.take()
                return _float(token.text)
            case "value":
                return self._dim_or_extent()
            case "record":
                return self._nested(self._record)
            case "name" if token.text in _WORDS:
                self.cursor.take()
                return _WORDS[token.text]
            case "name" if self.is_at_type():
                return self.type()
        return self._marked()

    def _marked(self) -> Any:
        """A value that begins with a mark."""
        if self.cursor.at("["):
            return self._nested(self._values)
        if self.cursor.accept("?"):
            return self._variable()
        if self.cursor.at("(") and self.cursor.following.text in (")", "d0"):
            return self._map()
        raise self.cursor.error(f"expected an attribute value, found {self.cursor.found()}")

    def _nested(self, read: Callable[[], Any]) -> Any:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self.cursor.error(f"values nest deeper than {MOST_NESTED} levels")
        value = read()
        self._depth -= 1
        return value

    def _values(self) -> tuple[Any, ...]:
        self.cursor.expect("[")
        return tuple(self.items(self.value, "]"))

    def _variable(self) -> Variable:
        token = self.cursor.expect_kind("name", "the name of a variable")
        if not token.text.isidentifier():
            raise self.cursor.error(f"`{token.text}` is no name of a variable", token)
        return Variable(token.text)

    def _number_or_dim(self) -> int | Dim:
        token = self.cursor.token
        value = self.integer(-(10**_MOST_DIGITS), 10**_MOST_DIGITS)
        if not self.cursor.accept("@"):
            return value
        if not 0 <= value <= _INT64_MAX:
            raise self.cursor.error("an extent is at least 0", token)
        return positional_dim(self.integer(0), value)

    def _record(self) -> Any:
        token = self.cursor.take()
        record = self.records.get(token.text[1:])
        if record is None:
            known = ", ".join(f"#{name}" for name in sorted(self.records))
            raise self.cursor.error(
                f"no record {token.text} is known", token, f"records are {known}"
            )
        kinds = record_kinds(record)
        found: dict[str, Any] = {}

        def field() -> None:
            name = self.cursor.expect_kind("name", f"a field of {token.text}")
            if name.text not in kinds or name.text in found:
                raise self.cursor.error(f"{token.text} has no further field `{name.text}`", name)
            self.cursor.expect("=")
            what = f"`{name.text}` of {token.text}"
            found[name.text] = self.value_of(kinds[name.text], what)

        self.cursor.expect("<")
        self.items(field, ">")
        for needed, default in fields_of(record).items():
            if needed not in found and default is REQUIRED:
                raise self.cursor.error(f"{token.text} needs `{needed}`", token)
        return record(**found)

    def _map(self) -> AffineMap:
        """`(d0)[s0] -> (d0 + s0)`: the span is found by its brackets, `layouts` reads it."""
        start = self.cursor.token
        end = self._brackets("(", ")")
        if self.cursor.at("["):
            self._brackets("[", "]")
        self.cursor.expect("->")
        end = self._brackets("(", ")")
        try:
            return parse_affine_map(self.cursor.text[start.start : end.end])
        except TileError as error:
            raise self.cursor.error(error.message, start, error.remedy) from error

    def _brackets(self, opening: str, closing: str) -> Token:
        """Read to the bracket that closes the one here; returns it."""
        self.cursor.expect(opening)
        depth = 1
        while True:
            if self.cursor.token.kind == "end":
                raise self.cursor.error(f"expected `{closing}`, found the end of the text")
            token = self.cursor.take()
            depth += (token.text == opening) - (token.text == closing)
            if depth == 0:
                return token


def _float(text: str) -> float:
    if text.startswith("nan:"):
        bits: float = struct.unpack("<d", int(text[4:], 16).to_bytes(8, "little"))[0]
        return bits
    return -math.inf if text == "-inf" else float(text)
