"""Reductions along one axis or over everything: sum, mean, max, min, argmax, argmin.

The last axis is reduced row by row with lanes along the row; another axis with lanes along what
follows it; a whole array in fixed pieces and then the pieces, so the split never depends on the
number of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tilenest as tn
from tilenest.errors import DomainError
from tilenest.ops.arrays import Array, as_array, explaining_memory, normalized_axis, output, write
from tilenest.ops.shared import wide
from tilenest.ops.sizes import column_block_here, flat_block_here


@tn.kernel
def _reduce_rows(Y, X, *, of, compute, divisor):
    """y[i] = of(x[i, :]) / divisor."""
    n = tn.axis("n", X.shape[1])
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        x = wide(X[(i, 0), (1, n)])
        total = of(x if compute is None else x.cast(compute), n)
        if divisor is not None:
            total = total / divisor
        Y(i, 1).store(total.cast(Y.dtype))


@tn.kernel
def _reduce_columns(Y, X, *, of, compute, divisor, block):
    """y[o, i] = of(x[o, :, i]) / divisor."""
    n, m = tn.axis("n", X.shape[1]), tn.axis("m", block)
    for part in tn.parallel(X.extent(0), tn.cdiv(X.extent(2), block)):
        o, piece = part.index()
        x = wide(X[(o, 0, piece * block), (1, n, m)])
        total = of(x if compute is None else x.cast(compute), n)
        if divisor is not None:
            total = total / divisor
        Y((o, piece * block), (1, m)).store(total.cast(Y.dtype))


@tn.kernel
def _reduce_pieces(Y, X, *, of, compute, block, fill):
    """y[p] = of(piece p of the flat x); positions past the end count as `fill`."""
    n = tn.axis("n", block)
    for part in tn.parallel(Y.extent(0)):
        p = part.index()
        x = wide(X(p * block, n).load(other=fill))
        total = of(x if compute is None else x.cast(compute), n)
        Y(p, 1).store(total.cast(Y.dtype))


@tn.kernel
def _first_equal(Y, X, best, *, block):
    """y[p] = the first position in piece p of the flat x that equals the element of `best` (a NaN
    equals a NaN), the size of x where there is none."""
    n = tn.axis("n", block)
    size = tn.cast(X.extent(0), tn.int64)
    extreme = best.at(0).load()
    for part in tn.parallel(Y.extent(0)):
        start = part.index() * block
        x = X[start, n]
        position = tn.iota(n, tn.int64) + tn.cast(start, tn.int64)
        is_best = x == extreme
        if X.dtype.is_float:
            is_best = is_best | (tn.isnan(x) & tn.isnan(extreme))
        found = tn.where(is_best & (position < size), position, size)
        Y(part.index(), 1).store(tn.min(found, n))


def _along(
    x: Array,
    axis: int,
    out: Array | None,
    dtype: np.dtype[Any],
    of: Any,
    compute: Any = None,
    divisor: float | None = None,
) -> Array:
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    result = output(out, shape, dtype)
    if result.size == 0:
        return result
    extent = x.shape[axis]
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    options = {"of": of, "compute": compute, "divisor": divisor}
    if inner == 1:
        rows = x.reshape(outer, extent)
        return write(result, (outer,), lambda y: _reduce_rows(y, rows, **options))
    cube = x.reshape(outer, extent, inner)
    block = column_block_here(inner)
    return write(result, (outer, inner), lambda y: _reduce_columns(y, cube, block=block, **options))


def _whole(
    x: Array,
    dtype: np.dtype[Any],
    of: Any,
    fill: Any,
    compute: Any = None,
    divisor: float | None = None,
) -> Array:
    """Reduce everything: pieces in parallel, then the pieces. Partial results of 16-bit floats are
    kept in float32, and the result is rounded once."""
    flat, block = x.reshape(-1), flat_block_here()
    partial = dtype if dtype.itemsize != 2 or dtype.kind in "iu" else np.dtype(np.float32)
    while flat.size > block:
        pieces = np.empty(-(-flat.size // block), partial)
        _reduce_pieces(pieces, flat, of=of, compute=compute, block=block, fill=fill)
        flat = pieces
    result = np.empty(1, dtype)
    _reduce_rows(result, flat.reshape(1, -1), of=of, compute=compute, divisor=divisor)
    return result.reshape(())


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's: bool and small integers add up in 64 bits."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


_COMPUTE = {"i": tn.int64, "b": tn.int64, "u": tn.uint64}


@explaining_memory
def sum(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Sum along `axis` (None: of everything). Integers and bools add up in 64 bits, floats in their
    own dtype by an unordered tree (16-bit floats in float32, rounded once). An empty axis gives 0.

    Shape: x's without the axis. ShapeError for an axis out of range.
    """
    source = as_array(x, "x")
    return _sum(source, axis, out, _sum_dtype(source.dtype), None)


