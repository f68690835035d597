"""The meaning of Machine form: loops, branches, launches, addresses, vector memory, lanes.

In: pointers, scalars and arrays of lanes. Out: the same, and bytes written through pointers.
Memory is strict: an active lane may touch only bytes of its owner's elements, a claimed alignment
must hold, a masked lane is never looked at. A launch cuts its range into several chunks, each with
scratch memory of its own that starts as poison.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tilenest.dialects import (
    AddressAtomic,
    AddressLoad,
    AddressStore,
    Check,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopIf,
    LoopYield,
    Offset,
    Scatter,
    Splat,
)
from tilenest.errors import InternalError, OutOfBounds
from tilenest.interp.atomics import updated
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.functions import cast
from tilenest.interp.values import (
    Array,
    Pointer,
    RuntimeValue,
    fresh_memory,
    numpy_dtype,
    shape_of,
)
from tilenest.ir import Operation, Value, VectorType, element_dtype, index

CHUNKS = 3
SCRATCH_ADDRESS = 1 << 20


def fresh_scratch(size: int) -> Pointer:
    """Poisoned scratch memory of one worker or of the main function."""
    return fresh_memory(size, SCRATCH_ADDRESS, "scratch memory")


def hand_over(frame: Frame, op: LoopYield) -> list[RuntimeValue]:
    return [frame.values[value] for value in op.values]


def loop(frame: Frame, op: For) -> Sequence[RuntimeValue]:
    states: Sequence[RuntimeValue] = [frame.values[value] for value in op.initial]
    lower, upper, step = frame.integers([op.lower, op.upper, op.step])
    for coordinate in range(lower, upper, step):
        states = frame.run(op.body, [np.asarray(coordinate, np.int64), *states])
    return states


def branch(frame: Frame, op: LoopIf) -> Sequence[RuntimeValue]:
    taken = op.regions[0 if frame.array(op.condition) else 1]
    return frame.run(taken.block, [])


def launch(frame: Frame, op: Launch) -> list[RuntimeValue]:
    captured = [frame.values[value] for value in op.captured]
    for begin, end in _chunks(frame, frame.integer(op.total)):
        scratch = fresh_scratch(op.scratch_bytes)
        limits = [np.asarray(limit, np.int64) for limit in (begin, end)]
        frame.call(op.callee, [*limits, scratch, *captured])
    return []


def _chunks(frame: Frame, total: int) -> list[tuple[int, int]]:
    """Ranges that cover [0, total), cut evenly in order or as the run's seed draws."""
    if total <= 0:
        return []
    inner = [total * cut // CHUNKS for cut in range(1, CHUNKS)]
    if frame.order is not None:
        inner = sorted(frame.order.integers(0, total, CHUNKS - 1).tolist())
    limits = [0, *inner, total]
    chunks = [pair for pair in itertools.pairwise(limits) if pair[0] < pair[1]]
    if frame.order is not None:
        frame.order.shuffle(chunks)
    return chunks


def offset(frame: Frame, op: Offset) -> list[Pointer]:
    base = frame.pointer(op.pointer)
    moved = frame.integer(op.index) * op.scale + op.constant
    return [Pointer(base.memory, base.offset + moved)]


def check(frame: Frame, op: Check) -> list[RuntimeValue]:
    if op.condition is not None and not frame.array(op.condition):
        return []
    first, extent = frame.integers([op.first, op.extent])
    if first >= 0 and first + op.count <= extent:
        return []
    raise OutOfBounds(
        f"{op.access}: axis {op.axis} has extent {extent}, the index is "
        f'{first if first < 0 else max(first, extent)} (bounds="check")',
        remedy='keep the access inside, mask it, or use bounds="zero"',
    )


def load(frame: Frame, op: AddressLoad) -> list[Array]:
    pointer = frame.pointer(op.pointer)
    _demand_alignment(pointer, op.align, op.NAME)
    shape = shape_of(op.result.type)
    return [_fetch(frame, op, pointer, _contiguous(op.result, shape), shape)]


def store(frame: Frame, op: AddressStore) -> list[Array]:
    pointer = frame.pointer(op.pointer)
    _demand_alignment(pointer, op.align, op.NAME)
    value = frame.array(op.value)
    _put(frame, op, pointer, _contiguous(op.value, value.shape), value)
    return []


def atomic(frame: Frame, op: AddressAtomic) -> list[Array]:
    pointer, dtype = frame.pointer(op.pointer), element_dtype(op.value.type)
    if not _mask(frame, op.mask):
        return [np.zeros((), numpy_dtype(dtype))]
    _demand_alignment(pointer, dtype.bytes, op.NAME)
    touched = _touch(pointer, np.zeros(1, np.int64), dtype.bytes, op.NAME)
    old = np.ascontiguousarray(pointer.memory.data[touched]).view(numpy_dtype(dtype)).reshape(())
    given = [frame.array(value) for value in (op.value, op.expected) if value is not None]
    seen, new = updated(op.function, dtype, old, given)
    pointer.memory.data[touched] = np.ascontiguousarray(new).view(np.uint8).reshape(touched.shape)
    return [seen]


def gather(frame: Frame, op: Gather) -> list[Array]:
    pointer = frame.pointer(op.pointer)
    steps = frame.array(op.offsets).astype(np.int64) * op.scale
    return [_fetch(frame, op, pointer, steps, steps.shape)]


def scatter(frame: Frame, op: Scatter) -> list[Array]:
    pointer = frame.pointer(op.pointer)
    steps = frame.array(op.offsets).astype(np.int64) * op.scale
    _put(frame, op, pointer, steps, frame.array(op.value))
    return []


def _contiguous(value: Value, shape: tuple[int, ...]) -> Array:
    """Byte offset of every lane from the first."""
    lanes = np.arange(shape[0] if shape else 1, dtype=np.int64)
    return lanes.reshape(shape) * element_dtype(value.type).bytes


def _fetch(
    frame: Frame,
    op: AddressLoad | Gather,
    pointer: Pointer,
    steps: Array,
    shape: tuple[int, ...],
) -> Array:
    """Read the active lanes; the others give `otherwise`, or poison."""
    dtype = element_dtype(op.result.type)
    active = np.broadcast_to(_mask(frame, op.mask), shape)
    touched = _touch(pointer, steps[active], dtype.bytes, op.NAME)
    data = np.ascontiguousarray(pointer.memory.data[touched])
    result = np.full((*shape, dtype.bytes), 0xFF, np.uint8)
    result[active] = data
    # Any byte but 0 is true, which NumPy does not promise for a reinterpreted bool.
    elements = (result != 0) if dtype.is_bool else result.view(numpy_dtype(dtype))
    elements = elements.reshape(shape)
    if op.otherwise is None:
        return elements
    return np.where(active, elements, frame.array(op.otherwise))


def _put(
    frame: Frame, op: AddressStore | Scatter, pointer: Pointer, steps: Array, value: Array
) -> None:
    active = np.broadcast_to(_mask(frame, op.mask), value.shape)
    touched = _touch(pointer, steps[active], value.itemsize, op.NAME)
    data = np.ascontiguousarray(value[active]).view(np.uint8).reshape(touched.shape)
    pointer.memory.data[touched] = data


def _mask(frame: Frame, mask: Value | None) -> Array:
    return np.ones((), np.bool_) if mask is None else frame.array(mask)


def _touch(pointer: Pointer, steps: Array, size: int, action: str) -> Array:
    """The byte positions of elements, all of them inside what the memory's owner has."""
    memory = pointer.memory
    positions = (pointer.offset + steps)[:, np.newaxis] + np.arange(size)
    inside = (positions >= 0) & (positions < memory.data.size)
    inside[inside] = memory.allowed[positions[inside]]
    if not inside.all():
        place = int(positions[~inside][0])
        raise InternalError(f"{action} touches byte {place} of {memory.name}, which is outside")
    return positions


def _demand_alignment(pointer: Pointer, align: int, action: str) -> None:
    if pointer.address % align:
        raise InternalError(
            f"{action} claims {align}-byte alignment for byte {pointer.offset} of "
            f"{pointer.memory.name}"
        )


def splat(frame: Frame, op: Splat) -> list[Array]:
    return [np.broadcast_to(frame.array(op.value), shape_of(op.result.type))]


def lanes(_: Frame, op: Lanes) -> list[Array]:
    type_ = op.result.type
    assert isinstance(type_, VectorType)
    return [cast(np.arange(type_.lanes, dtype=np.int64), index, type_.dtype)]


def lane_mask(frame: Frame, op: LaneMask) -> list[Array]:
    return [np.arange(shape_of(op.result.type)[0]) < frame.integer(op.count)]


HANDLERS: dict[type[Operation], Handler] = {
    LoopYield: hand_over,
    For: loop,
    LoopIf: branch,
    Launch: launch,
    Offset: offset,
    Check: check,
    AddressLoad: load,
    AddressStore: store,
    AddressAtomic: atomic,
    Gather: gather,
    Scatter: scatter,
    Splat: splat,
    Lanes: lanes,
    LaneMask: lane_mask,
}
