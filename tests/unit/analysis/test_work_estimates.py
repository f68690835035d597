"""Estimates of time: elements, trips, and what a chain of a fold waits for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.analysis.random_edits import TARGET
from tilenest.analysis import WorkEstimates
from tilenest.dialects import MapReducePost, Serial
from tilenest.driver import parse
from tilenest.ir import Rewriter, fresh
from tilenest.passes import SCHEDULE_PASSES

NESTED = """module "candidate"
dim %d0 "n" = 64

func @main(%A: view<f32, [?], [1]>) {{
  %zero = scalar.constant 0 : index
  %count = scalar.constant {count} : index
  %one = scalar.constant 1 : index
  %end = view.extent(%A, axis = 0) : index
  exec.serial(lower = [%zero], upper = [{upper}], step = [%one]) {{ |%i: index|
    %x = tile.load(%A, [%i]) : tile<f32, %d0>
    tile.store(%A, [%i], %x, dims = [%d0])
    exec.yield
  }}
  func.return
}}
"""


def times_of(count: int, upper: str) -> tuple[float, float]:
    """Of the function, and of one iteration."""
    module = parse(NESTED.format(count=count, upper=upper))
    (function,) = module.functions
    (loop,) = (op for op in module.walk() if isinstance(op, Serial))
    times = fresh(WorkEstimates, function).times
    return times[function.body], times[loop.body]


def test_work_estimates_count_elements_and_trips() -> None:
    whole, iteration = times_of(10, "%count")
    assert iteration >= 128 * 0.1
    assert whole == pytest.approx(1.0 + 10 * iteration, rel=0.01)
    assert times_of(0, "%count")[0] < iteration


def test_work_estimates_take_a_handful_where_trips_are_not_known() -> None:
    whole, iteration = times_of(10, "%end")
    assert 2 * iteration < whole < 100 * iteration


@tn.kernel
def total(X: Any, Y: Any, *, policy: Any) -> None:
    rows, columns = tn.axis("r", X.shape[0]), tn.axis("c", X.shape[1])
    for _ in tn.parallel(1):
        Y(0, rows).store(tn.reduce(X[(0, 0), (rows, columns)], columns, tn.add, policy=policy))


def time_of_fold(rows: int, policy: Any) -> float:
    arrays = np.zeros((rows, 1000), np.float32), np.zeros(rows, np.float32)
    module, rewriter = total.capture(*arrays, policy=policy), Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, TARGET, rewriter))
    (function,) = module.functions
    (op,) = (o for o in function.walk() if isinstance(o, MapReducePost) and o.folded_results)
    assert op.parent is not None
    times = fresh(WorkEstimates, function).times
    return times[op.parent]


def test_work_estimates_of_a_chain_wait_for_each_link() -> None:
    """One cell takes ten times as long for an element; ten cells at once hide the wait."""
    tree, chain = tn.reduction.unordered_tree, tn.reduction.fold_left
    assert time_of_fold(1, tree) == pytest.approx(100, rel=0.2)
    assert time_of_fold(1, chain) == pytest.approx(1000, rel=0.2)
    assert time_of_fold(20, chain) == time_of_fold(20, tree)
