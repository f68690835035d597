"""The harness judges results and counts time as its page says."""

import itertools
import json
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases import ROW_KERNELS, row_case
from benchmarks.harness import (
    SAMPLE_SECONDS,
    Ceiling,
    Comparison,
    Contestant,
    Quartiles,
    Refused,
    Row,
    calibrate,
    check,
    compare,
    error_of,
    measure_ceiling,
    write_json,
)


def row(*comparisons: Comparison) -> Row:
    return Row("add", "4", 1, 2000.0, "GB/s", comparisons, (Refused("other", "cannot run"),))


def test_error_is_relative_to_the_largest_magnitude() -> None:
    assert error_of(np.array([100.0, 51.0]), np.array([100.0, 50.0])) == 0.01
    assert error_of(np.array([0.5]), np.array([0.25])) == 0.25
    assert error_of(np.array([]), np.array([])) == 0.0


def test_an_unwritten_cell_is_a_wrong_result() -> None:
    output = np.zeros(3)
    contestant = Contestant("half", lambda: output[:2].fill(1.0), output)
    refused = check(contestant, np.ones(3), bound=1e-6)
    assert refused is not None
    assert "wrong result: error inf" in refused.reason


def test_a_fresh_result_is_judged_instead_of_the_output() -> None:
    contestant = Contestant("fresh", lambda: np.ones(3), np.zeros(3))
    assert check(contestant, np.ones(3), bound=0.0) is None


def test_an_index_has_to_be_equal() -> None:
    output = np.zeros(2, np.int64)
    assert check(Contestant("index", lambda: output.fill(7), output), np.array([7, 7]), 0.0) is None
    assert check(Contestant("index", lambda: output.fill(7), output), np.array([7, 8]), 0.0)


def test_a_batch_lasts_a_sample() -> None:
    assert calibrate(lambda: time.sleep(2 * SAMPLE_SECONDS)) == 1
    assert calibrate(lambda: None) > 100


def test_contestants_alternate_and_the_ratio_is_peer_over_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.harness.COMPARISON_SECONDS", 0.0)
    order: list[str] = []

    def contestant(name: str, seconds: float) -> Contestant:
        def run() -> None:
            order.append(name)
            time.sleep(seconds)

        return Contestant(name, run, np.zeros(1))

    comparison = compare(contestant("o", 1e-3), contestant("p", 4e-3))
    assert comparison.peer == "p"
    assert comparison.ratio.low > 1.0
    assert comparison.pairs == 7
    runs = [name for name, _ in itertools.groupby(order)]
    assert "".join(runs) == "opopopopop"


def test_quartiles() -> None:
    assert Quartiles.of([1.0, 2.0, 3.0, 4.0, 5.0]) == Quartiles(2.0, 3.0, 4.0)


def test_the_best_peer_is_the_fastest_one() -> None:
    even = Quartiles(1.0, 1.0, 1.0)
    slow, fast = Comparison("slow", 2.0, 9.0, even, 7), Comparison("fast", 1.0, 3.0, even, 7)
    assert row(slow, fast).best == fast
    assert row(slow, fast).rate == 2.0
    assert row().best is None
    assert row().rate is None


def test_a_ceiling_is_work_over_time() -> None:
    rate = measure_ceiling(Ceiling("sleep", "GB/s", lambda: time.sleep(1e-3), 1e6), samples=3)
    assert 0.2 < rate <= 1.0


def test_json_holds_every_row(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    write_json(path, [row()], {"copy": 1.0}, {"call": 2.0})
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["rows"][0]["refused"] == [{"name": "other", "reason": "cannot run"}]
    assert record["ceilings"] == {"copy": 1.0}
    assert record["costs"] == {"call": 2.0}


def test_bounds_grow_with_the_extent_of_a_fold_only() -> None:
    grown = {
        kernel.name
        for kernel in ROW_KERNELS
        if row_case(kernel, 2, 64).bound > row_case(kernel, 2, 32).bound
    }
    assert grown == {"softmax", "layer_norm", "rms_norm", "sum"}
