"""A consumer joins its producer only where it reads nothing of it but the very point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import run_stepwise
from tilenest import language

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

SIZE = 10


def row_sum_beside_the_next(X: Any, Y: Any) -> None:
    a = X[(0, 0), (4, SIZE)] * 2.0
    Y((0, 0), (4, 1)).store(tn.reduce(a - a[(0, 1), (4, SIZE)], 1, tn.add))


def chosen_beside_the_next(X: Any, Y: Any) -> None:
    a = X[(0, 0), (4, SIZE)]
    c = a - a[(0, 1), (4, SIZE)]
    for i in tn.root().serial(2):
        if i.index() == 1:
            c = c * X[(0, 0), (4, SIZE)]
    Y((0, 0), (4, SIZE)).store(c)


def row_sum_of_the_point(X: Any, Y: Any) -> None:
    x = X[(0, 0), (4, SIZE)]
    a = tn.exp(x * 0.0) + x
    Y((0, 0), (4, SIZE)).store(a / tn.reduce(a * a, 1, tn.add))


@pytest.mark.parametrize(
    ("kernel", "is_joined"),
    [
        (row_sum_beside_the_next, False),
        (chosen_beside_the_next, False),
        (row_sum_of_the_point, True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_consumer_joins_where_it_reads_the_point(kernel: Any, is_joined: bool) -> None:
    # Small whole numbers, and exp(0) is 1: sums are exact, whatever order a policy allows.
    x = np.arange(4 * SIZE, dtype=np.float32).reshape(4, SIZE) % 7
    found = run_stepwise(kernel, [x, np.full((4, SIZE), np.nan, np.float32)])
    joins = [one for one in found.decisions if one.choice.startswith("join")]
    assert bool(joins) == is_joined
