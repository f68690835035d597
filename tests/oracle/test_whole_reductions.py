"""Reductions of whole arrays, which run in several pieces: partial results, positions, NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilenest as tn


def normal(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_partial_sums_past_the_range_of_16_bits(dtype: Any) -> None:
    """Partial results are kept in float32: only the final value is rounded to the dtype."""
    twos = np.full(70_000, 2, dtype)
    assert float(tn.ops.mean(twos)) == 2.0
    assert float(tn.ops.mean(twos.reshape(70, 1000), 1)[3]) == 2.0
    balanced = np.concatenate([np.full(16_384, 5, dtype), np.full(16_384, -5, dtype)])
    assert float(tn.ops.sum(balanced)) == 0.0


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("size", [8192, 8193, 30_001])
def test_positions_in_flat_arrays_of_several_pieces(name: str, size: int) -> None:
    x = normal((size,)).round(1)
    ours, reference = getattr(tn.ops, name), getattr(np, name)
    assert ours(x) == reference(x)
    x[size - 1] = np.nan
    assert ours(x) == size - 1
    x[size // 2] = np.nan
    assert ours(x.reshape(1, -1)) == size // 2
    whole = np.arange(size, dtype=np.int32) // 3
    assert ours(whole) == reference(whole)
