"""Work that leaves a loop: what goes, how far, and what stays inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, run_stepwise
from tilenest import language
from tilenest.dialects import Serial
from tilenest.ir import float32, index

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language
ROWS, WIDTH = 6, 8


def expensive(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(3):
            total = total + tn.exp(A[(i.index(), 0), (u, n)]) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def chain(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(3):
            scaled = tn.exp(A[(i.index(), 0), (u, n)]) * 2.0 + 1.0
            total = total + scaled * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def folded(A: Any, C: Any) -> None:
    u, n, p = tn.axis("u", 1), tn.axis("n", WIDTH), tn.axis("p", 2)
    for i in tn.parallel(ROWS):
        for k in i.serial(4):
            total = tn.reduce(A[(i.index(), 0), (u, n)], n, tn.add)
            C((i.index(), k.index() * 2), (u, p)).store(A[(k.index(), 0), (u, p)] * total)


def two_loops(A: Any, C: Any) -> None:
    """What depends on the outer loop leaves the inner one only."""
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(2):
        total = tn.zeros((u, n), float32)
        for j in i.serial(3):
            for k in j.serial(2):
                total = total + tn.exp(A[(i.index(), 0), (u, n)]) * A[(k.index(), 0), (u, n)]
                total = total + tn.tanh(A[(j.index(), 0), (u, n)]) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def never(A: Any, C: Any) -> None:
    """A loop without instances, whose work would read outside of the view."""
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(tn.cast(A.at(0, 0).load(), index) * 0):
            total = total + tn.exp(A[(i.index() + 100, 0), (u, n)]) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def scaled(A: Any, C: Any) -> None:
    """A scalar read goes with the work that needs it."""
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(3):
            factor = A.at(i.index(), 1).load()
            total = total + tn.exp(A[(i.index(), 0), (u, n)] * factor) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


MOVED = {scaled: 1, expensive: 1, chain: 3, folded: 1, two_loops: 2, never: 1}


@pytest.mark.parametrize("kernel", MOVED, ids=lambda kernel: kernel.__name__)
def test_work_leaves_its_loops(kernel: Any) -> None:
    """The interpreter gives the same bits after every step."""
    done = run_stepwise(kernel, arrays())
    moved = [d for d in done.decisions if "once in front of the loop" in d.choice]
    assert len(moved) == MOVED[kernel], moved
    assert all("nothing it depends on changes there" in d.reason for d in moved)


def test_each_goes_as_far_as_its_anchor() -> None:
    done = run_stepwise(two_loops, arrays())
    loops = [d.choice for d in done.decisions if "once in front of the loop" in d.choice]
    assert loops == ["once in front of the loop over j", "once in front of the loop over k"]


def cheap(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(3):
            total = total + (A[(i.index(), 0), (u, n)] * 2.0) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def changing(A: Any, C: Any) -> None:
    """The loop writes what the work reads."""
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        C((i.index(), 0), (u, n)).store(A[(i.index(), 0), (u, n)])
        for k in i.serial(3):
            more = tn.sin(C[(i.index(), 0), (u, n)]) + A[(k.index(), 0), (u, n)]
            C((i.index(), 0), (u, n)).store(more)


def carried(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = A[(i.index(), 0), (u, n)]
        for _ in i.serial(3):
            total = tn.sin(total)
        C((i.index(), 0), (u, n)).store(total)


def promised(A: Any, C: Any) -> None:
    """The loop may have no instance, and the promise about its reads is none then."""
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        total = tn.zeros((u, n), float32)
        for k in i.serial(tn.cast(A.at(0, 0).load(), index)):
            x = A((i.index(), 0), (u, n), bounds="assume").load()
            total = total + tn.exp(x) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def conditional(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", WIDTH)
    for i in tn.parallel(ROWS):
        for k in i.serial(3):
            if A.at(k.index(), 0).load() > 1.0:
                C((i.index(), 0), (u, n)).store(tn.exp(A[(i.index(), 0), (u, n)]))


@pytest.mark.parametrize("kernel", [cheap, changing, carried, promised, conditional])
def test_work_stays_in_its_loop(kernel: Any) -> None:
    done = run_stepwise(kernel, arrays())
    assert not [d for d in done.decisions if "in front of the loop" in d.choice]


def panels(A: Any, B: Any, C: Any) -> None:
    m, k, n = tn.axis("m", 16), tn.axis("k", 24), tn.axis("n", 32)
    for i in tn.parallel(2):
        a = A[(i.index() * 16, 0), (m, k)]
        for j in i.serial(2):
            b = B[(0, j.index() * 32), (k, n)]
            block = tn.mma(a, b, tn.zeros((m, n), float32))
            C((i.index() * 16, j.index() * 32), (m, n)).store(block)


def test_panels_that_no_instance_changes_are_made_once() -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((30, 24), (24, 60)))
    done = run_stepwise(panels, [a, b, np.full((30, 60), np.nan, np.float32)])
    (loop,) = done.all(Serial)
    made = [op for op in done.work if op.repartition is not None]
    assert sorted(op.parent_op is loop for op in made) == [False, True]


def arrays() -> list[Array]:
    source = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH) % 5
    return [source, np.full((ROWS, WIDTH), np.nan, np.float32)]
