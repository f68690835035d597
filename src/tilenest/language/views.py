"""View: the arrays a kernel reads and writes, and references to parts of them.

In: a view value and what the specialisation knows of the array. Out: loads and stores as IR, and a
record of which extents and strides the kernel read as host ints (capture turns them into guards). A
view is never a value: it has no arithmetic, and it is stored to by `.store`, never by assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Never, overload

from tilenest.dialects import Extent, Stride
from tilenest.errors import (
    CaptureError,
    RankError,
    ShapeError,
    TileError,
    ViewAssignmentError,
    shown,
)
from tilenest.ir import INDEX, DType, Value, element_dtype
from tilenest.language.accesses import ViewAccess, mask_value
from tilenest.language.annotations import ViewAnnotation
from tilenest.language.index_maps import IndexMap
from tilenest.language.positions import (
    Position,
    dims_of_shape,
    host_int,
    index_values,
    no_axis,
    part_or_element_remedy,
    positions_of,
    split_key,
)
from tilenest.language.remapping import (
    Derived,
    broadcasted,
    has_stride,
    permuted,
    remapped,
    reshaped,
    sliced,
)
from tilenest.language.session import Session, Staged, current_session
from tilenest.language.values import Scalar, Tile
from tilenest.layouts import Dim
from tilenest.opaque import Opaque
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
        count = len(self)
        if isinstance(place, slice):
            return tuple(self[axis] for axis in _axes_in(place, count))
        given = host_int(place)
        if given is None or not -count <= given < count:
            raise no_axis(place, count)
        axis = given % count
        number = self._numbers[axis]
        if number is None:
            raise self._missing(axis)
        self._report(axis)
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    def __add__(self, other: object) -> tuple[object, ...]:
        return (*self, *other) if isinstance(other, tuple | HostNumbers) else NotImplemented

    def __radd__(self, other: object) -> tuple[object, ...]:
        return (*other, *self) if isinstance(other, tuple) else NotImplemented

    def __iter__(self) -> Iterator[int]:
        return (self[axis] for axis in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _axes_in(place: slice, count: int) -> range:
    try:
        return range(count)[place]
    except (TypeError, ValueError) as error:
        raise RankError(
            f"{shown(place)} of the {count} axes of an array: {error}",
            remedy="use ints other than 0 for the step, as A.shape[1:]",
        ) from error


class View(Staged, Opaque):
    """An array argument. `shape` and `strides` (in elements) hold None where the kernel is compiled
    for any number; `reads` collects ("extent" | "stride", axis) for every host int the kernel read.
    """

    __slots__ = ("_parent_axes", "_shape", "_strides", "is_const", "name", "reads")

    def __init__(
        self,
        value: Value,
        session: Session,
        name: str,
        shape: Sequence[int | None],
        strides: Sequence[int | None] | None = None,
        is_const: bool = False,
        parent_axes: Sequence[ParentAxis | None] | None = None,
    ) -> None:
        super().__init__(value, session)
        self._parent_axes = parent_axes
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
            lambda axis: self._report("extent", axis),
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
            lambda axis: self._report("stride", axis),
            lambda axis: ShapeError(
                f"stride {axis} of {self.name} is known only at run time",
                remedy=f"use {self.name}.stride({axis}), a run-time scalar",
            ),
        )

    def _report(self, what: str, axis: int) -> None:
        """Note that the kernel read a fact of the host: it belongs to the array below."""
        if self._parent_axes is None:
            self.reads.add((what, axis))
        elif (source := self._parent_axes[axis]) is not None:
            source.view._report(what, source.axis)

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
        if not has_stride(view, self._axis(axis)):
            raise ShapeError(
                f"{self.name} does not move evenly along axis {axis}, so it has no stride there",
                remedy="ask the array that it is a view of",
            )
        operation = Stride(result_types=[INDEX], view=view, axis=self._axis(axis))
        return Scalar(session.insert(operation).result, session)

    def __getitem__(self, key: object) -> Tile | Scalar:
        """`A[origin, shape]` loads a tile: `A(origin, shape).load()`."""
        remedy = part_or_element_remedy(self.name, self.rank, "[]", ".load()")
        origin, shape = split_key(key, f"the view {self.name}", remedy)
        return self._part(origin, shape, None, None, remedy).load()

    def __call__(
        self, origin: object, shape: object, *, bounds: str | None = None, mask: object = None
    ) -> ViewAccess:
        """A reference to the part at `origin` of the given shape; reads and writes nothing yet.

        Both are tuples of the view's rank, bare when that is 1. Outside is what leaves this view,
        or one that it is a view of. `bounds` is "zero" (outside reads give `other`,
        outside stores are dropped), "assume" (you promise that nothing is outside) or
        "check" (raises OutOfBounds); None takes the kernel's. `mask` is a bool tile or scalar that
        broadcasts over the shape: where it is false nothing is read or written.
        """
        remedy = part_or_element_remedy(self.name, self.rank, "()")
        return self._part(origin, shape, bounds, mask, remedy)

    def _part(
        self, origin: object, shape: object, bounds: str | None, mask: object, remedy: str
    ) -> ViewAccess:
        session = current_session()
        positions = self._positions(session, origin, remedy)
        dims = dims_of_shape(shape)
        if len(dims) != self.rank:
            raise RankError(
                f"a tile of rank {len(dims)} is taken from {self.name}, which has rank {self.rank}",
                remedy="give one extent per dimension of the array, 1 for those that are fixed",
            )
        return self._access(session, positions, dims, bounds, mask)

    def at(self, *indices: object, bounds: str | None = None, mask: object = None) -> ViewAccess:
        """A reference to one element; `.load()` gives a scalar."""
        session = current_session()
        remedy = part_or_element_remedy(self.name, self.rank)
        return self._access(session, self._positions(session, indices, remedy), (), bounds, mask)

    # Views of this view -----------------------------------------------------------------------

    @property
    def T(self) -> View:  # noqa: N802  # the name NumPy gives it
        """The view with its axes in reverse; nothing is copied."""
        return self._moved("T", range(self.rank)[::-1])

    def permute(self, *order: object) -> View:
        """The view whose axis i is axis `order[i]` of this one; nothing is copied."""
        axes = order[0] if len(order) == 1 and isinstance(order[0], tuple | list) else order
        return self._moved("permute", axes)

    def _moved(self, name: str, order: Sequence[object]) -> View:
        session = current_session()
        return self._view(name, permuted(session, session.value_of(self), self.name, order))

    def slice(self, origin: object, shape: object, step: object = 1) -> View:
        """The view whose element (i, ...) is this one's at `origin + step * i`; nothing is copied.

        `shape` may hold run-time scalars; a step, one or one per axis, is an int other than 0.
        Parts outside of this view are outside for every access, as its `bounds` says.
        """
        session = current_session()
        view = session.value_of(self)
        return self._view("slice", sliced(session, view, self.name, origin, shape, step))

    def reshape(self, *shape: object) -> View:
        """The elements in row-major order over another shape; nothing is copied.

        One extent may be -1. Reads the extents as host ints, but the first where it need not.
        """
        session = current_session()
        items = shape[0] if len(shape) == 1 else shape
        row = self.shape[1:]
        is_open = not self.rank or self._shape[0] is None
        rows = session.value_of(self.extent(0)) if is_open else self.shape[0]
        derived = reshaped(session, session.value_of(self), self.name, row, rows, items)
        return self._view("reshape", derived)

    def broadcast_to(self, *shape: object) -> View:
        """Axes of extent 1 repeated, and further axes in front, which may be run-time scalars;
        nothing is copied. What several places show cannot be stored to."""
        session = current_session()
        items = shape[0] if len(shape) == 1 else shape
        view = session.value_of(self)
        derived = broadcasted(session, view, self.name, tuple(self.shape), items)
        return self._view("broadcast_to", derived)

    def remap(self, index_map: IndexMap) -> View:
        """The view whose element d is this one's at `tn.index_map(...)` of d; nothing is copied.

        Coordinates outside of this view are outside for every access, as its `bounds` says.
        """
        session = current_session()
        view = session.value_of(self)
        if not isinstance(index_map, IndexMap):
            raise CaptureError(
                f"{self.name}.remap gets {shown(index_map)}, which is no index map",
                remedy="use tn.index_map(domain, codomain, function)",
            )
        codomain = index_map.codomain
        if len(codomain) != self.rank:
            raise RankError(
                f"a map into {len(codomain)} dims is given to {self.name} of rank {self.rank}",
                remedy="let the codomain of the map be the shape of the view",
            )
        for axis, size in enumerate(codomain):
            if isinstance(size, int) and self.shape[axis] != size:
                raise ShapeError(
                    f"axis {axis} of {self.name} has extent {self.shape[axis]}, the codomain of "
                    f"the map says {shown(size)}",
                    remedy="let the codomain of the map be the shape of the view",
                )
        return self._view("remap", remapped(session, view, index_map))

    def _view(self, name: str, derived: Derived) -> View:
        """A view of this view."""
        below = [None if axis is None else ParentAxis(self, axis) for axis in derived.axes]
        extents = [
            derived.extents[axis] if source is None else source.view._shape[source.axis]
            for axis, source in enumerate(below)
        ]
        strides = [None if source is None else self._strides[source.axis] for source in below]
        view = View(
            derived.operation.result,
            self.session,
            f"{self.name}.{name}",
            extents,
            strides,
            self.is_const,
            below,
        )
        derived.operation.result.name = None
        return view

    def _positions(self, session: Session, origin: object, remedy: str) -> list[Position]:
        return positions_of(session, origin, self.rank, f"the origin in {self.name}", remedy)

    def _access(
        self,
        session: Session,
        positions: list[Position],
        dims: tuple[Dim, ...],
        bounds: str | None,
        mask: object,
    ) -> ViewAccess:
        mode: object = session.bounds if bounds is None else bounds
        if not isinstance(mode, str) or mode not in BOUNDS:
            raise CaptureError(
                f"bounds={shown(mode)} is no way to treat indices outside an array",
                remedy='use "zero", "assume" or "check"',
            )
        session.value_of(self)
        origins = tuple(index_values(session, positions))
        chosen = mask_value(session, mask, dims)
        return ViewAccess(self, self.name, self.is_const, origins, dims, mode, chosen)

    def _axis(self, axis: int) -> int:
        place = host_int(axis)
        if place is None or not -self.rank <= place < self.rank:
            axes = f"use an axis from 0 to {self.rank - 1}"
            raise RankError(
                f"axis {shown(axis)} is asked of {self.name}, which has rank {self.rank}",
                remedy=axes if self.rank else f"load its one element, as {self.name}.at().load()",
            )
        return place % self.rank

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

    def _misuse(self) -> CaptureError:
        return CaptureError(
            f"the view {self.name} is used as a value",
            remedy=f"load a tile from it, as {self.name}[origin, shape]; whether there is an array "
            f"at all is asked as `{self.name} is None`",
        )

    def __repr__(self) -> str:
        return f"View({self.name}, {self.dtype.name}, rank {self.rank})"


@record(eq=False)
class ParentAxis:
    """An axis of a view that shows a whole axis of the view it was made of."""

    view: View
    axis: int
