"""The meaning of views: facts, views of views, and elements read and written through them.

In: views, and one array of coordinates an axis, broadcastable with each other. Out: elements, or
elements written. A view of views is followed down map by map: where a coordinate leaves a view on
the way there is no element, so reads give that view's fill and writes are dropped.
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


def read(view: View, places: Sequence[Array], rank: int, fill: Array) -> Array:
    """The elements at the coordinates over a grid of the rank, `fill` where there is none."""
    valid = inside(places, view.shape, rank)
    if isinstance(view, Storage):
        return read_at(view.array, places, valid, fill)
    lower, exists = _below(view, places, valid)
    own = np.asarray(view.op.fill_number, view.dtype)
    return np.where(valid, np.where(exists, read(view.below, lower, rank, own), own), fill)


def write(view: View, places: Sequence[Array], wanted: Array, value: Array) -> None:
    """Write where wanted and where there is an element, in lexicographic order of the grid."""
    valid = inside(places, view.shape, wanted.ndim) & wanted
    if isinstance(view, Storage):
        write_at(view.array, places, valid, value)
        return
    lower, exists = _below(view, places, valid)
    write(view.below, lower, valid & exists, value)


def _below(view: Remapped, places: Sequence[Array], valid: Array) -> tuple[list[Array], Array]:
    """The coordinates in the view below, and where the view has an element at all."""
    safe = [np.where(valid, place, 0) for place in places]
    exists = np.ones((1,) * valid.ndim, np.bool_)
    conditions = AffineMap(view.op.map.n_dims, view.op.map.n_syms, view.op.conditions)
    for slack in coordinates(conditions, safe, view.symbols):
        exists = exists & (slack >= 0).astype(np.bool_)
    return coordinates(view.op.map, safe, view.symbols), exists


HANDLERS: dict[type[Operation], Handler] = {Extent: extent, Stride: stride, Remap: remap}
