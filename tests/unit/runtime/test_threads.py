"""Threads, forks and processes around compiled kernels."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle import bounds

ROWS, COLUMNS = 300, 1000


@tn.kernel
def softmax(X, Y):
    rows, columns = X.shape
    r, c = tn.axis("row", 1), tn.axis("column", columns)
    for row in tn.parallel(rows):
        i = row.index()
        x = X[(i, 0), (r, c)]
        e = tn.exp(x - tn.reduce(x, c, tn.maximum))
        Y((i, 0), (r, c)).store(e / tn.reduce(e, c, tn.add))


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)


@pytest.fixture(autouse=True)
def threads_restored() -> Iterator[None]:
    before = tn.get_num_threads()
    yield
    tn.set_num_threads(before)


def result_of(x: Any) -> Any:
    y = np.full_like(x, np.nan)
    softmax(x, y)
    return y


def test_the_number_of_threads_changes_no_bit(x: Any) -> None:
    results = []
    for count in (1, 2, 3):
        tn.set_num_threads(count)
        assert tn.get_num_threads() == count
        results.append(result_of(x))
    bounds.assert_within(results[0], bounds.softmax(x))
    for other in results[1:]:
        np.testing.assert_array_equal(other.view(np.uint32), results[0].view(np.uint32))


@pytest.mark.parametrize("count", [np.int64(2), np.uint8(2), np.array(2)])
def test_numbers_of_numpy_count_threads(count: Any) -> None:
    tn.set_num_threads(count)
    assert tn.get_num_threads() == 2
    assert type(tn.get_num_threads()) is int


@pytest.mark.parametrize("count", [0, -1, 1.5, True, 100_000, "2"])
def test_numbers_of_threads_that_make_no_sense(count: Any) -> None:
    with pytest.raises(tn.DomainError, match="not a number of threads"):
        tn.set_num_threads(count)


def test_the_default_is_what_the_process_may_use() -> None:
    code = "import tilenest as tn; print(tn.get_num_threads())"
    one = run_python(f"import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); {code}")
    assert one == "1"
    assert run_python(code) == str(len(os.sched_getaffinity(0)))


def test_python_threads_call_at_once(x: Any) -> None:
    kernel = tn.kernel(softmax.__wrapped__)
    expected = result_of(x)
    results: list[bool] = []

    def work(columns: int) -> None:
        part = x[:, :columns].copy()
        for _ in range(10):
            y = np.full_like(part, np.nan)
            kernel(part, y)
            results.append(columns < COLUMNS or np.array_equal(y, expected))

    threads = [threading.Thread(target=work, args=(n,)) for n in (COLUMNS, COLUMNS, 7, 7, COLUMNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 50
    assert len(kernel.variants) == 2


def child_status(work: Any) -> int:
    """What a forked child says of its work."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    _, raw = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(raw)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_calls_and_compiles(x: Any) -> None:
    tn.set_num_threads(2)
    expected = result_of(x)
    assert child_status(lambda: np.array_equal(result_of(x), expected)) == 0
    assert child_status(lambda: np.isfinite(result_of(x[:, :77].copy())).all()) == 0
    np.testing.assert_array_equal(result_of(x), expected)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_while_other_threads_compile_and_run(x: Any) -> None:
    tn.set_num_threads(2)
    expected = result_of(x)
    stop = threading.Event()

    def busy() -> None:
        columns = 100
        while not stop.is_set():
            result_of(x)
            result_of(x[:2, :columns].copy())
            columns += 1

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        statuses = [child_status(lambda: np.array_equal(result_of(x), expected)) for _ in range(8)]
    finally:
        stop.set()
        thread.join()
    assert statuses == [0] * 8


# Processes and the cache -------------------------------------------------------------------------

