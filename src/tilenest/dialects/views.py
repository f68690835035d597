"""Views of views: one operation, and the constructors that spell it.

In: a view and where its elements are wanted. Out: a `view.remap`, whose index map says which
element of the given view each of its own is. Subviews, slices, permutations, broadcasts, reshapes
and padding are all this op; an extent is an int where it is known and an index value where it is
not. Nothing is copied: an access of the result is an access of the storage below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilenest.dialects.stages import CANDIDATE
from tilenest.dialects.tile import Extent
from tilenest.ir import (
    INDEX,
    MapUse,
    Operation,
    OwnEffects,
    Value,
    ViewType,
    attribute,
    operand,
    variadic,
)
from tilenest.layouts import (
    AffineMap,
    Const,
    DimRef,
    IndexExpr,
    Ranges,
    Sym,
    simplify,
    xor,
)

Insert = Callable[[Operation], Operation]
"""Puts an operation where the program stands and gives it back."""
Size = int | Value
"""A number, or an index value."""


class Remap(Operation):
    """A view whose element d is element map(d; symbols) of `view`.

    Coordinates that lie outside of `view` are outside of the result too, and the access says what
    becomes of them. With a `fill` they are padding, which is inside: reads give it, and writes are
    dropped. So is what a result of `valid` (of the same dims and symbols, only with a fill) is
    below 0 for. `extents` are those that the result's type leaves open, in order, each at least 0.
    The type knows a stride only where the map moves along an axis of `view` evenly.
    """

    NAME = "view.remap"
    FORMS = (CANDIDATE,)
    view = operand()
    symbols = variadic()
    extents = variadic()
    map = attribute(AffineMap)
    valid = attribute(object, default=None)
    """an AffineMap, or None for no further condition"""
    fill = attribute(object, default=None)
    """a number, or None where there is no padding"""

    def effects(self) -> OwnEffects:
        return ()

    def map_uses(self) -> tuple[MapUse, ...]:
        below = self.view.type
        own = self.results[0].type if len(self.results) == 1 else None
        if not isinstance(below, ViewType) or not isinstance(own, ViewType):
            return ()
        count = len(self.symbols)
        uses = (MapUse("the view", self.map, own.rank, count, below.rank),)
        if not isinstance(self.valid, AffineMap):
            return uses
        valid = MapUse("what is valid", self.valid, own.rank, count, len(self.valid.results))
        return (*uses, valid)

    @property
    def fill_number(self) -> bool | int | float | None:
        """The fill as a number of the view's kind; None where there is no padding."""
        if self.fill is None:
            return None
        assert isinstance(self.fill, bool | int | float), "a fill is a number"
        dtype = view_type(self.result).dtype
        if dtype.is_bool:
            return bool(self.fill)
        return float(self.fill) if dtype.is_float else self.fill

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        """What has to be at least 0, or else there is padding."""
        return self.valid.results if isinstance(self.valid, AffineMap) else ()

    def extent(self, axis: int) -> Size:
        """The extent of one axis of the result."""
        shape = view_type(self.result).shape
        known = shape[axis]
        return self.extents[shape[:axis].count(None)] if known is None else known


def view_type(view: Value) -> ViewType:
    """The type of a view."""
    assert isinstance(view.type, ViewType), view
    return view.type


def base_of(view: Value) -> Value:
    """The storage below a view: an argument, a memory, a buf."""
    chain = chain_of(view)
    return chain[-1].view if chain else view


def chain_of(view: Value) -> list[Remap]:
    """The remaps between a view and its storage, the view's own first."""
    chain: list[Remap] = []
    while isinstance(owner := getattr(view, "owner", None), Remap):
        chain.append(owner)
        view = owner.view
    return chain


def view_name(view: Value) -> str:
    """What errors call a view: a view of a view of its storage."""
    return f"{'a view of ' * len(chain_of(view))}{base_of(view).name}"


def strides_of(view: Value, map_: AffineMap) -> tuple[int | None, ...]:
    """What is known of the strides of a remapped view, one for each dim of the map."""
    below = view_type(view).strides
    found: list[int | None] = []
    for dim in range(map_.n_dims):
        total: int | None = 0
        for result, stride in zip(map_.results, below, strict=True):
            step = result.coefficient(dim)
            if step == 0:
                continue
            known = None if step is None or stride is None else step * stride
            total = None if known is None or total is None else total + known
        found.append(total)
    return tuple(found)


# Constructors ----------------------------------------------------------------------------------


def remap(
    insert: Insert,
    view: Value,
    map_: AffineMap,
    sizes: Sequence[Size],
    symbols: Sequence[Value] = (),
    *,
    valid: AffineMap | None = None,
    fill: bool | int | float | None = None,
) -> Remap:
    """A view over `sizes` whose element d is view[map(d; symbols)]."""
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    is_inside = valid is None
    strides = strides_of(view, map_) if is_inside else (None,) * len(shape)
    operation = Remap(
        view=view,
        symbols=symbols,
        extents=[size for size in sizes if isinstance(size, Value)],
        map=map_,
        valid=valid,
        fill=fill,
        result_types=[ViewType(view_type(view).dtype, shape, strides)],
    )
    insert(operation)
    return operation


