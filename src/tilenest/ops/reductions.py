"""Reductions along one axis or over everything: sum, mean, max, min, argmax, argmin.

The last axis is reduced row by row with lanes along the row; another axis with lanes along what
follows it; a whole array in fixed pieces and then the pieces, so the split never depends on the
number of threads."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

import tilenest as tn
from tilenest.errors import DomainError
from tilenest.ops.arrays import Array, as_array, normalized_axis, output, write
from tilenest.ops.shared import wide

_PIECE = 1 << 14
"""Elements of one piece of a whole-array reduction."""
_INNER = 512
"""Elements side by side in one instance where another axis than the last is reduced."""


@tn.kernel
def _reduce_rows(Y, X, *, of, compute):
    """y[i] = of(x[i, :])."""
    n = tn.axis("n", X.shape[1])
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        x = wide(X[(i, 0), (1, n)])
        total = of(x if compute is None else x.cast(compute), n)
        Y(i, 1).store(total.cast(Y.dtype))


@tn.kernel
def _reduce_columns(Y, X, *, of, compute, block):
    """y[o, i] = of(x[o, :, i])."""
    n, m = tn.axis("n", X.shape[1]), tn.axis("m", block)
    for part in tn.parallel(X.extent(0), tn.cdiv(X.extent(2), block)):
        o, piece = part.index()
        x = wide(X[(o, 0, piece * block), (1, n, m)])
        total = of(x if compute is None else x.cast(compute), n)
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


def _along(
    x: Array, axis: int | None, out: Array | None, dtype: np.dtype[Any], of: Any, compute: Any
) -> Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalized_axis(axis, x.ndim)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    result = output(out, shape, dtype)
    if result.size == 0:
        return result
    extent = x.shape[axis]
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    if inner == 1:
        rows = x.reshape(outer, extent)
        return write(result, (outer,), lambda y: _reduce_rows(y, rows, of=of, compute=compute))
    cube = x.reshape(outer, extent, inner)
    block = builtins.min(_INNER, inner)
    return write(
        result,
        (outer, inner),
        lambda y: _reduce_columns(y, cube, of=of, compute=compute, block=block),
    )


def _whole(x: Array, dtype: np.dtype[Any], of: Any, compute: Any, fill: Any) -> Array:
    """Reduce everything: pieces in parallel, then the pieces."""
    flat = x.reshape(-1)
    while flat.size > _PIECE:
        pieces = np.empty(-(-flat.size // _PIECE), dtype)
        _reduce_pieces(pieces, flat, of=of, compute=compute, block=_PIECE, fill=fill)
        flat = pieces
    result = np.empty(1, dtype)
    _reduce_rows(result, flat.reshape(1, -1), of=of, compute=compute)
    return result.reshape(())


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's: bool and small integers add up in 64 bits."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


_COMPUTE = {"i": tn.int64, "b": tn.int64, "u": tn.uint64}


def sum(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Sum along `axis` (None: of everything). Integers and bools add up in 64 bits, floats in their
    own dtype by an unordered tree (16-bit floats in float32). An empty axis gives 0."""
    source = as_array(x, "x")
    dtype = _sum_dtype(source.dtype)
    compute = _COMPUTE.get(source.dtype.kind)
    if axis is None:
        return _finish(_whole(source, dtype, tn.sum, compute, 0), out)
    return _along(source, axis, out, dtype, tn.sum, compute)


def mean(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Arithmetic mean along `axis` (None: of everything); integers give float64, an empty axis
    NaN."""
    source = as_array(x, "x")
    dtype = source.dtype if source.dtype.kind not in "biu" else np.dtype(np.float64)
    if source.dtype.kind in "biu":
        source = source.astype(np.float64)
    count = source.size if axis is None else source.shape[normalized_axis(axis, source.ndim)]
    total = sum(source, axis)
    # The sum over nothing is 0; dividing it by 0 would warn.
    value = total / np.asarray(count, dtype) if count else np.full_like(total, np.nan)
    return _finish(np.asarray(value, dtype), out)


def max(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Largest element along `axis` (None: of everything); NaN propagates, an empty axis is an
    error."""
    return _extremum(as_array(x, "x"), axis, out, tn.max, is_max=True)


def min(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Smallest element along `axis` (None: of everything); NaN propagates, an empty axis is an
    error."""
    return _extremum(as_array(x, "x"), axis, out, tn.min, is_max=False)


def _extremum(x: Array, axis: int | None, out: Array | None, of: Any, is_max: bool) -> Array:
    _refuse_empty(x, axis, "max" if is_max else "min")
    if axis is None:
        return _finish(_whole(x, x.dtype, of, None, _identity(x.dtype, is_max)), out)
    return _along(x, axis, out, x.dtype, of, None)


def _identity(dtype: np.dtype[Any], is_max: bool) -> Any:
    if dtype.kind == "b":
        return not is_max
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if is_max else limits.max
    return -np.inf if is_max else np.inf


def argmax(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Index (int64) of the largest element along `axis` (None: of the flat array): the first NaN if
    there is one, else the lowest among equals; -0 equals +0. An empty axis is an error."""
    source = as_array(x, "x")
    _refuse_empty(source, axis, "argmax")
    return _along(source, axis, out, np.dtype(np.int64), tn.argmax, None)


def argmin(x: object, axis: int | None = None, *, out: Array | None = None) -> Array:
    """Index (int64) of the smallest element; otherwise as `argmax`."""
    source = as_array(x, "x")
    _refuse_empty(source, axis, "argmin")
    return _along(source, axis, out, np.dtype(np.int64), tn.argmin, None)


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
