"""Views of views as IR: what `A.slice`, `A.T`, `A.reshape` and the like emit.

In: a view's IR value and its host facts. Out: the IR value of one `view.remap`, and for each of its
axes what the host knows: an extent, and which axis of the given view it is. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilenest.analysis import shows_elements_once
from tilenest.dialects import Apply, Extent, Remap, chain_of, views
from tilenest.errors import CaptureError, RankError, ShapeError, shown
from tilenest.ir import INDEX, OpResult, Value, index
from tilenest.language.elements import constant
from tilenest.language.index_maps import IndexMap, size_of
from tilenest.language.positions import host_int, positions_of
from tilenest.language.session import Session
from tilenest.layouts import Dim
from tilenest.records import record


@record(eq=False)
class Derived:
    """A view of a view. `extents` are host ints or None; axis i of it is axis `axes[i]` of the view
    it was made of, or None where it is an axis of its own."""

    operation: Remap
    extents: tuple[int | None, ...]
    axes: tuple[int | None, ...]


def _derived(operation: Remap, axes: Sequence[int | None] | None = None) -> Derived:
    sizes = [operation.extent(axis) for axis in range(operation.map.n_dims)]
    extents = tuple(size if isinstance(size, int) else None for size in sizes)
    return Derived(operation, extents, tuple(axes or (None,) * len(sizes)))


def sliced(
    session: Session, view: Value, name: str, origin: object, shape: object, step: object
) -> Derived:
    """Every `step`-th element from `origin` on, as many as `shape` says."""
    rank = views.view_type(view).rank
    starts = positions_of(session, origin, rank, f"the origin of {name}.slice")
    items = shape if isinstance(shape, tuple | list) else (shape,)
    steps = step if isinstance(step, tuple | list) else (step,) * rank
    if len(items) != rank or len(steps) != rank:
        raise RankError(
            f"{name}.slice gets {len(items)} extents and {len(steps)} steps for {rank} axes",
            remedy="give one of each per axis",
        )
    counts = [size_of(session, item) for item in items]
    strides = [host_int(item) for item in steps]
    if not all(strides):
        wrong = next(item for item, stride in zip(steps, strides, strict=True) if not stride)
        raise CaptureError(
            f"a step of {name}.slice is {shown(wrong)}",
            remedy="use ints other than 0: a negative step walks back from the origin",
        )
    known = [stride for stride in strides if stride is not None]
    return _derived(views.strided_slice(session.insert, view, starts, counts, known))


def permuted(session: Session, view: Value, name: str, order: Sequence[object]) -> Derived:
    """The axes in another order."""
    rank = views.view_type(view).rank
    places = [host_int(item) for item in order]
    axes = [place % rank for place in places if place is not None and -rank <= place < rank]
    if sorted(axes) != list(range(rank)) or len(places) != rank:
        raise RankError(
            f"{name}.permute orders {shown(tuple(order))} of a view with {rank} axes",
            remedy="name every axis once, counted from 0",
        )
    return _derived(views.permute(session.insert, view, axes), axes)


def reshaped(
    session: Session, view: Value, name: str, known: Sequence[int], rows: views.Size, shape: object
) -> Derived:
    """The elements in row-major order over `shape`.

    `known` are the extents of all axes but the first, `rows` is that of the first. One extent may
    be -1; where it is the first and what follows divides a row, the rows may be known at run time.
    """
    items = [_extent(item, name) for item in _tuple(shape)]
    row, rest = prod(known), prod(items[1:])
    source = [rows, *known]
    if isinstance(rows, Value):
        if items[:1] != [-1] or -1 in items[1:] or not rest or row % rest:
            raise ShapeError(
                f"{name}.reshape to {shown(tuple(items))} depends on an extent known only at run "
                "time",
                remedy="let the first extent be -1 and the others divide a row, or specialise the "
                "kernel on the array's shape",
            )
        first = _scaled(session, rows, row // rest)
        return _derived(views.reshape(session.insert, view, source, [first, *items[1:]]))
    total = rows * row
    if items.count(-1) == 1:
        others = prod(item for item in items if item != -1)
        items[items.index(-1)] = total // others if others else 0
    if prod(items) != total or -1 in items:
        raise ShapeError(
            f"{total} elements of {name} do not fill {shown(tuple(items))}",
            remedy="reshape to a shape with the same number of elements",
        )
    return _derived(views.reshape(session.insert, view, source, items))


def broadcasted(
    session: Session, view: Value, name: str, known: Sequence[int], shape: object
) -> Derived:
    """Axes of extent 1 repeated, and new axes in front; `known` are the view's extents."""
    sizes = [_known_size(size_of(session, item), view, known) for item in _tuple(shape)]
    ahead = len(sizes) - len(known)
    places: list[int | None] = []
    for axis, extent in enumerate(known):
        size = sizes[ahead + axis] if ahead >= 0 else None
        if extent != size and extent != 1:
            raise ShapeError(
                f"{name} of shape {tuple(known)} does not broadcast to {_texts(sizes)}",
                remedy="keep the extents other than 1, counted from the last axis, as "
                f"{name}.shape[{axis}]",
            )
        places.append(ahead + axis if extent == size else None)
    if ahead < 0:
        raise ShapeError(
            f"{name} of rank {len(known)} does not broadcast to {_texts(sizes)}",
            remedy="broadcast to at least as many axes",
        )
    return _derived(views.broadcast(session.insert, view, sizes, places))


def _known_size(size: views.Size, view: Value, known: Sequence[int]) -> views.Size:
    """An extent, as a host int where it is asked of the view itself."""
    asked = size.owner if isinstance(size, OpResult) else None
    return known[asked.axis] if isinstance(asked, Extent) and asked.view is view else size


def remapped(session: Session, view: Value, map_: IndexMap) -> Derived:
    """The view whose element d is the one that the map says."""
    for symbol in map_.symbols:
        session.check_visible(symbol)
    return _derived(views.remap(session.insert, view, map_.map, map_.sizes, map_.symbols))


def _scaled(session: Session, rows: Value, factor: int) -> Value:
    operation = Apply(
        arguments=[rows, constant(session, factor, index)],
        function="mul",
        result_types=[INDEX],
    )
    return session.insert(operation).result


def has_stride(view: Value, axis: int) -> bool:
    """Whether neighbours along an axis are everywhere equally far apart."""
    chain = chain_of(view)
    if not chain:
        return True
    steps = [result.coefficient(axis) for result in chain[0].map.results]
    return all(
        step is not None and (not step or has_stride(chain[0].view, below))
        for below, step in enumerate(steps)
    )


def is_writable(view: Value) -> bool:
    """Whether no two places of the view are one element of the array."""
    return all(shows_elements_once(op).is_proven for op in chain_of(view))


def _extent(item: object, name: str) -> int:
    """A host int, -1 for what is left."""
    extent = item.extent if isinstance(item, Dim) else host_int(item)
    if extent is None or extent < -1:
        raise ShapeError(
            f"{shown(item)} is an extent of {name}.reshape",
            remedy="use ints and axes, and -1 for at most one",
        )
    return extent


def _texts(sizes: Sequence[views.Size]) -> str:
    return f"({', '.join(shown(size) if isinstance(size, int) else '?' for size in sizes)})"


def _tuple(items: object) -> Sequence[object]:
    return items if isinstance(items, tuple | list) else (items,)
