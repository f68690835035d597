"""How many threads kernels use, and the process's one pool of them.

In: a number from the user, or the cores this process may run on. Out: the native pool, loaded when
the first kernel needs it, from the object cache where it is there. Results never depend on the
number of threads.
"""

from __future__ import annotations

import os
import threading
from typing import SupportsIndex

from tilenest.backends.llvm import NativePool, compile_pool, load_pool
from tilenest.driver import host
from tilenest.errors import DomainError, shown
from tilenest.language import host_int
from tilenest.runtime.cache import CacheEntry, cache_key, default_cache
from tilenest.runtime.identity import compiler_identity

MOST_THREADS = 1024


class _Threads:
    """The number of threads and, once loaded, the pool that has to know it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.chosen: int | None = None
        self.pool: NativePool | None = None

    @property
    def count(self) -> int:
        if self.chosen is None:
            return min(len(os.sched_getaffinity(0)), MOST_THREADS)
        return self.chosen


_threads = _Threads()
os.register_at_fork(
    before=_threads.lock.acquire,
    after_in_parent=_threads.lock.release,
    after_in_child=_threads.lock.release,
)


def set_num_threads(count: SupportsIndex) -> None:
    """Let kernels run on up to `count` threads, the calling one included."""
    number = host_int(count)
    if number is None or not 1 <= number <= MOST_THREADS:
        raise DomainError(
            f"{shown(count)} is not a number of threads",
            remedy=f"use a whole number from 1 to {MOST_THREADS}",
        )
    with _threads.lock:
        _threads.chosen = number
        if _threads.pool is not None:
            _threads.pool.set_threads(number)


def get_num_threads() -> int:
    """How many threads kernels may use."""
    return _threads.count


def native_pool() -> NativePool:
    """The pool, loaded at the first call."""
    with _threads.lock:
        if _threads.pool is None:
            _threads.pool = load_pool(_pool_code())
            _threads.pool.set_threads(_threads.count)
        return _threads.pool


def _pool_code() -> bytes:
    processor = host().processor
    key = cache_key({"pool": compiler_identity(), "processor": repr(processor)})
    cache = default_cache()
    found = None if cache is None else cache.load(key)
    if found is not None:
        return found.code
    code = compile_pool()
    if cache is not None:
        cache.store(key, CacheEntry({}, code))
    return code
