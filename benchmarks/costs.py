"""What is paid besides the kernel's own time: a call, a cold compile, a start from the disk cache.

The two compile costs are taken in fresh processes that share an empty cache folder: the first one
compiles, the second one finds the object. Third-party imports come before the clock starts;
importing the package does not.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

import tilenest as tn
from benchmarks.harness import calibrate, time_batch

FIRST_CALL = """
import time
import llvmlite.binding, islpy, numpy as np, tvm_ffi
start = time.perf_counter()
from benchmarks.gemm import gemm
a, b, c = (np.ones((512, 512), np.float32) for _ in range(3))
gemm(a, b, c)
print(time.perf_counter() - start)
"""


def measure_costs() -> dict[str, float]:
    """Named costs in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        cold, warm = (first_call_seconds(environment) for _ in range(2))
    return {
        "call, three small arrays": call_seconds() * 1e6,
        "gemm, cold compile and first call": cold * 1e6,
        "gemm, first call from the disk cache": warm * 1e6,
    }


@tn.kernel
def add_small(A, B, C):  # type: ignore[no-untyped-def] # a kernel has no Python types
    n = tn.axis("n", A.shape[0])
    for _ in tn.parallel(1):
        C(0, n).store(A[0, n] + B[0, n])


def call_seconds() -> float:
    """The best of a few batches: a call's cost is what it takes when nothing interferes."""
    a, b, c = (np.ones(8, np.float32) for _ in range(3))
    compiled = add_small.compile(a, b, c)
    calls = calibrate(lambda: compiled(a, b, c))
    return min(time_batch(lambda: compiled(a, b, c), 10 * calls) for _ in range(15))


def first_call_seconds(environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)
