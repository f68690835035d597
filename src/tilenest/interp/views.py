"""The meaning of views: facts, views of views, and elements read and written through them.

In: views, and one array of coordinates an axis, broadcastable with each other. Out: elements, or
elements written. A view of views is followed down map by map: what leaves a view on the way is
padding where the view above it pads, and otherwise outside. Reads give what the access says
outside, and the fill in padding; nothing is written at either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilenest.dialects import Extent, Remap, Stride
from tilenest.errors import InternalError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.index_maps import coordinates, inside, read_at, write_at
from tilenest.interp.values import Array, Remapped, Storage, View
from tilenest.ir import Operation
from tilenest.layouts import AffineMap
from tilenest.records import record


def extent(frame: Frame, op: Extent) -> list[Array]:
    return [np.asarray(frame.view(op.view).shape[op.axis], np.int64)]


def stride(frame: Frame, op: Stride) -> list[Array]:
    return [np.asarray(_stride(frame.view(op.view), op.axis), np.int64)]


def _stride(view: View, axis: int) -> int:
    if isinstance(view, Storage):
        return view.array.strides[axis] // view.array.itemsize
    steps = [result.coefficient(axis) for result in view.op.map.results]
    if None in steps:
        raise InternalError(f"a view of {view.name} has no stride along axis {axis}")
    return sum(step * _stride(view.below, below) for below, step in enumerate(steps) if step)


def remap(frame: Frame, op: Remap) -> list[Remapped]:
    sizes = [op.extent(axis) for axis in range(op.map.n_dims)]
    # Along a run-time extent below 0 there are no elements, as along 0.
    shape = tuple(size if isinstance(size, int) else frame.integer(size) for size in sizes)
    return [Remapped(frame.view(op.view), op, tuple(frame.integers(op.symbols)), shape)]


@record(eq=False)
class Landing:
    """Where coordinates come to lie in the storage; elsewhere they are in padding, or outside."""

    storage: Storage
    places: Sequence[Array]
    is_there: Array
    is_padding: Array
    padding: Array

    @property
    def is_outside(self) -> Array:
        return ~(self.is_there | self.is_padding)


def land(view: View, places: Sequence[Array], rank: int) -> Landing:
    """Follow coordinates over a grid of the rank down to the storage."""
    here = list(places)
    is_there = inside(here, view.shape, rank)
    is_padding = np.zeros((1,) * rank, np.bool_)
    padding = np.zeros((1,) * rank, view.dtype)
    while isinstance(view, Remapped):
        lower, stays = _below(view, here, is_there)
        fill = view.op.fill_number
        if fill is not None:
            is_own = is_there & ~stays
            is_padding = is_padding | is_own
            padding = np.where(is_own, np.asarray(fill, view.dtype), padding)
        is_there, here, view = is_there & stays, lower, view.below
    return Landing(view, here, is_there, is_padding, padding)


def read(view: View, places: Sequence[Array], rank: int, outside: Array) -> Array:
    """The elements at the coordinates over a grid of the rank."""
    found = land(view, places, rank)
    elements = read_at(found.storage.array, found.places, found.is_there, outside)
    return np.where(found.is_padding, found.padding, elements)


def write(view: View, places: Sequence[Array], wanted: Array, value: Array) -> None:
    """Write where wanted and where there is an element, in lexicographic order of the grid."""
    found = land(view, places, wanted.ndim)
    write_at(found.storage.array, found.places, found.is_there & wanted, value)


def left_by(view: View, place: Sequence[int]) -> tuple[View, int, int]:
    """The first view on the way down that coordinates outside of it leave, along which axis, and
    the index there."""
    while True:
        for axis, (at, extent) in enumerate(zip(place, view.shape, strict=True)):
            if not 0 <= at < extent:
                return view, axis, at
        if not isinstance(view, Remapped):
            raise InternalError(f"the coordinates {tuple(place)} are inside of {view.name}")
        place, view = view.op.map.evaluate(place, view.symbols), view.below


def _below(view: Remapped, places: Sequence[Array], valid: Array) -> tuple[list[Array], Array]:
    """The coordinates in the view below, and where they stay inside of it."""
    safe = [np.where(valid, place, 0) for place in places]
    lower = coordinates(view.op.map, safe, view.symbols)
    stays = inside(lower, view.below.shape, valid.ndim)
    conditions = AffineMap(view.op.map.n_dims, view.op.map.n_syms, view.op.conditions)
    for slack in coordinates(conditions, safe, view.symbols):
        stays = stays & (slack >= 0).astype(np.bool_)
    return lower, stays


HANDLERS: dict[type[Operation], Handler] = {Extent: extent, Stride: stride, Remap: remap}
