"""How the demonstration times: the fastest of a few calls, after one that warms up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

import tilenest as tn

SECONDS = 0.15
FEWEST_CALLS = 3


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest call; the first one, which may compile, is not counted."""
    run()
    best, calls, start = float("inf"), 0, time.perf_counter()
    while calls < FEWEST_CALLS or time.perf_counter() - start < SECONDS:
        before = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - before)
        calls += 1
    return best


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for us and for NumPy's BLAS.

    NumPy's other functions have no more. And a BLAS waits until all its threads had a core: next to
    other programs a small product then takes a hundred times as long as its arithmetic.
    """
    threads = tn.get_num_threads()
    tn.set_num_threads(1)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        tn.set_num_threads(threads)
