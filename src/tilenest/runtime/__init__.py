"""Running compiled kernels: arguments, dispatch, the object cache, threads."""

from tilenest.runtime.dispatch import Dispatcher, KernelSource, Path, Variant
from tilenest.runtime.interpreted import run_interpreted
from tilenest.runtime.threads import get_num_threads, set_num_threads

__all__ = [
    "Dispatcher",
    "KernelSource",
    "Path",
    "Variant",
    "get_num_threads",
    "run_interpreted",
    "set_num_threads",
]
