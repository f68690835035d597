"""What capture knows of each argument before it runs: its kind, dtype, extents and strides.

In: specs made by the runtime from real arguments, or by a user with `spec`. Out: frozen
`ArraySpec`, `ScalarSpec` and `NoneSpec`. An extent is a number, or None or a name when it is
only known at run time; equal names are equal extents. Annotations of the kernel's parameters
are checked against the specs here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import SupportsIndex

from tilenest.errors import RankError, ShapeError, shown
from tilenest.ir import LARGEST_EXTENT, DType, bool_, float64, int64
from tilenest.language import as_dtype, host_int
from tilenest.records import record

Extent = int | None | str
ALONE = -1
"""The group of an array that coincides with no other."""


@record
class ArraySpec:
    """An array. `strides` are in elements, None for what is only known at run time; no strides at
    all means dense row-major. `group` is the index of the first argument that coincides exactly
    with this one."""

    dtype: DType
    shape: tuple[Extent, ...]
    strides: tuple[int | None, ...] | None = None
    group: int = ALONE

    @property
    def kind(self) -> Hashable:
        """What two calls must share to run the same variant."""
        return self.dtype, len(self.shape)

    @property
    def element_strides(self) -> tuple[int | None, ...]:
        """The strides, computed where the array is dense row-major."""
        if self.strides is not None:
            return self.strides
        strides: list[int | None] = []
        step: int | None = 1
        for extent in reversed(self.shape):
            strides.append(step)
            step = step * extent if step is not None and isinstance(extent, int) else None
        return tuple(reversed(strides))


@record
class ScalarSpec:
    """A run-time scalar; without a dtype it came from a Python number of this kind: 'b', 'i' or
    'f', and takes the dtype it meets."""

    dtype: DType | None
    weak_kind: str | None = None

    def __post_init__(self) -> None:
        assert (self.dtype is None) is (self.weak_kind in _WEAK_DTYPES), self

    @property
    def kind(self) -> Hashable:
        return self.dtype, self.weak_kind

    @property
    def is_weak(self) -> bool:
        return self.dtype is None

    @property
    def value_dtype(self) -> DType:
        """The dtype it is passed in."""
        return self.dtype if self.dtype is not None else _WEAK_DTYPES[self.weak_kind or ""]


@record
class NoneSpec:
    """An argument that is None: a host constant."""

    @property
    def kind(self) -> Hashable:
        return None


Specification = ArraySpec | ScalarSpec | NoneSpec
_WEAK_DTYPES = {"b": bool_, "i": int64, "f": float64}


def spec(
    shape: Extent | SupportsIndex | Sequence[Extent],
    dtype: object,
    strides: SupportsIndex | Sequence[int | None] | None = None,
) -> ArraySpec:
    """Describe an array for `kernel.capture`: None or a name is a run-time extent.

    `strides` are in elements, one per axis, None for one known at run time; without them the array
    is dense. Both are bare for one axis. ShapeError for what is no extent or stride, RankError when
    their counts differ, DTypeError for what is no dtype.
    """
    extents = tuple(_extent(item) for item in _items(shape))
    element = as_dtype(dtype)
    if strides is None:
        return ArraySpec(element, extents)
    steps = tuple(_stride(item) for item in _items(strides))
    if len(steps) != len(extents):
        raise RankError(
            f"{len(steps)} strides are given for {len(extents)} extents",
            remedy="give one stride an axis, in elements",
        )
    return ArraySpec(element, extents, steps)


def _items(given: object) -> Sequence[object]:
    return given if isinstance(given, tuple | list) else (given,)


def _extent(item: object) -> Extent:
    if item is None or isinstance(item, str):
        return item
    extent = host_int(item)
    if extent is None:
        raise ShapeError(
            f"{shown(item)} is not an extent",
            remedy="use a number, or None or a name for an extent known at run time",
        )
    if not 0 <= extent <= LARGEST_EXTENT:
        raise ShapeError(
            f"the extent {shown(extent)} is {'negative' if extent < 0 else 'over 2**48'}",
            remedy="use a number from 0 to 2**48",
        )
    return extent


def _stride(item: object) -> int | None:
    step = host_int(item)
    if item is not None and (step is None or abs(step) > LARGEST_EXTENT):
        raise ShapeError(
            f"{shown(item)} is not a stride",
            remedy="use a number of elements, up to 2**48, or None for one known at run time",
        )
    return step
