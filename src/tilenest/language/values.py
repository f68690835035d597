"""Tile and Scalar: the values kernels compute with.

In: an IR value of the current session. Out: immutable handles whose operators emit IR and give new
handles. A Python number next to one takes its dtype, rounded once; a NumPy scalar keeps its own;
different dtypes are an error. Nothing here has data at capture: using a value as a Python bool, int
or array is an error that says what to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

import numpy as np

from tilenest.errors import CaptureError, DTypeError, ShapeError, shown
from tilenest.ir import DType, ScalarType, TileType, Value, element_dtype, index
from tilenest.language.annotations import ScalarAnnotation
from tilenest.language.dtypes import Number, as_dtype
from tilenest.language.elements import Operand, Weak, apply, convert, reinterpret
from tilenest.language.positions import (
    Extents,
    Position,
    dims_of_shape,
    host_int,
    part_or_element_remedy,
    position_of,
    positions_of,
    split_key,
)
from tilenest.language.reindexing import permute_value, project_value, slice_value
from tilenest.language.session import Handle, Session, Staged, current_session
from tilenest.layouts import Dim, namesakes_hint
from tilenest.opaque import Opaque

_LARGEST_POWER = 64
_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div",
    "floor_divide": "floordiv", "remainder": "mod", "left_shift": "shl", "right_shift": "shr",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "equal": "eq",
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
"""What NumPy calls Python's binary operators, and the scalar table."""


class Reflecting:
    """The base of what answers operators that have a tile or a scalar on the left."""

    __slots__ = ()


