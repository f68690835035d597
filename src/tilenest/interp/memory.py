"""The meaning of explicit memory: storage with an identity, and states that must be its latest.

In: memories, states and tiles. Out: snapshots and next states. An allocation is poison where
nothing was stored, its padding included. A state that is not the latest of its memory, or in which
nothing was stored yet, is a fault of the program, found here whatever the verifier said.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilenest.dialects import MemoryAllocate, MemoryLoad, MemoryStore
from tilenest.errors import InternalError, TargetError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.index_maps import coordinates, inside, open_grid, read_at, write_at
from tilenest.interp.values import Array, MemoryObject, RuntimeValue, State, poison
from tilenest.ir import MemoryType, Operation

_MOST_BYTES = (1 << 63) - 1


def allocate(_: Frame, op: MemoryAllocate) -> list[RuntimeValue]:
    type_ = op.memory.type
    assert isinstance(type_, MemoryType)
    if op.bytes > _MOST_BYTES:
        raise TargetError(
            f"a memory needs {op.bytes} bytes, which 64 bits cannot address",
            remedy="use a smaller shape, or smaller strides",
            location=op.location,
        )
    memory = MemoryObject(poison(type_.dtype, op.placement[1]), op)
    return [memory, State(memory, 0)]


def load(frame: Frame, op: MemoryLoad) -> list[Array]:
    memory = _latest(frame, op)
    if memory.version == 0:
        raise InternalError("a memory is read before anything is stored in it")
    places, valid = _places(memory)
    fill = np.zeros((), memory.array.dtype)
    return [np.broadcast_to(read_at(memory.array, places, valid, fill), _shape(memory))]


def store(frame: Frame, op: MemoryStore) -> list[State]:
    memory = _latest(frame, op)
    places, valid = _places(memory)
    write_at(memory.array, places, valid, frame.array(op.value))
    memory.version += 1
    return [State(memory, memory.version)]


def _latest(frame: Frame, op: MemoryLoad | MemoryStore) -> MemoryObject:
    memory, state = frame.values[op.memory], frame.values[op.state]
    assert isinstance(memory, MemoryObject) and isinstance(state, State)
    if state.memory is not memory or state.version != memory.version:
        raise InternalError(f"{op.NAME} takes a state that is not the latest of its memory")
    return memory


def _shape(memory: MemoryObject) -> tuple[int, ...]:
    type_ = memory.op.memory.type
    assert isinstance(type_, MemoryType)
    return type_.shape


def _places(memory: MemoryObject) -> tuple[Sequence[Array], Array]:
    """The place of every element in the storage; an empty memory has none to compute."""
    shape = _shape(memory)
    if prod(shape) == 0:
        nowhere = [np.zeros((1,) * len(shape), np.int64)] * memory.array.ndim
        return nowhere, np.zeros(shape, np.bool_)
    layout, extents = memory.op.placement
    places = coordinates(layout, open_grid(shape), ())
    valid = np.broadcast_to(inside(places, extents, len(shape)), shape)
    if not valid.all():
        raise InternalError(f"the layout {layout} leaves its storage of {extents}")
    return places, valid


HANDLERS: dict[type[Operation], Handler] = {
    MemoryAllocate: allocate,
    MemoryLoad: load,
    MemoryStore: store,
}
