"""The thread pool: every item once, whoever calls, however often, in parents and children."""

import ctypes
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.llvm.pool_bodies import INNER_ITEMS, SCRATCH_BYTES, bodies, native_pool
from tilenest.backends.llvm.pool_names import RUN

Integers = NDArray[np.int64]
DEFAULT_CONTROL = 0x1F80
FLUSH_SUBNORMALS = 0x9FC0
CHILD_SECONDS = 20


@pytest.fixture(params=[1, 2, 3], ids=["one thread", "two threads", "three threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    native_pool().set_threads(request.param)
    yield request.param
    native_pool().set_threads(1)


@pytest.fixture
def two_threads() -> Iterator[None]:
    native_pool().set_threads(2)
    yield
    native_pool().set_threads(1)


def run(body: str, out: NDArray[Any], total: int, grain: int = 1, scratch: int = 0) -> int:
    status: int = _run()(bodies().address(body), out.ctypes.data, total, grain, scratch)
    return status


@cache
def _run() -> Callable[..., int]:
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(native_pool().symbols[RUN])


def counts_are_right(jobs: int, seed: int) -> bool:
    """Random jobs; behind each array one element that must stay 0."""
    chooser = random.Random(seed)
    for _ in range(jobs):
        total, grain = chooser.randrange(1, 60), chooser.randrange(1, 9)
        out = np.zeros(total + 1, np.int64)
        status = run("count", out, total, grain, chooser.choice([0, 64, 5000]))
        if status != 0 or not ((out[:-1] == 1).all() and out[-1] == 0):
            return False
    return True


def test_every_item_once(threads: int) -> None:
    assert counts_are_right(1000, seed=threads)


@pytest.mark.parametrize("total", [0, -1, -(1 << 62)])
@pytest.mark.usefixtures("threads")
def test_no_items_no_call(total: int) -> None:
    out = np.zeros(1, np.int64)
    assert run("record_chunk", out, total) == 0
    assert out[0] == 0


@pytest.mark.parametrize(("total", "grain"), [(10, 3), (9, 3), (1, 1), (7, 100), (5, 0), (5, -4)])
@pytest.mark.usefixtures("two_threads")
def test_chunks_cover_the_range(total: int, grain: int) -> None:
    out = np.zeros(total + 1, np.int64)
    assert run("record_chunk", out, total, grain) == 0
    begin = 0
    while begin < total:
        end = int(out[begin])
        assert begin < end <= total
        begin = end
    assert np.count_nonzero(out) == -(-total // max(grain, 1))


@pytest.mark.usefixtures("threads")
def test_nested_runs() -> None:
    for _ in range(100):
        out = np.zeros(20 * INNER_ITEMS, np.int64)
        assert run("nest", out, 20, 2) == 0
        assert (out == 1).all()


@pytest.mark.usefixtures("threads")
def test_several_python_threads() -> None:
    results: list[bool] = []
    callers = [
        threading.Thread(target=lambda seed: results.append(counts_are_right(300, seed)), args=(n,))
        for n in range(3)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [True] * 3


def test_one_thread_is_the_caller() -> None:
    native_pool().set_threads(1)
    out = np.zeros(50, np.int64)
    run("record_thread", out, 50)
    assert set(out.view(np.uint64).tolist()) == {threading.get_ident()}


@pytest.mark.usefixtures("two_threads")
def test_workers_take_part() -> None:
    assert workers_are_seen()


def test_fewer_threads_again() -> None:
    native_pool().set_threads(3)
    assert counts_are_right(50, seed=1)
    native_pool().set_threads(2)
    out = np.zeros(100, np.int64)
    seen: set[int] = set()
    for _ in range(30):
        run("record_thread", out, 100)
        seen.update(out.tolist())
    native_pool().set_threads(1)
    assert len(seen) <= 2


@pytest.mark.usefixtures("threads")
def test_scratch_begins_at_a_cache_line_and_is_used_again() -> None:
    addresses: set[int] = set()
    for _ in range(100):
        out = np.zeros(40, np.int64)
        assert run("record_scratch", out, 40, 1, SCRATCH_BYTES) == 0
        addresses.update(out.tolist())
    assert 0 not in addresses
    assert all(address % 64 == 0 for address in addresses)
    # Arenas that other tests left may still lie in the slots, but none is made for each job.
    assert len(addresses) <= 8


@pytest.mark.usefixtures("threads")
def test_no_scratch_is_null() -> None:
    out = np.full(10, -1, np.int64)
    run("record_scratch", out, 10, 1, 0)
    assert (out == 0).all()


@pytest.mark.usefixtures("threads")
def test_scratch_belongs_to_one_thread() -> None:
    for _ in range(10):
        out = np.full(60, -1, np.int64)
        run("fill_scratch", out, 60, 1, SCRATCH_BYTES)
        assert (out == 0).all()


@pytest.mark.usefixtures("threads")
def test_scratch_grows() -> None:
    for size in (100, 100_000, 3_000_000, 100):
        out = np.zeros(10, np.int64)
        assert run("record_scratch", out, 10, 1, size) == 0
        assert (out != 0).all()


@pytest.mark.usefixtures("threads")
def test_no_memory_runs_nothing() -> None:
    out = np.zeros(10, np.int64)
    assert run("count", out, 10, 1, 1 << 60) == -1
    assert (out == 0).all()
    assert counts_are_right(10, seed=2), "the pool is usable afterwards"


@pytest.mark.usefixtures("threads")
def test_every_item_sees_the_default_control_word() -> None:
    set_control = ctypes.CFUNCTYPE(None, ctypes.c_int32)(bodies().address("set_control"))
    get_control = ctypes.CFUNCTYPE(ctypes.c_int64)(bodies().address("get_control"))
    before = get_control()
    out = np.zeros(64, np.int64)
    set_control(FLUSH_SUBNORMALS)
    run("record_control", out, 64)
    after = get_control()
    set_control(before)
    assert set((out & ~0x3F).tolist()) == {DEFAULT_CONTROL}
    assert after == FLUSH_SUBNORMALS


@pytest.mark.usefixtures("two_threads")
def test_idle_workers_sleep() -> None:
    assert counts_are_right(20, seed=3)
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def workers_are_seen() -> bool:
    """The worker may be late to one job, but not to fifty."""
    out = np.zeros(200, np.int64)
    seen: set[int] = set()
    for _ in range(50):
        run("record_thread", out, 200)
        seen.update(out.tolist())
    return len(seen) == 2


def in_child(check: Callable[[], bool]) -> int:
    """The exit status of a forked child that runs `check`; one that hangs is killed."""
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD_SECONDS)
        os._exit(0 if check() else 1)
    _, status = os.waitpid(child, 0)
    return status


@pytest.mark.usefixtures("two_threads")
def test_a_forked_child_has_workers_of_its_own() -> None:
    def check() -> bool:
        return counts_are_right(200, seed=5) and workers_are_seen()

    assert counts_are_right(20, seed=4)
    assert in_child(check) == 0
    assert counts_are_right(20, seed=6)


@pytest.mark.usefixtures("two_threads")
def test_a_child_forked_in_the_middle_of_jobs() -> None:
    stop = threading.Event()
    results: list[bool] = []

    def work() -> None:
        while not stop.is_set():
            results.append(counts_are_right(5, seed=len(results)))

    worker = threading.Thread(target=work)
    worker.start()
    statuses = [
        in_child(lambda: counts_are_right(20, seed=8) and workers_are_seen()) for _ in range(10)
    ]
    stop.set()
    worker.join()
    assert statuses == [0] * 10
    assert results and all(results)


def test_late_workers_leave_the_next_job_alone() -> None:
    """Short and long jobs in turn, with more threads than cores: a worker that wakes between two
    jobs would take a chunk of the wrong one, and the caller would wait for ever."""
    jobs = 100_000

    def check() -> bool:
        native_pool().set_threads(3)
        out = np.zeros(60, np.int64)
        function, body, place = _run(), bodies().address("tally"), out.ctypes.data
        for _ in range(jobs):
            function(body, place, 2, 1, 0)
            function(body, place, 60, 1, 0)
        return bool((out[:2] == 2 * jobs).all() and (out[2:] == jobs).all())

    assert in_child(check) == 0