class Element(Staged, Opaque):
    """What Tile and Scalar share: dtype, dims, casts and every operator."""

    __slots__ = ("is_weak",)

    __hash__ = Staged.__hash__

    def __init__(self, value: Value, session: Session, is_weak: bool = False) -> None:
        super().__init__(value, session)
        self.is_weak = is_weak
        """A scalar that came from a Python number: it takes the dtype it meets."""

    @property
    def dtype(self) -> DType:
        """The element format, as `tn.float32`."""
        return element_dtype(self.value.type)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions, none for a scalar."""
        return self.value.type.dims if isinstance(self.value.type, TileType) else ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, all host ints; empty for a scalar."""
        return Extents(dim.extent for dim in self.dims)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    def cast(self, dtype: object) -> Self:
        """Converted to `dtype`: to nearest even, floats to integers saturating (NaN gives 0).

        DTypeError for what is no dtype, and for a tile of index.
        """
        session = current_session()
        wanted = as_dtype(dtype)
        if wanted is index and self.dims:
            raise DTypeError("a tile cannot hold index", remedy="cast it to tn.int64")
        return type(self)(convert(session, session.value_of(self), wanted), session)

    def astype(self, dtype: object) -> Self:
        """`cast`, by the name NumPy gives it."""
        return self.cast(dtype)

    def bitcast(self, dtype: object) -> Self:
        """The same bits read as a dtype of the same width. DTypeError for another width or bool."""
        session = current_session()
        return type(self)(reinterpret(session, session.value_of(self), as_dtype(dtype)), session)

    def _on_the_left(self, function: str, other: Operable | Reflecting) -> Tile | Scalar:
        """What an operator gives; a coordinate on the right makes a formula of it."""
        return (
            NotImplemented if isinstance(other, Reflecting) else elementwise(function, self, other)
        )

    def __add__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("add", other)

    def __radd__(self, other: Operable) -> Tile | Scalar:
        return elementwise("add", other, self)

    def __sub__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("sub", other)

    def __rsub__(self, other: Operable) -> Tile | Scalar:
        return elementwise("sub", other, self)

    def __mul__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("mul", other)

    def __rmul__(self, other: Operable) -> Tile | Scalar:
        return elementwise("mul", other, self)

    def __truediv__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("div", other)

    def __rtruediv__(self, other: Operable) -> Tile | Scalar:
        return elementwise("div", other, self)

    def __floordiv__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("floordiv", other)

    def __rfloordiv__(self, other: Operable) -> Tile | Scalar:
        return elementwise("floordiv", other, self)

    def __mod__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("mod", other)

    def __rmod__(self, other: Operable) -> Tile | Scalar:
        return elementwise("mod", other, self)

    def __and__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("and", other)

    def __rand__(self, other: Operable) -> Tile | Scalar:
        return elementwise("and", other, self)

    def __or__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("or", other)

    def __ror__(self, other: Operable) -> Tile | Scalar:
        return elementwise("or", other, self)

    def __xor__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("xor", other)

    def __rxor__(self, other: Operable) -> Tile | Scalar:
        return elementwise("xor", other, self)

    def __lshift__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("shl", other)

    def __rlshift__(self, other: Operable) -> Tile | Scalar:
        return elementwise("shl", other, self)

    def __rshift__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("shr", other)

    def __rrshift__(self, other: Operable) -> Tile | Scalar:
        return elementwise("shr", other, self)

    def __neg__(self) -> Tile | Scalar:
        return elementwise("neg", self)

    def __pos__(self) -> Element:
        return self

    def __abs__(self) -> Tile | Scalar:
        return elementwise("abs", self)

    def __invert__(self) -> Tile | Scalar:
        return elementwise("not", self)

    def __eq__(self, other: Operable) -> Tile | Scalar:  # type: ignore[override]  # elementwise
        return self._on_the_left("eq", other)

    def __ne__(self, other: Operable) -> Tile | Scalar:  # type: ignore[override]  # elementwise
        return self._on_the_left("ne", other)

    def __lt__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("lt", other)

    def __le__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("le", other)

    def __gt__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("gt", other)

    def __ge__(self, other: Operable) -> Tile | Scalar:
        return self._on_the_left("ge", other)

    def __pow__(self, given: object) -> Element:
        """Multiplied by itself; the exponent is a host int from 1 to 64. DTypeError otherwise."""
        exponent = host_int(given)
        if exponent is None or not 1 <= exponent <= _LARGEST_POWER:
            raise DTypeError(
                f"** takes a host int from 1 to {_LARGEST_POWER}, not {shown(given)}",
                remedy="use tn.sqrt(x), 1 / x or tn.exp(y * tn.log(x))",
            )
        power: Element | None = None
        square: Element = self
        while True:
            if exponent & 1:
                power = square if power is None else power * square
            exponent >>= 1
            if not exponent:
                assert power is not None
                return power
            square = square * square

    def __matmul__(self, other: object) -> Never:
        raise CaptureError(
            "@ does not say in which dtype to accumulate",
            remedy="use tn.matmul(a, b), or tn.mma(a, b, accumulator)",
        )

    def __bool__(self) -> Never:
        raise CaptureError(
            f"{self._noun} has no value while the kernel is captured, so Python cannot test it",
            remedy="use tn.where(condition, a, b) on tiles, and if, while, and, or, not directly "
            "on scalars of the kernel",
        )

    def __index__(self) -> Never:
        raise self._no_number("an integer")

    def __int__(self) -> Never:
        raise self._no_number("an integer")

    def __float__(self) -> Never:
        raise self._no_number("a float")

    def __array__(self, dtype: object = None, copy: object = None) -> Never:
        raise self._no_data()

    def __array_ufunc__(self, function: Any, method: str, *given: object, **_: object) -> object:
        """A NumPy scalar on the left of an operator comes here; NumPy's other functions end."""
        if method != "__call__" or function.__name__ not in _OPERATORS:
            raise self._no_data()
        return elementwise(_OPERATORS[function.__name__], *given)

    def _no_data(self) -> CaptureError:
        return CaptureError(
            f"{self._noun} has no data while the kernel is captured, so NumPy cannot use it",
            remedy="use the tn functions of the same name",
        )

    def _misuse(self) -> CaptureError:
        return CaptureError(
            f"{self._noun} has no value while the kernel is captured, so Python cannot use it so",
            remedy="use + - * / // % & | ^ ~ << >>, comparisons and the tn functions: x.shape for "
            "len(x), tn.rint for round, tn.exp2(y * tn.log2(x)) for powers",
        )

    def __iter__(self) -> Never:
        raise CaptureError(
            f"{self._noun} cannot be iterated",
            remedy="loop over an axis with a nest, as for c in nest.serial(axis): x.at(c)",
        )

    @property
    def _noun(self) -> str:
        return f"a {type(self).__name__} of {self.dtype}"

    def _no_number(self, wanted: str) -> CaptureError:
        return CaptureError(
            f"{self._noun} has no value while the kernel is captured, so it cannot be {wanted}",
            remedy="pass the number as a keyword-only parameter, or use .cast(dtype) to convert",
        )


