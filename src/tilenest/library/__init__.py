"""Compositions in the public kernel language: reductions by name, normalisations, activations.

Each is a plain Python function over tiles, as a user would write it; nothing here emits IR itself.
"""

from tilenest.library.activations import gelu, relu, silu, swiglu
from tilenest.library.normalization import layer_norm, rms_norm, softmax
from tilenest.library.reductions import (
    argmax,
    argmin,
    max,  # noqa: A004
    mean,
    min,  # noqa: A004
    sum,  # noqa: A004
)

__all__ = [
    "argmax",
    "argmin",
    "gelu",
    "layer_norm",
    "max",
    "mean",
    "min",
    "relu",
    "rms_norm",
    "silu",
    "softmax",
    "sum",
    "swiglu",
]
