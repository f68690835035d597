"""Times programs with and without what the compiler rearranges by itself (docs/decisions/0015).

Run `python -m tools.rearrangement_times` at the root of the repository. In: nothing. Out: for each
program the microseconds of the best of some calls on one and on two threads, when it is compiled
without `unite levels` and `hoist`, and with them.
"""

import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilenest import passes

tn: Any = importlib.import_module("tilenest")
"""What kernels compute is known at capture, not to a type checker."""
REPEATS = 200
THREADS = (1, 2)
REARRANGING = ("unite levels", "hoist")


def one_around(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 4096)
    for one in tn.parallel(1):
        for i in one.parallel(512):
            C((i.index(), 0), (u, n)).store(tn.exp(A[(i.index(), 0), (u, n)]))


def one_around_two(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 4096)
    for one in tn.parallel(1):
        for i in one.parallel(512):
            C((i.index(), 0), (u, n)).store(tn.exp(A[(i.index(), 0), (u, n)]))
        for i in one.parallel(512):
            C((i.index(), 0), (u, n)).store(tn.exp(C[(i.index(), 0), (u, n)]))


def three_around(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 4096)
    for i in tn.parallel(3):
        for j in i.parallel(128):
            at = (i.index() * 128 + j.index(), 0)
            C(at, (u, n)).store(tn.exp(A[at, (u, n)]))


def three_around_scaled(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 4096)
    for i in tn.parallel(3):
        scale = A.at(i.index(), 0).load()
        for j in i.parallel(128):
            at = (i.index() * 128 + j.index(), 0)
            C(at, (u, n)).store(tn.exp(A[at, (u, n)]) * scale)


def scalars(A: Any, C: Any) -> None:
    for i in tn.parallel(500):
        for j in i.parallel(500):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * 2.0)


def units(A: Any, C: Any) -> None:
    for block in tn.parallel(4096, 1):
        column, row = block.index()
        C.at(row, column).store(A.at(row, column).load() * 2.0)


def exp_in_a_loop(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 1024)
    for i in tn.parallel(64):
        total = tn.zeros((u, n), tn.float32)
        for k in i.serial(16):
            total = total + tn.exp(A[(i.index(), 0), (u, n)]) * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def scaled_exp_in_a_loop(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 1024)
    for i in tn.parallel(64):
        total = tn.zeros((u, n), tn.float32)
        for k in i.serial(16):
            scaled = tn.exp(A[(i.index(), 0), (u, n)]) * 2.0 + 1.0
            total = total + scaled * A[(k.index(), 0), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def sum_in_a_loop(A: Any, C: Any) -> None:
    u, n, p = tn.axis("u", 1), tn.axis("n", 1024), tn.axis("p", 64)
    for i in tn.parallel(64):
        for j in i.serial(16):
            total = tn.reduce(A[(i.index(), 0), (u, n)], n, tn.add)
            at = (i.index(), j.index() * 64)
            C(at, (u, p)).store(A[at, (u, p)] * total)


def panels_in_a_loop(A: Any, C: Any) -> None:
    m, k, n = tn.axis("m", 96), tn.axis("k", 256), tn.axis("n", 64)
    for i in tn.parallel(4):
        a = A[(i.index() * 96, 0), (m, k)]
        for j in i.serial(16):
            product = tn.mma(a, A[(0, j.index() * 64), (k, n)], tn.zeros((m, n), tn.float32))
            C((i.index() * 96, j.index() * 64), (m, n)).store(product)


def exp_panels_in_a_loop(A: Any, C: Any) -> None:
    m, k, n = tn.axis("m", 96), tn.axis("k", 256), tn.axis("n", 64)
    for i in tn.parallel(4):
        for j in i.serial(16):
            a = tn.exp(A[(i.index() * 96, 0), (m, k)])
            product = tn.mma(a, A[(0, j.index() * 64), (k, n)], tn.zeros((m, n), tn.float32))
            C((i.index() * 96, j.index() * 64), (m, n)).store(product)


KERNELS = (
    one_around,
    one_around_two,
    three_around,
    three_around_scaled,
    scalars,
    units,
    exp_in_a_loop,
    scaled_exp_in_a_loop,
    sum_in_a_loop,
    panels_in_a_loop,
    exp_panels_in_a_loop,
)


@contextmanager
def without(names: tuple[str, ...]) -> Iterator[None]:
    """Compile without some passes for the duration of the context."""
    every = passes.SCHEDULE_PASSES
    passes.SCHEDULE_PASSES = tuple(step for step in every if step[0] not in names)
    try:
        yield
    finally:
        passes.SCHEDULE_PASSES = every


def times_of(kernel: Any, source: Any, repeats: int = REPEATS) -> list[float]:
    """Microseconds of the best call for each number of threads; the compilation is a new one."""
    target = np.full_like(source, np.nan)
    compiled = tn.kernel(kernel).compile(source, target)
    found = []
    before = tn.get_num_threads()
    for threads in THREADS:
        tn.set_num_threads(threads)
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            compiled(source, target)
            best = min(best, time.perf_counter() - start)
        found.append(best * 1e6)
    tn.set_num_threads(before)
    return found


def main() -> None:
    os.environ["TILENEST_CACHE"] = "0"
    source = np.random.default_rng(0).random((512, 4096), dtype=np.float32) - 0.5
    for kernel in KERNELS:
        with without(REARRANGING):
            apart = times_of(kernel, source)
        rows = apart, times_of(kernel, source)
        shown = (", ".join(f"{number:.1f}" for number in row) for row in rows)
        print(f"| {kernel.__name__.replace('_', ' ')} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
