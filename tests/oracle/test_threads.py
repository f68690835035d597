"""Results that do not depend on threads: pool sizes, several Python threads, forks, nested calls.

What may hang runs in a process of its own with a time limit. Work is large enough to be shared out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, normal, whole
from tests.oracle.compare import assert_same

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def same_number_of_threads_afterwards() -> Iterator[None]:
    count = tn.get_num_threads()
    yield
    tn.set_num_threads(count)


@tn.kernel
def shares(X: Any, Y: Any, *, factor: float) -> None:
    n = tn.axis("n", 100)
    for part in tn.parallel(tn.cdiv(X.extent(0), 100)):
        start = part.index() * 100
        x = X[start, n]
        Y(start, n).store(tn.sin(x * factor) + tn.exp(x))


def run_shares(x: Array, factor: float = 3.0) -> Array:
    y = np.full_like(x, np.nan)
    shares(x, y, factor=factor)
    return y


WORK: dict[str, Callable[[], Array]] = {
    "sum": lambda: tn.ops.sum(normal((401_003,), seed=1)),
    "sum of rows": lambda: tn.ops.sum(normal((301, 1539), seed=1), 1),
    "sum of columns": lambda: tn.ops.sum(normal((301, 1539), seed=1), 0),
    "mean": lambda: tn.ops.mean(normal((7, 90_001), seed=1)),
    "softmax": lambda: tn.ops.softmax(normal((257, 1538), seed=1)),
    "layer norm": lambda: tn.ops.layer_norm(normal((257, 769), seed=1)),
    "ragged matmul": lambda: tn.ops.matmul(normal((1031, 131), seed=1), normal((131, 389), seed=2)),
    "deep matmul": lambda: tn.ops.matmul(normal((65, 2051), seed=1), normal((2051, 67), seed=2)),
    "kernel": lambda: run_shares(normal((300_001,), seed=1)),
}


@pytest.mark.parametrize("name", WORK)
def test_results_are_the_same_on_1_2_and_3_threads(name: str) -> None:
    tn.set_num_threads(1)
    expected = WORK[name]()
    for count in (2, 3, 2):
        tn.set_num_threads(count)
        for _ in range(3):
            assert_same(WORK[name](), expected)


def together(calls: list[Callable[[], Array]]) -> list[Array]:
    """The results of calls that start at the same moment, each on a thread of its own."""
    barrier = threading.Barrier(len(calls))

    def call(each: Callable[[], Array]) -> Array:
        barrier.wait(30)
        return each()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(60) for future in [pool.submit(call, each) for each in calls]]


@pytest.mark.parametrize("count", [1, 3])
def test_one_kernel_from_several_threads(count: int) -> None:
    tn.set_num_threads(count)
    xs = [normal((60_000 + 13 * seed,), seed=seed) for seed in range(4)]
    expected = [run_shares(x) for x in xs]
    calls: list[Callable[[], Array]] = [partial(run_shares, x) for x in xs]
    for _ in range(5):
        for actual, meant in zip(together(calls), expected, strict=True):
            assert_same(actual, meant)


def test_different_kernels_from_several_threads() -> None:
    tn.set_num_threads(2)
    expected = {name: work() for name, work in WORK.items()}
    for _ in range(3):
        for actual, meant in zip(together(list(WORK.values())), expected.values(), strict=True):
            assert_same(actual, meant)


def test_several_threads_compile_one_variant_at_once() -> None:
    function: Any = shares.__wrapped__
    kernel = tn.Kernel(function)
    x = normal((1000,))

    def call() -> Array:
        y = np.full_like(x, np.nan)
        kernel(x, y, factor=2.0)
        return y

    results = together([call] * 4)
    for y in results[1:]:
        assert_same(y, results[0])
    assert len(kernel.variants) == 1


def test_changing_the_number_of_threads_while_kernels_run() -> None:
    x = normal((200_000,))
    expected = run_shares(x)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for count in (1, 3, 2):
                tn.set_num_threads(count)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(30):
            assert_same(run_shares(x), expected)
    finally:
        stop.set()
        changer.join(30)


def test_a_kernel_whose_capture_calls_kernels() -> None:
    def table() -> float:
        return float(tn.ops.sum(np.ones(50_000, np.float32)))

    @tn.kernel
    def outer(X: Any, Y: Any) -> None:
        n = tn.axis("n", X.shape[0])
        Y(0, n).store(X[0, n] * table())

    x = whole((33,))
    y = np.full_like(x, np.nan)
    outer(x, y)
    np.testing.assert_array_equal(y, x * 50_000)


FORKS = """
import os, sys, threading
import numpy as np
import tilenest as tn

tn.set_num_threads(3)
x = np.random.default_rng(0).standard_normal((257, 1538)).astype(np.float32)
expected = tn.ops.softmax(x)
stop = threading.Event()
busy = threading.Thread(target=lambda: [tn.ops.softmax(x) for _ in iter(stop.is_set, True)])
if "busy" in sys.argv:
    busy.start()
for turn in range(4):
    child = os.fork()
    if child == 0:
        right = np.array_equal(tn.ops.softmax(x), expected)
        fresh = tn.ops.sum(np.ones((3, 40_000 + turn), np.float32), 1)
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if np.array_equal(tn.ops.softmax(x), expected) else 3)
        right &= os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
        os._exit(0 if right and (fresh == 40_000 + turn).all() else 3)
    assert np.array_equal(tn.ops.softmax(x), expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
if "busy" in sys.argv:
    busy.join()
assert np.array_equal(tn.ops.softmax(x), expected)
print("done")
"""

EXITS = """
import threading
import numpy as np
import tilenest as tn

x = np.ones(300_000, np.float32)
threading.Thread(target=lambda: [tn.ops.add(x, x) for _ in range(20)]).start()
assert tn.ops.sum(tn.ops.add(x, x)) == 600_000
print("done")
"""


@pytest.mark.parametrize("word", ["idle", "busy"])
def test_forks_between_and_during_calls(word: str) -> None:
    assert_done(FORKS, word)


def test_a_process_ends_while_threads_call() -> None:
    assert_done(EXITS)


def assert_done(script: str, *words: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", script, *words]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
