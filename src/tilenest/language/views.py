"""View: the arrays a kernel reads and writes, and references to parts of them.

In: a view value and what the specialisation knows of the array. Out: loads and stores as IR, and a
record of which extents and strides the kernel read as host ints (capture turns them into guards). A
view is never a value: it has no arithmetic, and it is stored to by `.store`, never by assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Never, overload

import numpy as np

from tilenest.dialects import Extent, Load, Store, Stride
from tilenest.errors import (
    CaptureError,
    DTypeError,
    RankError,
    ReadOnlyError,
    ShapeError,
    TileError,
    ViewAssignmentError,
)
from tilenest.ir import INDEX, DType, Value, bool_, element_dtype
from tilenest.language.annotations import ViewAnnotation
from tilenest.language.elements import constant, dims_of, required, type_over
from tilenest.language.positions import (
    Position,
    dims_of_shape,
    index_values,
    positions_of,
    split_key,
)
from tilenest.language.session import Session, Staged, current_session
from tilenest.language.values import Scalar, Tile, operand_of, wrap
from tilenest.layouts import Dim, dims_compatible_by_position
from tilenest.records import record

BOUNDS = ("zero", "assume", "check")


class HostNumbers(Sequence[int]):
    """Extents or strides known to the host; reading one reports it, so that it becomes a guard."""

    __slots__ = ("_missing", "_numbers", "_report")

    def __init__(
        self,
        numbers: Sequence[int | None],
        report: Callable[[int], None],
        missing: Callable[[int], TileError],
    ) -> None:
        self._numbers = tuple(numbers)
        self._report = report
        self._missing = missing

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        if isinstance(place, slice):
            return tuple(self[axis] for axis in range(*place.indices(len(self))))
        count = len(self)
        if not -count <= place < count:
            raise RankError(
                f"axis {place} of an array with {count} axes",
                remedy="count its axes from 0, or pass an array with more of them",
            )
        axis = place % count
        number = self._numbers[axis]
        if number is None:
            raise self._missing(axis)
        self._report(axis)
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int]:
        return (self[axis] for axis in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class View(Staged):
    """An array argument. `shape` and `strides` (in elements) hold None where the kernel is compiled
    for any number; `reads` collects ("extent" | "stride", axis) for every host int the kernel read.
    """

    __slots__ = ("_shape", "_strides", "is_const", "name", "reads")

    def __init__(
        self,
        value: Value,
        session: Session,
        name: str,
        shape: Sequence[int | None],
        strides: Sequence[int | None] | None = None,
        is_const: bool = False,
    ) -> None:
        super().__init__(value, session)
        self.name = name
        self.is_const = is_const
        self.reads: set[tuple[str, int]] = set()
        self._shape = tuple(shape)
        self._strides = tuple(strides) if strides is not None else (None,) * len(self._shape)

    def __class_getitem__(cls, items: object) -> ViewAnnotation:
        """`tn.View[tn.float32, 2]` annotates a parameter."""
        return ViewAnnotation.of(items, is_const=False)

    @property
    def dtype(self) -> DType:
        """The element format of the array."""
        return element_dtype(self.value.type)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions, by the name NumPy gives it."""
        return self.rank

    @property
    def shape(self) -> HostNumbers:
        """The extents as host ints: reading one compiles the kernel for that extent.

        ShapeError for an extent that is left to run time.
        """
        return HostNumbers(
            self._shape,
            lambda axis: self.reads.add(("extent", axis)),
            lambda axis: ShapeError(
                f"extent {axis} of {self.name} is known only at run time",
                remedy=f"use {self.name}.extent({axis}), a run-time scalar",
            ),
        )

    @property
    def strides(self) -> HostNumbers:
        """The strides in elements as host ints: reading one compiles the kernel for that stride."""
        return HostNumbers(
            self._strides,
            lambda axis: self.reads.add(("stride", axis)),
            lambda axis: ShapeError(
                f"stride {axis} of {self.name} is known only at run time",
                remedy=f"use {self.name}.stride({axis}), a run-time scalar",
            ),
        )

    def extent(self, axis: int) -> Scalar:
        """The extent of one axis as a run-time index: specialises nothing."""
        session = current_session()
        view = session.value_of(self)
        operation = Extent(result_types=[INDEX], view=view, axis=self._axis(axis))
        return Scalar(session.insert(operation).result, session)

    def stride(self, axis: int) -> Scalar:
        """The stride of one axis in elements as a run-time index: specialises nothing."""
        session = current_session()
        view = session.value_of(self)
        operation = Stride(result_types=[INDEX], view=view, axis=self._axis(axis))
        return Scalar(session.insert(operation).result, session)

    def __getitem__(self, key: object) -> Tile | Scalar:
        """`A[origin, shape]` loads a tile: `A(origin, shape).load()`."""
        origin, shape = split_key(key, f"the view {self.name}")
        return self(origin, shape).load()

    def __call__(
        self, origin: object, shape: object, *, bounds: str | None = None, mask: object = None
    ) -> Access:
        """A reference to the part at `origin` of the given shape; reads and writes nothing yet.

        Both are tuples of the view's rank, bare when that is 1. `bounds` is "zero" (outside reads
        give `other`, outside stores are dropped), "assume" (you promise that nothing is outside) or
        "check" (raises OutOfBounds); None takes the kernel's. `mask` is a bool tile or scalar that
        broadcasts over the shape: where it is false nothing is read or written.
        """
        session = current_session()
        positions = self._positions(session, origin)
        dims = dims_of_shape(shape)
        if len(dims) != self.rank:
            raise RankError(
                f"a tile of rank {len(dims)} is taken from {self.name}, which has rank {self.rank}",
                remedy="give one extent per dimension of the array, 1 for those that are fixed",
            )
        return self._access(session, positions, dims, bounds, mask)

    def at(self, *indices: object, bounds: str | None = None, mask: object = None) -> Access:
        """A reference to one element; `.load()` gives a scalar."""
        session = current_session()
        return self._access(session, self._positions(session, indices), (), bounds, mask)

    def _positions(self, session: Session, origin: object) -> list[Position]:
        return positions_of(session, origin, self.rank, f"the origin in {self.name}")

    def _access(
        self,
        session: Session,
        positions: list[Position],
        dims: tuple[Dim, ...],
        bounds: str | None,
        mask: object,
    ) -> Access:
        mode = session.bounds if bounds is None else bounds
        if mode not in BOUNDS:
            raise CaptureError(
                f"bounds={mode!r} is no way to treat indices outside an array",
                remedy='use "zero", "assume" or "check"',
            )
        view = session.value_of(self)
        origins = tuple(index_values(session, positions))
        return Access(self, view, origins, dims, mode, _mask_value(session, mask, dims))

    def _axis(self, axis: int) -> int:
        if not -self.rank <= axis < self.rank:
            raise RankError(
                f"axis {axis} is asked of {self.name}, which has rank {self.rank}",
                remedy=f"use an axis from 0 to {self.rank - 1}",
            )
        return axis % self.rank

    def __setitem__(self, key: object, value: object) -> Never:
        raise ViewAssignmentError(
            f"the view {self.name} is assigned through []",
            remedy=f"write {self.name}(origin, shape).store(tile), or "
            f"{self.name}.at(i, j).store(scalar) for one element",
        )

    def __iter__(self) -> Never:
        raise CaptureError(
            f"the view {self.name} cannot be iterated",
            remedy=f"loop over its extent with a nest, as tn.serial({self.name}.extent(0)), and "
            "load inside",
        )

    def __len__(self) -> Never:
        raise CaptureError(
            f"the view {self.name} has no len()",
            remedy=f"use {self.name}.shape[0], or {self.name}.extent(0) at run time",
        )

    def __bool__(self) -> Never:
        raise CaptureError(
            f"the view {self.name} is used as a condition",
            remedy="an argument may be None: compare it, as `bias is None`",
        )

    def __array__(self, dtype: object = None, copy: object = None) -> Never:
        raise CaptureError(
            f"the view {self.name} has no data while the kernel is captured",
            remedy=f"load a tile, as {self.name}[origin, shape], and use the tn functions",
        )

    def _refuse_arithmetic(self, *_: object) -> Never:
        raise CaptureError(
            f"the view {self.name} is used as a value",
            remedy=f"load a tile from it, as {self.name}[origin, shape]",
        )

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __matmul__ = __pow__ = (
        _refuse_arithmetic
    )
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _refuse_arithmetic
    __neg__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic

    def __repr__(self) -> str:
        return f"View({self.name}, {self.dtype.name}, rank {self.rank})"


