"""Register blocks, operand layouts and schedules, judged by counting registers and waste."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, Scheduled, run_stepwise
from tilenest import language
from tilenest.ir import float32
from tilenest.machine import AVX2, AVX512, Machine
from tilenest.plan import register_block_of

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language


def product(A: Any, B: Any, C: Any) -> None:
    M, K = A.shape
    N = B.shape[1]
    assert B.shape[0] == K
    assert C.shape == (M, N)
    m, n, k = tn.axis("m", M), tn.axis("n", N), tn.axis("k", K)
    for _ in tn.parallel(1):
        acc = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (k, n)], tn.zeros((m, n), float32))
        C((0, 0), (m, n)).store(acc)


def transposed_product(A: Any, B: Any, C: Any) -> None:
    M, K = A.shape
    N = B.shape[0]
    assert B.shape[1] == K
    m, n, k = tn.axis("m", M), tn.axis("n", N), tn.axis("k", K)
    for _ in tn.parallel(1):
        acc = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (n, k)], tn.zeros((m, n), float32))
        C((0, 0), (m, n)).store(acc)


def arrays(m: int, n: int, k: int) -> list[Array]:
    random = np.random.default_rng(0)
    shapes = [(m, k), (k, n)]
    return [
        *(random.standard_normal(shape).astype(np.float32) for shape in shapes),
        np.full((m, n), np.nan, np.float32),
    ]


def block_of(found: Scheduled) -> tuple[int, int]:
    (block,) = [block for op in found.work if (block := register_block_of(op)) is not None]
    return block


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
@pytest.mark.parametrize(("m", "n"), [(2, 64), (5, 7), (12, 32), (28, 64), (30, 20), (37, 50)])
def test_blocks_fit_the_registers(machine: Machine, m: int, n: int) -> None:
    found = run_stepwise(product, arrays(m, n, 3), machine=machine)
    rows, columns = block_of(found)
    vectors = columns // machine.lanes(4)
    assert columns % machine.lanes(4) == 0
    assert rows * vectors + vectors + 1 <= machine.vector_registers
    assert rows <= m


def test_large_blocks_use_most_registers() -> None:
    rows, columns = block_of(run_stepwise(product, arrays(84, 64, 2), machine=AVX512))
    assert rows * columns // 16 >= 20
    rows, columns = block_of(run_stepwise(product, arrays(60, 48, 2), machine=AVX2))
    assert rows * columns // 8 >= 10


def reasons(found: Scheduled) -> list[str]:
    return [str(decision) for decision in found.decisions if "operand" in decision.subject]


def test_operands_that_few_blocks_read_stay_in_place() -> None:
    found = run_stepwise(product, arrays(8, 32, 4))
    assert all("in place, not panels" in reason for reason in reasons(found))


def test_a_transposed_operand_is_packed() -> None:
    a, b, c = arrays(8, 32, 4)
    found = run_stepwise(transposed_product, [a, np.ascontiguousarray(b.T), c])
    assert "not contiguous along the vectors" in reasons(found)[1]
    np.testing.assert_allclose(found.arguments[2], a.astype(float) @ b, rtol=1e-4, atol=1e-5)
