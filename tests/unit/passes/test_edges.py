"""Which edges fuse: aliases, masks, fills, several readers, transposes, and what stays apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, run, run_stepwise, specs_of
from tilenest import language
from tilenest.capture import capture
from tilenest.dialects import Alloc
from tilenest.errors import OutOfBounds
from tilenest.ir import Rewriter, float32, int32
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

F32 = np.float32
SHAPE = (6, 10)


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def poisoned(*shape: int) -> Array:
    return np.full(shape, np.nan, F32)


def copy_rows(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y((0, 0), (m, n)).store(X[(0, 0), (m, n)] * 2.0)


def transpose_square(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y((0, 0), (n, m)).store(X[(0, 0), (m, n)])


def shift_down(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y((1, 0), (m, n)).store(X[(0, 0), (m, n)])


def read_then_write_then_use(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        x = X[(0, 0), (m, n)]
        Y((0, 0), (m, n)).store(x + 1.0)
        Y((0, 0), (m, n)).store(x * 3.0)


def two_readers(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M // 2), tn.axis("n", N)
    for _ in tn.parallel(1):
        e = tn.exp(X[(0, 0), (m, n)])
        c = X[(1, 0), (m, n)] + 1.0
        Y((0, 0), (m, n)).store(e + c)
        Y((M // 2, 0), (m, n)).store(e * c)


def masked(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M + 2), tn.axis("n", N)
    for _ in tn.parallel(1):
        keep = (tn.iota(m, int32) + tn.iota(n, int32)) % 3 != 1
        x = X((-1, 0), (m, n), mask=keep).load(other=7.0)
        Y((0, 0), (m, n), mask=keep).store(x)


def filled_by_a_tile(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M + 2), tn.axis("n", N)
    for _ in tn.parallel(1):
        other = tn.cast(tn.iota(n, int32), float32)
        x = X((-1, 0), (m, n)).load(other=other)
        Y((0, 0), (m, n)).store(x[(0, 0), (m, n)] + 1.0)


def around_a_tile(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        e = tn.exp(X[(0, 0), (m, n)])
        Y((0, 0), (m, n)).store(e[(-1, 1), (m, n)] + e)


def broadcast_row(X: Any, Y: Any) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        row = tn.exp(X[(0, 0), (1, n)])
        column = tn.sqrt(tn.abs(X[(0, 0), (m, 1)])) + 1.0
        Y((0, 0), (m, n)).store(X[(0, 0), (m, n)] * row.at(0, axis=0) + column.at(0, axis=1))


def outside_a_loop(X: Any, Y: Any) -> None:
    M, N = X.shape
    n = tn.axis("n", N)
    for root in tn.parallel(1):
        row = tn.exp(X[(0, 0), (1, n)])
        for i in root.serial(M):
            Y((i.index(), 0), (1, n)).store(row + X[(i.index(), 0), (1, n)])


KERNELS = [
    copy_rows,
    shift_down,
    read_then_write_then_use,
    two_readers,
    masked,
    filled_by_a_tile,
    around_a_tile,
    broadcast_row,
    outside_a_loop,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_steps_keep_the_meaning(kernel: Any) -> None:
    run_stepwise(kernel, [random(*SHAPE), poisoned(*SHAPE)])


@pytest.mark.parametrize("kernel", [*KERNELS, transpose_square], ids=lambda kernel: kernel.__name__)
def test_coinciding_arguments_keep_the_meaning(kernel: Any) -> None:
    both = random(6, 6)
    run_stepwise(kernel, [both, both])


def dense_rows(X: Any, Y: Any) -> None:
    M, N = X.shape
    assert X.strides == (N, 1)
    assert Y.strides == X.strides
    assert Y.shape == X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        Y((0, 0), (m, n)).store(X[(0, 0), (m, n)] * 2.0)


def test_same_place_in_place_needs_no_copy() -> None:
    both = random(*SHAPE)
    found = run_stepwise(copy_rows, [both, both])
    assert len(found.work) == 1
    assert not found.all(Alloc)


def test_dense_rows_become_one_loop() -> None:
    found = run_stepwise(dense_rows, [random(*SHAPE), poisoned(*SHAPE)])
    assert [op.extents for op in found.work] == [(60,)]
    found = run_stepwise(copy_rows, [random(*SHAPE), poisoned(*SHAPE)])
    assert [op.extents for op in found.work] == [SHAPE]


def test_another_place_in_place_is_copied_first() -> None:
    both = random(6, 6)
    found = run_stepwise(transpose_square, [both, both])
    assert len(found.all(Alloc)) == 1


def test_expensive_work_is_done_once() -> None:
    found = run_stepwise(two_readers, [random(*SHAPE), poisoned(*SHAPE)])
    assert len(found.work) == 3
    found = run_stepwise(outside_a_loop, [random(*SHAPE), poisoned(*SHAPE)])
    assert len(found.work) == 2


def long_chain(X: Any, Y: Any, *, length: int) -> None:
    N = X.shape[0]
    n = tn.axis("n", N)
    for _ in tn.parallel(1):
        x = X[0, n]
        for _ in range(length):
            x = x * 0.5 + 1.0
        Y(0, n).store(x)


def test_chains_may_be_longer_than_pythons_stack() -> None:
    found = run_stepwise(long_chain, [random(5), poisoned(5)], {"length": 600})
    assert len(found.work) == 1


def test_decisions_name_what_was_refused() -> None:
    found = run_stepwise(two_readers, [random(*SHAPE), poisoned(*SHAPE)])
    reasons = [str(decision) for decision in found.decisions]
    assert any("materialize, not fuse: several consumers" in reason for reason in reasons)
    assert all(decision.reason for decision in found.decisions)


def checked(X: Any, Y: Any, *, offset: int) -> None:
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for _ in tn.parallel(1):
        x = X((offset, 0), (m, n), bounds="check").load()
        Y((0, 0), (m, n)).store(x + 1.0)


def promised(X: Any, Y: Any, *, rows: int) -> None:
    N = X.shape[1]
    m, n = tn.axis("m", rows), tn.axis("n", N)
    for _ in tn.parallel(1):
        inside = tn.iota(m, int32) < X.shape[0]
        x = X((0, 0), (m, n), bounds="assume", mask=inside).load(other=3.0)
        Y((0, 0), (m, n)).store(x)


def test_checked_reads_raise_after_every_step() -> None:
    arrays = [random(*SHAPE), poisoned(*SHAPE)]
    run_stepwise(checked, arrays, {"offset": 0})
    kernel: Any = checked
    module = capture(kernel, specs_of(arrays), {"offset": 1}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX2), rewriter)
        with pytest.raises(OutOfBounds):
            run(module, arrays)


def test_a_mask_protects_what_is_promised_to_be_inside() -> None:
    run_stepwise(promised, [random(*SHAPE), poisoned(8, 10)], {"rows": 8})


def double_in_place(X: Any, *, columns: int) -> None:
    n = tn.axis("n", columns)
    X(0, n).store(X[0, n] * 2.0)


@pytest.mark.parametrize("size", [0, 1, 6, 299, 300, 301])
def test_a_ragged_update_in_place_reads_what_it_keeps(size: int) -> None:
    run_stepwise(double_in_place, [random(size)], {"columns": 300})
