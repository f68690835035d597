"""The CuTe layout algebra: coalesce, composition, complement and the inverses.

In: layouts, tilers, sizes. Out: layouts, or a ShapeError that names the divisibility or compactness
that fails. Every operator is defined by what its result does as a function (the CuTe layout algebra
documentation); each docstring states it. The derivation works on modes in lowest terms, in which
neighbours that continue one another are one.
"""

from __future__ import annotations

from operator import mul
from typing import TypeAlias

from tilenest.errors import ShapeError
from tilenest.layouts.cute.int_tuples import MOST_NESTED, leaves, nested_like
from tilenest.layouts.cute.layout import Layout, joined, make_layout
from tilenest.layouts.kinds import check_kind, whole_number

Tiler: TypeAlias = "int | Layout | tuple[Tiler, ...]"
"""What tiles a layout: a layout, `n` for `n:1`, or a tuple with one tiler for each outer mode."""


def flatten(layout: Layout) -> Layout:
    """The same layout without nesting: all its integers are outer modes."""
    check_kind(layout, Layout, "what is flattened")
    return Layout(leaves(layout.shape), leaves(layout.stride))


def coalesce(layout: Layout) -> Layout:
    """The layout with the fewest modes that is the same function of the place in the order."""
    modes = lowest_terms(layout)
    if len(modes) == 1:
        return Layout(*modes[0])
    return Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes)) if modes else Layout(1, 0)


def lowest_terms(layout: Layout) -> list[tuple[int, int]]:
    """Extents and strides without extents of 1 and without a mode that continues its left one."""
    check_kind(layout, Layout, "what is coalesced")
    modes: list[tuple[int, int]] = []
    for extent, stride in layout.flat_modes():
        if extent == 1:
            continue
        if modes and modes[-1][0] * modes[-1][1] == stride:
            modes[-1] = (modes[-1][0] * extent, modes[-1][1])
        else:
            modes.append((extent, stride))
    return modes


def composition(outer: Layout, inner: Tiler) -> Layout:
    """R with R(c) = outer(inner(c)) for every coordinate c of `inner`; R is nested as `inner`, each
    of its integers refined where needed. A tuple composes mode by mode, and keeps further modes.

    Every value of `inner` has to be a place in `outer`.
    """
    check_kind(outer, Layout, "the outer layout")
    if isinstance(inner, tuple):
        modes = outer.modes()
        check_rank(modes, inner)
        check_nesting(inner)
        parts = list(map(composition, modes, inner))
        return joined(*parts, *modes[len(inner) :])
    inside = layout_of(inner)
    _check_range(outer, inside)
    carrier = _Digits(outer)
    found = [carrier.picked(extent, stride) for extent, stride in inside.flat_modes()]
    carrier.check_no_carry(inside)
    return Layout(
        nested_like(inside.shape, [part.shape for part in found]),
        nested_like(inside.shape, [part.stride for part in found]),
    )


