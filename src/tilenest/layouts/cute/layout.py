"""CuTe layouts: a shape and strides, nested alike.

In: nested tuples of extents and of strides; extents are at least 1, strides any integer. Out: a
frozen layout, which is a function from coordinates to integers: the sum of strides times
coordinates. A coordinate is nested as the shape is, or coarser, down to one integer, the place in
colexicographic order. Definitions after the CuTe layout algebra documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.errors import ShapeError
from tilenest.layouts.cute.int_tuples import (
    IntTuple,
    compact_strides,
    int_tuple,
    int_tuple_text,
    is_congruent,
    leaves,
    size,
    weighted,
)
from tilenest.layouts.kinds import check_kind
from tilenest.records import record

_set = object.__setattr__


@record
class Layout:
    """The function `shape:stride`; equal fields make equal layouts, other ones may be the same
    function."""

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        _set(self, "shape", int_tuple(self.shape, "a shape"))
        _set(self, "stride", int_tuple(self.stride, "the strides"))
        if not is_congruent(self.shape, self.stride):
            raise ShapeError(
                f"the strides {int_tuple_text(self.stride)} are not nested as the shape "
                f"{int_tuple_text(self.shape)}",
                remedy="give one stride an extent, in the same parentheses",
            )
        if any(extent < 1 for extent in leaves(self.shape)):
            raise ShapeError(
                f"the shape {int_tuple_text(self.shape)} has an extent below 1",
                remedy="use extents of at least 1",
            )

    def __call__(self, coordinate: IntTuple) -> int:
        return weighted(int_tuple(coordinate, "a coordinate"), self.shape, self.stride)

    @property
    def rank(self) -> int:
        """How many modes there are on the outside; an integer shape has one."""
        return 1 if isinstance(self.shape, int) else len(self.shape)

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return size(self.shape)

    @property
    def cosize(self) -> int:
        """The length of the shortest run of integers that holds every value."""
        return 1 + sum(abs(stride) * (extent - 1) for extent, stride in self.flat_modes())

    def flat_modes(self) -> tuple[tuple[int, int], ...]:
        """Extent and stride of every integer of the shape, from left to right."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    def modes(self) -> tuple[Layout, ...]:
        """The outer modes as layouts of their own; the layout itself when its shape is one
        integer."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(map(Layout, self.shape, self.stride))

    def values(self) -> Iterator[int]:
        """Where the coordinates go, in colexicographic order."""
        return map(self, range(self.size))

    def __str__(self) -> str:
        return f"{int_tuple_text(self.shape)}:{int_tuple_text(self.stride)}"


def make_layout(shape: IntTuple, stride: IntTuple | None = None) -> Layout:
    """A layout, by default the one that numbers its coordinates in colexicographic order."""
    extents = int_tuple(shape, "a shape")
    return Layout(extents, compact_strides(extents) if stride is None else stride)


def joined(*modes: Layout) -> Layout:
    """The layout with these outer modes: its value is the sum of theirs."""
    for mode in modes:
        check_kind(mode, Layout, "a mode")
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))
