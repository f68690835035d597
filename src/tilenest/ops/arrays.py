"""From NumPy arguments to what the kernels take: results, broadcasting, rows.

Kernels see two-dimensional views (rows along the last axis) or flat ones. Reshaping never copies
when strides allow it; where they don't, an input is copied once and an output is written through a
temporary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilenest.errors import DTypeError, OverlapError, ReadOnlyError, ShapeError

Array = np.ndarray[Any, np.dtype[Any]]


def as_array(value: object, name: str) -> Array:
    """A NumPy array of what the caller gave (a torch tensor on the CPU is viewed, not copied)."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    array = np.asarray(value)
    if array.dtype == object:
        raise DTypeError(f"{name} is no numeric array", remedy="pass a NumPy array")
    return array


def output(out: Array | None, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """`out` after checking it, or a new array."""
    if out is None:
        return np.empty(tuple(shape), dtype)
    if out.shape != tuple(shape):
        raise ShapeError(
            f"out has shape {out.shape}, the result has shape {tuple(shape)}",
            remedy="pass an out= of the result's shape, or none",
        )
    if out.dtype != dtype:
        raise DTypeError(
            f"out has dtype {out.dtype}, the result has dtype {dtype}",
            remedy=f"allocate out with dtype {dtype}",
        )
    if not out.flags.writeable:
        raise ReadOnlyError("out is read-only", remedy="pass a writeable array")
    return out


def same_dtype(*arrays: Array | None) -> np.dtype[Any]:
    """The common dtype of all given arrays; mixing is an error."""
    given = [array.dtype for array in arrays if array is not None]
    if any(dtype is not given[0] and dtype != given[0] for dtype in given):
        names = ", ".join(str(dtype) for dtype in given)
        raise DTypeError(f"the arrays mix dtypes {names}", remedy="cast them to one dtype first")
    return given[0]


def floating(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    """The dtype, which must be a float."""
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return dtype
    raise DTypeError(f"{what} needs floats, not {dtype}", remedy="cast the input to float32")


def broadcast(array: Array, shape: tuple[int, ...], name: str) -> Array:
    """A read-only view of the given shape by NumPy's rules (the array itself when it has it)."""
    if array.shape == shape:
        return array
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            f"{name} of shape {array.shape} does not broadcast to {shape}",
            remedy="give it the result's trailing extents or extents of 1",
        ) from None


def normalized_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(
            f"axis {axis} is out of range for an array with {rank} axes",
            remedy=f"use -{rank} to {rank - 1}",
        )
    return axis % rank


def rows_of(array: Array) -> Array:
    """All axes but the last as one: shape (rows, n). Copies only when the strides do not
    collapse."""
    return array if array.ndim == 2 else array.reshape(row_shape(array.shape))


def row_shape(shape: Sequence[int]) -> tuple[int, int]:
    n = shape[-1] if shape else 1
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows, n


def write(result: Array, shape: tuple[int, ...], launch: Callable[[Array], None]) -> Array:
    """Run `launch` on the result seen with another shape.

    A temporary stands in where that shape is no view of the result, or where the kernel refuses
    because an input shares the result's memory at other places.
    """
    view = result if result.shape == shape else _view(result, shape)
    if view is not None:
        try:
            launch(view)
        except OverlapError:
            view = None
    if view is None:
        temporary = np.empty(shape, result.dtype)
        launch(temporary)
        result[...] = temporary.reshape(result.shape)
    return result


def _view(array: Array, shape: tuple[int, ...]) -> Array | None:
    view = array.view()
    try:
        view.shape = shape
    except AttributeError:
        return None
    return view
