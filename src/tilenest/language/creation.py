"""Making values: axes, constant tiles, coordinates, scalars, element maps.

In: shapes (axes and host ints), dtypes, numbers, Python functions of coordinates. Out: tiles and
scalars. Extents are compile-time; everything made here is a `tile.map` without memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilenest.dialects import Map, Yield
from tilenest.errors import DTypeError, ShapeError, shown
from tilenest.ir import INDEX, Block, Region, TileType, Value, clone_region, int64
from tilenest.language.dtypes import Number, as_dtype, numpy_scalar_dtype
from tilenest.language.elements import (
    Weak,
    constant,
    convert,
    dims_of,
    map_elements,
    materialize,
    operand_dtype,
    required,
)
from tilenest.language.positions import dims_of_shape, host_extent_hint, host_int
from tilenest.language.session import ElementBody, current_session
from tilenest.language.values import Element, Scalar, Tile, operand_of, wrap
from tilenest.layouts import Dim


def axis(label: str, extent: int) -> Dim:
    """A new dimension. Every call makes another one: equal labels or extents do not make it equal.

    `extent` is a host int of at least 0; ShapeError otherwise. The label is for messages and
    printing only.
    """
    number = host_int(extent)
    if number is None or not isinstance(label, str):
        raise ShapeError(
            f"tn.axis is given {shown(label)} and {shown(extent)}",
            remedy='write tn.axis("name", extent) with a host int as extent'
            f"{host_extent_hint(extent)}",
        )
    return Dim(label, number)


def zeros(shape: object, dtype: object) -> Tile | Scalar:
    """A tile of zeros (False for bool) over `shape`; a scalar for the empty shape."""
    kind = as_dtype(dtype)
    return full(shape, False if kind.is_bool else 0, kind)


def full(shape: object, value: Number | np.generic | Scalar, dtype: object = None) -> Tile | Scalar:
    """A tile of one number over `shape`; a scalar for the empty shape.

    The number may be a run-time scalar. Without `dtype` it is the number's own, which a Python
    number does not have (DTypeError).
    """
    session = current_session()
    dims = dims_of_shape(shape)
    operand = operand_of(session, value)
    if isinstance(operand, Value) and dims_of(operand):
        raise ShapeError("tn.full is given a tile", remedy="use tn.broadcast(tile, shape)")
    kind = as_dtype(dtype) if dtype is not None else operand_dtype("full", [operand], bool(dims))[0]
    what = "the value of tn.full"
    if not dims:
        return wrap(required(session, operand, kind, what), session)
    if isinstance(operand, Value | Weak):
        given = [required(session, operand, kind, what)]
        return Tile(map_elements(session, kind, dims, given, lambda _, each: each[0]), session)
    made = map_elements(session, kind, dims, [], lambda *_: required(session, operand, kind, what))
    return Tile(made, session)


def iota(axis: Dim | int, dtype: object = int64) -> Tile:
    """0, 1, 2, ... along an axis (or a plain extent), as a tile of rank 1."""
    session = current_session()
    kind = as_dtype(dtype)
    dims = dims_of_shape(axis)
    if len(dims) != 1:
        raise ShapeError(
            f"tn.iota is given a shape of rank {len(dims)}",
            remedy="give it one axis; tiles of several axes join where they meet",
        )
    made = map_elements(session, kind, dims, [], lambda at, _: convert(session, at[0], kind))
    return Tile(made, session)


def scalar(value: Number | np.generic | Scalar, dtype: object = None) -> Scalar:
    """A scalar with a dtype of its own: a number rounded once, or a run-time scalar cast.

    Without `dtype` a NumPy or run-time scalar keeps its own; a Python number has none (DTypeError).
    """
    session = current_session()
    operand = operand_of(session, value)
    if isinstance(operand, Value) and dims_of(operand):
        raise ShapeError("tn.scalar is given a tile", remedy="read one element, as x.at(i)")
    if dtype is not None:
        return Scalar(materialize(session, operand, as_dtype(dtype)), session)
    if isinstance(operand, Value):
        return Scalar(operand, session)
    if isinstance(operand, np.generic):
        return Scalar(constant(session, operand, numpy_scalar_dtype(operand)), session)
    raise DTypeError(
        "tn.scalar gets a Python number, which has no dtype of its own",
        remedy="name it, as tn.scalar(2.5, tn.float32)",
    )


def map(  # noqa: A001 - the name the language gives it
    shape: object, function: Callable[..., Element | Number], dtype: object = None
) -> Tile:
    """A tile whose element at (i, j, ...) is `function(i, j, ...)`, called once with index scalars.

    The function computes with scalars only (CaptureError for tiles and views inside). Without
    `dtype` the tile has that of the result, int64 for an index.
    """
    session = current_session()
    dims = dims_of_shape(shape)
    if not dims:
        raise ShapeError("tn.map has an empty shape", remedy="give it at least one axis")
    body = ElementBody(Block([INDEX] * len(dims)))
    indices = tuple(Scalar(argument, session) for argument in body.block.arguments)
    # What the function returns decides the result's type, so its body is first built in a draft.
    draft = session.insert(Map(regions=[Region([body.block])], inputs=[]))
    with session.filling(body):
        result = operand_of(session, session.inline(function, indices, "tn.map"))
        kind = as_dtype(dtype) if dtype is not None else operand_dtype("map", [result], True)[0]
        element = required(session, result, kind, "the result of the function")
        session.insert(Yield(values=[element]))
    operation = Map(
        result_types=[TileType(kind, dims)],
        regions=[clone_region(draft.regions[0], {})],
        inputs=list(body.captured),
    )
    draft.erase()
    return Tile(session.insert(operation).result, session)