@record(eq=False)
class Access:
    """A part of a view (one element when `dims` is empty): load it or store to it."""

    view: View
    value: Value
    origins: tuple[Value, ...]
    dims: tuple[Dim, ...]
    bounds: str
    mask: Value | None

    def load(self, other: object = None) -> Tile | Scalar:
        """A snapshot, of the view's dtype. `other` (0 when None) is read outside and where the mask
        is false: a number, a scalar, or a tile that broadcasts over the shape."""
        session = current_session()
        view = session.value_of(self.view)
        dtype = self.view.dtype
        self._check_visible(session)
        fill = None if other is None else self._converted(session, other, "other=")
        operation = Load(
            result_types=[type_over(dtype, self.dims)],
            view=view,
            origins=self.origins,
            other=fill,
            mask=self.mask,
            bounds=self.bounds,
            site=session.next_site(self.bounds),
        )
        return wrap(session.insert(operation).result, session)

    def store(self, value: object) -> None:
        """Write a tile, scalar or number of the view's dtype; it broadcasts over the shape.

        A tile with other dims of the same extents is stored by position. Raises DTypeError,
        ShapeError, and ReadOnlyError for a parameter annotated `tn.ConstView`.
        """
        session = current_session()
        view = session.value_of(self.view)
        if self.view.is_const:
            raise ReadOnlyError(
                f"{self.view.name} is annotated tn.ConstView and stored to",
                remedy="annotate it tn.View, or store to another array",
            )
        self._check_visible(session)
        operation = Store(
            view=view,
            origins=self.origins,
            value=self._converted(session, value, "the stored value"),
            mask=self.mask,
            bounds=self.bounds,
            dims=self.dims,
            site=session.next_site(self.bounds),
        )
        session.insert(operation)

    def _check_visible(self, session: Session) -> None:
        for value in self.origins:
            session.check_visible(value)
        if self.mask is not None:
            session.check_visible(self.mask)

    def _converted(self, session: Session, item: object, what: str) -> Value:
        value = required(session, operand_of(session, item), self.view.dtype, what)
        dims_compatible_by_position(dims_of(value), self.dims)
        return value


def _mask_value(session: Session, mask: object, dims: tuple[Dim, ...]) -> Value | None:
    if mask is None:
        return None
    operand = operand_of(session, mask)
    if isinstance(operand, bool | np.bool_):
        return constant(session, operand, bool_)
    if not isinstance(operand, Value) or element_dtype(operand.type) is not bool_:
        raise DTypeError("mask= is not bool", remedy="compare, as tn.iota(m) < rows")
    dims_compatible_by_position(dims_of(operand), dims)
    return operand