def sizes_of(insert: Insert, view: Value) -> list[Size]:
    """The extents of a view, asked of it where its type leaves them open."""
    sizes: list[Size] = []
    for axis, known in enumerate(view_type(view).shape):
        sizes.append(_asked(insert, view, axis) if known is None else known)
    return sizes


def _asked(insert: Insert, view: Value, axis: int) -> Value:
    operation = Extent(view=view, axis=axis, result_types=[INDEX])
    insert(operation)
    return operation.result


class _Symbols:
    """Run-time values of one map, each once."""

    def __init__(self) -> None:
        self.values: list[Value] = []

    def of(self, size: Size) -> IndexExpr:
        if isinstance(size, int):
            return Const(size)
        if size not in self.values:
            self.values.append(size)
        return Sym(self.values.index(size))


def subview(insert: Insert, view: Value, origin: Sequence[Size], sizes: Sequence[Size]) -> Remap:
    """The box of `sizes` that starts at `origin`."""
    return strided_slice(insert, view, origin, sizes, (1,) * len(sizes))


def strided_slice(
    insert: Insert,
    view: Value,
    starts: Sequence[Size],
    counts: Sequence[Size],
    steps: Sequence[int],
) -> Remap:
    """Along each axis every `step`-th element from `start` on, `count` of them."""
    symbols = _Symbols()
    results = [
        symbols.of(start) + DimRef(axis) * step
        for axis, (start, step) in enumerate(zip(starts, steps, strict=True))
    ]
    map_ = AffineMap(len(counts), len(symbols.values), tuple(results))
    return remap(insert, view, map_, counts, symbols.values)


def permute(insert: Insert, view: Value, order: Sequence[int]) -> Remap:
    """Axis i of the result is axis `order[i]` of the view."""
    sizes = sizes_of(insert, view)
    places = [DimRef(order.index(axis)) for axis in range(len(order))]
    map_ = AffineMap(len(order), 0, tuple(places))
    return remap(insert, view, map_, [sizes[axis] for axis in order])


def transpose(insert: Insert, view: Value) -> Remap:
    """The axes in reverse."""
    return permute(insert, view, range(view_type(view).rank)[::-1])


def broadcast(
    insert: Insert, view: Value, sizes: Sequence[Size], places: Sequence[int | None]
) -> Remap:
    """Axis i of the view runs along axis `places[i]` of the result, and repeats its only element
    where that is None; along all other axes everything repeats."""
    results = [Const(0) if place is None else DimRef(place) for place in places]
    return remap(insert, view, AffineMap(len(sizes), 0, tuple(results)), sizes)


def reshape(insert: Insert, view: Value, source: Sequence[Size], sizes: Sequence[Size]) -> Remap:
    """The elements of a view of extents `source` in row-major order over `sizes`, as many of them;
    only first extents may be known at run time."""
    linear = _linear(sizes)
    # What is 0 somewhere has no elements, and no coordinates to speak of.
    is_empty = 0 in source or 0 in sizes
    ranges: Ranges = {
        DimRef(axis): (0, size - 1 if isinstance(size, int) else (1 << 48))
        for axis, size in enumerate(sizes)
    }
    results: list[IndexExpr] = []
    for axis, size in enumerate(source):
        place = linear // max(1, prod(_known(source[axis + 1 :])))
        if axis > 0:
            assert isinstance(size, int), "only the first extent is known at run time"
            place = place % size
        results.append(Const(0) if is_empty else simplify(place, ranges))
    return remap(insert, view, AffineMap(len(sizes), 0, tuple(results)), sizes)


def _linear(sizes: Sequence[Size]) -> IndexExpr:
    linear: IndexExpr = Const(0)
    for axis, size in enumerate(sizes):
        assert axis == 0 or isinstance(size, int), "only the first extent is known at run time"
        linear = (linear * size if isinstance(size, int) else linear) + DimRef(axis)
    return linear


def _known(sizes: Sequence[Size]) -> list[int]:
    assert all(isinstance(size, int) for size in sizes), "only the first is known at run time"
    return [size for size in sizes if isinstance(size, int)]


def pad(
    insert: Insert,
    view: Value,
    before: Sequence[Size],
    sizes: Sequence[Size],
    fill: bool | int | float = 0,
) -> Remap:
    """The view with `before` elements of `fill` in front of each axis, and as many behind it as
    make its extents `sizes`."""
    symbols = _Symbols()
    results = [DimRef(axis) - symbols.of(size) for axis, size in enumerate(before)]
    map_ = AffineMap(len(sizes), len(symbols.values), tuple(results))
    return remap(insert, view, map_, sizes, symbols.values, fill=fill)


def swizzle(insert: Insert, view: Value, axis: int, by: int, bits: int, shift: int = 0) -> Remap:
    """Along `axis`, the lowest bits of the coordinate along `by` flip `bits` bits from bit `shift`
    on: blocks of 2 ** (bits + shift) elements are permuted, by each row in its own way."""
    sizes = sizes_of(insert, view)
    flipped = (DimRef(by) % (1 << bits)) * (1 << shift)
    places = [DimRef(place) for place in range(len(sizes))]
    results = [xor(place, flipped) if place == DimRef(axis) else place for place in places]
    return remap(insert, view, AffineMap(len(sizes), 0, tuple(results)), sizes)
