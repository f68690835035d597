"""Moves of tile elements as IR: slices, projections, transposes, reshapes, broadcasts.

In: a tile's IR value and, for each of its dims, the coordinate to read as an index expression over
the result's dims and run-time symbols. Out: the IR value of one `tile.reindex`. Coordinates outside
the tile read 0, so every one of these moves is total.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilenest.dialects import Reindex
from tilenest.errors import ShapeError, shown
from tilenest.ir import Value, element_dtype
from tilenest.language.elements import dims_of, type_over
from tilenest.language.session import Session
from tilenest.layouts import (
    AffineMap,
    Const,
    Dim,
    DimRef,
    IndexExpr,
    Ranges,
    Sym,
    dims_compatible_by_position,
    namesakes_hint,
    positional_dim,
    simplify,
)


class Symbols:
    """The run-time values of one map, each once, in order of first use."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Value] = []

    def expression(self, position: int | Value) -> IndexExpr:
        """A coordinate as an expression over this symbol list."""
        if isinstance(position, int):
            return Const(position)
        if position not in self.values:
            self.values.append(position)
        return Sym(self.values.index(position))


def reindex_value(
    session: Session,
    value: Value,
    dims: tuple[Dim, ...],
    coordinates: Sequence[IndexExpr],
    symbols: Symbols | None = None,
) -> Value:
    """The tile (or scalar) over `dims` that reads `value` at `coordinates`."""
    runtime = symbols.values if symbols is not None else []
    mapping = AffineMap(len(dims), len(runtime), tuple(coordinates))
    operation = Reindex(
        result_types=[type_over(element_dtype(value.type), dims)],
        value=value,
        symbols=runtime,
        map=mapping,
    )
    return session.insert(operation).result


def slice_value(
    session: Session, value: Value, origin: Sequence[int | Value], dims: tuple[Dim, ...]
) -> Value:
    """The part of a tile at `origin`, over `dims` (one per dim of the tile)."""
    symbols = Symbols()
    coordinates = [
        DimRef(axis) + symbols.expression(position) for axis, position in enumerate(origin)
    ]
    return reindex_value(session, value, dims, coordinates, symbols)


def project_value(session: Session, value: Value, fixed: dict[Dim, int | Value]) -> Value:
    """A tile without the dims in `fixed`, read at their coordinates."""
    dims = dims_of(value)
    kept = tuple(dim for dim in dims if dim not in fixed)
    symbols = Symbols()
    coordinates = [
        symbols.expression(fixed[dim]) if dim in fixed else DimRef(kept.index(dim)) for dim in dims
    ]
    return reindex_value(session, value, kept, coordinates, symbols)


def permute_value(session: Session, value: Value, order: Sequence[int]) -> Value:
    """The tile with its dims in another order; dims of plain ints take their new positions."""
    dims = dims_of(value)
    moved = _renumbered([dims[axis] for axis in order])
    coordinates = [DimRef(order.index(axis)) for axis in range(len(dims))]
    return reindex_value(session, value, moved, coordinates)


def relabel_value(session: Session, value: Value, dims: tuple[Dim, ...]) -> Value:
    """The same elements over other dims of the same extents."""
    if dims_of(value) == dims:
        return value
    return reindex_value(session, value, dims, [DimRef(axis) for axis in range(len(dims))])


def reshape_value(session: Session, value: Value, dims: tuple[Dim, ...]) -> Value:
    """The same elements in row-major order over other dims of equal volume."""
    source = [dim.extent for dim in dims_of(value)]
    target = [dim.extent for dim in dims]
    if prod(source) != prod(target):
        raise ShapeError(
            f"{prod(source)} elements of shape {tuple(source)} do not fill {shown(tuple(target))}",
            remedy="reshape to a shape with the same number of elements",
        )
    if prod(source) == 0:
        return reindex_value(session, value, dims, [Const(0)] * len(source))
    ranges: Ranges = {DimRef(axis): (0, extent - 1) for axis, extent in enumerate(target)}
    linear: IndexExpr = Const(0)
    for axis, extent in enumerate(target):
        linear = linear * extent + DimRef(axis)
    coordinates: list[IndexExpr] = []
    stride = prod(source)
    for extent in source:
        stride //= extent
        coordinates.append(simplify(linear // stride % extent, ranges))
    return reindex_value(session, value, dims, coordinates)


def broadcast_value(session: Session, value: Value, dims: tuple[Dim, ...]) -> Value:
    """A tile repeated over the dims it lacks; extents of 1 are repeated too."""
    source = dims_of(value)
    try:
        positions = dims_compatible_by_position(source, dims)
    except ShapeError as error:
        raise ShapeError(
            f"a tile of shape {tuple(dim.extent for dim in source)} does not broadcast to "
            f"{tuple(dim.extent for dim in dims)}",
            remedy="broadcast to a shape that has every dim of the tile"
            f"{namesakes_hint((*source, *dims))}",
        ) from error
    coordinates = [Const(0) if place is None else DimRef(place) for place in positions]
    return reindex_value(session, value, dims, coordinates)


def _renumbered(dims: Sequence[Dim]) -> tuple[Dim, ...]:
    last = len(dims) - 1
    return tuple(
        dim if dim.position is None else positional_dim(last - axis, dim.extent)
        for axis, dim in enumerate(dims)
    )
