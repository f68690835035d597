"""Dimensions and the rules by which tile spaces join.

In: dimensions made by the user's axes, or by plain ints in a shape. Out: joined spaces and, for a
store, where each source dimension lands. A dimension is an identity: two axes of equal extent stay
two dimensions. Plain ints share one hidden identity per (position from the right, extent), which
makes them broadcast as NumPy shapes do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilenest.errors import CaptureError, ShapeError
from tilenest.layouts.kinds import MOST_PLACES, check_kind, tuple_of, whole_number
from tilenest.opaque import Opaque
from tilenest.records import record

_DIMS = "the dimensions"
_set = object.__setattr__


@record(eq=False)
class Dim(Opaque):
    """One dimension, compared by identity; `position` counts from the right for plain ints."""

    label: str | None
    extent: int
    position: int | None = None

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        check_kind(self.label, str | None, "the label of an axis")
        _set(self, "extent", whole_number(self.extent, "the extent of an axis"))
        if self.position is not None:
            _set(self, "position", whole_number(self.position, "the position of an axis"))
        if self.extent < 0:
            raise ShapeError(f"{self} has a negative extent", remedy="use an extent of at least 0")

    def _misuse(self) -> CaptureError:
        return CaptureError(f"{self} is used as a number", remedy="use its extent, as axis.extent")

    def __str__(self) -> str:
        if self.position is not None:
            return f"the dimension {self.position} from the right (extent {self.extent})"
        if self.label is None:
            return f"an unnamed axis (extent {self.extent})"
        return f'axis "{self.label}" (extent {self.extent})'


_positional: dict[tuple[int, int], Dim] = {}


def positional_dim(position_from_right: int, extent: int) -> Dim:
    """The one dimension that plain ints of this extent share at this position."""
    key = whole_number(position_from_right, "a position"), whole_number(extent, "an extent")
    found = _positional.get(key)
    if found is None:
        # setdefault is atomic, so threads that race here still agree on one identity.
        found = _positional.setdefault(key, Dim(None, key[1], key[0]))
    return found


def shape_dims(shape: Sequence[int | Dim]) -> tuple[Dim, ...]:
    """The dimensions of a shape written with axes and plain ints."""
    items = tuple_of(shape, object, "a shape", MOST_PLACES)
    dims = tuple(
        item if isinstance(item, Dim) else positional_dim(len(items) - 1 - place, item)
        for place, item in enumerate(items)
    )
    if len(set(dims)) != len(dims):
        twice = next(dim for place, dim in enumerate(dims) if dim in dims[:place])
        raise ShapeError(
            f"{twice} stands twice in one shape",
            remedy="make a second axis of the same extent with tn.axis",
        )
    return dims


def join_dims(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The space of an elementwise operation: the identity union of both operands.

    A missing dimension broadcasts, and so does a plain extent 1. The order is the left operand's
    followed by what only the right has, or the right's when it has all of the left's and more.
    """
    a, b = (tuple_of(dims, Dim, _DIMS) for dims in (a, b))
    if a == b or not b:
        return a
    joined = {_place(dim): dim for dim in a}
    shared = 0
    for dim in b:
        place = _place(dim)
        mine = joined.get(place)
        shared += mine is not None
        if mine is None or mine.extent == 1:
            joined[place] = dim
        elif dim is not mine and dim.extent != 1:
            raise ShapeError(
                f"{mine} does not join with {dim}",
                remedy="make the extents equal, or give the operands named axes with tn.axis",
            )
    if shared == len(b):
        return tuple(joined.values())
    if shared == len(a):
        return tuple(joined[_place(dim)] for dim in b)
    return _in_position_order(tuple(joined.values()))


def dims_compatible_by_position(
    source: tuple[Dim, ...], destination: tuple[Dim, ...]
) -> tuple[int | None, ...]:
    """For each source dimension the destination position it follows, or None to read index 0.

    Tried in order: the exact space, broadcast by identity, relabelling by position when rank and
    extents agree.
    """
    source, destination = (tuple_of(dims, Dim, _DIMS) for dims in (source, destination))
    if source == destination:
        return tuple(range(len(source)))
    positions = {dim: position for position, dim in enumerate(destination)}
    if all(dim in positions or dim.extent == 1 for dim in source):
        return tuple(positions.get(dim) for dim in source)
    if [dim.extent for dim in source] == [dim.extent for dim in destination]:
        return tuple(range(len(source)))
    raise ShapeError(
        f"a tile of shape {_shape_text(source)} cannot be stored to a region of shape "
        f"{_shape_text(destination)}",
        remedy="store a tile with the region's axes, or with its rank and extents"
        f"{namesakes_hint((*source, *destination))}",
    )


def namesakes_hint(dims: Iterable[Dim]) -> str:
    """What a remedy adds where two dims of one label meet that are not the same one."""
    known: dict[str, Dim] = {}
    for dim in tuple_of(dims, Dim, _DIMS):
        if dim.label is not None and known.setdefault(dim.label, dim) is not dim:
            return (
                f'; two calls of tn.axis made different axes "{dim.label}": make one and use it '
                "in both places"
            )
    return ""


def _place(dim: Dim) -> Dim | int:
    """What a dimension joins by: its position for plain ints, else its identity."""
    return dim if dim.position is None else dim.position


def _in_position_order(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The same dims, with those of plain ints going down to position 0 from left to right."""
    ordered = iter(
        sorted(
            (dim for dim in dims if dim.position is not None),
            key=lambda dim: -(dim.position or 0),
        )
    )
    return tuple(dim if dim.position is None else next(ordered) for dim in dims)


def _shape_text(dims: tuple[Dim, ...]) -> str:
    items = [str(dim.extent) if dim.label is None else f"{dim.label}={dim.extent}" for dim in dims]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
