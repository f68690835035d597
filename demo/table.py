"""Every `tn.ops` kernel against NumPy: how exact it is, and how fast.

In: nothing but random numbers. Out: a table, and the rows that are past their bound. The reference
is the row's NumPy formula on float64; what is timed beside ours is the same formula on the row's
own dtype, temporaries included, both on one thread (`make bench` has the careful comparison, and
two threads). The error is the largest difference over the reference's largest magnitude; its bound
is (4 + sqrt(extent)) epsilon, `extent` being the number of terms added up: roundings of random
signs grow with the square root, and 4 leaves room for the elementwise part. An index has to be
equal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special

import tilenest as tn
from demo.timing import fastest, one_thread

SHAPES = ((129, 768), (1024, 4097))
PRODUCTS = ((256, 256, 256), (1024, 1024, 1024), (129, 768, 257))

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Sequence[Array]


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the kernel's inputs, our spelling, NumPy's, and how much work a call is."""

    kernel: str
    shape: str
    inputs: tuple[Array, ...]
    ours: Callable[..., Array]
    numpy: Callable[..., Any]
    extent: int
    flops: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a row gave."""

    error: float
    bound: float
    ours_seconds: float
    numpy_seconds: float
    rate: str

    @property
    def holds(self) -> bool:
        # Written so that a NaN fails.
        return self.error <= self.bound


def numpy_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def numpy_masked_softmax(x: Array, mask: Array) -> Array:
    return numpy_softmax(np.where(mask, x, -np.inf))


def numpy_layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + 1e-5) * weight + bias)


def numpy_rms_norm(x: Array, weight: Array) -> Array:
    return np.asarray(x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-6) * weight)


def numpy_gelu(x: Array, bias: Array, residual: Array) -> Array:
    shifted = x + bias
    return np.asarray(0.5 * shifted * (1 + special.erf(shifted * 0.5**0.5)) + residual)


def numpy_swiglu(gate: Array, up: Array) -> Array:
    return np.asarray(gate / (1 + np.exp(-gate)) * up)


def numpy_dense(x: Array, weights: Array, bias: Array, residual: Array) -> Array:
    return np.asarray(np.maximum(x @ weights + bias, 0) + residual)


def product_rows() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    for m, k, n in PRODUCTS:
        a, b = generator.standard_normal((m, k)), generator.standard_normal((k, n))
        for dtype in (np.float32, np.float64) if m < 1024 else (np.float32,):
            inputs = a.astype(dtype), b.astype(dtype)
            flops = 2.0 * m * k * n
            yield Row("matmul", f"{m}x{k}x{n}", inputs, tn.ops.matmul, np.matmul, k, flops)
    m, k, n = PRODUCTS[-1]
    yield Row(
        "matmul+bias+relu+residual",
        f"{m}x{k}x{n}",
        tuple(normal(generator, *shape) for shape in ((m, k), (k, n), (n,), (m, n))),
        lambda x, w, b, r: tn.ops.matmul(x, w, bias=b, activation="relu", residual=r),
        numpy_dense,
        k,
        2.0 * m * k * n,
    )


def normal(generator: np.random.Generator, *shape: int) -> Array:
    return generator.standard_normal(shape, dtype=np.float32)


def row_rows(rows: int, columns: int) -> Iterator[Row]:
    """The kernels that work row by row or element by element, at one shape."""
    generator = np.random.default_rng(2)
    x, y = normal(generator, rows, columns), normal(generator, rows, columns)
    weight, bias = normal(generator, columns), normal(generator, columns)
    mask = y > 0
    shape = f"{rows}x{columns}"
    yield Row("softmax", shape, (x,), tn.ops.softmax, numpy_softmax, columns)
    yield Row(
        "softmax, masked",
        shape,
        (x, mask),
        lambda given, keep: tn.ops.softmax(given, mask=keep),
        numpy_masked_softmax,
        columns,
    )
    yield Row("layer_norm", shape, (x, weight, bias), tn.ops.layer_norm, numpy_layer_norm, columns)
    yield Row("rms_norm", shape, (x, weight), tn.ops.rms_norm, numpy_rms_norm, columns)
    yield Row("gelu+bias+residual", shape, (x, bias, y), tn.ops.gelu, numpy_gelu, 1)
    yield Row("swiglu", shape, (x, y), tn.ops.swiglu, numpy_swiglu, 1)
    yield Row("add", shape, (x, y), tn.ops.add, np.add, 1)
    for kernel, ours, theirs in (
        ("sum", tn.ops.sum, np.sum),
        ("mean", tn.ops.mean, np.mean),
        ("max", tn.ops.max, np.max),
        ("min", tn.ops.min, np.min),
        ("argmax", tn.ops.argmax, np.argmax),
        ("argmin", tn.ops.argmin, np.argmin),
    ):
        yield Row(kernel, shape, (x,), along_rows(ours), along_rows(theirs), columns)


def along_rows(reduction: Callable[..., Any]) -> Callable[[Array], Array]:
    return lambda x: reduction(x, -1)


def all_rows() -> list[Row]:
    return [*product_rows(), *(row for shape in SHAPES for row in row_rows(*shape))]


def widened(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def error_and_bound(row: Row) -> tuple[float, float]:
    result = row.ours(*row.inputs)
    reference = np.asarray(row.numpy(*map(widened, row.inputs)))
    error = float(np.max(np.abs(result.astype(np.float64) - reference)))
    if result.dtype.kind == "i":
        return error, 0.0
    scale = float(np.max(np.abs(reference)))
    return error / scale, (4 + row.extent**0.5) * float(np.finfo(result.dtype).eps)


def measure(row: Row) -> Measured:
    error, bound = error_and_bound(row)
    moved = sum(array.nbytes for array in (*row.inputs, row.ours(*row.inputs)))
    seconds = fastest(lambda: row.ours(*row.inputs))
    return Measured(
        error=error,
        bound=bound,
        ours_seconds=seconds,
        numpy_seconds=fastest(lambda: row.numpy(*row.inputs)),
        rate=f"{row.flops / seconds / 1e9:.1f} GFLOP/s"
        if row.flops
        else f"{moved / seconds / 1e9:.1f} GB/s",
    )


def run(console: Console) -> list[str]:
    """Measure and print; gives the rows past their bound."""
    title = "tn.ops beside the same formula in NumPy, one thread each"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("kernel", "dtype", "shape"):
        table.add_column(name, no_wrap=True)
    for name in ("max error", "bound", "us", "rate", "NumPy us", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    faults = []
    for row in track(all_rows(), "measuring", console=console, transient=True):
        with one_thread():
            got = measure(row)
        dtype = str(row.inputs[0].dtype)
        table.add_row(
            row.kernel,
            dtype,
            row.shape,
            f"{got.error:.1e}",
            f"{got.bound:.1e}",
            f"{1e6 * got.ours_seconds:.0f}",
            got.rate,
            f"{1e6 * got.numpy_seconds:.0f}",
            f"{got.numpy_seconds / got.ours_seconds:.2f}",
            style=None if got.holds else "bold red",
        )
        if not got.holds:
            name = f"{row.kernel} {dtype} {row.shape}"
            faults.append(f"table: {name}: error {got.error:.1e}, bound {got.bound:.1e}")
    console.print(table)
    return faults