def complement(layout: Layout, cotarget: int) -> Layout:
    """R such that layout(i) + R(j) are all different and cover [0, cotarget): R says where copies
    of the layout's image go. Modes of stride 0 do not add to the image and are left out.
    """
    check_kind(layout, Layout, "what is completed")
    below = 1
    target = whole_number(cotarget, "a number of places")
    modes: list[Layout] = []
    by_stride = sorted((d, n) for n, d in layout.flat_modes() if d != 0 and n != 1)
    for stride, extent in by_stride:
        if stride < 0 or stride % below:
            raise ShapeError(
                f"{layout} has no complement: its stride {stride} is no multiple of {below}, what "
                f"its smaller strides fill",
                remedy="use positive strides, each a multiple of the next smaller stride times its "
                "extent",
            )
        modes.append(Layout(stride // below, below))
        below = stride * extent
    modes.append(Layout(-(-max(target, 1) // below), below))
    return coalesce(joined(*modes))


def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(i)) = i on all of R: the longest such R that follows the modes by stride."""
    below = 1
    modes: list[Layout] = []
    for stride, extent, place in sorted(_placed(layout)):
        if stride == below:
            modes.append(Layout(extent, place))
            below *= extent
    return coalesce(joined(*modes))


def left_inverse(layout: Layout) -> Layout:
    """R with R(layout(i)) = i for every place i of an injective layout."""
    if any(stride == 0 for _, stride in lowest_terms(layout)):
        raise ShapeError(
            f"{layout} has no left inverse: a mode of stride 0 sends many places to one value",
            remedy="leave the modes of stride 0 out",
        )
    return right_inverse(joined(layout, complement(layout, layout.cosize)))


def layout_of(tiler: int | Layout) -> Layout:
    return tiler if isinstance(tiler, Layout) else make_layout(whole_number(tiler, "a tiler"))


def check_rank(modes: tuple[Layout, ...], tiler: tuple[Tiler, ...]) -> None:
    """A tuple of tilers has at most one for each mode."""
    if len(tiler) > len(modes):
        raise ShapeError(
            f"{len(tiler)} tilers do not fit the {len(modes)} modes of {joined(*modes)}",
            remedy="give at most one tiler for each outer mode",
        )


def check_nesting(tiler: Tiler, depth: int = 0) -> None:
    """A tiler is nested no deeper than a layout may be."""
    if depth > MOST_NESTED:
        raise ShapeError(
            f"a tiler has over {MOST_NESTED} tuples inside one another", remedy="flatten it first"
        )
    for part in tiler if isinstance(tiler, tuple) else ():
        check_nesting(part, depth + 1)


class _Digits:
    """A layout in lowest terms as digits of a place, and how much of each digit is used."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.modes = lowest_terms(layout)
        self.used = [0] * len(self.modes)

    def picked(self, extent: int, step: int) -> Layout:
        """The values at the places 0, step, ..., step * (extent - 1), as modes.

        A mode goes as far as no digit carries: then the digits of a sum are the sums of digits.
        """
        wanted, pace = (1, 0) if step == 0 else (extent, step)
        found = [Layout(extent, 0)] if wanted == 1 else []
        while wanted > 1:
            digits = self._digits(pace)
            few, size = min(
                ((n - 1) // x + 1, n) for x, (n, _) in zip(digits, self.modes, strict=True) if x
            )
            if few < wanted and wanted % few:
                raise ShapeError(
                    f"{self.layout} cannot be composed with {extent}:{step}: {few} steps of "
                    f"{pace} fit an extent of {size}, and {few} does not divide {wanted}",
                    remedy="use extents and strides that divide the outer layout's extents, from "
                    "the left",
                )
            few = min(few, wanted)
            strides = (stride for _, stride in self.modes)
            found.append(Layout(few, sum(map(mul, digits, strides))))
            self.used = [most + x * (few - 1) for most, x in zip(self.used, digits, strict=True)]
            wanted, pace = wanted // few, pace * few
        return found[0] if len(found) == 1 else joined(*found)

    def _digits(self, place: int) -> list[int]:
        digits: list[int] = []
        for extent, _ in self.modes:
            place, digit = divmod(place, extent)
            digits.append(digit)
        return digits

    def check_no_carry(self, inner: Layout) -> None:
        """The modes of `inner` add up digit by digit, else the sum is no layout's value."""
        for (size, _), used in zip(self.modes, self.used, strict=True):
            if used >= size:
                raise ShapeError(
                    f"{self.layout} cannot be composed with {inner}: the modes of {inner} add up "
                    f"to {used} inside a mode of extent {size}",
                    remedy="compose with a layout whose modes reach different digits of the outer "
                    "layout's shape",
                )


def _placed(layout: Layout) -> list[tuple[int, int, int]]:
    """Stride, extent and the place of coordinate 1 for every mode in lowest terms."""
    found: list[tuple[int, int, int]] = []
    place = 1
    for extent, stride in lowest_terms(layout):
        found.append((stride, extent, place))
        place *= extent
    return found


def _check_range(outer: Layout, inner: Layout) -> None:
    ends = [stride * (extent - 1) for extent, stride in inner.flat_modes()]
    least, most = (sum(end for end in ends if (end > 0) == up) for up in (False, True))
    if least < 0 or most >= outer.size:
        raise ShapeError(
            f"{outer} cannot be composed with {inner}: the values of {inner} run from {least} to "
            f"{most}, and the places of {outer} from 0 to {outer.size - 1}",
            remedy="compose with a layout whose values are places; a tile has to divide its size",
        )
