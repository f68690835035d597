"""Origins and shapes as kernels write them.

In: the items of `A[origin, shape]`, `x.at(...)` and `tn.zeros(shape)`: host ints, integer scalars,
nest handles of rank 1, axes. Out: host ints or index values, and dims. Wrong kinds and counts are
errors here, once for views and tiles alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as host_index
from typing import SupportsIndex, overload

from tilenest.dialects import Extent
from tilenest.errors import DTypeError, RankError, ShapeError, shown
from tilenest.ir import ScalarType, Value, element_dtype, index
from tilenest.language.elements import constant, convert
from tilenest.language.session import Handle, Session, Staged
from tilenest.layouts import Dim, shape_dims
from tilenest.opaque import Opaque

Position = int | Value
"""A host int, or a value of type index."""


class Extents(tuple[int, ...]):
    """The extents of a tile, none for a scalar; an axis that is not there is refused."""

    __slots__ = ()

    @overload
    def __getitem__(self, place: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: SupportsIndex | slice) -> int | tuple[int, ...]:
        try:
            return super().__getitem__(place)
        except (IndexError, TypeError, ValueError):
            raise no_axis(place, len(self)) from None


def no_axis(place: object, count: int) -> RankError:
    """The error of whoever asks a shape for an axis that it has not."""
    return RankError(
        f"axis {shown(place)} of a shape with {count} axes",
        remedy="count its axes from 0, or pass an array with more of them",
    )


def host_int(item: object) -> int | None:
    """`item` as an int when it is a Python or NumPy integer (bool is none), else None."""
    if isinstance(item, bool | Staged | Handle | Opaque) or not hasattr(item, "__index__"):
        return None
    try:
        return host_index(item)
    except TypeError:
        # A class of integers has it as well, and so has an array of several.
        return None


def position_of(session: Session, item: object) -> Position:
    """One coordinate: an int, an integer scalar (cast to index), or a handle of rank 1."""
    number = host_int(item)
    if number is not None:
        return number
    if isinstance(item, Handle):
        if len(item.indices) != 1:
            raise RankError(
                f"a nest of rank {len(item.indices)} is used as one coordinate",
                remedy="take its indices apart, as i, j = block.index()",
            )
        item = item.indices[0]
    if isinstance(item, Staged) and isinstance(item.value.type, ScalarType):
        value = session.value_of(item)
        if element_dtype(value.type).is_integer:
            return convert(session, value, index)
    raise DTypeError(
        f"{_describe(item)} is used as a coordinate",
        remedy="use an int, an integer scalar or the handle of a nest with one axis",
    )


def positions_of(
    session: Session, given: object, rank: int, what: str, remedy: str | None = None
) -> list[Position]:
    """A position in a space of `rank`: a tuple of coordinates, bare when the rank is 1."""
    items = given if isinstance(given, tuple | list) else (given,)
    if len(items) != rank:
        raise RankError(
            f"{what} has {len(items)} coordinates where {rank} are needed",
            remedy=remedy or f"write a tuple of {rank}: one coordinate per dimension",
        )
    return [position_of(session, item) for item in items]


def index_values(session: Session, positions: Sequence[Position]) -> list[Value]:
    """The positions as index values, host ints as constants."""
    return [
        constant(session, position, index) if isinstance(position, int) else position
        for position in positions
    ]


def dims_of_shape(shape: object) -> tuple[Dim, ...]:
    """The dims of a shape written with axes and ints, a bare one for rank 1."""
    items = shape if isinstance(shape, tuple | list) else (shape,)
    return shape_dims([_shape_item(item) for item in items])


def split_key(key: object, what: str, remedy: str) -> tuple[object, object]:
    """Origin and shape of `x[origin, shape]`."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise RankError(f"{what} is indexed without an origin and a shape", remedy)
    if any(isinstance(item, slice) or item is Ellipsis for item in _flat(key)):
        raise RankError(f"{what} is indexed with slice syntax", remedy)
    return key[0], key[1]


def part_remedy(name: str, rank: int, brackets: str = "[]") -> str:
    """How a part of something of this rank is written: its origin and its shape."""
    opening, closing = brackets[0], brackets[1]
    parts = f"{_spelled('ijk', rank)}, {_spelled('mnp', rank)}"
    return (
        f"write {name}{opening}{parts}{closing}: where the tile starts, one coordinate per "
        "dimension, and how large it is"
    )


def part_or_element_remedy(name: str, rank: int, brackets: str = "[]", method: str = "") -> str:
    """The same for what has elements of its own, which a method may read."""
    element = _spelled("ijk", rank).strip("()")
    return f"{part_remedy(name, rank, brackets)}; one element is {name}.at({element}){method}"


def _spelled(letters: str, rank: int) -> str:
    """A tuple of so many names, bare when there is one."""
    few = len(letters) >= rank
    names = letters[:rank] if few else [f"{letters[0]}{axis}" for axis in range(rank)]
    return names[0] if rank == 1 else f"({', '.join(names)})"


def _flat(key: tuple[object, object]) -> list[object]:
    return [each for item in key for each in (item if isinstance(item, tuple | list) else [item])]


def _shape_item(item: object) -> int | Dim:
    if isinstance(item, Dim):
        return item
    extent = host_int(item)
    if extent is None:
        raise ShapeError(
            f"{_describe(item)} is used as the extent of a tile",
            remedy="tile extents are fixed when the kernel is compiled: use an int or a tn.axis, "
            f"and let the origin vary at run time{host_extent_hint(item)}",
        )
    return extent


def host_extent_hint(item: object) -> str:
    """How an extent that is asked of a view at run time is had as a host int."""
    asked = getattr(item.value, "owner", None) if isinstance(item, Staged) else None
    if not isinstance(asked, Extent):
        return ""
    return f"; {asked.view.name or 'A'}.shape[{asked.axis}] is one, and specialises the kernel"


def _describe(item: object) -> str:
    if isinstance(item, Staged):
        kind = type(item).__name__
        return f"a {kind} of type {getattr(item.value.type, 'dtype', item.value.type)}"
    if isinstance(item, Handle):
        return f"the handle of a {item.kind} nest"
    return f"{shown(item)} ({type(item).__name__})"
