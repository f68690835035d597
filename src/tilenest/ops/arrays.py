"""From NumPy arguments to what the kernels take: results, broadcasting, rows.

Kernels see two-dimensional views (rows along the last axis) or flat ones. Reshaping never copies
when strides allow it; where they don't, an input is copied once and an output is written through a
temporary."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from ml_dtypes import bfloat16

from tilenest.errors import (
    ArgumentTypeError,
    DTypeError,
    OutOfMemory,
    OverlapError,
    ReadOnlyError,
    ShapeError,
    shown,
)

Array = np.ndarray[Any, np.dtype[Any]]
Given = ParamSpec("Given")


def explaining_memory(compute: Callable[Given, Array]) -> Callable[Given, Array]:
    """The operator, which says so where the system has no memory for its result or a copy."""

    @wraps(compute)
    def explained(*given: Given.args, **options: Given.kwargs) -> Array:
        try:
            return compute(*given, **options)
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(
                f"tn.ops.{compute.__name__} needs more memory than the system gives: {error}",
                remedy="pass smaller arrays, contiguous ones, and out= if there is room for it",
            ) from error

    return explained


def as_array(value: object, name: str) -> Array:
    """A NumPy array of what the caller gave (a torch tensor on the CPU is viewed, not copied)."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{name} cannot be read as an array: {error}", remedy="pass a NumPy array"
        ) from error
    if array.dtype == object:
        raise DTypeError(f"{name} is no numeric array", remedy="pass a NumPy array")
    return array


def beside(x: object, y: object) -> tuple[Array, Array]:
    """Two operands as arrays; a Python number takes the dtype of the other one."""
    if isinstance(y, bool | int | float) and not isinstance(x, bool | int | float):
        left = as_array(x, "x")
        return left, _as_dtype(y, left.dtype)
    if isinstance(x, bool | int | float) and not isinstance(y, bool | int | float):
        right = as_array(y, "y")
        return _as_dtype(x, right.dtype), right
    return as_array(x, "x"), as_array(y, "y")


def _as_dtype(number: bool | int | float, dtype: np.dtype[Any]) -> Array:
    if isinstance(number, float) and dtype.kind in "biu":
        raise DTypeError(f"{number} beside an array of {dtype}", remedy="cast the array to a float")
    try:
        return np.asarray(number, dtype)
    except (OverflowError, ValueError):
        raise DTypeError(
            f"{shown(number)} does not fit {dtype}", remedy="cast the array to a wider dtype"
        ) from None


def _from_dlpack(value: Any, name: str) -> Array:
    try:
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":
            # NumPy takes no bfloat16 by DLPack: the same bits travel as integers.
            return np.from_dlpack(value.view(sys.modules["torch"].int16)).view(bfloat16)
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{name} cannot be read as an array: {error}",
            remedy="pass a CPU array (a tensor that records gradients: x.detach())",
        ) from error


def output(out: Array | None, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """`out` after checking it, or a new array."""
    if out is None:
        size = math.prod(shape) * dtype.itemsize
        if size > sys.maxsize:
            # A ValueError in NumPy.
            raise MemoryError(f"the result takes {size} bytes, which 64 bits cannot address")
        return np.empty(tuple(shape), dtype)
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(
            f"out is a {type(out).__name__}", remedy="pass a NumPy array, or none"
        )
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
    for dtype in given:
        if dtype != given[0]:
            names = ", ".join(map(str, given))
            raise DTypeError(
                f"the arrays mix dtypes {names}", remedy="cast them to one dtype first"
            )
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


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of these broadcast to by NumPy's rules."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"the shapes {' and '.join(map(str, shapes))} do not broadcast together",
            remedy="make their extents equal, or 1, from the last axis on",
        ) from None


def number(value: object, name: str) -> float:
    """A real number the caller gave."""
    if isinstance(value, numbers.Real):
        with suppress(OverflowError):
            return float(value)
    raise ArgumentTypeError(
        f"{name} is a {type(value).__name__} that is no float", remedy=f"pass a number for {name}"
    )


def normalized_axis(axis: object, rank: int) -> int:
    """The axis counted from the front."""
    try:
        axis = operator.index(axis)  # type: ignore[arg-type]  # what it refuses is explained
    except TypeError:
        raise ArgumentTypeError(
            f"the axis {shown(axis)} is no integer", remedy="pass one axis, or None for all"
        ) from None
    if not -rank <= axis < rank:
        raise ShapeError(
            f"axis {shown(axis)} is out of range for an array with {rank} axes",
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
