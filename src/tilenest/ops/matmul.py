"""Matrix product with a fused epilogue: activation(a @ b + bias) + residual.

The kernel is the blocked product of the tutorial; its blocks come from one function of the
extents and the machine. Batches run one product after the other.
"""

from __future__ import annotations

import numpy as np

import tilenest as tn
from tilenest.errors import ArgumentTypeError, ShapeError, shown
from tilenest.ops.arrays import (
    Array,
    as_array,
    broadcast,
    common_shape,
    explaining_memory,
    floating,
    output,
    same_dtype,
    write,
)
from tilenest.ops.sizes import product_blocks_here

_ACTIVATE = {"gelu": tn.gelu, "relu": tn.relu, "silu": tn.silu, "tanh": tn.tanh}


@tn.kernel
def _matmul(C, A, B, bias, residual, *, activation, accumulator, blocks):
    M, K = A.shape
    N = B.shape[1]
    # Specialise on the strides: the plan chooses panels or reading in place by them.
    _strides = *A.strides, *B.strides
    bm, bn, bk = blocks.m, blocks.n, blocks.k
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc = tn.zeros((m, n), accumulator)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        if bias is not None:
            acc = acc + bias[j * bn, n].cast(accumulator)
        if activation is not None:
            acc = activation(acc)
        if residual is not None:
            acc = acc + residual[(i * bm, j * bn), (m, n)].cast(accumulator)
        C((i * bm, j * bn), (m, n)).store(acc.cast(C.dtype))


@explaining_memory
def matmul(
    a: object,
    b: object,
    *,
    bias: object = None,
    activation: str | None = None,
    residual: object = None,
    out: Array | None = None,
) -> Array:
    """activation(a @ b + bias) + residual, NumPy's shape rules for `@`.

    a: (..., m, k) or (k,), b: (..., k, n) or (k,), one float dtype; bias: (n,); residual
    broadcasts to the result; activation: None, 'relu', 'gelu' (exact), 'silu' or 'tanh'. 16-bit
    floats accumulate in float32, the others in their own dtype, k upwards with fused multiply-add.
    Errors: DTypeError, ShapeError, ArgumentTypeError for another activation.
    """
    left, right = as_array(a, "a"), as_array(b, "b")
    added = None if bias is None else as_array(bias, "bias")
    rest = None if residual is None else as_array(residual, "residual")
    dtype = same_dtype(left, right, added, rest)
    floating(dtype, "matmul")
    chosen: object = activation
    if chosen is not None and not (isinstance(chosen, str) and chosen in _ACTIVATE):
        raise ArgumentTypeError(
            f"unknown activation {shown(activation)}", remedy=f"use one of {', '.join(_ACTIVATE)}"
        )
    left, right, shape = _matrices(left, right)
    full = (*left.shape[:-1], right.shape[-1])
    result = output(out, shape, dtype)
    if added is not None:
        added = broadcast(added, full[-1:], "bias")
    if rest is not None:
        rest = broadcast(rest, shape, "residual").reshape(full)

    def launch(target: Array) -> None:
        for index in np.ndindex(*full[:-2]) if full[:-2] else [()]:
            piece = None if rest is None else rest[index]
            _product(target[index], left[index], right[index], added, piece, activation)

    return write(result, full, launch)


def _matrices(a: Array, b: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """Both operands as (..., rows, columns) of one batch, and the shape of their product."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError("matmul needs at least one axis", remedy="multiply numbers with *")
    is_row, is_column = a.ndim == 1, b.ndim == 1
    a = a[None, :] if is_row else a
    b = b[:, None] if is_column else b
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"a has {a.shape[-1]} columns and b has {b.shape[-2]} rows",
            remedy="make the inner extents equal",
        )
    batch = () if a.ndim == b.ndim == 2 else common_shape(a.shape[:-2], b.shape[:-2])
    kept = (a.shape[-2], b.shape[-1])[is_row : 2 - is_column]
    return (
        broadcast(a, (*batch, *a.shape[-2:]), "a"),
        broadcast(b, (*batch, *b.shape[-2:]), "b"),
        (*batch, *kept),
    )


def _product(
    out: Array,
    a: Array,
    b: Array,
    bias: Array | None,
    residual: Array | None,
    activation: str | None,
) -> None:
    if out.size == 0:
        return
    (m, k), n = a.shape, b.shape[1]
    accumulator = tn.float64 if out.dtype.itemsize == 8 else tn.float32
    _matmul(
        out,
        a,
        b,
        bias,
        residual,
        activation=None if activation is None else _ACTIVATE[activation],
        accumulator=accumulator,
        blocks=product_blocks_here(m, n, k),
    )
