"""Mistakes in calls of the library operators: refused by a tilenest error, with nothing written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tilenest as tn
from tests.oracle.arrays import poisoned

ops: Any = tn.ops


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


X = ones(3, 4)
SHAPES: dict[str, Callable[..., Any]] = {
    "add": lambda **k: ops.add(ones(3), ones(4), **k),
    "swiglu": lambda **k: ops.swiglu(ones(3, 4), ones(2, 4), **k),
    "batches": lambda **k: ops.matmul(ones(2, 3, 4), ones(3, 4, 5), **k),
    "inner extents": lambda **k: ops.matmul(ones(3, 4), ones(5, 4), **k),
    "product of numbers": lambda **k: ops.matmul(ones(), ones(3), **k),
    "bias": lambda **k: ops.matmul(X, ones(4, 5), bias=ones(4), **k),
    "residual": lambda **k: ops.matmul(X, ones(4, 5), residual=ones(4, 5), **k),
    "mask": lambda **k: ops.softmax(X, mask=np.ones((5, 4), bool), **k),
    "axis": lambda **k: ops.softmax(X, 2, **k),
    "axis of a sum": lambda **k: ops.sum(X, -3, **k),
    "weight": lambda **k: ops.layer_norm(X, ones(3), **k),
    "rms weight": lambda **k: ops.rms_norm(X, ones(5), **k),
    "gelu bias": lambda **k: ops.gelu(X, ones(3), **k),
    "gelu residual": lambda **k: ops.gelu(X, None, ones(4, 4), **k),
}
DTYPES: dict[str, Callable[..., Any]] = {
    "mixed": lambda **k: ops.add(X, X.astype(np.float64), **k),
    "integers into softmax": lambda **k: ops.softmax(ones(3, 4, dtype=int), **k),
    "integers into matmul": lambda **k: ops.matmul(
        ones(3, 4, dtype=int), ones(4, 5, dtype=int), **k
    ),
    "weight": lambda **k: ops.layer_norm(X, ones(4, dtype=np.float64), **k),
    "bias": lambda **k: ops.matmul(X, ones(4, 5), bias=ones(5, dtype=np.float64), **k),
    "residual": lambda **k: ops.matmul(X, ones(4, 5), residual=ones(3, 5, dtype=np.float64), **k),
    "mask": lambda **k: ops.softmax(X, mask=X, **k),
    "objects": lambda **k: ops.add(np.full((3, 4), None), np.full((3, 4), None), **k),
    "complex": lambda **k: ops.add(X.astype(complex), X.astype(complex), **k),
    "texts": lambda **k: ops.max(np.asarray(["a", "b"]), **k),
}
ARGUMENTS: dict[str, Callable[..., Any]] = {
    "a fractional axis": lambda **k: ops.softmax(X, 1.5, **k),
    "a tuple of axes": lambda **k: ops.sum(X, (0, 1), **k),
    "an activation": lambda **k: ops.matmul(X, ones(4, 5), activation="swish", **k),
    "a text for a number": lambda **k: ops.layer_norm(X, eps="small", **k),
    "a masked array": lambda **k: ops.add(np.ma.masked_array(X, X > 0), X, **k),
    "gradients": lambda **k: ops.add(torch.ones(3, requires_grad=True), torch.ones(3), **k),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_do_not_fit(name: str) -> None:
    refused(SHAPES[name], tn.ShapeError)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_do_not_fit(name: str) -> None:
    refused(DTYPES[name], tn.DTypeError)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_the_wrong_kind(name: str) -> None:
    refused(ARGUMENTS[name], tn.TileError)


def refused(call: Callable[..., Any], error: type[tn.TileError]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.remedy
    out = poisoned((3, 4), np.float32)
    with pytest.raises(error):
        call(out=out.array)
    assert out.is_unchanged


@pytest.mark.parametrize("out", [[1.0, 2.0, 3.0], 3, "text"], ids=repr)
def test_an_out_that_is_no_array(out: Any) -> None:
    with pytest.raises(tn.TileError) as caught:
        ops.add(ones(3), ones(3), out=out)
    assert caught.value.remedy


def test_torch_tensors_of_every_float() -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.ones(33, dtype=dtype)
        assert (np.asarray(ops.add(x, x), np.float64) == 2).all()