PROGRAM = """
import json, sys
import numpy as np
import tilenest as tn

@tn.kernel
def double(X, Y):
    n = tn.axis("n", X.shape[0])
    Y(0, n).store(X[0, n] * 2.0)

x = np.arange(50, dtype=np.float32)
y = np.full_like(x, np.nan)
double(x, y)
print(json.dumps({
    "right": bool((y == 2 * x).all()),
    "cached": double.variants[0].loaded().is_from_cache,
    "torch": "torch" in sys.modules,
}))
"""


def run_python(code: str, **environment: str) -> str:
    """What a fresh process prints."""
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_program(folder: Path, tmp_path: Path, **environment: str) -> dict[str, bool]:
    """The program with its cache in `folder`; a kernel's source has to be in a file."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    environment["TILENEST_CACHE_DIR"] = str(folder)
    found: dict[str, bool] = json.loads(run_python(code, **environment))
    return found


def test_a_second_process_loads_what_the_first_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    fresh, again = {"right": True, "cached": False, "torch": False}, {"cached": True}
    assert run_program(folder, tmp_path) == fresh
    assert run_program(folder, tmp_path) == fresh | again
    for path in folder.glob("?/*.tno"):
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
    assert run_program(folder, tmp_path) == fresh
    assert run_program(folder, tmp_path) == fresh | again


def test_the_cache_can_be_off(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run_program(folder, tmp_path, TILENEST_CACHE="0")["right"]
    assert not folder.exists()


def test_code_of_another_compiler_is_not_used(
    x: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILENEST_CACHE_DIR", str(tmp_path))
    origins = []
    for identity in ("one", "one", "another"):
        monkeypatch.setattr("tilenest.runtime.loading.compiler_identity", lambda i=identity: i)
        kernel, y = tn.kernel(softmax.__wrapped__), np.full_like(x, np.nan)
        kernel(x, y)
        bounds.assert_within(y, bounds.softmax(x))
        (variant,) = kernel.variants
        origins.append(variant.loaded().is_from_cache)
    assert origins == [False, True, False]


def test_processes_compile_at_once(tmp_path: Path) -> None:
    results: list[bool] = []

    def run() -> None:
        results.append(run_program(tmp_path / "cache", tmp_path)["right"])

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 3
    assert run_program(tmp_path / "cache", tmp_path)["cached"]


_SLEEPERS = """
import json, os, sys, threading, time
import numpy as np
import tilenest as tn
sys.path.insert(0, sys.argv[1])
import sleeping_kernel

before = set(os.listdir("/proc/self/task"))
everywhere = os.sched_getaffinity(0)
x = np.ones((4000, 1000), np.float32)
y = np.empty_like(x)
tn.set_num_threads(2)
sleeping_kernel.doubled(x, y)
workers = set(os.listdir("/proc/self/task")) - before
found = {}
for place in sorted(everywhere):
    os.sched_setaffinity(0, {place})
    sleeping_kernel.doubled(x, y)
    time.sleep(0.05)
    found[place] = [sorted(os.sched_getaffinity(int(worker))) for worker in workers]
print(json.dumps([sorted(everywhere), found, float(y.sum())]))
"""


def test_sleeping_workers_leave_the_caller_its_processor(tmp_path: Path) -> None:
    (tmp_path / "sleeping_kernel.py").write_text(
        "import tilenest as tn\n\n\n"
        "@tn.kernel\n"
        "def doubled(X, Y):\n"
        "    n = tn.axis('n', X.shape[1])\n"
        "    for row in tn.parallel(X.extent(0)):\n"
        "        i = row.index()\n"
        "        Y((i, 0), (1, n)).store(X[(i, 0), (1, n)] * 2.0)\n"
    )
    command = [sys.executable, "-c", _SLEEPERS, str(tmp_path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    everywhere, found, total = json.loads(printed)
    assert total == 8_000_000
    assert found
    for place, workers in found.items():
        others = [processor for processor in everywhere if processor != int(place)]
        assert workers
        # A process that has one processor shares it.
        assert all(allowed == (others or everywhere) for allowed in workers)
