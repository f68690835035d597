"""Reductions by the names NumPy gives them.

In: a tile and the axes to reduce: an axis, a position, a tuple of them, or None for all. Out: a
tile over the other dims, which keep their identity and so broadcast back, or a scalar when none
remain.
"""

from __future__ import annotations

from math import prod

from tilenest import language as tn
from tilenest.dialects import OrderingContract
from tilenest.errors import DomainError, DTypeError, ShapeError
from tilenest.ir import ScalarType

Value = tn.Tile | tn.Scalar


def sum(  # noqa: A001 - the name NumPy gives it
    x: tn.Tile,
    axis: object = None,
    policy: tn.ReductionPolicy = tn.ReductionPolicy.unordered_tree,
) -> Value:
    """The sum, in x's dtype; floats of 16 bits are summed in float32 and rounded once at the end.

    Integers wrap at their width. The sum over nothing is 0.
    """
    x = tn.as_tile(x, "sum")
    if x.dtype.is_float:
        return tn.reduce(_widened(x), axis, tn.add, policy=policy).cast(x.dtype)
    return tn.reduce(x, axis, tn.add, policy=policy)


def mean(
    x: tn.Tile,
    axis: object = None,
    policy: tn.ReductionPolicy = tn.ReductionPolicy.unordered_tree,
) -> Value:
    """The mean of floats, in x's dtype; the mean over nothing is NaN. DTypeError for integers."""
    x = tn.as_tile(x, "mean")
    if not x.dtype.is_float:
        raise DTypeError(
            f"tn.mean does not take {x.dtype}", remedy="cast it first, as x.cast(tn.float32)"
        )
    count = prod(dim.extent for dim in tn.axes_of(x, axis))
    return (tn.reduce(_widened(x), axis, tn.add, policy=policy) / count).cast(x.dtype)


def max(x: tn.Tile, axis: object = None) -> Value:  # noqa: A001 - the name NumPy gives it
    """The greatest element, NaN if there is one. DomainError over an empty axis."""
    _check_domain(x, axis, "max")
    return tn.reduce(x, axis, tn.maximum)


def min(x: tn.Tile, axis: object = None) -> Value:  # noqa: A001 - the name NumPy gives it
    """The least element, NaN if there is one. DomainError over an empty axis."""
    _check_domain(x, axis, "min")
    return tn.reduce(x, axis, tn.minimum)


def argmax(x: tn.Tile, axis: object = None) -> Value:
    """The int64 position of the greatest element along one axis; the first one of equals.

    The first NaN if there is one; -0 and +0 are equal. Without an axis, the position in row-major
    order. DomainError over an empty axis.
    """
    return _position(x, axis, "argmax", "descending")


def argmin(x: tn.Tile, axis: object = None) -> Value:
    """The int64 position of the least element along one axis; as `argmax` otherwise."""
    return _position(x, axis, "argmin", "ascending")


def _position(x: tn.Tile, axis: object, name: str, order: str) -> Value:
    """The first position in an order in which NaN come before all numbers."""
    x = tn.as_tile(x, name)
    if axis is None and x.ndim > 1:
        x = tn.reshape(x, -1)
    dims = tn.axes_of(x, 0 if axis is None else axis)
    if len(dims) != 1:
        raise ShapeError(
            f"tn.{name} is given {len(dims)} axes", remedy="name one axis, or none for all elements"
        )
    (dim,) = dims
    _check_domain(x, dim, name)
    ordering = OrderingContract(ScalarType(x.dtype), order, ties="first", nan="first", selected=1)
    return tn.select_position(x, dim, ordering)


def _widened(x: tn.Tile) -> tn.Tile:
    """A float tile in the dtype that its sums are kept in."""
    return x.cast(tn.accumulator_dtype(x.dtype))


def _check_domain(x: tn.Tile, axis: object, name: str) -> None:
    for dim in tn.axes_of(tn.as_tile(x, name), axis):
        if dim.extent == 0:
            raise DomainError(
                f"tn.{name} over {dim}: nothing has no {name}",
                remedy="reduce over an axis with elements, or use tn.reduce with init=",
            )
