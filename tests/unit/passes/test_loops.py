"""Carried tiles and scalars through every step: updates in place, snapshots, swaps, branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, run_stepwise
from tilenest import language
from tilenest.dialects import Alloc, Serial
from tilenest.ir import float32

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

F32 = np.float32
SHAPE = (6, 10)


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def poisoned(*shape: int) -> Array:
    return np.full(shape, np.nan, F32)


def running_sum(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        total = tn.zeros((n,), float32)
        for i in root.serial(M):
            total = total + tn.reduce(X[(i.index(), 0), (1, n)], 0, tn.add)
            Y((i.index(), 0), (1, n)).store(total)


def swap(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = X[(0, 0), (1, n)]
        b = X[(1, 0), (1, n)]
        for _ in root.serial(M - 1):
            a, b = b, a
        Y((0, 0), (1, n)).store(a)
        Y((1, 0), (1, n)).store(b)


def rotate(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a, b, c = X[(0, 0), (1, n)], X[(1, 0), (1, n)], X[(2, 0), (1, n)]
        for _ in root.serial(M):
            a, b, c = b + 1.0, c, a
        Y((0, 0), (1, n)).store(a)
        Y((1, 0), (1, n)).store(b)
        Y((2, 0), (1, n)).store(c)


def snapshot(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = tn.zeros((1, n), float32)
        for i in root.serial(M):
            old = a
            a = tn.exp(a * 0.5) + X[(i.index(), 0), (1, n)]
            Y((i.index(), 0), (1, n)).store(old - a)


def previous_is_carried(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = tn.zeros((1, n), float32)
        old = a
        for i in root.serial(M):
            old = a
            a = a * 0.5 + X[(i.index(), 0), (1, n)]
        Y((0, 0), (1, n)).store(old)
        Y((1, 0), (1, n)).store(a)


def shifted_update(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = X[(0, 0), (1, n)]
        for _ in root.serial(M):
            a = a + a[(0, 1), (1, n)]
        Y((0, 0), (1, n)).store(a)


def nested(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = tn.zeros((1, n), float32)
        for i in root.serial(2):
            for j in i.serial(M):
                a = a * 0.5 + X[(j.index(), 0), (1, n)]
            a = a - 1.0
        Y((0, 0), (1, n)).store(a)


def restarted(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        best = tn.zeros((1, n), float32)
        for i in root.serial(3):
            a = tn.zeros((1, n), float32)
            for j in i.serial(M):
                a = a + X[(j.index(), 0), (1, n)] * tn.cast(i.index() + 1, float32)
            best = tn.maximum(best, a)
        Y((0, 0), (1, n)).store(best)


def zero_trips(X: Any, Y: Any) -> None:
    N = X.shape[1]
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = X[(0, 0), (1, n)]
        for _ in root.serial(0):
            a = a * 2.0
        Y((0, 0), (1, n)).store(a)


def branch(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        a = tn.zeros((1, n), float32)
        for i in root.serial(M):
            x = X[(i.index(), 0), (1, n)]
            if i.index() % 2 == 0:
                a = a + x
            else:
                x = x * 3.0
            Y((i.index(), 0), (1, n)).store(a - x)


def scalar_state(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        s = tn.scalar(1.0, float32)
        for i in root.serial(M):
            x = X[(i.index(), 0), (1, n)]
            s = s * 0.5 + X.at(i.index(), 0).load()
            Y((i.index(), 0), (1, n)).store(x * s)


KERNELS = [
    running_sum,
    swap,
    rotate,
    snapshot,
    previous_is_carried,
    shifted_update,
    nested,
    restarted,
    zero_trips,
    branch,
    scalar_state,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_carried_values_keep_their_meaning(kernel: Any) -> None:
    found = run_stepwise(kernel, [random(*SHAPE), poisoned(*SHAPE)])
    assert all(not loop.results for loop in found.all(Serial) if kernel is not scalar_state)


def test_an_update_in_place_needs_one_buf() -> None:
    found = run_stepwise(nested, [random(*SHAPE), poisoned(*SHAPE)])
    assert len(found.all(Alloc)) == 1
