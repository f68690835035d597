"""What capture knows of each argument before it runs: its kind, dtype, extents and strides.

In: specs made by the runtime from real arguments, or by a user with `spec`. Out: frozen
`ArraySpec`, `ScalarSpec` and `NoneSpec`. An extent is a number, or None or a name when it is
only known at run time; equal names are equal extents. Annotations of the kernel's parameters
are checked against the specs here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tilenest.errors import ArgumentTypeError, RankError, ShapeError
from tilenest.ir import DType, bool_, float64, int64
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
    shape: Extent | Sequence[Extent],
    dtype: DType,
    strides: Sequence[int | None] | None = None,
) -> ArraySpec:
    """Describe an array for `kernel.capture`: None or a name is a run-time extent."""
    extents = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for extent in extents:
        if isinstance(extent, bool) or not isinstance(extent, int | str | None):
            raise ShapeError(
                f"{extent!r} is not an extent",
                remedy="use a number, or None or a name for an extent known at run time",
            )
        if isinstance(extent, int) and extent < 0:
            raise ShapeError(f"the extent {extent} is negative", remedy="use at least 0")
    if not isinstance(dtype, DType):
        raise ArgumentTypeError(f"{dtype!r} is not a dtype", remedy="use one such as tn.float32")
    if strides is not None and len(strides) != len(extents):
        raise RankError(
            f"{len(strides)} strides are given for {len(extents)} extents",
            remedy="give one stride an axis, in elements",
        )
    return ArraySpec(dtype, extents, None if strides is None else tuple(strides))
