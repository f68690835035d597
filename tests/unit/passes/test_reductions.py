"""Reductions through every step: folds, loops, coupled states, both directions, every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, run_stepwise, specs_of
from tilenest import language
from tilenest.capture import capture
from tilenest.dialects import Alloc, MapReducePost, Serial
from tilenest.errors import ReductionPolicyError
from tilenest.ir import float32, int32

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

F32 = np.float32
FOLD_LEFT, FOLD_RIGHT = tn.reduction.fold_left, tn.reduction.fold_right


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def poisoned(*shape: int) -> Array:
    return np.full(shape, np.nan, F32)


def row_sums(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y(0, m).store(tn.reduce(X[(0, 0), (m, n)], n, tn.add))


def column_sums(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y(0, n).store(tn.reduce(X[(0, 0), (m, n)], m, tn.add) / M)


def layer_norm(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for row in tn.parallel(M):
        x = X[(row.index(), 0), (1, n)]
        mean = tn.reduce(x, n, tn.add) / N
        d = x - mean
        variance = tn.reduce(d * d, n, tn.add) / N
        Y((row.index(), 0), (1, n)).store(d * tn.rsqrt(variance + 1e-5))


def horner(X: Any, Y: Any, *, policy: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        x = X[(0, 0), (m, n)]
        total = tn.zeros((m,), float32)
        for c in root.reduce(n, policy=policy):
            total = total * 0.5 + x.at(c)
        Y(0, m).store(total)


def coupled(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        x = X[(0, 0), (m, n)]
        best = tn.full((m,), -float("inf"), float32)
        place = tn.zeros((m,), int32)
        for c in root.reduce(n, policy=FOLD_LEFT):
            e = x.at(c)
            is_better = e > best
            place = tn.where(is_better, tn.cast(c.index(), int32), place)
            best = tn.where(is_better, e, best)
        Y(0, m).store(best + tn.cast(place, float32))


def independent(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        x = X[(0, 0), (m, n)]
        low = tn.full((m,), float("inf"), float32)
        high = tn.full((m,), -float("inf"), float32)
        for c in root.reduce(n):
            low = tn.minimum(low, x.at(c))
            high = tn.maximum(x.at(c), high)
        Y(0, m).store(high - low)


def with_effects(X: Any, Y: Any, *, policy: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        total = tn.zeros((m,), float32)
        x = X[(0, 0), (m, n)]
        for c in root.reduce(n, policy=policy):
            total = total * 0.5 + x.at(c)
            Y(0, m).store(total)


def runtime_bounds(X: Any, Y: Any, *, policy: Any) -> None:
    M = X.shape[0]
    m = tn.axis("m", M)
    for root in tn.parallel(1):
        total = tn.zeros((m,), float32)
        for c in root.reduce(X.extent(1), policy=policy):
            total = total * 0.5 + X[(0, c.index()), (m, 1)].at(0, axis=1)
        Y(0, m).store(total)


def scalar_total(X: Any, Y: Any) -> None:
    M, N = X.shape
    for root in tn.parallel(1):
        total = tn.scalar(0.0, float32)
        for c in root.reduce(M, N):
            i, j = c.index()
            total += X.at(i, j).load()
        Y.at(0).store(total * 2.0)


SHAPES = [(1, 1), (4, 7), (20, 3), (3, 70)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "kernel", [row_sums, coupled, independent, scalar_total], ids=lambda k: k.__name__
)
def test_folds_of_rows(kernel: Any, shape: tuple[int, int]) -> None:
    found = run_stepwise(kernel, [random(*shape), poisoned(shape[0])])
    assert not found.all(Serial)


@pytest.mark.parametrize("shape", SHAPES)
def test_folds_of_columns(shape: tuple[int, int]) -> None:
    found = run_stepwise(column_sums, [random(*shape), poisoned(shape[1])])
    assert len(found.work) == 1
    assert not found.all(Alloc)


@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm_is_three_ops(shape: tuple[int, int]) -> None:
    found = run_stepwise(layer_norm, [random(*shape), poisoned(*shape)])
    assert len(found.work) <= 3


@pytest.mark.parametrize("policy", [FOLD_LEFT, FOLD_RIGHT], ids=["left", "right"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [horner, with_effects, runtime_bounds], ids=lambda k: k.__name__)
def test_chains_keep_their_order(kernel: Any, shape: tuple[int, int], policy: Any) -> None:
    found = run_stepwise(kernel, [random(*shape), poisoned(shape[0])], {"policy": policy})
    is_loop = bool(found.all(Serial))
    assert is_loop == (kernel is not horner) or shape[1] == 1


@pytest.mark.parametrize("policy", [tn.reduction.unordered_tree, tn.reduction.ordered_tree])
def test_a_tree_without_a_merge_is_refused(policy: Any) -> None:
    arrays = [random(3, 5), poisoned(3)]
    kernel: Any = horner
    with pytest.raises(ReductionPolicyError) as raised:
        capture(kernel, specs_of(arrays), {"policy": policy})
    assert raised.value.location is not None
    assert "reduce(n" in raised.value.location.source
    assert "fold_left" in str(raised.value)


def test_merges_are_recorded() -> None:
    found = run_stepwise(independent, [random(4, 9), poisoned(4)])
    merges = [spec.merge for op in found.all(MapReducePost) for spec in op.specs if spec.policy]
    assert sorted(merges) == ["maximum", "minimum"]
