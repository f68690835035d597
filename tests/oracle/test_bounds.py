"""Accesses that check their bounds: what is outside raises, names its place and touches nothing.

Every case runs in the interpreter and on the CPU, in guarded memory: both run to the same bits, or
both raise at the same line, the CPU naming the array, the axis, the index and the extent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, Placed, placed, poisoned, whole
from tests.oracle.compare import assert_same

REPOSITORY = Path(__file__).resolve().parents[2]
FAR = 2**62


@pytest.fixture(autouse=True)
def same_number_of_threads_afterwards() -> Iterator[None]:
    count = tn.get_num_threads()
    yield
    tn.set_num_threads(count)


def run(kernel: tn.Kernel, target: str, x: Placed, y: Placed, *rest: Any, **options: Any) -> str:
    """What the call raised, or nothing; whatever it was, only elements of `y` are written."""
    raised, place = "", None
    try:
        kernel.compile(x.array, y.array, *rest, target=target, **options)(x.array, y.array, *rest)
    except tn.OutOfBounds as error:
        raised = error.message
        place = error.location
    assert not raised or (place is not None and place.file == __file__ and "(" in place.source)
    assert x.is_unchanged and y.has_intact_guards, f"{target} touched what is outside"
    return raised


def compare(
    kernel: tn.Kernel, x: Array, shape: tuple[int, ...], *rest: Any, **options: Any
) -> tuple[str, Array]:
    """What the CPU raised, and what it wrote, once it is clear that the interpreter agrees."""
    results = []
    for target in ("interpret", "cpu"):
        given, out = placed(x), poisoned(shape, x.dtype)
        results.append((run(kernel, target, given, out, *rest, **options), out.array))
    (meant, expected), (raised, actual) = results
    assert bool(meant) == bool(raised), f"the interpreter: {meant!r}, the CPU: {raised!r}"
    if not raised:
        assert_same(actual, expected)
    return raised, actual


@tn.kernel(bounds="check")
def shifted(X: Any, Y: Any, start: Any) -> None:
    n = tn.axis("n", 64)
    for part in tn.parallel(tn.cdiv(Y.extent(0), 64)):
        index: Any = part.index()
        at = index * 64
        Y(at, n).store(X[at + start, n] * 2.0)


@tn.kernel(bounds="check")
def boxes(X: Any, Y: Any, row: Any, column: Any, limit: Any) -> None:
    m, n = tn.axis("m", 5), tn.axis("n", 37)
    for _ in tn.parallel(1):
        number = tn.iota(m, tn.int32) * 100 + tn.iota(n, tn.int32)
        wanted = number < tn.scalar(limit, tn.int32)
        x = X((row, column), (m, n), mask=wanted).load(other=7.0)
        Y((row, column), (m, n), mask=wanted).store(tn.sin(x) + x)


@tn.kernel(bounds="check")
def sums(X: Any, Y: Any, start: Any) -> None:
    m, k = tn.axis("m", 5), tn.axis("k", 12)
    for _ in tn.parallel(1):
        Y(0, m).store(tn.sum(X[(0, start), (m, k)], k))


@tn.kernel(bounds="check")
def folds(X: Any, Y: Any, *, start: int) -> None:
    m = tn.axis("m", 5)
    for part in tn.parallel(1):
        total = tn.zeros((m,), tn.float32)
        for step in part.reduce(12):
            place: Any = step.index()
            total = total + X.at(0, place + start).load()
        Y(0, m).store(total)


@tn.kernel(bounds="check")
def masked_folds(X: Any, Y: Any, limit: Any, *, start: int) -> None:
    m = tn.axis("m", 5)
    for part in tn.parallel(1):
        rows: Any = tn.iota(m, tn.int32)
        wanted = tn.reshape(rows < tn.scalar(limit, tn.int32), (m, 1))
        total = tn.zeros((m,), tn.float32)
        for step in part.reduce(12):
            column: Any = X((start, step.index()), (m, 1), mask=wanted).load()
            total = total + tn.reshape(column, (m,))
        Y(0, m).store(total)


@tn.kernel(bounds="check")
def elements(X: Any, Y: Any, count: Any, last: Any) -> None:
    for part in tn.parallel(3):
        i: Any = part.index()
        total = tn.scalar(0.0, tn.float32)
        for step in part.serial(count):
            total = total + X.at(i, step.index()).load()
            if step.index() == last:
                Y.at(i - 1).store(total)
        Y.at(i, mask=i < 2).store(total)


@tn.kernel(bounds="check")
def products(A: Any, C: Any, shift: Any, *, rows: int = 64) -> None:
    m, n, k = tn.axis("m", 32), tn.axis("n", 48), tn.axis("k", 16)
    for block in tn.parallel(tn.cdiv(rows, 32)):
        i = block.index() * 32
        acc: Any = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(3, window=2):
            k0 = step.index() * 16
            step.stage("load")
            a = A[(i, k0 + shift), (m, k)]
            b = A[(k0, 0), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i, 0), (m, n)).store(acc)


@tn.kernel
def unused(X: Any, Y: Any) -> None:
    n = tn.axis("n", 8)
    for _ in tn.parallel(1):
        X((0, 40), (1, n), bounds="check").load()
        Y(0, n).store(tn.full((n,), 1.0, tn.float32))


@pytest.mark.parametrize("start", [0, 1, 64, -1, -300, FAR, -FAR])
def test_loads_of_tiles(start: int) -> None:
    x = whole((256,))
    raised, y = compare(shifted, x, (256,), start)
    if start == 0:
        assert_same(y, 2 * x)
        return
    index = start if abs(start) > 200 or start < 0 else 256
    assert f"load of X: axis 0 has extent 256, the index is {index} " in raised


def test_stores_of_tiles() -> None:
    tn.set_num_threads(1)
    raised, y = compare(shifted, whole((512,)), (200,), 0)
    assert "store of Y: axis 0 has extent 200, the index is 200 " in raised
    assert_same(y[:192], 2 * whole((512,))[:192])


BOXES = [
    (0, 0, 1000),
    (0, 5, 32),
    (0, 5, 35),
    (0, 5, 36),
    (3, 0, 220),
    (3, 0, 301),
    (-1, 0, 300),
    (0, -2, 1),
    (2, 9, 205),
    (FAR, FAR, 1),
    (-FAR, 0, 0),
    (FAR, -FAR, 0),
]


@pytest.mark.parametrize(("row", "column", "limit"), BOXES)
def test_masked_boxes(row: int, column: int, limit: int) -> None:
    outside = [
        (row + i, column + j)
        for i in range(5)
        for j in range(37)
        if i * 100 + j < limit and not (0 <= row + i < 6 and 0 <= column + j < 40)
    ]
    raised, _ = compare(boxes, whole((6, 40)), (6, 40), row, column, limit)
    assert bool(raised) == bool(outside)
    if outside:
        axis = next(i for i, size in enumerate((6, 40)) if not 0 <= outside[0][i] < size)
        assert f"load of X: axis {axis} has extent {(6, 40)[axis]}, " in raised
        assert f"the index is {outside[0][axis]} " in raised


@pytest.mark.parametrize("start", [0, 28, 29, -1])
def test_reductions_over_what_is_partly_outside(start: int) -> None:
    x = whole((6, 40))
    index = start if start < 0 else 40
    for kernel, rest, options in ((sums, (start,), {}), (folds, (), {"start": start})):
        raised, y = compare(kernel, x, (5,), *rest, **options)
        assert bool(raised) == (not 0 <= start <= 28)
        if raised:
            assert f"load of X: axis 1 has extent 40, the index is {index} " in raised
            assert np.isnan(y).all()


@pytest.mark.parametrize(("limit", "start"), [(5, 0), (5, 1), (5, 2), (4, 2), (5, -1), (0, 9)])
def test_masked_reductions(limit: int, start: int) -> None:
    raised, _ = compare(masked_folds, whole((6, 40)), (5,), limit, start=start)
    assert bool(raised) == (limit > 0 and not 0 <= start <= 6 - limit)


@pytest.mark.parametrize(
    ("count", "last", "meant"),
    [
        (4, -1, ""),
        (0, 0, ""),
        (40, 99, ""),
        (41, 99, "load of X: axis 1 has extent 40, the index is 40 "),
        (4, 3, "store of Y: axis 0 has extent 2, the index is -1 "),
    ],
)
def test_elements_and_branches(count: int, last: int, meant: str) -> None:
    raised, _ = compare(elements, whole((3, 40)), (2,), count, last)
    assert raised.startswith(meant) and bool(raised) == bool(meant)


@pytest.mark.parametrize(("rows", "shift"), [(64, 0), (64, 1), (96, 0)])
def test_products(rows: int, shift: int) -> None:
    x = whole((64, 48))
    raised, y = compare(products, x, (64, 48), shift, rows=rows)
    assert bool(raised) == ((rows, shift) != (64, 0))
    if not raised:
        np.testing.assert_array_equal(y, (x.astype(np.float64) @ x[:48].astype(np.float64)))


def test_a_load_that_nothing_uses_is_checked_too() -> None:
    raised, _ = compare(unused, whole((6, 40)), (8,))
    assert "load of X: axis 1 has extent 40, the index is 40 " in raised


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads: int) -> None:
    tn.set_num_threads(threads)
    size = 400_000
    x, y = whole((size - 7,)), np.full(size, np.nan, np.float32)
    for _ in range(20):
        with pytest.raises(tn.OutOfBounds, match=f"X: axis 0 has extent {size - 7}, the index is"):
            shifted(x, y, 0)
    good = whole((size,))
    shifted(good, y, 0)
    assert_same(y, 2 * good)


def test_python_threads_get_their_own_faults() -> None:
    def one(place: int) -> None:
        x, y = whole((128 + place,)), np.empty(128, np.float32)
        for _ in range(50):
            with pytest.raises(tn.OutOfBounds, match=f"{128 + place}, the index is {-place} "):
                shifted(x, y, -place)
            shifted(x, y, 0)
            assert_same(y, 2 * x[:128])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(1, 9)))


def test_the_error_reads_like_any_other() -> None:
    x, y = whole((64,)), np.empty(64, np.float32)
    with pytest.raises(tn.OutOfBounds) as caught:
        shifted(x, y, -5)
    lines = str(caught.value).splitlines()
    assert lines[0] == 'load of X: axis 0 has extent 64, the index is -5 (bounds="check")'
    assert lines[1].endswith("in shifted")
    assert lines[2].strip() == "Y(at, n).store(X[at + start, n] * 2.0)"
    assert lines[3].strip() == "^" * len("X[at + start, n]")
    assert lines[4] == 'help: keep the access inside, mask it, or use bounds="zero"'
    assert isinstance(caught.value, IndexError)


PROGRAM = """
import numpy as np, tilenest as tn
{blank}
@tn.kernel(bounds="check")
def twice(X, Y, start):
    n = tn.axis("n", 64)
    for part in tn.parallel(1):
        Y(0, n).store(X[start, n] * 2.0)

x, y = np.ones(64, np.float32), np.empty(64, np.float32)
twice(x, y, 0)
print((y == 2).all(), twice.variants[0].loaded().is_from_cache)
try:
    twice(x, y, 3)
except tn.OutOfBounds as error:
    print(error.message, error.location.line)
"""


def test_code_from_the_cache_knows_its_lines(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "src"),
        "TILENEST_CACHE": "1",
        "TILENEST_CACHE_DIR": str(tmp_path / "cache"),
    }
    program = tmp_path / "program.py"
    for blank, is_cached in (("", False), ("", True), ("\n\n", True)):
        text = PROGRAM.format(blank=blank)
        program.write_text(text)
        command = [sys.executable, str(program)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        line = text.splitlines().index("        Y(0, n).store(X[start, n] * 2.0)") + 1
        assert done.stdout.splitlines() == [
            f"True {is_cached}",
            f'load of X: axis 0 has extent 64, the index is 64 (bounds="check") {line}',
        ]


def test_fast_mathematics_is_refused_until_it_means_something() -> None:
    decorate: Callable[..., Any] = tn.kernel
    with pytest.raises(tn.TargetError, match="help: leave it out"):
        decorate(math="fast")