@explaining_memory
def mean(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Arithmetic mean along `axis` (None: of everything): the sum divided and then rounded once;
    integers give float64, an empty axis NaN. Shape: x's without the axis."""
    source = as_array(x, "x")
    if source.dtype.kind in "biu":
        source = source.astype(np.float64)
    axis = None if axis is None else normalized_axis(axis, source.ndim)
    count = source.size if axis is None else source.shape[axis]
    return _sum(source, axis, out, source.dtype, float(count))


def _sum(
    x: Array, axis: int | None, out: Array | None, dtype: np.dtype[Any], divisor: float | None
) -> Array:
    compute = _COMPUTE.get(x.dtype.kind)
    if axis is None:
        return _finish(_whole(x, dtype, tn.sum, 0, compute, divisor), out)
    return _along(x, normalized_axis(axis, x.ndim), out, dtype, tn.sum, compute, divisor)


@explaining_memory
def max(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Largest element along `axis` (None: of everything), in x's dtype; NaN propagates.

    Shape: x's without the axis. DomainError for an empty axis, ShapeError for one out of range.
    """
    return _extremum(as_array(x, "x"), axis, out, tn.max, is_max=True)


@explaining_memory
def min(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Smallest element along `axis`; otherwise as `max`."""
    return _extremum(as_array(x, "x"), axis, out, tn.min, is_max=False)


def _extremum(x: Array, axis: int | None, out: Array | None, of: Any, is_max: bool) -> Array:
    _refuse_empty(x, axis, "max" if is_max else "min")
    if axis is None:
        return _finish(_whole(x, x.dtype, of, _identity(x.dtype, is_max)), out)
    return _along(x, normalized_axis(axis, x.ndim), out, x.dtype, of)


def _identity(dtype: np.dtype[Any], is_max: bool) -> Any:
    if dtype.kind == "b":
        return not is_max
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if is_max else limits.max
    return -np.inf if is_max else np.inf


@explaining_memory
def argmax(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Index (int64) of the largest element along `axis` (None: of the flat array): the first NaN if
    there is one, else the lowest among equals; -0 equals +0. An empty axis is a DomainError."""
    return _position(as_array(x, "x"), axis, out, is_max=True)


@explaining_memory
def argmin(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Index (int64) of the smallest element; otherwise as `argmax`."""
    return _position(as_array(x, "x"), axis, out, is_max=False)


def _position(x: Array, axis: int | None, out: Array | None, is_max: bool) -> Array:
    _refuse_empty(x, axis, "argmax" if is_max else "argmin")
    if axis is not None:
        of = tn.argmax if is_max else tn.argmin
        return _along(x, normalized_axis(axis, x.ndim), out, np.dtype(np.int64), of)
    flat, block = x.reshape(-1), flat_block_here()
    best = _extremum(flat, None, None, tn.max if is_max else tn.min, is_max).reshape(1)
    found = np.empty(-(-flat.size // block), np.int64)
    _first_equal(found, flat, best, block=block)
    return _finish(_whole(found, found.dtype, tn.min, _identity(found.dtype, is_max=False)), out)


def _refuse_empty(x: Array, axis: int | None, what: str) -> None:
    count = x.size if axis is None else x.shape[normalized_axis(axis, x.ndim)]
    if count == 0:
        raise DomainError(
            f"{what} of an empty axis has no value",
            remedy="reduce an axis with at least one element",
        )


def _finish(value: Array, out: Array | None) -> Array:
    if out is None:
        return value
    result = output(out, value.shape, value.dtype)
    result[...] = value
    return result
