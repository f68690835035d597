"""How names, types and attribute values are spelled in the text of the IR.

In: values, dims, types and the immutable values attributes hold. Out: their text. Names are given
out on first sight, in the order of the text, so equal modules spell everything alike; `parser`
reads every spelling back to an equal value.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tilenest.ir.core import Block, Value
from tilenest.ir.registry import record_name
from tilenest.ir.types import (
    ArrayType,
    BufType,
    DType,
    MemoryType,
    PointerType,
    ScalarType,
    StateType,
    TileType,
    TokenType,
    TupleType,
    Type,
    VectorType,
    ViewType,
)
from tilenest.ir.variables import Variable
from tilenest.layouts import AffineMap, Dim
from tilenest.records import REQUIRED, fields_of, is_record

_PLAIN_NAN = 0x7FF8_0000_0000_0000
_DIM_NAME = re.compile(r"d[0-9]+")
_WORDS: Mapping[type[Type], str] = {PointerType: "ptr", StateType: "state", TokenType: "token"}


class Names:
    """The names of the values and blocks of one function, and of the dims of the whole text."""

    __slots__ = ("_blocks", "_next_suffix", "_taken", "_unnamed", "_values", "dims")

    def __init__(self) -> None:
        self.dims: dict[Dim, str] = {}
        self.start_function()

    def start_function(self) -> None:
        self._values: dict[Value, str] = {}
        self._blocks: dict[Block, str] = {}
        self._taken: set[str] = set()
        self._next_suffix: dict[str, int] = {}
        self._unnamed = 0

    def value(self, value: Value) -> str:
        """`%` and the user's name, made unique by a suffix, or a number."""
        name = self._values.get(value)
        if name is None:
            name = self._values[value] = self._fresh(value.name)
        return "%" + name

    def block(self, block: Block) -> str:
        """`^` and a number."""
        return self._blocks.setdefault(block, f"^{len(self._blocks)}")

    def _fresh(self, wanted: str | None) -> str:
        if not wanted:
            self._unnamed += 1
            return str(self._unnamed - 1)
        base = re.sub(r"\W", "_", wanted)
        if not re.match(r"[^\W\d]", base):
            base = "_" + base
        if _DIM_NAME.fullmatch(base):
            base += "_"
        name = base
        suffix = self._next_suffix.get(base, 1)
        while name in self._taken:
            name = f"{base}_{suffix}"
            suffix += 1
        self._next_suffix[base] = suffix
        self._taken.add(name)
        return name

    def dim(self, dim: Dim, place: int | None = None) -> str:
        """`%d0` of an axis, or the extent of a plain int; a plain int that does not stand at
        `place` from the right says where it belongs: `16@1`."""
        if dim.position is None:
            return "%" + self.dims.setdefault(dim, f"d{len(self.dims)}")
        return str(dim.extent) if dim.position == place else f"{dim.extent}@{dim.position}"

    def dim_declarations(self) -> list[str]:
        """One line for every axis named so far."""
        return [
            f"dim %{name}{'' if dim.label is None else ' ' + quoted(dim.label)} = {dim.extent}"
            for dim, name in self.dims.items()
        ]


def quoted(text: str) -> str:
    """A string between quotes, ASCII only."""
    return json.dumps(text)


def float_text(value: float) -> str:
    """The shortest text of exactly this float; a NaN other than the usual one shows its bits."""
    if not math.isnan(value):
        return float.__repr__(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return "nan" if bits == _PLAIN_NAN else f"nan:0x{bits:016x}"


def type_text(type_: Type, names: Names) -> str:
    """A type as `tile<f32, %d0, 16>`."""
    word = _WORDS.get(type(type_))
    if word is not None:
        return word
    match type_:
        case ScalarType(dtype):
            return dtype.text
        case TileType(dtype, dims):
            return f"tile<{_over(dtype, dims, names)}>"
        case MemoryType(dtype, dims):
            return f"memory<{_over(dtype, dims, names)}>"
        case ViewType(dtype, shape, strides):
            return f"view<{dtype.text}, {_extents(shape)}, {_extents(strides)}>"
        case BufType(dtype, shape):
            return f"buf<{', '.join([dtype.text, *([_by_x(shape)] if shape else [])])}>"
        case VectorType(dtype, lanes):
            return f"vector<{lanes}x{dtype.text}>"
        case TupleType(items):
            return f"tuple<{', '.join(type_text(item, names) for item in items)}>"
        case ArrayType(element, shape, filled):
            role = ", filled" if filled else ""
            return f"array<{type_text(element, names)}, {_by_x(shape)}{role}>"
    raise AssertionError(f"{type_!r} has no spelling")


def _by_x(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _over(dtype: DType, dims: Sequence[Dim], names: Names) -> str:
    last = len(dims) - 1
    return ", ".join([dtype.text, *(names.dim(d, last - place) for place, d in enumerate(dims))])


class _Labels(Names):
    """Dims by what a reader knows them by."""

    __slots__ = ()

    def dim(self, dim: Dim, place: int | None = None) -> str:
        if dim.position is not None:
            return super().dim(dim, place)
        return f"{dim.label or 'axis'}={dim.extent}"


def describe_type(type_: Type) -> str:
    """A type as errors name it: `tile<f32, m=96, 16>`."""
    return type_text(type_, _Labels())


def describe_types(types: Sequence[Type]) -> str:
    """Several types as errors name them: `(f32, index)`."""
    return f"({', '.join(map(describe_type, types))})"


def describe_attribute(value: Any) -> str:
    """An attribute value as errors name it."""
    return attribute_text(value, _Labels())


def _extents(values: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if value is None else str(value) for value in values)}]"


def attribute_text(value: Any, names: Names) -> str:
    """The text of an attribute value; equal texts are equal values, down to the sign of a zero."""
    match value:
        case None | False | True:
            return "none" if value is None else str(value).lower()
        case int() | AffineMap():
            return str(value)
        case float():
            return float_text(value)
        case str():
            return quoted(value)
        case tuple():
            return f"[{', '.join(attribute_text(item, names) for item in value)}]"
        case Dim():
            return names.dim(value)
        case Variable():
            return str(value)
        case Type():
            return type_text(value, names)
    assert is_record(value), f"{value!r} is no attribute value"
    items = [
        f"{name} = {text}"
        for name, default in fields_of(type(value)).items()
        if (text := attribute_text(getattr(value, name), names)) != _default(default, names)
    ]
    return f"#{record_name(type(value))}<{', '.join(items)}>"


def _default(default: Any, names: Names) -> str | None:
    return None if default is REQUIRED else attribute_text(default, names)
