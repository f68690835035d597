"""Elementwise operators: add, GELU with bias and residual, SwiGLU.

Contiguous work is one flat dimension; everything else runs row by row with any strides.
"""

from __future__ import annotations

from typing import Any

import tilenest as tn
from tilenest.ops.arrays import (
    Array,
    as_array,
    beside,
    broadcast,
    common_shape,
    explaining_memory,
    floating,
    output,
    rows_of,
    same_dtype,
    write,
)
from tilenest.ops.shared import row_axis, whole, wide
from tilenest.ops.sizes import flat_block_here


@tn.function
def _gelu_of(x: Any, bias: Any, residual: Any) -> Any:
    """gelu(x + bias) + residual, what is given of them."""
    if bias is not None:
        x = x + bias
    y = tn.gelu(x)
    return y if residual is None else y + residual


@tn.function
def _add_of(x: Any, y: Any) -> Any:
    return x + y


@tn.kernel
def _flat(Z, X, Y, *, of, block):
    """z = of(x, y) over one dimension; Y may be absent."""
    n = tn.axis("n", block)
    for part in tn.parallel(tn.cdiv(Z.extent(0), block)):
        start = part.index() * block
        x = wide(X[start, n])
        y = None if Y is None else wide(Y[start, n])
        Z(start, n).store(of(x, y).cast(Z.dtype))


@tn.kernel
def _rows(Z, X, Y, *, of):
    """z = of(x, y), row by row, any strides."""
    n = row_axis(Z, X, Y)
    for row in tn.parallel(Z.extent(0)):
        i = row.index()
        x = wide(X[(i, 0), (1, n)])
        y = None if Y is None else wide(Y[(i, 0), (1, n)])
        Z((i, 0), (1, n)).store(of(x, y).cast(Z.dtype))


@tn.kernel
def _gelu_flat(Z, X, R, *, block):
    n = tn.axis("n", block)
    for part in tn.parallel(tn.cdiv(Z.extent(0), block)):
        start = part.index() * block
        residual = None if R is None else wide(R[start, n])
        y = _gelu_of(wide(X[start, n]), None, residual)
        Z(start, n).store(y.cast(Z.dtype))


@tn.kernel
def _gelu_rows(Z, X, B, R):
    n = row_axis(Z, X, R)
    for row in tn.parallel(Z.extent(0)):
        i = row.index()
        bias = whole(B, n)
        residual = None if R is None else wide(R[(i, 0), (1, n)])
        y = _gelu_of(wide(X[(i, 0), (1, n)]), bias, residual)
        Z((i, 0), (1, n)).store(y.cast(Z.dtype))


def _is_flat(*arrays: Array | None) -> bool:
    for array in arrays:  # noqa: SIM110 - a generator would take twice the time of the loop
        if array is not None and not array.flags.c_contiguous:
            return False
    return True


def _binary(of: Any, x: Array, y: Array, out: Array | None) -> Array:
    shape = x.shape if x.shape == y.shape else common_shape(x.shape, y.shape)
    result = output(out, shape, same_dtype(x, y))
    if result.size == 0:
        return result
    x, y = broadcast(x, shape, "x"), broadcast(y, shape, "y")
    if _is_flat(x, y, result):
        flat_x, flat_y = x.reshape(-1), y.reshape(-1)
        return write(
            result, flat_x.shape, lambda z: _flat(z, flat_x, flat_y, of=of, block=flat_block_here())
        )
    left, right = rows_of(x), rows_of(y)
    return write(result, left.shape, lambda z: _rows(z, left, right, of=of))


@explaining_memory
def add(x: object, y: object, *, out: Array | None = None) -> Array:
    """x + y with NumPy broadcasting, any numbers of one dtype; a Python number takes the other's.

    Shape: the broadcast shape. Errors: DTypeError, ShapeError.
    """
    left, right = beside(x, y)
    return _binary(_add_of, left, right, out)


@explaining_memory
def swiglu(gate: object, up: object, *, out: Array | None = None) -> Array:
    """silu(gate) * up elementwise, floats of one dtype, NumPy broadcasting.

    Shape: the broadcast shape. Errors: DTypeError, ShapeError.
    """
    left, right = as_array(gate, "gate"), as_array(up, "up")
    floating(left.dtype, "swiglu")
    return _binary(tn.swiglu, left, right, out)


@explaining_memory
def gelu(
    x: object, bias: object = None, residual: object = None, *, out: Array | None = None
) -> Array:
    """gelu(x + bias) + residual, the exact (erf) form, floats of one dtype.

    bias: shape (n,), n the last extent of x; residual broadcasts to x. Result: the shape of x.
    Errors: DTypeError, ShapeError.
    """
    source = as_array(x, "x")
    floating(source.dtype, "gelu")
    shift = None if bias is None else as_array(bias, "bias")
    rest = None if residual is None else as_array(residual, "residual")
    result = output(out, source.shape, same_dtype(source, shift, rest))
    if result.size == 0:
        return result
    if rest is not None:
        rest = broadcast(rest, source.shape, "residual")
    if shift is None and _is_flat(source, rest, result):
        flat, flat_rest = source.reshape(-1), None if rest is None else rest.reshape(-1)
        return write(
            result, flat.shape, lambda z: _gelu_flat(z, flat, flat_rest, block=flat_block_here())
        )
    rows, rest_rows = rows_of(source), None if rest is None else rows_of(rest)
    if shift is not None:
        shift = broadcast(shift, rows.shape[1:], "bias")
    return write(result, rows.shape, lambda z: _gelu_rows(z, rows, shift, rest_rows))
