"""The meaning of tile values: loads, stores, maps, reindexing, matrix multiply-accumulate.

In: storage and tiles as arrays with one axis per dim. Out: new arrays; a load is a copy. Origins
are Python integers, so a window far outside its view cannot wrap back in. `mma` walks K upwards
and rounds once per step: its results are the bit-exact reference.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tilenest.dialects import Atomic, Load, Map, Mma, Reindex, Store
from tilenest.errors import InternalError, OutOfBounds
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.functions import cast
from tilenest.interp.index_maps import coordinates, inside, open_grid, read_at
from tilenest.interp.rounding import fused_multiply_add
from tilenest.interp.values import Array, Storage, View, dims_of, spread
from tilenest.interp.views import land, left_by, read, write
from tilenest.ir import Operation, Value, element_dtype
from tilenest.layouts import Dim
from tilenest.records import record


@record
class Window:
    """A box of a view: where its elements lie in the tile and in the array."""

    view: View
    origins: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def overlap(self) -> list[tuple[int, int]]:
        """Per axis the range of tile coordinates that are inside."""
        ranges = []
        for origin, extent, size in zip(self.origins, self.extents, self.view.shape, strict=True):
            start = min(max(0, -origin), extent)
            ranges.append((start, max(start, min(extent, size - origin))))
        return ranges

    @property
    def in_tile(self) -> tuple[slice, ...]:
        return tuple(slice(start, stop) for start, stop in self.overlap)

    @property
    def in_array(self) -> tuple[slice, ...]:
        return tuple(
            slice(start + origin, stop + origin) if stop > start else slice(0, 0)
            for (start, stop), origin in zip(self.overlap, self.origins, strict=True)
        )

    @property
    def places(self) -> list[Array]:
        """The coordinates of every element, along their axes, as unbounded integers."""
        grid = open_grid(self.extents)
        return [
            axis.astype(np.object_) + origin
            for axis, origin in zip(grid, self.origins, strict=True)
        ]

    def read(self, outside: Array) -> Array:
        """A copy of the elements, `outside` where there are none."""
        if isinstance(self.view, Storage):
            result = np.array(np.broadcast_to(outside, self.extents))
            result[self.in_tile] = self.view.array[self.in_array]
            return result
        found = read(self.view, self.places, len(self.extents), outside)
        return np.array(np.broadcast_to(found, self.extents))

    def write(self, value: Array, chosen: Array) -> None:
        """Write the elements that are chosen."""
        if not isinstance(self.view, Storage):
            write(self.view, self.places, np.broadcast_to(chosen, self.extents), value)
            return
        np.copyto(
            self.view.array[self.in_array],
            np.broadcast_to(value, self.extents)[self.in_tile],
            where=np.broadcast_to(chosen, self.extents)[self.in_tile],
        )

    def refuse_outside(self, mask: Array | None, action: str, bounds: str) -> None:
        """Raise when an element that is asked for lies outside."""
        outside = self._is_outside()
        if mask is not None:
            outside = outside & mask
        if outside.any():
            at = [int(place) for place in np.argwhere(outside)[0]]
            raise self._error(at, action, bounds)

    def _is_outside(self) -> Array:
        if isinstance(self.view, Storage):
            outside = np.ones(self.extents, np.bool_)
            outside[self.in_tile] = False
            return outside
        landing = land(self.view, self.places, len(self.extents))
        return np.broadcast_to(landing.is_outside, self.extents)

    def _error(self, at: Sequence[int], action: str, bounds: str) -> OutOfBounds:
        place = tuple(origin + step for origin, step in zip(self.origins, at, strict=True))
        view, axis, index = left_by(self.view, place)
        where = f" at index {place}" if view is self.view else ""
        return OutOfBounds(
            f"{action} of {view.name}{where}: axis {axis} has extent {view.shape[axis]}, "
            f'the index is {index} (bounds="{bounds}")',
            remedy='keep the access inside, mask it, or use bounds="zero"',
        )


def load(frame: Frame, op: Load) -> list[Array]:
    dims = dims_of(op.result.type)
    window = window_of(frame, op, dims)
    mask = spread_over(frame, op.mask, dims, window)
    if op.bounds != "zero":
        window.refuse_outside(mask, "load", op.bounds)
    other = spread_over(frame, op.other, dims, window)
    outside = np.zeros((), window.view.dtype) if other is None else other
    result = window.read(outside)
    if mask is not None:
        result = np.where(mask, result, outside)
    return [result.reshape([dim.extent for dim in dims])]


def store(frame: Frame, op: Store) -> list[Array]:
    dims = op.dims
    window = window_of(frame, op, dims)
    mask = spread_over(frame, op.mask, dims, window)
    if op.bounds != "zero":
        window.refuse_outside(mask, "store", op.bounds)
    value = spread_over(frame, op.value, dims, window)
    assert value is not None
    if value.dtype != window.view.dtype:
        raise InternalError(f"{value.dtype} is stored to {window.view.dtype}")
    window.write(value, np.ones((), np.bool_) if mask is None else mask)
    return []


def window_of(frame: Frame, op: Load | Store | Atomic, dims: tuple[Dim, ...]) -> Window:
    origins = tuple(frame.integers(op.origins))
    extents = tuple(dim.extent for dim in dims) or (1,) * len(origins)
    return Window(frame.view(op.view), origins, extents)


def spread_over(
    frame: Frame, value: Value | None, dims: tuple[Dim, ...], window: Window
) -> Array | None:
    """An optional operand, broadcastable over the window."""
    if value is None:
        return None
    array = spread(frame.array(value), dims_of(value.type), dims)
    return array if dims else array.reshape((1,) * len(window.extents))


def map_elements(frame: Frame, op: Map) -> list[Array]:
    dims = dims_of(op.result.type)
    extents = [dim.extent for dim in dims]
    elements = [spread(frame.array(value), dims_of(value.type), dims) for value in op.inputs]
    (result,) = frame.run_lifted(op.body, [*open_grid(extents), *elements])
    return [np.broadcast_to(result, extents)]


def reindex(frame: Frame, op: Reindex) -> list[Array]:
    value = frame.array(op.value)
    symbols = frame.integers(op.symbols)
    extents = [dim.extent for dim in dims_of(op.result.type)]
    if not extents:
        return [_element(value, op.map.evaluate((), symbols))]
    places = coordinates(op.map, open_grid(extents), symbols)
    valid = inside(places, value.shape, len(extents))
    result = read_at(value, places, valid, np.zeros((), value.dtype))
    return [np.broadcast_to(result, extents)]


def _element(value: Array, place: tuple[int, ...]) -> Array:
    """One element as an array of rank 0, or 0 outside."""
    is_inside = all(0 <= at < size for at, size in zip(place, value.shape, strict=True))
    return np.asarray(value[place] if is_inside else 0, value.dtype)


def mma(frame: Frame, op: Mma) -> list[Array]:
    a_dims, b_dims = dims_of(op.a.type), dims_of(op.b.type)
    dims = dims_of(op.result.type)
    inner = tuple(dim for dim in a_dims if dim in b_dims and dim not in dims)
    dtype = element_dtype(op.result.type)
    a, b = (
        spread(cast(frame.array(side), element_dtype(side.type), dtype), dims_of(side.type), all_)
        for side, all_ in ((op.a, inner + dims), (op.b, inner + dims))
    )
    extents = [dim.extent for dim in dims]
    total = np.broadcast_to(spread(frame.array(op.c), dims_of(op.c.type), dims), extents)
    for point in itertools.product(*(range(dim.extent) for dim in inner)):
        if dtype.is_float:
            total = fused_multiply_add(dtype, a[point], b[point], total)
        else:
            total = total + a[point] * b[point]
    return [np.asarray(total)]


HANDLERS: dict[type[Operation], Handler] = {
    Load: load,
    Store: store,
    Map: map_elements,
    Reindex: reindex,
    Mma: mma,
}