class Scalar(Element):
    """One run-time number: an index, an extent, a parameter, an element."""

    __slots__ = ()

    def __class_getitem__(cls, dtype: object) -> ScalarAnnotation:
        """`tn.Scalar[tn.int64]` annotates a parameter."""
        return ScalarAnnotation(as_dtype(dtype))

    def __repr__(self) -> str:
        return f"Scalar({self.dtype.name})"


class Tile(Element):
    """A value with one element per coordinate of its dims. Assigning never copies or changes it."""

    __slots__ = ()

    @property
    def T(self) -> Tile:  # noqa: N802 - the name NumPy gives it
        """The tile with its dims reversed."""
        session = current_session()
        order = range(self.ndim)[::-1]
        return Tile(permute_value(session, session.value_of(self), order), session)

    def __getitem__(self, key: object) -> Tile:
        """`x[origin, shape]`: the part at `origin`, of the given shape; 0 outside `x`.

        Both are tuples with one item per dim, bare when there is one. RankError for another number
        of origins, ShapeError of extents.
        """
        session = current_session()
        remedy = part_or_element_remedy("x", self.ndim)
        given, shape = split_key(key, "a tile", remedy)
        dims = dims_of_shape(shape)
        origin = positions_of(session, given, self.ndim, "the origin in a tile", remedy)
        if len(dims) != self.ndim:
            raise ShapeError(
                f"a slice of rank {len(dims)} is taken from a tile of rank {self.ndim}",
                remedy="give one extent per dim of the tile; .at(...) removes dims",
            )
        return Tile(slice_value(session, session.value_of(self), origin, dims), session)

    def at(self, *coordinates: object, axis: object = None) -> Tile | Scalar:
        """The tile without some dims, read at their coordinates; 0 where those are outside.

        `x.at(nest)` reads at the coordinate of a nest over axes that x has; `x.at(i, j)` gives one
        coordinate per dim, and `x.at(i, axis=m)` names the dim or dims to remove. ShapeError for
        axes that x does not have and for another number of coordinates, RankError for another
        number than of the axes that are named.
        """
        session = current_session()
        fixed = self._fixed(session, coordinates, axis)
        return wrap(project_value(session, session.value_of(self), fixed), session)

    def _fixed(
        self, session: Session, coordinates: tuple[object, ...], axis: object
    ) -> dict[Dim, Position]:
        if axis is not None:
            dims = axes_of(self, axis)
            positions = positions_of(session, coordinates, len(dims), ".at(i, axis=...)")
            return dict(zip(dims, positions, strict=True))
        if len(coordinates) == 1 and isinstance(coordinates[0], Handle):
            handle = coordinates[0]
            named = [dim for dim in handle.dims if dim is not None]
            if named:
                return self._fixed_by(session, handle)
        if len(coordinates) != self.ndim:
            raise ShapeError(
                f".at gets {len(coordinates)} coordinates for a tile of rank {self.ndim}",
                remedy="give one per dim, name the dim as x.at(i, axis=m), or pass a nest over it",
            )
        positions = [position_of(session, item) for item in coordinates]
        return dict(zip(self.dims, positions, strict=True))

    def _fixed_by(self, session: Session, handle: Handle) -> dict[Dim, Position]:
        missing = [dim for dim in handle.dims if dim is None or dim not in self.dims]
        if missing:
            raise ShapeError(
                f"the nest runs over {missing[0] or 'a plain range'}, which the tile does not have",
                remedy="loop over the tile's own axes, or give the coordinate as x.at(i, axis=m)"
                f"{namesakes_hint((*filter(None, missing), *self.dims))}",
            )
        return {
            dim: position_of(session, place)
            for dim, place in zip(handle.dims, handle.indices, strict=True)
            if dim is not None
        }

    def __repr__(self) -> str:
        return f"Tile({self.dtype.name}, {self.shape})"


