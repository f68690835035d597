"""The end of a process whose daemon threads are in kernels: it is a quiet one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import threading, time
import numpy as np
import tilenest as tn

@tn.kernel
def doubled(X, Y):
    n = tn.axis("n", 64)
    for block in tn.parallel(tn.cdiv(X.extent(0), 64)):
        Y(block.index() * 64, n).store(X[block.index() * 64, n] * 2.0)

@tn.kernel
def other(X, Y):
    n = tn.axis("n", 32)
    for block in tn.serial(tn.cdiv(X.extent(0), 32)):
        Y(block.index() * 32, n).store(X[block.index() * 32, n] * 3.0)

x = np.ones(3_000_000, np.float32)
y = np.zeros_like(x)
doubled(x, y)
begun = threading.Barrier(3)

def call_again():
    mine = np.zeros_like(x)
    begun.wait()
    while True:
        doubled(x, mine)

def call_another():
    begun.wait()
    other(x, np.zeros_like(x))
    while True:
        other(x, np.zeros_like(x))

for work in (call_again, call_another):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep({seconds})
print("main ends", flush=True)
"""


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 0.101, 0.102, 0.103])
def test_main_may_end_while_daemon_threads_are_in_kernels(seconds: float, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM.replace("{seconds}", str(seconds)))
    found = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"TILENEST_CACHE_DIR": str(tmp_path.parent / "objects")},
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "main ends\n", "")
