"""Arrays as tests hand them to kernels: in any layout, poisoned, between guard bytes.

`placed(values, layout)` gives an input whose neighbours in memory are all NaN; `poisoned(...)` an
output that is NaN everywhere. Either knows afterwards whether a byte that is not its own changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
bfloat16 = np.dtype(ml_dtypes.bfloat16)

LAYOUTS = ("contiguous", "fortran", "steps", "backwards", "offset")
GUARD = 64
_POISON = 0xFF
"""As bytes of any float it is a NaN, of a signed integer -1."""


@dataclass(slots=True)
class Placed:
    """An array within a buffer of its own."""

    raw: Array
    array: Array
    own: Array
    """which bytes of `raw` are elements of `array`"""
    before: Array = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.raw.copy()

    @property
    def is_unchanged(self) -> bool:
        return bool((self.raw == self.before).all())

    @property
    def has_intact_guards(self) -> bool:
        return bool((self.raw == self.before)[~self.own].all())


def placed(values: Array, layout: str = "contiguous") -> Placed:
    """A copy of `values` laid out as asked for."""
    target = poisoned(values.shape, values.dtype, layout)
    target.array[...] = values
    target.before = target.raw.copy()
    return target


def poisoned(shape: tuple[int, ...], dtype: Any, layout: str = "contiguous") -> Placed:
    """An array of poison."""
    dtype = np.dtype(dtype)
    outer = _outer_shape(shape, layout)
    size = int(np.prod(outer, dtype=np.int64)) * dtype.itemsize
    raw = np.full(size + 2 * GUARD, _POISON, np.uint8)
    mask = np.zeros(raw.shape, bool)
    inner = _inner(raw[GUARD : GUARD + size].view(dtype).reshape(outer), shape, layout)
    bytes_of = mask[GUARD : GUARD + size].reshape(*outer, dtype.itemsize)
    _inner(bytes_of, shape, layout)[...] = True
    return Placed(raw, inner, mask)


def _outer_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    match layout:
        case "steps":
            return tuple(2 * extent + 1 for extent in shape)
        case "offset":
            return tuple(extent + 3 for extent in shape)
        case "fortran":
            return shape[::-1]
    return shape


def _inner(buffer: Any, shape: tuple[int, ...], layout: str) -> Any:
    """The part of the buffer (which may have one more axis, of bytes) that is the array."""
    rank = len(shape)
    match layout:
        case "steps":
            return buffer[(*(slice(1, 2 * extent + 1, 2) for extent in shape), ...)]
        case "offset":
            return buffer[(*(slice(2, 2 + extent) for extent in shape), ...)]
        case "backwards":
            return buffer[(*(slice(None, None, -1) for _ in shape), ...)]
        case "fortran":
            return buffer.transpose(*range(rank)[::-1], *range(rank, buffer.ndim))
    return buffer


def whole(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Small whole numbers: floats whose sums and products are exact."""
    generator = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind in "ub" else -4
    return generator.integers(low, 5, shape).astype(dtype)


def normal(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Normally distributed floats."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Integers from the whole range of the dtype, its ends and 0 among them."""
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(seed)
    values = generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    edges = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1]
    flat = values.reshape(-1)
    flat[: len(edges)] = edges[: flat.size]
    return values


SPECIALS = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    1e30,
    -1e-30,
    88.0,
    1e-40,
)


def special(count: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Floats with NaN, infinities, both zeros, halves and subnormals among them, in any order."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(count) * 10
    chosen = generator.random(count) < 0.4
    values[chosen] = generator.choice(SPECIALS, int(chosen.sum()))
    with np.errstate(over="ignore"):
        return values.astype(dtype)
