"""Handwritten digits told apart by their nearest neighbour, all in tile kernels.

In: the 1,797 images of 8 x 8 pixels that scikit-learn ships. Out: printed counts, and what did not
hold. Pixels are integers up to 16, so float32 holds every distance exactly and the neighbours have
to equal those of a float64 brute force.
"""

from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits

import tilenest as tn
from demo.timing import fastest

EXPECTED_RIGHT = 1776
BLOCK = 256

Array = np.ndarray[Any, np.dtype[Any]]


@tn.kernel
def square_norms(norms, X, *, block):
    """norms[i] = |x_i|^2."""
    rows, columns = X.shape
    m, k = tn.axis("row", block), tn.axis("pixel", columns)
    for part in tn.parallel(tn.cdiv(rows, block)):
        start = part.index() * block
        x = X[(start, 0), (m, k)]
        norms(start, m).store(tn.sum(x * x, k))


@tn.kernel
def squared_distances(D, X, norms, *, block):
    """D[i, j] = |x_i|^2 + |x_j|^2 - 2 x_i . x_j, and infinity where i = j."""
    rows, columns = X.shape
    m, n, k = tn.axis("row", block), tn.axis("other", block), tn.axis("pixel", columns)
    for part in tn.parallel(tn.cdiv(rows, block), tn.cdiv(rows, block)):
        i, j = part.index()
        i0, j0 = i * block, j * block
        x, y = X[(i0, 0), (m, k)], X[(j0, 0), (n, k)]
        products = tn.mma(x, y, tn.zeros((m, n), tn.float32))
        distances = norms[i0, m] + norms[j0, n] - 2.0 * products
        is_itself = i0 + tn.iota(m) == j0 + tn.iota(n)
        D((i0, j0), (m, n)).store(tn.where(is_itself, np.inf, distances))


@tn.kernel
def nearest(neighbours, D):
    """neighbours[i] = the first j with the least D[i, j]."""
    n = tn.axis("other", D.shape[1])
    for row in tn.parallel(D.extent(0)):
        i = row.index()
        neighbours(i, 1).store(tn.argmin(D[(i, 0), (1, n)], n))


def brute_force(images: Array) -> Array:
    """The neighbours, from differences in float64, one image after the other."""
    wide = images.astype(np.float64)
    found = np.empty(len(wide), np.int64)
    for i, image in enumerate(wide):
        distances = np.square(wide - image).sum(axis=1)
        distances[i] = np.inf
        found[i] = distances.argmin()
    return found


def run(console: Console) -> list[str]:
    """Classify and print; gives what did not hold."""
    pixels, labels = load_digits(return_X_y=True)
    images = pixels.astype(np.float32)
    count = len(images)
    norms = np.full(count, np.nan, np.float32)
    distances = np.full((count, count), np.nan, np.float32)
    neighbours = np.full(count, -1, np.int64)

    def product() -> None:
        squared_distances(distances, images, norms, block=BLOCK)

    square_norms(norms, images, block=BLOCK)
    product_seconds = fastest(product)
    search_seconds = fastest(lambda: nearest(neighbours, distances))
    right = int(np.sum(labels[neighbours] == labels))
    agreeing = int(np.sum(neighbours == brute_force(images)))
    rate = 2.0 * count * count * images.shape[1] / product_seconds / 1e9
    console.print(f"squared distances: {1e3 * product_seconds:.2f} ms, {rate:.1f} GFLOP/s")
    console.print(f"arg-min of each row: {1e3 * search_seconds:.2f} ms")
    console.print(f"right: {right:,} of {count:,} ({right / count:.2%})")
    console.print(f"neighbours equal to a float64 brute force: {agreeing:,} of {count:,}")
    faults = []
    if right != EXPECTED_RIGHT:
        faults.append(f"digits: {right} right, not {EXPECTED_RIGHT}")
    if agreeing != count:
        faults.append(f"digits: {count - agreeing} neighbours differ from the brute force")
    return faults
