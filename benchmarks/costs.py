"""What is paid besides the kernel's own time: a call, a cold compile, a start from the disk cache.

The compile costs are taken in fresh processes that share an empty cache folder: the first one
compiles, the others find the object, and the best of them counts. Third-party imports come before
the clock starts; importing the package is a cost of its own.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

import tilenest as tn
from benchmarks.harness import Run, calibrate, time_batch

FIRST_CALL = """
import time
import llvmlite.binding, islpy, ml_dtypes, numpy as np, tvm_ffi
start = time.perf_counter()
import tilenest
imported = time.perf_counter()
from benchmarks.gemm import gemm
a, b, c = (np.ones((512, 512), np.float32) for _ in range(3))
gemm(a, b, c)
print(imported - start, time.perf_counter() - imported)
"""


WARM_STARTS = 3


def measure_costs() -> dict[str, float]:
    """Named costs in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TILENEST_CACHE": "1", "TILENEST_CACHE_DIR": folder}
        # An installed package has its bytecode beside it.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        cold = start_seconds(environment)
        warm = [start_seconds(environment) for _ in range(WARM_STARTS)]
    a, b, c = (np.ones(8, np.float32) for _ in range(3))
    compiled = add_small.compile(a, b, c)
    return {
        "kernel(a, b, c), three small arrays": call_seconds(lambda: add_small(a, b, c)) * 1e6,
        "compiled(a, b, c), three small arrays": call_seconds(lambda: compiled(a, b, c)) * 1e6,
        "import tilenest": min(imported for imported, _ in warm) * 1e6,
        "gemm, cold compile and first call": cold[1] * 1e6,
        "gemm, first call from the disk cache": min(first for _, first in warm) * 1e6,
    }


@tn.kernel
def add_small(A, B, C):
    n = tn.axis("n", A.shape[0])
    for _ in tn.parallel(1):
        C(0, n).store(A[0, n] + B[0, n])


def call_seconds(run: Run) -> float:
    """The best of a few batches: a call's cost is what it takes when nothing interferes."""
    calls = calibrate(run)
    return min(time_batch(run, 10 * calls) for _ in range(15))


def start_seconds(environment: dict[str, str]) -> tuple[float, float]:
    """Seconds to import the package and to call its first kernel, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    imported, first = map(float, done.stdout.split())
    return imported, first
