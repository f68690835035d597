"""How the demonstration times: the fastest of a few calls, after one that warms up."""

import time
from collections.abc import Callable

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
