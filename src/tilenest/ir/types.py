"""Data types and value types.

A `DType` names an element format; a `Type` is what a value of the IR has. Types are interned: equal
arguments give the same object, so comparing is `is` and a type is its own dictionary key.
Everything here is immutable.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tilenest.layouts import Dim
from tilenest.records import record


@record
class DType:
    """An element format: `name` as users write it, `text` as the IR prints it, `kind` one of
    'b' (bool), 'i' (signed), 'u' (unsigned), 'f' (float), 'x' (index), and its width in bits."""

    name: str
    text: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        """Size of one element in memory (bool takes one byte)."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Whether it is a format of floats."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether it is a format of integers, index among them."""
        return self.kind in "iux"

    @property
    def is_signed(self) -> bool:
        """Whether it has numbers below 0."""
        return self.kind in "ifx"

    @property
    def is_bool(self) -> bool:
        """Whether it is that of truth values."""
        return self.kind == "b"

    def __repr__(self) -> str:
        return f"tilenest.{self.name}"


bool_ = DType("bool_", "bool", "b", 1)
int8 = DType("int8", "i8", "i", 8)
int16 = DType("int16", "i16", "i", 16)
int32 = DType("int32", "i32", "i", 32)
int64 = DType("int64", "i64", "i", 64)
uint8 = DType("uint8", "u8", "u", 8)
uint16 = DType("uint16", "u16", "u", 16)
uint32 = DType("uint32", "u32", "u", 32)
uint64 = DType("uint64", "u64", "u", 64)
float16 = DType("float16", "f16", "f", 16)
bfloat16 = DType("bfloat16", "bf16", "f", 16)
float32 = DType("float32", "f32", "f", 32)
float64 = DType("float64", "f64", "f", 64)
index = DType("index", "index", "x", 64)

DTYPES: tuple[DType, ...] = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    index,
)
DTYPE_BY_TEXT: dict[str, DType] = {dtype.text: dtype for dtype in DTYPES}


class _Interned(type):
    """Metaclass: one object per class and (positional) arguments."""

    _pool: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __call__(cls, *args: Any) -> Any:
        key = (cls, *args)
        found = _Interned._pool.get(key)
        if found is None:
            # setdefault is atomic, so threads that race here still agree on one object.
            found = _Interned._pool.setdefault(key, super().__call__(*args))
        return found


class Type(metaclass=_Interned):
    """Base of every value type."""

    __slots__ = ()

    @property
    def is_used_once(self) -> bool:
        """Whether a value of the type is a state that its only use consumes."""
        return False


@record(eq=False)
class ScalarType(Type):
    """One element. `ScalarType(index)` is the type of coordinates and extents."""

    dtype: DType


@record(eq=False)
class TileType(Type):
    """A value with one element per coordinate of `dims` (at least one dim; rank 0 is a scalar)."""

    dtype: DType
    dims: tuple[Dim, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dim.extent for dim in self.dims)


LARGEST_EXTENT = 1 << 48
"""No array of a caller has more elements along an axis; what has is refused at the call."""


@record(eq=False)
class ViewType(Type):
    """A projection of external storage. Extents and strides (in elements) are numbers where the
    kernel was specialised on them, else None (known at run time)."""

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


@record(eq=False)
class BufType(Type):
    """Dense row-major storage of the compiler's own, with static extents."""

    dtype: DType
    shape: tuple[int, ...]


MOST_LANES = 1024
"""More than a register of any target has."""


@record(eq=False)
class VectorType(Type):
    """Machine form: `lanes` elements in a register; a mask is a vector of bool."""

    dtype: DType
    lanes: int


@record(eq=False)
class PointerType(Type):
    """Machine form: an address."""


@record(eq=False)
class MemoryType(Type):
    """An explicit temporary with an identity: one element per coordinate of `dims` (none: one
    element). Where its elements lie is said by the operation that allocates it."""

    dtype: DType
    dims: tuple[Dim, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dim.extent for dim in self.dims)


@record(eq=False)
class StateType(Type):
    """What a memory holds at one point of the program: ordered effects as values."""


@record(eq=False)
class TupleType(Type):
    """Several values as one."""

    items: tuple[Type, ...]


@record(eq=False)
class ArrayType(Type):
    """Tiles of one type in a grid of slots.

    A borrowed array shows the regions of a parent. One that is being `filled` holds what its slots
    were set to so far; setting a slot consumes it and gives the next.
    """

    element: TileType
    shape: tuple[int, ...]
    filled: bool

    @property
    def is_used_once(self) -> bool:
        return self.filled


@record(eq=False)
class TokenType(Type):
    """A step of an atom's protocol: what waits for it comes after."""


INDEX = ScalarType(index)
BOOL = ScalarType(bool_)
POINTER = PointerType()
TOKEN = TokenType()
STATE = StateType()


def element_dtype(type_: Type) -> DType:
    """The dtype of a scalar, tile, view, buf or vector type."""
    dtype = getattr(type_, "dtype", None)
    assert isinstance(dtype, DType), type_
    return dtype
