"""The meaning of explicit memory: storage with an identity, and states that must be its latest.

In: memories, states and tiles. Out: snapshots and next states. An allocation is poison where
nothing was stored, its padding included, and knows where that is. A state that is not the latest of
its memory, and an element that is read before it is stored, are found here whatever the verifier
said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilenest.dialects import MemoryAllocate, MemoryLoad, MemoryStore, dims_of, window_map
from tilenest.errors import InternalError, OutOfMemory, TargetError, UninitialisedMemoryError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.index_maps import coordinates, inside, open_grid, read_at, write_at
from tilenest.interp.values import Array, MemoryObject, RuntimeValue, State, poison, shape_of
from tilenest.ir import MemoryType, Operation
from tilenest.layouts import AffineMap

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
    try:
        array = poison(type_.dtype, op.placement[1])
        stored = np.zeros(array.shape, np.bool_)
    except MemoryError as error:
        raise OutOfMemory.of_memory(op.bytes, op.location) from error
    memory = MemoryObject(array, op, stored)
    return [memory, State(memory, 0)]


def load(frame: Frame, op: MemoryLoad) -> list[Array]:
    memory = _latest(frame, op)
    places, valid = _places(frame, op, memory)
    nothing = np.zeros((), memory.array.dtype)
    if not read_at(memory.stored, places, valid, np.ones((), np.bool_)).all():
        raise UninitialisedMemoryError(
            "an element of a memory is loaded before anything is stored in it",
            remedy="store in all that is loaded first, on every way to the load",
        )
    return [np.broadcast_to(read_at(memory.array, places, valid, nothing), shape_of(op.content))]


def store(frame: Frame, op: MemoryStore) -> list[State]:
    memory = _latest(frame, op)
    places, valid = _places(frame, op, memory)
    write_at(memory.array, places, valid, frame.array(op.value))
    write_at(memory.stored, places, valid, np.ones((), np.bool_))
    memory.version += 1
    return [State(memory, memory.version)]


def _latest(frame: Frame, op: MemoryLoad | MemoryStore) -> MemoryObject:
    memory, state = frame.values[op.memory], frame.values[op.state]
    assert isinstance(memory, MemoryObject) and isinstance(state, State)
    if state.memory is not memory or state.version != memory.version:
        raise InternalError(f"{op.NAME} takes a state that is not the latest of its memory")
    return memory


def _places(
    frame: Frame, op: MemoryLoad | MemoryStore, memory: MemoryObject
) -> tuple[Sequence[Array], Array]:
    """The place in the storage of every element that is accessed, and which are in the memory."""
    type_, part = memory.op.memory.type, shape_of(op.content)
    assert isinstance(type_, MemoryType)
    window = AffineMap.identity(len(part))
    if op.origins:
        window = window_map(dims_of(op.content), len(op.origins))
    elements = coordinates(window, open_grid(part), frame.integers(op.origins))
    valid = np.broadcast_to(inside(elements, type_.shape, len(part)), part)
    if not valid.any():
        # An empty memory has no place to compute.
        return [np.zeros((1,) * len(part), np.int64)] * memory.array.ndim, valid
    near = [np.where(valid, element, 0).astype(np.int64) for element in elements]
    layout, extents = memory.op.placement
    places = coordinates(layout, near, ())
    if not inside(places, extents, len(part)).all():
        raise InternalError(f"the layout {layout} leaves its storage of {extents}")
    return places, valid


HANDLERS: dict[type[Operation], Handler] = {
    MemoryAllocate: allocate,
    MemoryLoad: load,
    MemoryStore: store,
}
