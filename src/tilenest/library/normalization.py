"""Softmax and the row normalisations, on tiles.

In: a float tile and the axis to normalise over. Out: a tile of the same dtype; floats of 16 bits
are computed in float32 and rounded once at the end.
"""

from __future__ import annotations

import math

from tilenest import language as tn
from tilenest.errors import DTypeError
from tilenest.library.reductions import mean

Value = tn.Tile | tn.Scalar


def softmax(x: tn.Tile, axis: object, mask: Value | None = None) -> Value:
    """exp(x) over its sum along `axis`, shifted by the maximum.

    Where the bool `mask` is false the result is 0 and the element takes no part; a row that is
    masked everywhere is 0, and a row of -inf without a mask is NaN. An empty axis gives an empty
    tile. DTypeError where x is not of floats or the mask not of bools.
    """
    wide = _widened(x, "softmax")
    if mask is None:
        shifted = tn.exp(wide - tn.reduce(wide, axis, tn.maximum))
        return _normalized(shifted, axis).cast(x.dtype)
    hidden = tn.where(mask, wide, -math.inf)
    assert isinstance(hidden, tn.Tile)
    axes = tn.axes_of(x, axis)
    shifted = tn.where(mask, tn.exp(wide - tn.reduce(hidden, axes, tn.maximum)), 0)
    return tn.where(mask, _normalized(shifted, axes), 0).cast(x.dtype)


def layer_norm(
    x: tn.Tile,
    axis: object,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """(x - mean) / sqrt(variance + eps) along `axis`, times `weight`, plus `bias`.

    The variance is the mean of squared differences. `weight` and `bias` join with x and may have
    any float dtype. DTypeError where x is not of floats, ShapeError for an axis that it lacks.
    """
    wide = _widened(x, "layer_norm")
    centred = wide - mean(wide, axis)
    assert isinstance(centred, tn.Tile)
    scaled = centred * tn.rsqrt(_mean_square(centred, axis) + eps)
    return _transformed(scaled, weight, bias).cast(x.dtype)


def rms_norm(x: tn.Tile, axis: object, weight: Value | None = None, eps: float = 1e-6) -> Value:
    """x / sqrt(mean(x * x) + eps) along `axis`, times `weight`, which may have any float dtype.

    DTypeError where x is not of floats, ShapeError for an axis that it lacks.
    """
    wide = _widened(x, "rms_norm")
    scaled = wide * tn.rsqrt(_mean_square(wide, axis) + eps)
    return _transformed(scaled, weight, None).cast(x.dtype)


def _normalized(x: Value, axis: object) -> Value:
    assert isinstance(x, tn.Tile)
    return x * tn.reciprocal(tn.reduce(x, axis, tn.add))


def _mean_square(x: tn.Tile, axis: object) -> Value:
    squares = tn.square(x)
    assert isinstance(squares, tn.Tile)
    return mean(squares, axis)


def _transformed(x: Value, weight: Value | None, bias: Value | None) -> Value:
    if weight is not None:
        x = x * tn.cast(weight, x.dtype)
    if bias is not None:
        x = x + tn.cast(bias, x.dtype)
    return x


def _widened(x: tn.Tile, name: str) -> tn.Tile:
    x = tn.as_tile(x, name)
    if not x.dtype.is_float:
        raise DTypeError(
            f"tn.{name} does not take {x.dtype}", remedy="cast it first, as x.cast(tn.float32)"
        )
    return x.cast(tn.accumulator_dtype(x.dtype))
