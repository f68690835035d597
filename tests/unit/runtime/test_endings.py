"""The end of a process whose daemon threads are in kernels: it is a quiet one, and waits for them.

Each program knows that its kernels are inside when main ends: a kernel says so in the array that it
works on, before a chain of steps that takes a second, and says behind it that it is done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import atexit, threading, time

@atexit.register
def tell():
    # What is registered first comes last, so after tilenest has waited.
    print("done" if all(array[DONE] == 1 for array in arrays) else "left inside", flush=True)

import numpy as np
import tilenest as tn

BEGUN, DONE, NUMBER = 0, 1, 2

@tn.kernel
def chain(Y, n):
    Y.at(0).store(1)
    x = tn.scalar(1.0, tn.float64)
    for i in tn.serial(n):
        x = x * 1.0000001 + 0.5
    Y.at(2).store(x)
    Y.at(1).store(1)

@tn.kernel
def other_chain(Y, n):
    Y.at(0).store(1)
    x = tn.scalar(3.0, tn.float64)
    for i in tn.serial(n):
        x = x * 0.9999999 - 0.5
    Y.at(2).store(x)
    Y.at(1).store(1)

kernels = [chain, other_chain][:{threads}]
arrays = [np.zeros(3) for _ in kernels]
for kernel in kernels:
    kernel(np.zeros(3), 1)
started = time.perf_counter()
chain(np.zeros(3), 1_000_000)
count = int(1_000_000 / (time.perf_counter() - started))

def call(kernel, mine):
    kernel(mine, count)
    while {again}:
        kernel(np.zeros(3), 1000)

for kernel, mine in zip(kernels, arrays):
    threading.Thread(target=call, args=(kernel, mine), daemon=True).start()
while not all(array[BEGUN] == 1 for array in arrays):
    time.sleep(0.001)
is_inside = all(array[DONE] == 0 for array in arrays)
print("inside" if is_inside else "too late", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_the_end_waits_for_daemon_threads_in_kernels(
    threads: int, again: bool, tmp_path: Path
) -> None:
    """They may go on calling kernels, too."""
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM.replace("{threads}", str(threads)).replace("{again}", str(again)))
    found = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"TILENEST_CACHE_DIR": str(tmp_path.parent / "objects")},
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "inside\ndone\n", "")
