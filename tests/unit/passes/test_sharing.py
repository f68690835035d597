"""Tiles that share a buf: what may be updated in place, and what has to be copied first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.random_programs import Writer, arguments, staged_kernel
from tests.unit.capture.kernels import captured
from tests.unit.passes.stepwise import run, run_stepwise
from tilenest import language
from tilenest.dialects import Alloc, MapReducePost
from tilenest.ir import Rewriter
from tilenest.machine import AVX512, cpu_target
from tilenest.passes import SCHEDULE_PASSES
from tilenest.verify import verify_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

ROWS, COLUMNS = 6, 10


def old_value_moves_in_a_branch(X: Any, Y: Any) -> None:
    """One state is updated in a branch that hands its old tile to the other state."""
    a, c = X[(0, 0), (1, COLUMNS)], X[(1, 0), (1, COLUMNS)]
    for i in tn.root().serial(4):
        if i.index() % 2 == 0:
            old = c
            c = c + a
            a = old
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(c)


def swap_in_a_branch(X: Any, Y: Any) -> None:
    a, c = X[(0, 0), (1, COLUMNS)], X[(1, 0), (1, COLUMNS)]
    for i in tn.root().serial(5):
        if i.index() % 2 == 0:
            a, c = c, a
        else:
            a, c = c * 2.0, a + 1.0
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(c)


def rotation_in_a_loop_of_a_branch(X: Any, Y: Any) -> None:
    a, b, c = (X[(row, 0), (1, COLUMNS)] for row in range(3))
    for i in tn.root().serial(4):
        if i.index() != 2:
            for _ in i.serial(2):
                a, b, c = b, c + a, a
        else:
            b = a
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(b - c)


def states_start_swapped(X: Any, Y: Any) -> None:
    """The inner states start from each other's bufs."""
    a, b = X[(0, 0), (1, COLUMNS)], X[(1, 0), (1, COLUMNS)]
    for i in tn.root().serial(3):
        first, second = b, a
        for _ in i.serial(2):
            first = first + 1.0
            second = second * 2.0
        a, b = first, second
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(b)


def states_start_alike(X: Any, Y: Any) -> None:
    start = X[(0, 0), (1, COLUMNS)] + 1.0
    a, b = start, start
    for _ in tn.root().serial(3):
        a = a + b
        b = b * 0.5
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(b)


def start_is_read_by_every_iteration(X: Any, Y: Any) -> None:
    start = X[(0, 0), (1, COLUMNS)] + 1.0
    a = start
    for i in tn.root().serial(3):
        a = a * 2.0
        if i.index() > 0:
            a = a - start
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(start)


def old_value_is_read_in_a_later_loop(X: Any, Y: Any) -> None:
    a = X[(0, 0), (1, COLUMNS)]
    total = X[(1, 0), (1, COLUMNS)]
    for i in tn.root().serial(3):
        old = a
        a = a * 2.0 + 1.0
        for _ in i.serial(2):
            total = total * 0.5 + old
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(total)


def update_reads_its_neighbours(X: Any, Y: Any) -> None:
    a = X[(0, 0), (1, COLUMNS)]
    for i in tn.root().serial(4):
        if i.index() > 0:
            a = a + a[(0, 1), (1, COLUMNS)]
    Y((0, 0), (1, COLUMNS)).store(a)
    Y((1, 0), (1, COLUMNS)).store(a * 2.0)


KERNELS = [
    old_value_moves_in_a_branch,
    swap_in_a_branch,
    rotation_in_a_loop_of_a_branch,
    states_start_swapped,
    states_start_alike,
    start_is_read_by_every_iteration,
    old_value_is_read_in_a_later_loop,
    update_reads_its_neighbours,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_what_is_still_read_is_kept(kernel: Any) -> None:
    x = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    y = np.full((ROWS, COLUMNS), np.nan, np.float32)
    found = run_stepwise(kernel, [x, y])
    assert np.isfinite(found.arguments[1][:2]).all()


def updated_in_branches(X: Any, Y: Any) -> None:
    a = X[(0, 0), (1, COLUMNS)] + 1.0
    for i in tn.root().serial(4):
        if i.index() % 2 == 0:
            a = a + X[(i.index(), 0), (1, COLUMNS)]
        else:
            for _ in i.serial(3):
                a = a * 0.5
    Y((0, 0), (1, COLUMNS)).store(a)


def test_branches_and_loops_update_one_buf() -> None:
    x = np.ones((ROWS, COLUMNS), np.float32)
    found = run_stepwise(updated_in_branches, [x, np.full_like(x, np.nan)])
    assert len(found.all(Alloc)) == 1
    # The start, an update in each branch, the store: nothing is copied.
    assert len(found.all(MapReducePost)) == 4


OLD_VALUE_MOVES_BESIDE_A_SNAPSHOT = """
def kernel(X, n, Y):
    a = X[0, 3]
    c = X[6, 3]
    last = c
    for s in tn.root_or_inner("serial", 2):
        last = a
        if n == 0:
            a = X[3, 3]
        else:
            old = c
            c = c + a
            a = old
    Y(0, 3).store(last)
"""
# Programs that update a tile in a branch, and hand its old value on, in many shapes; the last two
# read a tile beside its neighbours.
SEEDS = [755, 1310, 1520, 1610, 1622, 1810, 2377, 1181, 1234]
TEXTS = [OLD_VALUE_MOVES_BESIDE_A_SNAPSHOT, *(Writer(seed).text() for seed in SEEDS)]


@pytest.mark.parametrize("text", TEXTS, ids=["snapshot", *map(str, SEEDS)])
def test_every_step_keeps_what_a_program_stores(text: str) -> None:
    result = captured(staged_kernel(text), *arguments(1))
    inputs = [[arguments(n)[place] for place in result.arguments] for n in (0, 1, 3)]
    expected = [run(result.module, given) for given in inputs]
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        step(result.module, cpu_target(AVX512), rewriter)
        verify_module(result.module)
        rewriter.analyses.check()
        for given, wanted in zip(inputs, expected, strict=True):
            found = run(result.module, given)
            np.testing.assert_array_equal(found[-1], wanted[-1], err_msg=f"after {name}: {text}")
