"""CuTe layouts as layout maps, and back.

In: a layout, perhaps behind a swizzle. Out: a map with one axis for each outer mode, whose
coordinates run as CuTe counts them; or, from a map, the layout that is the same function of the
outer coordinates. Strides become a `MixedRadix` map, nested modes a recast before it, a swizzle a
`BitLinear` map after it. A map that is no such function is refused with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tilenest.errors import ShapeError
from tilenest.layouts.cute.layout import Layout, joined
from tilenest.layouts.cute.swizzle import Swizzle, Swizzled
from tilenest.layouts.deciding import DEFAULT_BUDGET
from tilenest.layouts.index_expr import DimRef
from tilenest.layouts.kinds import check_kind
from tilenest.layouts.layout_leaves import BitLinear, Expressions, Recast
from tilenest.layouts.layout_map import Compose, LayoutMap
from tilenest.layouts.linear_modes import affine, check_known, linear_modes
from tilenest.layouts.spaces import Space


def to_map(layout: Layout | Swizzled) -> LayoutMap:
    """The map from the coordinates of the outer modes to the value."""
    check_kind(layout, Layout | Swizzled, "what becomes a map")
    if isinstance(layout, Layout):
        return _strides_map(layout, Space.box(_most(layout) + 1, prefix="y"))
    inside, swizzle = layout.layout, layout.swizzle
    width = max((layout.offset + _most(inside)).bit_length(), swizzle.width)
    numbers = Space.box(1 << width, prefix="y")
    return _strides_map(inside, numbers, layout.offset).then(_swizzle_map(swizzle, numbers))


def from_map(layout: LayoutMap, budget: int = DEFAULT_BUDGET) -> Layout | Swizzled:
    """The layout with one outer mode for each axis of a map with one result."""
    check_kind(layout, LayoutMap, "what becomes a CuTe layout")
    if layout.codomain.rank != 1:
        raise ShapeError(
            f"a CuTe layout gives one number, and the map gives {layout.codomain.rank}",
            remedy="compose the map with a row-major numbering of its codomain first",
        )
    check_known(layout)
    before, last = _last_step(layout)
    swizzle = _swizzle_of(last) if isinstance(last, BitLinear) else None
    if before is not None and swizzle is not None:
        return Swizzled(swizzle, *_of_strides(before, budget))
    try:
        found, offset = _of_strides(layout, budget)
    except ShapeError:
        swizzled = _unswizzled(layout, budget)
        if swizzled is None:
            raise
        return swizzled
    if offset:
        raise ShapeError(
            f"a CuTe layout starts at 0, and the map at {offset}",
            remedy="take the offset off first: it belongs to the pointer",
        )
    return found


def _strides_map(layout: Layout, codomain: Space, offset: int = 0) -> LayoutMap:
    domain = Space.box(*(mode.size for mode in layout.modes()))
    # A recast is row-major: in it the lowest digit of a mode comes last.
    digits = [mode for outer in layout.modes() for mode in reversed(outer.flat_modes())]
    split = Space.box(*(extent for extent, _ in digits), prefix="digit")
    strides = [stride for _, stride in digits]
    if split.extents == domain.extents:
        return affine(domain, codomain, [strides], [offset])
    return Recast(domain, split).then(affine(split, codomain, [strides], [offset]))


def _of_strides(layout: LayoutMap, budget: int) -> tuple[Layout, int]:
    found = linear_modes([layout], budget)
    outer: list[Layout] = []
    for axis in range(layout.domain.rank):
        digits = [Layout(m.extent, m.strides[0]) for m in found.modes if m.axis == axis]
        outer.append(digits[0] if len(digits) == 1 else joined(*digits) if digits else Layout(1, 0))
    is_plain = len(outer) == 1 and isinstance(outer[0].shape, int)
    return outer[0] if is_plain else joined(*outer), found.constants[0]


def _unswizzled(layout: LayoutMap, budget: int) -> Swizzled | None:
    """A swizzle that the map's values suggest, and the layout that is left when it is undone."""
    for swizzle in _suggested_swizzles(layout):
        width = max((_extent(layout.codomain) - 1).bit_length(), swizzle.width)
        numbers = Space.box(1 << width, prefix="y")
        widened = Expressions(layout.codomain, numbers, (DimRef(0),))
        try:
            undone = layout.then(widened).then(_swizzle_map(swizzle, numbers))
            return Swizzled(swizzle, *_of_strides(undone, budget))
        except ShapeError:
            continue
    return None


def _suggested_swizzles(layout: LayoutMap) -> Iterator[Swizzle]:
    """Where a coordinate of one bit moves two bits of the value, one may be a copy of the other."""
    origin = (0,) * layout.domain.rank
    targets: dict[int, list[int]] = defaultdict(list)
    for axis, extent in enumerate(layout.domain.shape({})):
        for bit in range((extent - 1).bit_length()):
            point = (*origin[:axis], 1 << bit, *origin[axis + 1 :])
            values = layout.apply(point), layout.apply(origin)
            moved = 0 if values[0] is None or values[1] is None else values[0][0] ^ values[1][0]
            if moved.bit_count() == 2:
                low = (moved & -moved).bit_length() - 1
                targets[moved.bit_length() - 1 - low].append(low)
    for distance, places in sorted(targets.items()):
        count = max(places) - min(places) + 1
        if distance >= count:
            yield Swizzle(count, min(places), distance)
            yield Swizzle(count, min(places), -distance)


def _swizzle_map(swizzle: Swizzle, numbers: Space) -> BitLinear:
    width = (_extent(numbers) - 1).bit_length()
    return BitLinear(numbers, numbers, tuple(swizzle(1 << bit) for bit in range(width)))


def _last_step(layout: LayoutMap) -> tuple[LayoutMap | None, LayoutMap]:
    """A map as what comes before its last step, and that step."""
    if not isinstance(layout, Compose):
        return None, layout
    before, last = _last_step(layout.second)
    return (layout.first if before is None else Compose(layout.first, before)), last


def _swizzle_of(bits: BitLinear) -> Swizzle | None:
    """The swizzle that a map of numbers is, or None."""
    if bits.constant or bits.domain != bits.codomain or bits.domain.rank != 1:
        return None
    moved = [(place, basis ^ 1 << place) for place, basis in enumerate(bits.bases)]
    copied = [(place, copy.bit_length() - 1) for place, copy in moved if copy]
    if not copied:
        return Swizzle(0, 0, 0)
    source, target = copied[0]
    shift, count = source - target, copied[-1][0] - source + 1
    if abs(shift) < count:
        return None
    swizzle = Swizzle(count, min(source, target), shift)
    is_same = all(swizzle(1 << place) == basis for place, basis in enumerate(bits.bases))
    return swizzle if is_same else None


def _most(layout: Layout) -> int:
    """The greatest value."""
    return sum(max(stride, 0) * (extent - 1) for extent, stride in layout.flat_modes())


def _extent(numbers: Space) -> int:
    return numbers.shape({})[0]
