"""Row operators: softmax, layer normalisation, RMS normalisation.

One row is one root instance, so it stays in the first cache between its traversals. Another axis
than the last is moved to the end first.
"""

from __future__ import annotations

import numpy as np

import tilenest as tn
from tilenest.ops.arrays import (
    Array,
    as_array,
    broadcast,
    explaining_memory,
    floating,
    normalized_axis,
    number,
    output,
    row_shape,
    rows_of,
    same_dtype,
    write,
)
from tilenest.ops.shared import row_axis, whole, wide


@tn.kernel
def _softmax(Y, X, mask):
    n = row_axis(Y, X, mask)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        x, result = wide(X[(i, 0), (1, n)]), Y((i, 0), (1, n))
        if mask is None and x.dtype is Y.dtype:
            # tn.softmax with the exponentials kept in the output row instead of a temporary: its
            # memory arrives while they are computed, and two rows fill the first cache, not three.
            result.store(tn.exp(x - tn.max(x, n)))
            shifted = result.load()
            result.store(shifted * tn.reciprocal(tn.sum(shifted, n)))
        else:
            keep = None if mask is None else mask[(i, 0), (1, n)]
            result.store(tn.softmax(x, n, keep).cast(Y.dtype))


@tn.kernel
def _layer_norm(Y, X, weight, bias, residual, *, eps):
    n = row_axis(Y, X, residual)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        x = wide(X[(i, 0), (1, n)])
        if residual is not None:
            x = x + wide(residual[(i, 0), (1, n)])
        y = tn.layer_norm(x, n, whole(weight, n), whole(bias, n), eps)
        Y((i, 0), (1, n)).store(y.cast(Y.dtype))


@tn.kernel
def _rms_norm(Y, X, weight, *, eps):
    n = row_axis(Y, X)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        y = tn.rms_norm(wide(X[(i, 0), (1, n)]), n, whole(weight, n), eps)
        Y((i, 0), (1, n)).store(y.cast(Y.dtype))


@explaining_memory
def softmax(x: object, axis: int = -1, mask: object = None, *, out: Array | None = None) -> Array:
    """exp(x - max) / sum along `axis`, floats; the result has x's shape and dtype.

    mask: bool, broadcasts to x; False positions count as absent and give 0, and a row without any
    True gives 0 everywhere. An unmasked row of -inf gives NaN. Errors: DTypeError,
    ShapeError.
    """
    source = as_array(x, "x")
    floating(source.dtype, "softmax")
    result = output(out, source.shape, source.dtype)
    if source.size == 0:
        return result
    axis = normalized_axis(axis, source.ndim) if source.ndim else 0
    keep = None
    if mask is not None:
        keep = broadcast(as_array(mask, "mask"), source.shape, "mask")
    if source.ndim > 1 and axis != source.ndim - 1:
        moved = np.moveaxis(source, axis, -1)
        kept = None if keep is None else np.moveaxis(keep, axis, -1)
        _softmax_into(np.moveaxis(result, axis, -1), moved, kept)
        return result
    return _softmax_into(result, source, keep)


def _softmax_into(result: Array, source: Array, keep: Array | None) -> Array:
    rows, kept_rows = rows_of(source), None if keep is None else rows_of(keep)
    return write(result, row_shape(source.shape), lambda y: _softmax(y, rows, kept_rows))


def _parameter(value: object, name: str, n: int) -> Array | None:
    return None if value is None else broadcast(as_array(value, name), (n,), name)


@explaining_memory
def layer_norm(
    x: object,
    weight: object = None,
    bias: object = None,
    eps: float = 1e-5,
    residual: object = None,
    *,
    out: Array | None = None,
) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis, x first plus residual.

    weight, bias: shape (n,); the variance divides by n. Floats of one dtype; the shape of x.
    Errors: DTypeError, ShapeError.
    """
    source = as_array(x, "x")
    floating(source.dtype, "layer_norm")
    shape = row_shape(source.shape)
    scale, shift = _parameter(weight, "weight", shape[1]), _parameter(bias, "bias", shape[1])
    rest = None
    if residual is not None:
        rest = broadcast(as_array(residual, "residual"), source.shape, "residual")
    result = output(out, source.shape, same_dtype(source, scale, shift, rest))
    if source.size == 0:
        return result
    rows, rest_rows = rows_of(source), None if rest is None else rows_of(rest)
    return write(
        result,
        shape,
        lambda y: _layer_norm(y, rows, scale, shift, rest_rows, eps=number(eps, "eps")),
    )


@explaining_memory
def rms_norm(
    x: object, weight: object = None, eps: float = 1e-6, *, out: Array | None = None
) -> Array:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis; weight (n,); floats of one dtype.

    Result: the shape of x. Errors: DTypeError, ShapeError.
    """
    source = as_array(x, "x")
    floating(source.dtype, "rms_norm")
    shape = row_shape(source.shape)
    scale = _parameter(weight, "weight", shape[1])
    result = output(out, source.shape, same_dtype(source, scale))
    if source.size == 0:
        return result
    rows = rows_of(source)
    return write(result, shape, lambda y: _rms_norm(y, rows, scale, eps=number(eps, "eps")))
