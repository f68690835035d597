"""Index arithmetic that wraps at 64 bits reaches what it reaches in the interpreter, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tilenest.errors import ShapeError


@tn.kernel
def scaled(A, Y, *, factor, offset):
    for b in tn.parallel(A.extent(0)):
        at = b.index() * factor + offset
        Y.at(at).store(A.at(at // factor).load())
        Y.at(b.index()).store(A.at(A.extent(0) * factor + b.index()).load())


@pytest.mark.parametrize("factor", [2**31, 2**59, 2**60, 2**62, 2**63 - 1])
@pytest.mark.parametrize("offset", [0, 5, -1, 2**62])
def test_products_that_wrap(factor: int, offset: int) -> None:
    source = np.arange(16, dtype=np.float32) + 1
    found = []
    for target in ("interpret", "cpu"):
        guarded = np.full(144, np.nan, np.float32)
        inner = guarded[64:80]
        kernel = scaled.compile(source, inner, target=target, factor=factor, offset=offset)
        kernel(source, inner)
        found.append(guarded)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.isnan(found[1][:64]).all() and np.isnan(found[1][80:]).all()


def test_an_extent_beyond_every_array_is_refused() -> None:
    vast = np.broadcast_to(np.float32(3), (2**51,))
    with pytest.raises(ShapeError, match="more than 2"):
        scaled(vast, np.zeros(16, np.float32), factor=2, offset=0)


Step = Callable[[Any, Any], Any]
DEEP: dict[str, Step] = {
    "halves": lambda i, _: (i * 3 + 1) // 2,
    "doubling": lambda i, _: i % 7 + 3 * (i // 2),
    "extremes": lambda i, n: tn.minimum(i + 1, n * i),
}
DEPTHS = [
    ("halves", 200),
    ("extremes", 200),
    ("doubling", 8),
    pytest.param("doubling", 200, marks=pytest.mark.slow),
]


@tn.kernel
def deep(A, Y, n, *, step, times):
    for b in tn.parallel(16):
        i = b.index()
        for _ in range(times):
            i = step(i, n)
        Y.at(b.index()).store(A.at(i).load(other=-1.0))


@pytest.mark.parametrize(("name", "times"), DEPTHS)
def test_indices_of_hundreds_of_operations(name: str, times: int) -> None:
    source = np.arange(16, dtype=np.float32) + 1
    expected = []
    for first in range(16):
        i = first
        for _ in range(times):
            i = min(i + 1, 5 * i) if name == "extremes" else DEEP[name](i, 5)
            i = (i + 2**63) % 2**64 - 2**63
        expected.append(source[i] if 0 <= i < 16 else -1.0)
    for target in ("interpret", "cpu"):
        found = np.full(16, np.nan, np.float32)
        kernel = deep.compile(source, found, 5, target=target, step=DEEP[name], times=times)
        kernel(source, found, 5)
        np.testing.assert_array_equal(found, expected)
