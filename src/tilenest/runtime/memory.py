"""Where the elements of arguments lie, and whether two of them share any.

In: addresses, extents and strides in bytes. Out: exact answers: do two arrays coincide, do they
share an element, do elements of one array share memory. Ranges that are apart settle nearly every
question; the rest is a small integer problem that NumPy solves exactly. One that is too hard counts
as shared.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tilenest.records import record

_EFFORT = 1_000_000
"""How many candidate solutions of the integer problem are tried."""
_shares_memory: Callable[..., bool] = np.shares_memory


@record
class Memory:
    """An array in memory: the address of its first element, extents, strides in bytes."""

    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def is_empty(self) -> bool:
        return 0 in self.extents

    @property
    def span(self) -> tuple[int, int]:
        """The first byte and the one past the last."""
        steps = [(n - 1) * step for n, step in zip(self.extents, self.strides, strict=True)]
        low = self.address + sum(step for step in steps if step < 0)
        high = self.address + sum(step for step in steps if step > 0) + self.itemsize
        return low, high

    @property
    def used_strides(self) -> tuple[int, ...]:
        """Strides of the axes that have more than one element; no other is ever used."""
        return tuple(s for n, s in zip(self.extents, self.strides, strict=True) if n > 1)

    def as_array(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The same memory as a NumPy array, which does not keep it alive."""
        if self.is_empty:
            return np.empty(self.extents, dtype)
        low, high = self.span
        buffer = memoryview((ctypes.c_char * (high - low)).from_address(low)).cast("B")
        return np.ndarray(self.extents, dtype, buffer, self.address - low, self.strides)


def coincide(one: Memory, other: Memory) -> bool:
    """Whether two arrays are the same elements at the same coordinates."""
    return (
        one.address == other.address
        and one.extents == other.extents
        and one.itemsize == other.itemsize
        and one.used_strides == other.used_strides
    )


def share_elements(one: Memory, other: Memory) -> bool:
    """Whether any byte belongs to both arrays."""
    if one.is_empty or other.is_empty:
        return False
    (low, high), (other_low, other_high) = one.span, other.span
    if high <= other_low or other_high <= low:
        return False
    try:
        return _shares_memory(_bytes(one), _bytes(other), max_work=_EFFORT)
    except np.exceptions.TooHardError:
        return True


def shares_with_itself(memory: Memory) -> bool:
    """Whether two coordinates of one array are the same memory."""
    if memory.is_empty:
        return False
    axes = zip(memory.extents, memory.strides, strict=True)
    used = sorted((abs(step), n) for n, step in axes if n > 1)
    reach = memory.itemsize
    for step, extent in used:
        if step < reach:
            return _has_repeated_offset(memory)
        reach = step * (extent - 1) + reach
    return False


def nests(memory: Memory) -> bool:
    """Whether each axis steps over all that the later ones reach, or all the earlier ones: compiled
    code knows by this that no two coordinates of a written array share memory."""
    axes = list(zip(memory.extents, memory.strides, strict=True))
    return memory.is_empty or _steps_over(axes, memory) or _steps_over(axes[::-1], memory)


def _steps_over(axes: list[tuple[int, int]], memory: Memory) -> bool:
    reach = memory.itemsize
    for extent, step in axes:
        if extent > 1 and abs(step) < reach:
            return False
        reach += abs(step) * (extent - 1)
    return True


def _has_repeated_offset(memory: Memory) -> bool:
    size = int(np.prod(memory.extents))
    if 0 in memory.used_strides or size > _EFFORT:
        return True
    offsets = np.zeros((), np.int64)
    for extent, step in zip(memory.extents, memory.strides, strict=True):
        offsets = offsets[..., None] + np.arange(extent, dtype=np.int64) * step
    gaps = np.diff(np.sort(offsets, axis=None))
    return bool((gaps < memory.itemsize).any())


def _bytes(memory: Memory) -> np.ndarray[Any, Any]:
    """The memory with one more axis: the bytes of an element."""
    extents, strides = (*memory.extents, memory.itemsize), (*memory.strides, 1)
    return Memory(memory.address, extents, strides, 1).as_array(np.dtype(np.uint8))
