"""Casts between all dtypes, CPU against interpreter and NumPy.

Floats round to nearest even; floats to integers saturate and NaN gives 0; integers wrap.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import bfloat16, integers, special
from tests.oracle.compare import Out, assert_same, check, tn

POLICIES = list(tn.reduction)
FOLDS = [tn.reduction.fold_left, tn.reduction.fold_right]

# Casts -------------------------------------------------------------------------------------------

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numpy_dtype(name: str) -> Any:
    return bfloat16 if name == "bfloat16" else np.dtype(name)


def sample(name: str) -> Any:
    if name == "bool":
        return np.arange(90) % 3 == 0
    if name not in FLOATS:
        return integers((90,), name, 1)
    edges = [
        float(sign * 2**power + add) for power in range(6, 65) for sign, add in ((1, 0), (-1, 1))
    ]
    with np.errstate(over="ignore"):
        return np.concatenate([edges, special(90), 0.5 + np.arange(-9, 9)]).astype(
            numpy_dtype(name)
        )


@tn.kernel
def cast_to(X: Any, Y: Any) -> None:
    n = tn.axis("n", X.shape[0])
    Y(0, n).store(X[0, n].cast(Y.dtype))


@pytest.mark.parametrize("target", DTYPES + FLOATS)
@pytest.mark.parametrize("source", DTYPES + FLOATS)
def test_casts(source: str, target: str) -> None:
    x = sample(source)
    (y,) = check(cast_to, x, Out(x.shape, numpy_dtype(target)))
    if source in FLOATS and target in DTYPES[1:]:
        limits = np.iinfo(target)
        numbers = x.astype(np.float64)
        expected = [
            0
            if np.isnan(v)
            else limits.max
            if v >= limits.max
            else limits.min
            if v <= limits.min
            else int(v)
            for v in numbers.tolist()
        ]
        assert y.tolist() == expected
    elif source not in FLOATS or target in FLOATS:
        with np.errstate(over="ignore", invalid="ignore"):
            meant = x.astype(numpy_dtype(target))
        if not (
            source in ("int64", "uint64", "int32", "uint32") and target in ("float16", "bfloat16")
        ):
            assert_same(y, meant)


@tn.kernel
def bits_of(X: Any, Y: Any) -> None:
    n = tn.axis("n", X.shape[0])
    Y(0, n).store(X[0, n].bitcast(Y.dtype) ^ 1)


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("float64", "uint64")])
def test_bitcasts(source: str, target: str) -> None:
    x = special(75, source)
    (y,) = check(bits_of, x, Out((75,), target))
    np.testing.assert_array_equal(y, x.view(target) ^ 1)
