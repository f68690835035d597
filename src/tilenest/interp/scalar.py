"""The meaning of the scalar dialect: constants, functions, casts, bit reinterpretation.

In: arrays of any shape, since the same ops work on scalars, on all instances of a scalar region at
once, and on lanes. Out: arrays of the broadcast shape.
"""

from __future__ import annotations

import numpy as np

from tilenest.dialects import Apply, Bitcast, Cast, Constant
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.functions import apply, cast
from tilenest.interp.rounding import from_integers, narrow
from tilenest.interp.values import Array, numpy_dtype, shape_of
from tilenest.ir import DType, Operation, element_dtype


def number(value: object, dtype: DType) -> Array:
    """A Python or NumPy number rounded once to the dtype, as an array of rank 0."""
    given = np.asarray(value)
    if not dtype.is_float:
        return given.astype(numpy_dtype(dtype))
    if given.dtype.kind in "iu":
        return from_integers(given, dtype)
    return narrow(given.astype(np.float64), dtype)


def constant(_: Frame, op: Constant) -> list[Array]:
    type_ = op.result.type
    value = number(op.value, element_dtype(type_))
    shape = shape_of(type_)
    return [np.broadcast_to(value, shape) if shape else value]


def apply_function(frame: Frame, op: Apply) -> list[Array]:
    arguments = op.arguments
    dtype = element_dtype(arguments[-1].type)
    return [apply(op.function, dtype, frame.arrays(arguments))]


def convert(frame: Frame, op: Cast) -> list[Array]:
    source, target = element_dtype(op.value.type), element_dtype(op.result.type)
    return [cast(frame.array(op.value), source, target)]


def reinterpret(frame: Frame, op: Bitcast) -> list[Array]:
    given = frame.array(op.value)
    bits = np.array(given, order="C")
    return [bits.view(numpy_dtype(element_dtype(op.result.type))).reshape(given.shape)]


HANDLERS: dict[type[Operation], Handler] = {
    Constant: constant,
    Apply: apply_function,
    Cast: convert,
    Bitcast: reinterpret,
}
