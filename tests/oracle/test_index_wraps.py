"""Index arithmetic that wraps at 64 bits reaches what it reaches in the interpreter, no more."""

from __future__ import annotations

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
