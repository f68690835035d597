"""Moves of tile elements: transpose, reshape, broadcast, and reindexing by a Python function.

In: a tile and where its elements go. Out: a tile of the same dtype that reads the given one; one
`tile.reindex` each. `Coordinate` is what a reindexing function computes with: a formula over the
result's coordinates and run-time scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar, Never

from tilenest.errors import CaptureError, ShapeError
from tilenest.language.elements import map_elements
from tilenest.language.positions import dims_of_shape, host_int, position_of
from tilenest.language.reindexing import (
    Symbols,
    broadcast_value,
    permute_value,
    reindex_value,
    reshape_value,
)
from tilenest.language.session import Session, current_session
from tilenest.language.values import (
    Element,
    Reflecting,
    Scalar,
    Tile,
    as_element,
    as_tile,
    axes_of,
)
from tilenest.layouts import Const, DimRef, IndexExpr, bit_and, shift_left, shift_right, xor
from tilenest.opaque import Opaque


class Coordinate(Reflecting, Opaque):
    """A formula over coordinates: + - * // % ^ & << >> with ints and scalars."""

    __slots__ = ("_session", "_symbols", "expression")
    __array_ufunc__: ClassVar[None] = None  # type: ignore[assignment]  # NumPy asks for None
    """NumPy integers on the left leave the operation to us."""

    def __init__(self, session: Session, symbols: Symbols, expression: IndexExpr) -> None:
        self._session = session
        self._symbols = symbols
        self.expression = expression

    def formula(self, item: object) -> IndexExpr:
        """An operand, or a result of the function, as an expression."""
        if isinstance(item, Coordinate):
            return item.expression
        return self._symbols.expression(position_of(self._session, item))

    def _with(self, expression: IndexExpr) -> Coordinate:
        return Coordinate(self._session, self._symbols, expression)

    def __add__(self, other: object) -> Coordinate:
        return self._with(self.expression + self.formula(other))

    def __radd__(self, other: object) -> Coordinate:
        return self._with(self.formula(other) + self.expression)

    def __sub__(self, other: object) -> Coordinate:
        return self._with(self.expression - self.formula(other))

    def __rsub__(self, other: object) -> Coordinate:
        return self._with(self.formula(other) - self.expression)

    def __mul__(self, other: object) -> Coordinate:
        return self._with(self.expression * self.formula(other))

    def __rmul__(self, other: object) -> Coordinate:
        return self._with(self.formula(other) * self.expression)

    def __floordiv__(self, other: object) -> Coordinate:
        return self._with(self.expression // self.formula(other))

    def __rfloordiv__(self, other: object) -> Coordinate:
        return self._with(self.formula(other) // self.expression)

    def __mod__(self, other: object) -> Coordinate:
        return self._with(self.expression % self.formula(other))

    def __rmod__(self, other: object) -> Coordinate:
        return self._with(self.formula(other) % self.expression)

    def __xor__(self, other: object) -> Coordinate:
        return self._with(xor(self.expression, self.formula(other)))

    def __rxor__(self, other: object) -> Coordinate:
        return self._with(xor(self.formula(other), self.expression))

    def __and__(self, other: object) -> Coordinate:
        return self._with(bit_and(self.expression, self.formula(other)))

    def __rand__(self, other: object) -> Coordinate:
        return self._with(bit_and(self.formula(other), self.expression))

    def __lshift__(self, other: object) -> Coordinate:
        return self._with(shift_left(self.expression, self._places(other)))

    def __rlshift__(self, other: object) -> Coordinate:
        return self._with(shift_left(self.formula(other), self.expression))

    def __rshift__(self, other: object) -> Coordinate:
        return self._with(shift_right(self.expression, self._places(other)))

    def __rrshift__(self, other: object) -> Coordinate:
        return self._with(shift_right(self.formula(other), self.expression))

    def _places(self, count: object) -> IndexExpr:
        """How many bits to shift by."""
        found = self.formula(count)
        if isinstance(found, Const) and found.value < 0:
            raise CaptureError(
                f"a coordinate is shifted by {found.value} bits", remedy="shift the other way"
            )
        return found

    def __neg__(self) -> Coordinate:
        return self._with(-self.expression)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            "a coordinate of an index function is compared, converted, or used in other "
            "arithmetic than + - * // % ^ & << >>",
            remedy="compute every coordinate by one formula, or build the parts apart and choose "
            "with tn.where; coordinates outside read 0",
        )

    def __bool__(self) -> Never:
        raise self._misuse()


def reindex(x: Tile, shape: object, function: Callable[..., object]) -> Tile:
    """The tile over `shape` whose element at (i, j, ...) is x at `function(i, j, ...)`.

    The function gives one coordinate per dim of x (a tuple; bare for one), computed with + - * // %
    from its arguments, ints and run-time scalars. Coordinates outside x read 0. ShapeError for
    another number of coordinates or an empty shape, CaptureError for a coordinate that is compared
    or computed otherwise.
    """
    session = current_session()
    x, dims = as_tile(x, "reindex"), dims_of_shape(shape)
    if not dims:
        raise ShapeError("tn.reindex has an empty shape", remedy="read one element with x.at(...)")
    symbols = Symbols()
    places = tuple(Coordinate(session, symbols, DimRef(axis)) for axis in range(len(dims)))
    given = session.inline(function, places, "tn.reindex")
    items = given if isinstance(given, tuple | list) else (given,)
    if len(items) != x.ndim:
        raise ShapeError(
            f"the function of tn.reindex gives {len(items)} coordinates for {x.ndim} dims",
            remedy="return one coordinate per dim of the tile that is read",
        )
    coordinates = [places[0].formula(item) for item in items]
    return Tile(reindex_value(session, session.value_of(x), dims, coordinates, symbols), session)


def transpose(x: Tile, axes: Sequence[object] | None = None) -> Tile:
    """`x` with its dims in the order `axes`, reversed without.

    ShapeError unless every axis is named once.
    """
    session, x = current_session(), as_tile(x, "transpose")
    if axes is None:
        return x.T
    order = [x.dims.index(dim) for dim in axes_of(x, axes)]
    if len(order) != x.ndim:
        raise ShapeError(
            f"tn.transpose orders {len(order)} axes of a tile of rank {x.ndim}",
            remedy="name every axis of the tile once",
        )
    return Tile(permute_value(session, session.value_of(x), order), session)


def reshape(x: Tile, shape: object) -> Tile:
    """The elements of `x` in row-major order over another shape; one extent may be -1.

    ShapeError unless the shape has as many elements.
    """
    session, x = current_session(), as_tile(x, "reshape")
    items = list(shape) if isinstance(shape, tuple | list) else [shape]
    open_places = [place for place, item in enumerate(items) if host_int(item) == -1]
    if len(open_places) == 1:
        items[open_places[0]] = 1
        known = prod(dim.extent for dim in dims_of_shape(tuple(items)))
        items[open_places[0]] = prod(x.shape) // max(known, 1)
    dims = dims_of_shape(tuple(items))
    if not dims:
        raise ShapeError("tn.reshape to an empty shape", remedy="read one element with x.at(...)")
    return Tile(reshape_value(session, session.value_of(x), dims), session)


def broadcast(x: Element, shape: object) -> Tile | Scalar:
    """`x` repeated over the dims of `shape` that it lacks or has with extent 1.

    A tile with other dims of the same extents is relabelled by position. ShapeError for dims that
    `shape` has with another extent.
    """
    session, x = current_session(), as_element(x, "broadcast")
    dims = dims_of_shape(shape)
    value = session.value_of(x)
    if not dims and not x.dims:
        return Scalar(value, session)
    if not x.dims:
        return Tile(map_elements(session, x.dtype, dims, [value], lambda _, each: each[0]), session)
    return Tile(broadcast_value(session, value, dims), session)
