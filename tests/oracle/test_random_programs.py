"""Random kernels of loops, conditions, swaps and snapshots on the CPU, against the interpreter.

A seed is a program (see `tests/random_programs.py`); what it stores on the way and in the end must
be the same bits, and every pass must leave a module that obeys the rules. What interpreted programs
mean is judged where capture is tested.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilenest as tn
from tests.random_programs import Writer, arguments, staged_kernel

TRIPS = (0, 1, 3)
MANY = 2000
CHUNK = 100


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILENEST_VERIFY", "1")
    # What was compiled before is compiled again.
    monkeypatch.setenv("TILENEST_CACHE", "0")


def compare(seed: int) -> None:
    text = Writer(seed).text()
    kernel = tn.kernel(staged_kernel(text))
    trips = TRIPS[seed % len(TRIPS)]
    stored = []
    for target in ("interpret", "cpu"):
        x, n, y = arguments(trips)
        given = x.copy()
        kernel.compile(x, n, y, target=target)(x, n, y)
        np.testing.assert_array_equal(x, given)
        stored.append(y)
    np.testing.assert_array_equal(stored[1], stored[0], err_msg=f"seed {seed}, n {trips}\n{text}")


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 40 + MANY, CHUNK))
def test_many_random_programs(first: int) -> None:
    for seed in range(first, first + CHUNK):
        compare(seed)
