"""Activation functions, elementwise on float tiles and scalars.

In: floats. Out: the same dims and dtype; floats of 16 bits are computed in float32 and rounded once
at the end.
"""

from __future__ import annotations

import math

from tilenest import language as tn
from tilenest.errors import DTypeError

Value = tn.Tile | tn.Scalar


def relu(x: Value) -> Value:
    """max(x, 0), of any number; NaN stays NaN. DTypeError for bools."""
    return tn.maximum(x, 0)


def gelu(x: Value) -> Value:
    """x times the normal distribution's integral up to x, by the error function. Of floats, else a
    DTypeError."""
    wide = _widened(x, "gelu")
    return (0.5 * wide * (1 + tn.erf(wide * math.sqrt(0.5)))).cast(x.dtype)


def silu(x: Value) -> Value:
    """x / (1 + exp(-x)), of floats, else a DTypeError."""
    wide = _widened(x, "silu")
    return (wide / (1 + tn.exp(-wide))).cast(x.dtype)


def swiglu(gate: Value, up: Value) -> Value:
    """silu(gate) * up, where gate and up join (ShapeError) and are floats of one dtype
    (DTypeError)."""
    gate, up = tn.as_element(gate, "swiglu"), tn.as_element(up, "swiglu")
    if gate.dtype is not up.dtype:
        raise DTypeError(f"tn.swiglu gets {gate.dtype} and {up.dtype}", remedy="cast one of them")
    return (silu(_widened(gate, "swiglu")) * _widened(up, "swiglu")).cast(gate.dtype)


def _widened(x: Value, name: str) -> Value:
    x = tn.as_element(x, name)
    if not x.dtype.is_float:
        raise DTypeError(
            f"tn.{name} does not take {x.dtype}", remedy="cast it first, as x.cast(tn.float32)"
        )
    return x.cast(tn.accumulator_dtype(x.dtype))
