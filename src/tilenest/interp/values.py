"""What the values of the IR are at run time: NumPy arrays, storage and pointers.

In: types of the IR and the caller's arrays. Out: a scalar, tile or vector is an array (rank 0 for a
scalar), a view or buf is a `Storage` or `Remapped`, an address is a `Pointer` into a `Memory` that
knows which of its bytes may be touched. Whatever was never written is poison: bytes of ones, a NaN
in every float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilenest.dialects import MemoryAllocate, Remap
from tilenest.ir import (
    DType,
    ScalarType,
    TileType,
    Type,
    VectorType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    index,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilenest.layouts import Dim, dims_compatible_by_position
from tilenest.records import record

Array = npt.NDArray[Any]

NUMPY_DTYPES: dict[DType, np.dtype[Any]] = {
    bool_: np.dtype(np.bool_),
    int8: np.dtype(np.int8),
    int16: np.dtype(np.int16),
    int32: np.dtype(np.int32),
    int64: np.dtype(np.int64),
    uint8: np.dtype(np.uint8),
    uint16: np.dtype(np.uint16),
    uint32: np.dtype(np.uint32),
    uint64: np.dtype(np.uint64),
    float16: np.dtype(np.float16),
    bfloat16: np.dtype(ml_dtypes.bfloat16),
    float32: np.dtype(np.float32),
    float64: np.dtype(np.float64),
    index: np.dtype(np.int64),
}

POISON_BYTE = 0xFF


@record(eq=False)
class Storage:
    """Elements that can be read and written; `name` is for messages."""

    array: Array
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype


@record(eq=False)
class Remapped:
    """A view of a view: element d is `below` at map(d; symbols), where there is one."""

    below: Storage | Remapped
    op: Remap
    symbols: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"a view of {self.below.name}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.below.dtype


@record(eq=False)
class Memory:
    """Addressable bytes: `allowed` marks those that belong to the owner's elements."""

    data: npt.NDArray[np.uint8]
    allowed: npt.NDArray[np.bool_]
    address: int
    name: str


@record
class Pointer:
    """A byte position, possibly outside: only touching is checked."""

    memory: Memory
    offset: int

    @property
    def address(self) -> int:
        return self.memory.address + self.offset


View = Storage | Remapped


@dataclass(slots=True, eq=False)
class MemoryObject:
    """An explicit memory: its storage, where something is stored, and how many stores there
    were."""

    array: Array
    op: MemoryAllocate
    stored: npt.NDArray[np.bool_]
    version: int = 0


@record
class State:
    """What a memory holds after so many stores."""

    memory: MemoryObject
    version: int


@record(eq=False)
class TupleValue:
    """A tuple."""

    items: tuple[RuntimeValue, ...]


@record(eq=False)
class Borrowed:
    """An array of the regions of a tile, or of a view from `origins` on."""

    whole: Array | View
    origins: tuple[int, ...]


@record(eq=False)
class Slots:
    """An array that is being filled: the slots set so far."""

    tiles: Mapping[tuple[int, ...], Array]


@record(eq=False)
class Token:
    """A step of an atom's protocol."""


@record(eq=False)
class Update:
    """A patch that an instance laid over a value: what, where, on which condition."""

    result: int
    combine: str | None
    payload: Array
    origins: tuple[int, ...]
    predicate: Array


RuntimeValue = (
    Array | View | Pointer | MemoryObject | State | TupleValue | Borrowed | Slots | Token | Update
)


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    return NUMPY_DTYPES[dtype]


def poison(dtype: DType, shape: Sequence[int]) -> Array:
    """An array that nothing was written to."""
    result = np.empty(tuple(shape), numpy_dtype(dtype))
    result.reshape(-1).view(np.uint8)[...] = 1 if dtype.is_bool else POISON_BYTE
    return result


def shape_of(type_: Type) -> tuple[int, ...]:
    """The array shape of a scalar, tile or vector."""
    match type_:
        case ScalarType():
            return ()
        case TileType():
            return type_.shape
        case VectorType():
            return (type_.lanes,)
    raise AssertionError(type_)


def dims_of(type_: Type) -> tuple[Dim, ...]:
    """The dims of a tile; none for a scalar."""
    if isinstance(type_, TileType):
        return type_.dims
    assert isinstance(type_, ScalarType), type_
    return ()


def spread(array: Array, source: tuple[Dim, ...], target: tuple[Dim, ...]) -> Array:
    """The array with one axis per target dim, of extent 1 where it broadcasts."""
    places = dims_compatible_by_position(source, target)
    picked = array[tuple(0 if place is None else slice(None) for place in places)]
    kept = [place for place in places if place is not None]
    ordered = picked.transpose([kept.index(place) for place in sorted(kept)])
    extents = dict(zip(sorted(kept), ordered.shape, strict=True))
    return ordered.reshape([extents.get(place, 1) for place in range(len(target))])


def argument_memory(array: Array, name: str) -> Pointer:
    """A pointer to element 0 of a caller's array, whose own elements may be touched."""
    size = array.itemsize
    steps = [step * (extent - 1) for step, extent in zip(array.strides, array.shape, strict=True)]
    if array.size == 0:
        empty = np.empty(0, np.uint8)
        return Pointer(Memory(empty, empty.astype(np.bool_), array.ctypes.data, name), 0)
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0) + size
    corner = array[(..., *(slice(-1, None) if step < 0 else slice(0, 1) for step in steps))]
    lowest = np.lib.stride_tricks.as_strided(corner, (1,), (size,))
    data = np.lib.stride_tricks.as_strided(lowest.view(np.uint8), (high - low,), (1,))
    allowed = np.zeros(high - low, np.bool_)
    np.lib.stride_tricks.as_strided(allowed[-low:], (*array.shape, size), (*array.strides, 1))[
        ...
    ] = True
    return Pointer(Memory(data, allowed, array.ctypes.data + low, name), -low)


def fresh_memory(size: int, address: int, name: str) -> Pointer:
    """A pointer to poisoned bytes."""
    data = np.full(size, POISON_BYTE, np.uint8)
    return Pointer(Memory(data, np.ones(size, np.bool_), address, name), 0)
