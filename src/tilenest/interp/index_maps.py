"""Affine maps on whole grids of points, and reading and writing through the coordinates.

In: a map, the extents of its dims and its symbols. Out: one integer array per result, broadcastable
over the grid, and the test which of them lie inside an array. Arithmetic never wraps: where 64 bits
could be too few, the arrays hold Python integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from tilenest.interp.values import Array
from tilenest.layouts import (
    Add,
    AffineMap,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    ShiftLeft,
    Sym,
)


def open_grid(extents: Sequence[int]) -> list[Array]:
    """One coordinate array per dim, along that dim."""
    rank = len(extents)
    grid = []
    for dim, extent in enumerate(extents):
        shape = [extent if axis == dim else 1 for axis in range(rank)]
        grid.append(np.arange(extent, dtype=np.int64).reshape(shape))
    return grid


def coordinates(map_: AffineMap, grid: Sequence[Array], symbols: Sequence[int]) -> list[Array]:
    """The map's results over the grid, or at any other arrays of coordinates."""
    sizes = [_largest(axis) for axis in grid]
    result = []
    for expr in map_.results:
        dtype = np.int64 if _magnitude(expr, sizes, symbols) < 1 << 62 else np.object_
        result.append(_evaluate(expr, grid, symbols, np.dtype(dtype)))
    return result


def _largest(axis: Array) -> int:
    return max(1, abs(int(axis.min())), abs(int(axis.max()))) if axis.size else 1


def inside(places: Sequence[Array], shape: Sequence[int], rank: int) -> Array:
    """Where every coordinate lies in the array, broadcastable over a grid of the rank."""
    everywhere = np.ones((1,) * rank, np.bool_)
    for place, extent in zip(places, shape, strict=True):
        everywhere = everywhere & ((place >= 0) & (place < extent)).astype(np.bool_)
    return everywhere


def read_at(array: Array, places: Sequence[Array], valid: Array, fill: Array) -> Array:
    """The elements at the coordinates, `fill` where they are not valid."""
    if not places:
        return np.where(valid, array, fill)
    if array.size == 0:
        return np.broadcast_to(fill, valid.shape)
    picked = array[tuple(np.where(valid, place, 0).astype(np.int64) for place in places)]
    return np.where(valid, picked, fill)


def write_at(array: Array, places: Sequence[Array], valid: Array, value: Array) -> None:
    """Write where valid, in lexicographic order of the grid."""
    shape = np.broadcast_shapes(value.shape, valid.shape, *(place.shape for place in places))
    chosen = np.broadcast_to(valid, shape)
    values = np.broadcast_to(value, shape)[chosen]
    if places:
        where = [np.broadcast_to(place, shape)[chosen].astype(np.int64) for place in places]
        array[tuple(where)] = values
    elif values.size:
        array[...] = values[-1]


def _magnitude(expr: IndexExpr, sizes: Sequence[int], symbols: Sequence[int]) -> int:
    """A bound of every intermediate value's size."""
    match expr:
        case Const(value):
            return abs(value)
        case DimRef(position):
            return sizes[position]
        case Sym(position):
            return abs(symbols[position])
        case Add(operands):
            return sum(_magnitude(operand, sizes, symbols) for operand in operands)
        case Mul(left, right):
            return max(1, _magnitude(left, sizes, symbols)) * max(
                1, _magnitude(right, sizes, symbols)
            )
        case FloorDiv(left, right) | Mod(left, right):
            return max(_magnitude(left, sizes, symbols), _magnitude(right, sizes, symbols))
        case ShiftLeft():
            return 1 << 62
        case BitExpr():
            parts = [_magnitude(part, sizes, symbols) for part in (expr.left, expr.right)]
            return 2 * max(*parts, 1)
    raise AssertionError(expr)


def _evaluate(
    expr: IndexExpr, grid: Sequence[Array], symbols: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    ones = (1,) * max((axis.ndim for axis in grid), default=0)
    match expr:
        case Const(value):
            return np.full(ones, value, dtype)
        case DimRef(position):
            return grid[position].astype(dtype)
        case Sym(position):
            return np.full(ones, symbols[position], dtype)
        case Add(operands):
            return reduce(add, (_evaluate(part, grid, symbols, dtype) for part in operands))
        case Mul(left, right):
            return np.asarray(
                _evaluate(left, grid, symbols, dtype) * _evaluate(right, grid, symbols, dtype)
            )
        case FloorDiv(left, right) | Mod(left, right):
            dividend = _evaluate(left, grid, symbols, dtype)
            divisor = _evaluate(right, grid, symbols, dtype)
            divides = (divisor != 0).astype(np.bool_)
            by = np.where(divides, divisor, 1)
            result = dividend // by if isinstance(expr, FloorDiv) else dividend % by
            return np.where(divides, result, 0)
        case BitExpr():
            pair = [_evaluate(p, grid, symbols, np.dtype(object)) for p in (expr.left, expr.right)]
            return np.asarray(np.frompyfunc(expr.value_of, 2, 1)(*pair)).astype(dtype)
    raise AssertionError(expr)
