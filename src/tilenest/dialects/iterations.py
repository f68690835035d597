"""Iteration spaces of operations on tiles: their dims, and the maps to what they touch.

In: operands, and the dims of what is computed. Out: the parts of an `Iteration`, and accesses of
windows. A tile meets a space of dims as elementwise work has it: by the identity of its dims,
reading index 0 along a dim that the space lacks; what is stored may also meet a region by position.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.ir import (
    BufType,
    EffectKind,
    IterationDim,
    ScalarType,
    TileType,
    Touch,
    Type,
    Value,
    ViewType,
)
from tilenest.layouts import AffineMap, Const, Dim, DimRef, Sym, dims_compatible_by_position


def dims_of(type_: Type) -> tuple[Dim, ...]:
    """The dims of a tile; a scalar has none."""
    return type_.dims if isinstance(type_, TileType) else ()


def rank_of(type_: Type) -> int | None:
    """How many coordinates an element has; None where there are no elements to address."""
    if isinstance(type_, TileType):
        return len(type_.dims)
    if isinstance(type_, ViewType | BufType):
        return len(type_.shape)
    return 0 if isinstance(type_, ScalarType) else None


def parallel_dims(dims: Sequence[Dim]) -> tuple[IterationDim, ...]:
    """One iteration a coordinate, all of them independent."""
    return tuple(IterationDim(dim.extent) for dim in dims)


def broadcast_map(type_: Type, dims: Sequence[Dim], n_syms: int = 0) -> AffineMap:
    """Where a tile or scalar is read at a point of a space of `dims`."""
    places = [DimRef(dims.index(dim)) if dim in dims else Const(0) for dim in dims_of(type_)]
    return AffineMap(len(dims), n_syms, tuple(places))


def stored_map(type_: Type, dims: tuple[Dim, ...], n_syms: int = 0) -> AffineMap:
    """Where a tile or scalar is read when it is stored to a region of `dims`."""
    source = dims_of(type_)
    positions = dims_compatible_by_position(source, dims) if source else ()
    places = [Const(0) if place is None else DimRef(place) for place in positions]
    return AffineMap(len(dims), n_syms, tuple(places))


def window_map(dims: Sequence[Dim], n_origins: int) -> AffineMap:
    """Where a window of a view lies: at its origins, which are the symbols, and on from there along
    the dims; the one element at the origins where there are none."""
    steps = [DimRef(place) for place in range(len(dims))]
    origins = [Sym(place) for place in range(n_origins)]
    if not steps:
        return AffineMap(0, n_origins, tuple(origins))
    places = [origin + step for origin, step in zip(origins, steps, strict=True)]
    return AffineMap(len(dims), n_origins, tuple(places))


def window(
    view: Value,
    origins: Sequence[Value],
    dims: Sequence[Dim],
    kind: EffectKind,
    *,
    bounds: str = "zero",
    is_masked: bool = False,
) -> Touch[Value]:
    """The access of the window of a view that begins at the origins."""
    map_ = window_map(dims, len(origins))
    extents = tuple(dim.extent for dim in dims)
    return Touch("view", 0, view, kind, map_, bounds, extents, tuple(origins), is_masked=is_masked)
