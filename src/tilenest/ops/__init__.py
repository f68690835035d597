"""Library operators on NumPy arrays, written in the public language: its best examples.

Every function takes arrays of any shape and strides, gives a new array or fills `out=`, and states
its dtypes. ArgumentTypeError for what is no array, OutOfMemory for a result too large."""

from tilenest.ops.elementwise import add, gelu, swiglu
from tilenest.ops.matmul import matmul
from tilenest.ops.reductions import argmax, argmin, max, mean, min, sum
from tilenest.ops.rows import layer_norm, rms_norm, softmax

__all__ = [
    "add",
    "argmax",
    "argmin",
    "gelu",
    "layer_norm",
    "matmul",
    "max",
    "mean",
    "min",
    "rms_norm",
    "softmax",
    "sum",
    "swiglu",
]