Operable = Element | Number | np.generic
"""What an elementwise operation takes."""


def wrap(value: Value, session: Session) -> Tile | Scalar:
    """The handle that fits the value's type."""
    if isinstance(value.type, TileType):
        return Tile(value, session)
    assert isinstance(value.type, ScalarType), value.type
    return Scalar(value, session)


def operand_of(session: Session, item: object) -> Operand:
    """An argument of an elementwise operation, checked to be usable here."""
    if isinstance(item, Element):
        value = session.value_of(item)
        return Weak(value) if item.is_weak else value
    if isinstance(item, bool | int | float | np.generic):
        return item
    if isinstance(item, Handle):
        raise DTypeError(
            f"the handle of a {item.kind} nest is used as a number",
            remedy="use its index, as step.index()",
        )
    if isinstance(item, Staged):
        raise DTypeError(
            "a view is used as a value", remedy="load a tile from it, as A[origin, shape]"
        )
    raise DTypeError(
        f"{type(item).__name__} is no value of a kernel",
        remedy="use tiles, scalars and numbers; arrays are passed as arguments of the kernel",
    )


def elementwise(name: str, *operands: object) -> Tile | Scalar:
    """The function `name` of the scalar table, lifted over tiles that join."""
    session = current_session()
    result = apply(session, name, [operand_of(session, item) for item in operands])
    if isinstance(result, Weak):
        return Scalar(result.value, session, is_weak=True)
    return wrap(result, session)


def as_tile(item: object, name: str) -> Tile:
    """What `tn.<name>` is given, where it takes a tile."""
    if isinstance(item, Tile):
        return item
    given = item if isinstance(item, Dim) else shown(item)
    raise ShapeError(
        f"tn.{name} is given {given}, which is no tile",
        remedy=f"give it a tile first, as tn.{name}(A[origin, shape], ...)",
    )


def as_element(item: object, name: str) -> Tile | Scalar:
    """What `tn.<name>` is given, where it takes a tile or a scalar."""
    if isinstance(item, Tile | Scalar):
        return item
    raise DTypeError(
        f"tn.{name} is given {shown(item)}",
        remedy="give it a tile or a scalar, as tn.scalar makes one",
    )


def axes_of(tile: Element, axes: object) -> tuple[Dim, ...]:
    """The dims that `axes` names: one axis or a tuple; ints count as NumPy's; None means all."""
    if axes is None:
        return tile.dims
    items: Sequence[object] = axes if isinstance(axes, tuple | list) else (axes,)
    found = tuple(_axis_of(tile, item) for item in items)
    if len(set(found)) != len(found):
        raise ShapeError("an axis is named twice", remedy="name every axis once")
    return found


def _axis_of(tile: Element, item: object) -> Dim:
    if isinstance(item, Dim) and item in tile.dims:
        return item
    if isinstance(item, int) and not isinstance(item, bool) and -tile.ndim <= item < tile.ndim:
        return tile.dims[item]
    raise ShapeError(
        f"{item if isinstance(item, Dim) else f'axis {shown(item)}'} is no axis of a tile of shape "
        f"{tile.shape}",
        remedy="name one of the tile's own axes, or its position"
        f"{namesakes_hint((item, *tile.dims) if isinstance(item, Dim) else ())}",
    )
