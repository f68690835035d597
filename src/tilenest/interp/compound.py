"""The meaning of tuples and tile arrays.

In: values and slots. Out: what they are made of. A borrowed array reads its parent when a slot is
asked for; an array that is filled remembers its slots, and refuses a slot set twice, a slot outside
and a whole with slots missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tilenest.dialects import (
    Aggregate,
    ArrayAssemble,
    ArrayGet,
    ArrayMake,
    ArraySet,
    Extract,
    Partition,
)
from tilenest.errors import OutOfBounds, TileArrayError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.tile import Window
from tilenest.interp.values import (
    Array,
    Borrowed,
    RuntimeValue,
    Slots,
    TupleValue,
    numpy_dtype,
    shape_of,
)
from tilenest.ir import ArrayType, Operation, Value


def aggregate(frame: Frame, op: Aggregate) -> list[TupleValue]:
    return [TupleValue(tuple(frame.values[item] for item in op.items))]


def extract(frame: Frame, op: Extract) -> list[RuntimeValue]:
    whole = frame.values[op.aggregate]
    assert isinstance(whole, TupleValue)
    return [whole.items[op.index]]


def partition(frame: Frame, op: Partition) -> list[Borrowed]:
    whole = frame.values[op.whole]
    if isinstance(whole, np.ndarray):
        return [Borrowed(whole, (0,) * whole.ndim)]
    return [Borrowed(frame.view(op.whole), tuple(frame.integers(op.origins)))]


def get(frame: Frame, op: ArrayGet) -> list[Array]:
    borrowed = frame.values[op.array]
    assert isinstance(borrowed, Borrowed)
    slot = _slot(frame, op.array, op.indices)
    extents = shape_of(op.result.type)
    origins = [
        base + at * extent for base, at, extent in zip(borrowed.origins, slot, extents, strict=True)
    ]
    if not isinstance(borrowed.whole, np.ndarray):
        window = Window(borrowed.whole, tuple(origins), extents)
        return [window.read(np.zeros((), borrowed.whole.dtype))]
    region = tuple(
        slice(first, first + extent) for first, extent in zip(origins, extents, strict=True)
    )
    return [borrowed.whole[region]]


def make(_frame: Frame, _op: ArrayMake) -> list[Slots]:
    return [Slots({})]


def set_slot(frame: Frame, op: ArraySet) -> list[Slots]:
    slots = _slots(frame, op.array)
    slot = _slot(frame, op.array, op.indices)
    if slot in slots.tiles:
        raise TileArrayError(
            f"slot {slot} of a tile array is set twice", remedy="set every slot once"
        )
    return [Slots({**slots.tiles, slot: frame.array(op.value)})]


def assemble(frame: Frame, op: ArrayAssemble) -> list[Array]:
    type_ = op.array.type
    assert isinstance(type_, ArrayType)
    tiles = _slots(frame, op.array).tiles
    grid = list(itertools.product(*map(range, type_.shape)))
    missing = [slot for slot in grid if slot not in tiles]
    if missing:
        raise TileArrayError(
            f"a tile array is assembled, but slot {missing[0]} is not set"
            + (f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""),
            remedy="set every slot before the whole is assembled",
        )
    whole = np.empty(shape_of(op.result.type), numpy_dtype(type_.element.dtype))
    for slot in grid:
        region = tuple(
            slice(at * extent, (at + 1) * extent)
            for at, extent in zip(slot, type_.element.shape, strict=True)
        )
        whole[region] = tiles[slot]
    return [whole]


def _slots(frame: Frame, array: Value) -> Slots:
    found = frame.values[array]
    assert isinstance(found, Slots)
    return found


def _slot(frame: Frame, array: Value, indices: Sequence[Value]) -> tuple[int, ...]:
    """The slot that the indices name."""
    type_ = array.type
    assert isinstance(type_, ArrayType)
    slot = tuple(frame.integers(indices))
    if any(at not in range(extent) for at, extent in zip(slot, type_.shape, strict=True)):
        raise OutOfBounds(
            f"slot {slot} lies outside a tile array of {' x '.join(map(str, type_.shape))} slots",
            remedy="name a slot from 0 on along every axis",
        )
    return slot


HANDLERS: dict[type[Operation], Handler] = {
    Aggregate: aggregate,
    Extract: extract,
    Partition: partition,
    ArrayGet: get,
    ArrayMake: make,
    ArraySet: set_slot,
    ArrayAssemble: assemble,
}
