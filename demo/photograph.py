"""A photograph blurred, and its edges found, by tile kernels.

In: a colour photograph that scikit-image ships. Out: three PNG files in a folder, and what did not
hold: both results are compared with SciPy in float64. An access outside the picture reads 0 and
writes nothing, so no kernel treats the border as a case of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from scipy import ndimage
from skimage import data

import tilenest as tn
from demo.timing import fastest

SIGMA = 3.0
REACH = 12
WHITE = 255.0
LUMINANCE = (0.299, 0.587, 0.114)
EPSILON = float(np.finfo(np.float32).eps)
# Each pass rounds once a tap, and a few times more for the weights, the division and the result.
BLUR_BOUND = 2 * (2 * REACH + 1 + 4) * EPSILON * WHITE
# The steepest edge has a gradient of 4 x 255 each way; 16 roundings lie between it and the pixels.
EDGE_BOUND = 16 * EPSILON * 4 * WHITE * 2**0.5

Array = np.ndarray[Any, np.dtype[Any]]


@tn.kernel
def blur_along(Y, X, weights, *, axis):
    """The weighted mean of a pixel's neighbours along axis 1 (down) or 2 (across) of X[c, i, j].

    Neighbours outside the picture have no weight."""
    n = tn.axis("column", X.shape[2])
    reach = weights.extent(0) // 2
    for line in tn.parallel(X.extent(0), X.extent(1)):
        c, i = line.index()
        total = tn.zeros((1, 1, n), tn.float32)
        inside = tn.zeros((1, 1, n), tn.float32)
        for tap in line.reduce(weights.extent(0), policy=tn.reduction.fold_left):
            weight = weights.at(tap.index()).load()
            offset = tap.index() - reach
            down, across = (offset, 0) if axis == 1 else (0, offset)
            position = i + offset if axis == 1 else tn.iota(n) + offset
            is_inside = (position >= 0) & (position < X.extent(axis))
            total = total + weight * X[(c, i + down, across), (1, 1, n)].cast(tn.float32)
            inside = inside + weight * is_inside.cast(tn.float32)
        Y((c, i, 0), (1, 1, n)).store(total / inside)


@tn.kernel
def luminance(Y, X):
    """Y[i, j] = how bright the pixel X[:, i, j] looks."""
    n = tn.axis("column", Y.shape[1])
    for line in tn.parallel(Y.extent(0)):
        i = line.index()
        red, green, blue = [X[(c, i, 0), (1, 1, n)].cast(tn.float32) for c in range(3)]
        bright = LUMINANCE[0] * red + LUMINANCE[1] * green + LUMINANCE[2] * blue
        Y((i, 0), (1, n)).store(tn.reshape(bright, (1, n)))


@tn.kernel
def sobel(Y, X, *, rows=32, columns=128):
    """Y[i, j] = the length of the gradient at X[i + 1, j + 1]."""
    m, n = tn.axis("row", rows), tn.axis("column", columns)
    for block in tn.parallel(tn.cdiv(Y.extent(0), rows), tn.cdiv(Y.extent(1), columns)):
        i, j = block.index()
        x = [[X[(i * rows + di, j * columns + dj), (m, n)] for dj in range(3)] for di in range(3)]
        down = x[2][0] + 2.0 * x[2][1] + x[2][2] - (x[0][0] + 2.0 * x[0][1] + x[0][2])
        across = x[0][2] + 2.0 * x[1][2] + x[2][2] - (x[0][0] + 2.0 * x[1][0] + x[2][0])
        Y((i * rows, j * columns), (m, n)).store(tn.sqrt(down * down + across * across))


def gaussian_weights() -> Array:
    offsets = np.arange(-REACH, REACH + 1)
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    return np.asarray(weights / weights.sum())


def blurred_reference(planes: Array) -> Array:
    """The same blur by SciPy: outside counts as 0, in the picture and in its weights."""
    weights = gaussian_weights()

    def convolved(x: Array) -> Array:
        down = ndimage.convolve1d(x, weights, axis=-2, mode="constant")
        return np.asarray(ndimage.convolve1d(down, weights, axis=-1, mode="constant"))

    return np.asarray(convolved(planes) / convolved(np.ones(planes.shape)))


def edges_reference(planes: Array) -> Array:
    bright = np.tensordot(LUMINANCE, planes, 1)
    return np.asarray(np.hypot(ndimage.sobel(bright, 0), ndimage.sobel(bright, 1))[1:-1, 1:-1])


def save(path: Path, image: Array) -> None:
    pixels = np.clip(np.rint(image), 0, WHITE).astype(np.uint8)
    Image.fromarray(pixels).save(path)


def compared(console: Console, name: str, seconds: float, error: float, bound: float) -> list[str]:
    console.print(f"{name}: {1e3 * seconds:.2f} ms, max error {error:.1e}, bound {bound:.1e}")
    return [] if error <= bound else [f"photograph: {name} is off by {error:.1e}"]


def run(console: Console, folder: Path) -> list[str]:
    """Filter and write the pictures; gives what did not hold."""
    photograph = data.astronaut()
    planes = np.moveaxis(photograph, -1, 0)
    wide = planes.astype(np.float64)
    weights = gaussian_weights().astype(np.float32)
    half, blurred = (np.full(planes.shape, np.nan, np.float32) for _ in range(2))
    bright = np.full(planes.shape[1:], np.nan, np.float32)
    edges = np.full(tuple(extent - 2 for extent in bright.shape), np.nan, np.float32)

    def blur() -> None:
        blur_along(half, planes, weights, axis=1)
        blur_along(blurred, half, weights, axis=2)

    def find_edges() -> None:
        luminance(bright, planes)
        sobel(edges, bright)

    blur_seconds, edge_seconds = fastest(blur), fastest(find_edges)
    blur_error = float(np.max(np.abs(blurred - blurred_reference(wide))))
    edge_error = float(np.max(np.abs(edges - edges_reference(wide))))
    faults = compared(console, "Gaussian blur", blur_seconds, blur_error, BLUR_BOUND)
    faults += compared(console, "Sobel magnitude", edge_seconds, edge_error, EDGE_BOUND)
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "original.png", photograph)
    save(folder / "blurred.png", np.moveaxis(blurred, 0, -1))
    save(folder / "edges.png", edges * (WHITE / np.max(edges)))
    console.print(f"written: original.png, blurred.png, edges.png in {folder}")
    return faults
