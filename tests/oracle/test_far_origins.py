"""Origins at the ends of 64 bits and steps of either sign: nothing wraps, nothing hangs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn

FAR = [2**63 - 1, 2**63 - 8, 2**63 - 900, -(2**63), -(2**63) + 3, 2**58 + 1, -(2**58) - 1]
TARGETS = ["interpret", "cpu"]


@tn.kernel
def moved(X, Y, o, *, extent: int):
    n = tn.axis("n", extent)
    for _ in tn.parallel(1):
        Y(0, n).store(X(o, n).load(other=5.0))


@tn.kernel
def stored(X, Y, o, *, extent: int):
    n = tn.axis("n", extent)
    for _ in tn.parallel(1):
        Y(o, n).store(X[0, n] + 1.0)


@tn.kernel
def reindexed(X, Y, o, *, extent: int):
    n, m = tn.axis("n", extent), tn.axis("m", extent)
    for _ in tn.parallel(1):
        Y(0, n).store(tn.reindex(X[0, m], (n,), lambda i: i + o))


def surrounded() -> tuple[np.ndarray, np.ndarray]:
    """An array in the middle of a larger one, and a poisoned one of the same size with guards."""
    around = np.arange(-2000, 2053, dtype=np.float32)
    return around[2000:2053], np.full(53 + 64, np.nan, np.float32)


def run(kernel: Any, origin: int, extent: int, target: str) -> tuple[np.ndarray, np.ndarray]:
    x, guarded = surrounded()
    y = guarded[32:-32]
    kernel.compile(x, y, origin, target=target, extent=extent)(x, y, origin)
    return y, np.concatenate([guarded[:32], guarded[-32:]])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("extent", [5, 16, 64])
@pytest.mark.parametrize("origin", FAR)
def test_far_origins_are_outside(origin: int, extent: int, target: str) -> None:
    y, guards = run(moved, origin, extent, target)
    np.testing.assert_array_equal(y[:extent], np.full(min(extent, 53), 5, np.float32))
    assert np.isnan(guards).all()
    y, guards = run(stored, origin, extent, target)
    assert np.isnan(y).all()
    assert np.isnan(guards).all()
    y, guards = run(reindexed, origin, extent, target)
    np.testing.assert_array_equal(y[:extent], np.zeros(min(extent, 53), np.float32))
    assert np.isnan(guards).all()


@tn.kernel
def shown(X, Y, *, start: int, step: int):
    n = tn.axis("n", 8)
    for block in tn.parallel(3):
        view = X.slice(start, 20, step)
        Y(block.index() * 8, n).store(view(block.index() * 8, n).load(other=5.0))


@tn.kernel
def hidden(X, Y, *, start: int, step: int):
    n = tn.axis("n", 8)
    for block in tn.parallel(3):
        Y.slice(start, 20, step)(block.index() * 8, n).store(X[block.index() * 8, n])


@tn.kernel
def mapped(X, Y, *, start: int, step: int):
    n, m = tn.axis("n", 20), tn.axis("m", 20)
    for _ in tn.parallel(1):
        Y(0, n).store(tn.reindex(X[0, m], (n,), lambda i: i * step + start))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("step", [1, -1, 3])
@pytest.mark.parametrize("start", [*FAR[:3], -(2**63) + 3, 2**62, 7])
def test_far_constants_of_maps_are_outside(start: int, step: int, target: str) -> None:
    places = [start + step * place for place in range(20)]
    for kernel in (shown, hidden, mapped):
        x, guarded = surrounded()
        x, y = x[:20], guarded[32:52]
        kernel.compile(x, y, target=target, start=start, step=step)(x, y)
        expected = np.full_like(guarded, np.nan)
        outside = 5 if kernel is shown else 0
        found = [x[place] if 0 <= place < 20 else outside for place in places]
        if kernel is not hidden:
            expected[32:52] = found
        else:
            for value, place in zip(x, places, strict=True):
                if 0 <= place < 20:
                    expected[32 + place] = value
        np.testing.assert_array_equal(guarded, expected)


@tn.kernel
def strided(X, Y, *, step: int):
    n = tn.axis("n", 8)
    for block in tn.parallel(3):
        Y.slice(0, Y.extent(0), step)(block.index() * 8, n).store(X[block.index() * 8, n])


@pytest.mark.parametrize("step", [2**61, -(2**61), 2**62])
def test_steps_that_leave_64_bits_are_refused(step: int) -> None:
    x, y = np.zeros((2, 20), np.float32)
    with pytest.raises(tn.TargetError, match="leaves 64 bits"):
        strided.compile(x, y, step=step)
    with pytest.raises(tn.TargetError, match="leaves 64 bits"):
        shown.compile(x, y, start=0, step=step)


@tn.kernel
def visits(Y, a, b, s):
    for root in tn.parallel(1):
        at = tn.scalar(0, tn.int32) + tn.cast(root.index(), tn.int32)
        for step in root.serial(range(a, b, s)):
            Y.at(at).store(tn.cast(step.index(), tn.int32))
            at = at + 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "domain", [(0, 9, 2), (9, 0, -2), (5, 20, -1), (0, 0, 1), (3, 3, 0), (0, 5, 0), (-3, 4, 3)]
)
def test_run_time_steps_of_either_sign(domain: tuple[int, int, int], target: str) -> None:
    y = np.full(12, -99, np.int32)
    visits.compile(y, *domain, target=target)(y, *domain)
    expected = list(range(*domain)) if domain[2] else []
    assert y[: len(expected)].tolist() == expected
    assert (y[len(expected) :] == -99).all()


@tn.kernel
def counted(Y, n):
    for _ in tn.parallel(1):
        c = 0
        for i in range(n):
            c = c + 1
            Y.at(i).store(tn.cast(c, tn.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_carried_numbers_may_be_cast(target: str) -> None:
    y = np.full(6, np.nan, np.float32)
    counted.compile(y, 4, target=target)(y, 4)
    np.testing.assert_array_equal(y[:4], [1, 2, 3, 4])
    assert np.isnan(y[4:]).all()
