"""What is measured: each kernel of `tn.ops` at its shapes, with inputs, a reference and a bound.

A case builds its inputs once; ours and every peer read the same ones. The reference is NumPy in
float64. The bound is the number of roundings on the way to an element times the epsilon of float32:
the extent of the fold, or a few where there is none; an index has to be equal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

import tilenest as tn
from benchmarks.harness import Array
from benchmarks.peers import EPSILON, Arrays

FLOAT_EPSILON = float(np.finfo(np.float32).eps)
MATMUL_SHAPES = ((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (129, 768, 257))
ROW_SHAPES = ((129, 768), (1024, 4097))

Ours = Callable[[Arrays, Array], object]


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table before it is measured."""

    kernel: str
    shape: str
    inputs: tuple[Array, ...]
    reference: Array
    like: Array
    bound: float
    amount: float
    unit: str
    ours: Ours


@dataclass(frozen=True, slots=True)
class RowKernel:
    """A kernel over the rows of a matrix: the matrices and vectors it reads, its meaning."""

    name: str
    matrices: int
    vectors: int
    reference: Callable[[Arrays], Array]
    ours: Ours
    roundings: int | None = None
    """on the way to an element that is no fold of its row: one an operation, four of exp or erf"""


def softmax_reference(inputs: Arrays) -> Array:
    powers = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def layer_norm_reference(inputs: Arrays) -> Array:
    x, weight, bias = inputs
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + EPSILON) * weight + bias)


def rms_norm_reference(inputs: Arrays) -> Array:
    x, weight = inputs
    return np.asarray(x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + EPSILON) * weight)


def gelu_reference(inputs: Arrays) -> Array:
    x, residual = inputs
    return np.asarray(0.5 * x * (1 + special.erf(x * 0.5**0.5)) + residual)


ROW_KERNELS = (
    RowKernel(
        "softmax", 1, 0, softmax_reference, lambda inputs, out: tn.ops.softmax(*inputs, out=out)
    ),
    RowKernel(
        "layer_norm",
        1,
        2,
        layer_norm_reference,
        lambda inputs, out: tn.ops.layer_norm(*inputs, eps=EPSILON, out=out),
    ),
    RowKernel(
        "rms_norm",
        1,
        1,
        rms_norm_reference,
        lambda inputs, out: tn.ops.rms_norm(*inputs, eps=EPSILON, out=out),
    ),
    RowKernel(
        "gelu+residual",
        2,
        0,
        gelu_reference,
        lambda inputs, out: tn.ops.gelu(inputs[0], residual=inputs[1], out=out),
        roundings=9,
    ),
    RowKernel(
        "swiglu",
        2,
        0,
        lambda inputs: np.asarray(inputs[0] / (1 + np.exp(-inputs[0])) * inputs[1]),
        lambda inputs, out: tn.ops.swiglu(*inputs, out=out),
        roundings=7,
    ),
    RowKernel(
        "add",
        2,
        0,
        lambda inputs: np.asarray(inputs[0] + inputs[1]),
        lambda inputs, out: tn.ops.add(*inputs, out=out),
        roundings=1,
    ),
    RowKernel(
        "sum",
        1,
        0,
        lambda inputs: np.asarray(inputs[0].sum(axis=-1)),
        lambda inputs, out: tn.ops.sum(*inputs, axis=-1, out=out),
    ),
    RowKernel(
        "argmax",
        1,
        0,
        lambda inputs: np.asarray(inputs[0].argmax(axis=-1)),
        lambda inputs, out: tn.ops.argmax(*inputs, axis=-1, out=out),
    ),
)


def normal(generator: np.random.Generator, *shape: int) -> Array:
    return generator.standard_normal(shape, dtype=np.float32)


def widened(inputs: Arrays) -> tuple[Array, ...]:
    return tuple(array.astype(np.float64) for array in inputs)


def matmul_case(m: int, n: int, k: int) -> Case:
    generator = np.random.default_rng(0)
    inputs = (normal(generator, m, k), normal(generator, k, n))
    left, right = widened(inputs)
    return Case(
        kernel="matmul",
        shape=f"{m}x{k}x{n}",
        inputs=inputs,
        reference=np.asarray(left @ right),
        like=np.empty((m, n), np.float32),
        bound=k * FLOAT_EPSILON,
        amount=2.0 * m * n * k,
        unit="GFLOP/s",
        ours=lambda given, out: tn.ops.matmul(*given, out=out),
    )


def row_case(kernel: RowKernel, rows: int, columns: int) -> Case:
    generator = np.random.default_rng(0)
    inputs = (
        *(normal(generator, rows, columns) for _ in range(kernel.matrices)),
        *(normal(generator, columns) for _ in range(kernel.vectors)),
    )
    reference = kernel.reference(widened(inputs))
    is_index = reference.dtype.kind == "i"
    like = np.empty(reference.shape, np.int64 if is_index else np.float32)
    return Case(
        kernel=kernel.name,
        shape=f"{rows}x{columns}",
        inputs=inputs,
        reference=reference,
        like=like,
        bound=0.0 if is_index else (kernel.roundings or columns) * FLOAT_EPSILON,
        amount=float(sum(array.nbytes for array in (*inputs, like))),
        unit="GB/s",
        ours=kernel.ours,
    )


def cases(only: str | None) -> Iterator[Case]:
    """Every case, or those of one kernel."""
    if only in (None, "matmul"):
        for m, k, n in MATMUL_SHAPES:
            yield matmul_case(m, n, k)
    for kernel in ROW_KERNELS:
        if only in (None, kernel.name):
            for rows, columns in ROW_SHAPES:
                yield row_case(kernel, rows, columns)
