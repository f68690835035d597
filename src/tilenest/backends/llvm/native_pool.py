"""Compiling and loading the thread pool of this process.

In: the object of `pool.pool_text`, from the cache or compiled here. Out: a `NativePool` with the
addresses kernels import and the calls Python makes. It is loaded once and never unloaded, since its
workers may wait inside it until the process ends; a forked child repairs it by itself.
"""

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from types import ModuleType

from tilenest.backends.llvm.object import (
    LoadedObject,
    compile_object,
    host_machine,
    load_object,
    process_symbols,
    undefined_symbols,
)
from tilenest.backends.llvm.pool_names import ACQUIRE, AFTER_FORK, RELEASE, RUN, SET_THREADS
from tilenest.records import record


@record
class NativePool:
    """`symbols` is what an object that calls the pool is linked with."""

    loaded: LoadedObject
    symbols: Mapping[str, int]

    def set_threads(self, count: int) -> None:
        """Threads that take part in a job, the caller included; below 2 all runs on the caller."""
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(self.symbols[SET_THREADS])(count)

    def after_fork(self) -> None:
        """Forget workers, sleepers and jobs of the parent; called in every forked child."""
        ctypes.CFUNCTYPE(None)(self.symbols[AFTER_FORK])()


def compile_pool() -> bytes:
    """The pool's object for this machine."""
    return compile_object(_import_pool().pool_text(host_machine()))


def load_pool(data: bytes) -> NativePool:
    """Load the object; the caller sees to it that this happens once."""
    loaded = load_object(data, process_symbols(undefined_symbols(data)))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    names = (RUN, SET_THREADS, AFTER_FORK, ACQUIRE, RELEASE)
    pool = NativePool(loaded, {name: loaded.address(name) for name in names})
    os.register_at_fork(after_in_child=pool.after_fork)
    return pool


@cache
def _import_pool() -> ModuleType:
    """The writer of the pool, needed only where no cache has its object."""
    from tilenest.backends.llvm import pool

    return pool
