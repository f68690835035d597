"""Whole kernels from Candidate to Scheduled: every step keeps the meaning, and little is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, Scheduled, run_stepwise
from tilenest import language
from tilenest.dialects import Alloc, MapReducePost, Sched, Serial
from tilenest.ir import BufType, TileType, float32
from tilenest.machine import AVX2, AVX512, Machine

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

F32 = np.float32


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def poisoned(*shape: int) -> Array:
    return np.full(shape, np.nan, F32)


def gelu_residual(X: Any, R: Any, Y: Any, *, rows: int = 4) -> None:
    M, N = X.shape
    m, n = tn.axis("m", rows), tn.axis("n", N)
    for group in tn.parallel(tn.cdiv(M, rows)):
        i = group.index() * rows
        x = X[(i, 0), (m, n)]
        y = 0.5 * x * (1.0 + tn.erf(x * 0.7071067811865476)) + R[(i, 0), (m, n)]
        Y((i, 0), (m, n)).store(y)


def softmax(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for row in tn.parallel(M):
        i = row.index()
        x = X[(i, 0), (1, n)]
        e = tn.exp(x - tn.reduce(x, n, tn.maximum))
        Y((i, 0), (1, n)).store(e / tn.reduce(e, n, tn.add))


def gemm(A: Any, B: Any, C: Any, *, bm: int, bn: int, bk: int) -> None:
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc = tn.zeros((m, n), float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)


def check_form(found: Scheduled) -> None:
    """What later steps rely on: destinations, schedules, no tiles."""
    for op in found.module.walk():
        assert not any(isinstance(value.type, TileType) for value in (*op.operands, *op.results))
        if isinstance(op, MapReducePost):
            assert isinstance(op.sched, Sched)
            assert len(op.outputs) == len(op.specs)
            assert not op.results


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (13, 40), (8, 64)])
def test_gelu_and_residual_become_one_op(shape: tuple[int, int]) -> None:
    found = run_stepwise(gelu_residual, [random(*shape), random(*shape, seed=1), poisoned(*shape)])
    check_form(found)
    assert len(found.work) == 1
    assert not found.all(Alloc)


@pytest.mark.parametrize("shape", [(4, 0)])
@pytest.mark.parametrize("kernel", [gelu_residual, softmax], ids=lambda k: k.__name__)
def test_empty_arrays_are_left_alone(kernel: Any, shape: tuple[int, int]) -> None:
    arrays = [random(*shape), random(*shape, seed=1), poisoned(*shape)]
    check_form(run_stepwise(kernel, arrays if kernel is gelu_residual else arrays[1:]))


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (3, 70)])
def test_softmax_becomes_three_ops(shape: tuple[int, int]) -> None:
    found = run_stepwise(softmax, [random(*shape), poisoned(*shape)])
    check_form(found)
    maximum, exponentials, division = found.work
    assert [spec.merge for spec in maximum.specs] == ["maximum"]
    assert [spec.policy for spec in exponentials.specs] == [None, "unordered_tree"]
    assert len(division.outputs) == 1


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (1, 1, 1, (4, 16, 4)),
        (33, 37, 19, (16, 32, 8)),
        (16, 32, 8, (16, 32, 8)),
        (5, 70, 9, (7, 33, 5)),
    ],
)
def test_gemm_packs_and_accumulates_in_place(
    machine: Machine, m: int, n: int, k: int, blocks: tuple[int, int, int]
) -> None:
    configuration = dict(zip(("bm", "bn", "bk"), blocks, strict=True))
    arrays = [random(m, k), random(k, n, seed=1), poisoned(m, n)]
    found = run_stepwise(gemm, arrays, configuration, machine)
    check_form(found)
    products = [op for op in found.work if op.schedule().preset == "register_blocked"]
    (product,) = products
    accumulator = product.outputs[0]
    assert product.seeds == [accumulator] or k <= blocks[2]
    assert all(not loop.results for loop in found.all(Serial))
    np.testing.assert_allclose(
        found.arguments[2],
        arrays[0].astype(np.float64) @ arrays[1].astype(np.float64),
        atol=4 * k * float(np.finfo(F32).eps),
    )
    assert isinstance(accumulator.type, BufType)
    rows = next(loop.step for loop in product.schedule().loops if loop.dim == 0)
    assert accumulator.type.shape[0] % rows == 0
