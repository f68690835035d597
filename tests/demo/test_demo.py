"""The demonstration holds, writes its pictures, and says so when something does not hold."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from threadpoolctl import threadpool_info, threadpool_limits

import tilenest as tn
from demo import digits, photograph, run, table


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=120)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_digits(console: Console) -> None:
    assert digits.run(console) == []
    assert "right: 1,776 of 1,797 (98.83%)" in printed(console)
    assert "brute force: 1,797 of 1,797" in printed(console)


def test_photograph(console: Console, tmp_path: Path) -> None:
    assert photograph.run(console, tmp_path) == []
    shapes = {path.name: np.asarray(Image.open(path)).shape for path in tmp_path.iterdir()}
    assert shapes == {
        "original.png": (512, 512, 3),
        "blurred.png": (512, 512, 3),
        "edges.png": (510, 510),
    }


def small_row() -> table.Row:
    return next(row for row in table.row_rows(17, 65) if row.kernel == "softmax")


def test_a_row_within_its_bound(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "all_rows", lambda: [small_row()])
    assert table.run(console) == []
    assert "17x65" in printed(console)


def test_rows_are_measured_on_one_thread_each(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts() -> set[int]:
        pools = [each for each in threadpool_info() if each["user_api"] == "blas"]
        return {tn.get_num_threads(), *(each["num_threads"] for each in pools)}

    seen: list[set[int]] = []

    def theirs(x: table.Array) -> table.Array:
        seen.append(counts())
        return table.numpy_softmax(x)

    monkeypatch.setattr(table, "all_rows", lambda: [replace(small_row(), numpy=theirs)])
    threads = tn.get_num_threads()
    tn.set_num_threads(3)
    try:
        with threadpool_limits(limits=2, user_api="blas"):
            before = counts()
            assert table.run(console) == []
            assert counts() == before
    finally:
        tn.set_num_threads(threads)
    assert len(seen) > 3
    assert all(found == {1} for found in seen)


@pytest.mark.parametrize("wrong", [1.001, np.nan])
def test_a_row_past_its_bound_fails(
    console: Console, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    row = small_row()
    faulty = replace(row, ours=lambda x: np.float32(wrong) * row.ours(x))
    monkeypatch.setattr(table, "all_rows", lambda: [faulty])
    (fault,) = table.run(console)
    assert fault.startswith("table: softmax float32 17x65: error")


@pytest.mark.parametrize(("faults", "status"), [([], 0), (["digits: 1 right, not 1776"], 1)])
def test_the_exit_status(monkeypatch: pytest.MonkeyPatch, faults: list[str], status: int) -> None:
    monkeypatch.setattr(digits, "run", lambda _console: faults)
    monkeypatch.setattr(photograph, "run", lambda _console, _folder: [])
    monkeypatch.setattr(table, "run", lambda _console: [])
    assert run.main() == status


def test_the_table_covers_every_operator() -> None:
    named = {row.kernel.split("+")[0].split(",")[0] for row in table.all_rows()}
    assert named == set(tn.ops.__all__)
