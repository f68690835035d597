"""Matrix product with a fused epilogue: activation(a @ b + bias) + residual.

The kernel is the blocked product of the tutorial; its blocks come from one function of the
extents and the machine. Batches run one product after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tilenest as tn
from tilenest.driver import host
from tilenest.errors import DTypeError, ShapeError
from tilenest.machine import Machine
from tilenest.ops.arrays import Array, as_array, broadcast, output, same_dtype, write

_ACTIVATIONS = ("gelu", "relu", "silu", "tanh")


@tn.function
def _activate(x: Any, activation: str | None) -> Any:
    if activation == "relu":
        return tn.maximum(x, 0.0)
    if activation == "gelu":
        return 0.5 * x * (1.0 + tn.erf(x * 0.7071067811865476))
    if activation == "silu":
        return x / (1.0 + tn.exp(-x))
    if activation == "tanh":
        return tn.tanh(x)
    return x


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
        acc = _activate(acc, activation)
        if residual is not None:
            acc = acc + residual[(i * bm, j * bn), (m, n)].cast(accumulator)
        C((i * bm, j * bn), (m, n)).store(acc.cast(C.dtype))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Tile extents of one root instance."""

    m: int
    n: int
    k: int


_SIDE = 512
_DEPTH = 384
"""Measured at 256 to 2048 cubed on machines with 0.5 to 2 MiB of second-level cache: the panels of
one step fit it, and each is used often enough to pay for its copy."""
_PARALLEL_WORK = 1 << 22
"""Multiply-adds from which on every core should have a block."""


def blocks_for(m: int, n: int, k: int, machine: Machine) -> Blocks:
    """Tile extents from the problem's extents and the machine.

    Blocks divide the extents evenly, an extent that fits is one block; rows are cut further until
    there is a block for every core.
    """
    rows, columns = _even(m, _SIDE), _even(n, _SIDE)
    if m * n * k >= _PARALLEL_WORK:
        across = -(-n // columns)
        rows = min(rows, max(_SIDE // 8, -(-m // -(-machine.cores // across))))
    return Blocks(rows, columns, _even(k, _DEPTH))


def _even(extent: int, limit: int) -> int:
    """The block size that covers `extent` in the fewest blocks of at most `limit`, evenly."""
    if extent <= limit:
        return max(1, extent)
    blocks = -(-extent // limit)
    return -(-extent // blocks)


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
    """
    left, right = as_array(a, "a"), as_array(b, "b")
    dtype = same_dtype(left, right)
    if dtype.kind != "f" and dtype.name != "bfloat16":
        raise DTypeError(f"matmul needs floats, not {dtype}", remedy="cast the operands to float32")
    if activation is not None and activation not in _ACTIVATIONS:
        raise ShapeError(
            f"unknown activation {activation!r}", remedy=f"use one of {', '.join(_ACTIVATIONS)}"
        )
    if left.ndim == 0 or right.ndim == 0:
        raise ShapeError("matmul needs at least one axis", remedy="multiply numbers with *")
    drop_row, drop_column = left.ndim == 1, right.ndim == 1
    left = left[None, :] if drop_row else left
    right = right[:, None] if drop_column else right
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(
            f"a has {left.shape[-1]} columns and b has {right.shape[-2]} rows",
            remedy="make the inner extents equal",
        )
    is_single = left.ndim == right.ndim == 2
    batch = () if is_single else np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    full = (*batch, left.shape[-2], right.shape[-1])
    shape = batch + full[len(batch) :][drop_row : 2 - drop_column]
    result = output(out, shape, dtype)
    bias_array = None
    if bias is not None:
        bias_array = broadcast(as_array(bias, "bias"), (full[-1],), "bias")
    rest = None
    if residual is not None:
        rest = broadcast(as_array(residual, "residual"), shape, "residual").reshape(full)
    left = broadcast(left, (*batch, *left.shape[-2:]), "a")
    right = broadcast(right, (*batch, *right.shape[-2:]), "b")

    def launch(target: Array) -> None:
        for index in np.ndindex(*batch):
            piece = None if rest is None else rest[index]
            _product(target[index], left[index], right[index], bias_array, piece, activation)

    return write(result, full, launch)


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
    blocks = blocks_for(m, n, k, host().machine)
    accumulator = tn.float64 if out.dtype == np.float64 else tn.float32
    _matmul(
        out,
        a,
        b,
        bias,
        residual,
        activation=activation,
        accumulator=accumulator,
        blocks=blocks,
    )
