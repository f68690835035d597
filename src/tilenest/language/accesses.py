"""Accesses: references to a part of a view, loaded, stored to or updated in one step.

In: a view, origins, dims, the treatment of what lies outside, and a mask. Out: one operation each,
where the method is called.
"""

from __future__ import annotations

import numpy as np

from tilenest.dialects import Atomic, Load, Store
from tilenest.errors import CaptureError, DTypeError, ReadOnlyError
from tilenest.ir import DType, Value, bool_, element_dtype
from tilenest.language.elements import constant, dims_of, required, type_over
from tilenest.language.remapping import is_writable
from tilenest.language.session import Session, Staged, current_session
from tilenest.language.values import Scalar, Tile, operand_of, wrap
from tilenest.layouts import Dim, dims_compatible_by_position
from tilenest.opaque import Opaque
from tilenest.records import record


@record(eq=False)
class ViewAccess(Opaque):
    """A part of a view (one element when `dims` is empty): load it, store to it, or update it."""

    view: Staged
    name: str
    is_const: bool
    origins: tuple[Value, ...]
    dims: tuple[Dim, ...]
    bounds: str
    mask: Value | None

    @property
    def dtype(self) -> DType:
        """The element format of the view."""
        return element_dtype(self.view.value.type)

    def load(self, other: object = None) -> Tile | Scalar:
        """A snapshot, of the view's dtype. `other` (0 when None) is read outside and where the mask
        is false: a number, a scalar, or a tile that broadcasts over the shape."""
        session = current_session()
        view = session.value_of(self.view)
        dtype = self.dtype
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
        session, view = self._writable()
        if not is_writable(view):
            raise ReadOnlyError(
                f"{self.name} shows elements of an array at several places and is stored to",
                remedy="store to the array, or through a view that shows each element once",
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

    def atomic_add(self, value: object) -> Tile | Scalar:
        """Add to each element in one step, as all instances see it; what was there before."""
        return self._update("add", value)

    def atomic_min(self, value: object) -> Tile | Scalar:
        """Make each element the smaller of itself and the value; what was there before."""
        return self._update("minimum", value)

    def atomic_max(self, value: object) -> Tile | Scalar:
        """Make each element the larger of itself and the value; what was there before."""
        return self._update("maximum", value)

    def atomic_and(self, value: object) -> Tile | Scalar:
        """Keep the bits that the value has too; what was there before."""
        return self._update("and", value)

    def atomic_or(self, value: object) -> Tile | Scalar:
        """Set the bits that the value has; what was there before."""
        return self._update("or", value)

    def atomic_xor(self, value: object) -> Tile | Scalar:
        """Flip the bits that the value has; what was there before."""
        return self._update("xor", value)

    def atomic_exchange(self, value: object) -> Tile | Scalar:
        """Put the value in the place of each element; what was there before."""
        return self._update("exchange", value)

    def atomic_compare_exchange(self, expected: object, value: object) -> Tile | Scalar:
        """Put the value where the element is `expected`, bit by bit; what was there before."""
        return self._update("compare_exchange", value, expected)

    def _update(self, function: str, value: object, expected: object = None) -> Tile | Scalar:
        """An atomic update. DTypeError where the function has no meaning for the dtype."""
        session, view = self._writable()
        is_bitwise = function in ("and", "or", "xor")
        is_numeric = function in ("add", "minimum", "maximum")
        if (is_bitwise and self.dtype.is_float) or (is_numeric and self.dtype.is_bool):
            raise DTypeError(
                f"an atomic {function} has no meaning for {self.dtype.name}",
                remedy="use add, min and max for numbers, and, or and xor for integers and bools",
            )
        self._check_visible(session)
        what = "the operand of an atomic update"
        operation = Atomic(
            view=view,
            origins=self.origins,
            value=self._converted(session, value, what),
            expected=None if expected is None else self._converted(session, expected, what),
            mask=self.mask,
            function=function,
            bounds=self.bounds,
            dims=self.dims,
            site=session.next_site(self.bounds),
            result_types=[type_over(self.dtype, self.dims)],
        )
        return wrap(session.insert(operation).result, session)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            f"a part of {self.name} is used as a value",
            remedy="load it, as A(origin, shape).load() or A.at(i).load(), or store to it",
        )

    def _writable(self) -> tuple[Session, Value]:
        session = current_session()
        view = session.value_of(self.view)
        if self.is_const:
            raise ReadOnlyError(
                f"{self.name} is annotated tn.ConstView and stored to",
                remedy="annotate it tn.View, or store to another array",
            )
        return session, view

    def _check_visible(self, session: Session) -> None:
        for value in self.origins:
            session.check_visible(value)
        if self.mask is not None:
            session.check_visible(self.mask)

    def _converted(self, session: Session, item: object, what: str) -> Value:
        value = required(session, operand_of(session, item), self.dtype, what)
        dims_compatible_by_position(dims_of(value), self.dims)
        return value


def mask_value(session: Session, mask: object, dims: tuple[Dim, ...]) -> Value | None:
    if mask is None:
        return None
    operand = operand_of(session, mask)
    if isinstance(operand, bool | np.bool_):
        return constant(session, operand, bool_)
    if not isinstance(operand, Value) or element_dtype(operand.type) is not bool_:
        raise DTypeError("mask= is not bool", remedy="compare, as tn.iota(m) < rows")
    dims_compatible_by_position(dims_of(operand), dims)
    return operand
