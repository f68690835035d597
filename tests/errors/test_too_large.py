"""What asks for more memory than the system gives: memories, temporaries, results of operators.

The process is limited to what no test comes near, so that no system grants it, however freely it
promises memory; nothing is ever allocated.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import refused
from tests.oracle.arrays import Array, Placed

LIMIT = 1 << 42
ROWS, COLUMNS = 1 << 22, 1 << 21
BYTES = 8 * ROWS * COLUMNS


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@tn.kernel
def held_once(X: Any, Y: Any) -> None:
    held = tn.memory(tn.float64, (ROWS, COLUMNS))  # wrong
    held.store(1.0)
    Y((0, 0), (1, 1)).store(held((3, 3), (1, 1)).load().cast(tn.float32) + X[(0, 0), (1, 1)])


@tn.kernel
def held_by_each(X: Any, Y: Any) -> None:
    for block in tn.parallel(4):
        small = tn.memory(tn.float32, (1, 1))
        small.store(X[(0, 0), (1, 1)])
        held = tn.memory(tn.float64, (ROWS, COLUMNS))  # wrong
        held.store(1.0)
        total = small.load() + held((3, 3), (1, 1)).load().cast(tn.float32)
        Y((block.index(), 0), (1, 1)).store(total)


@pytest.mark.parametrize("kernel", [held_once, held_by_each])
def test_a_memory(kernel: tn.Kernel, x: Array, y: Placed) -> None:
    caret = "tn.memory(tn.float64, (ROWS, COLUMNS))"
    found = refused(kernel, tn.OutOfMemory, caret, x, y, remedy="smaller shape")
    assert f"{BYTES} bytes" in found.message
    assert isinstance(found, MemoryError)


@tn.kernel
def kept_once(X: Any, Y: Any, *, n: int) -> None:
    x: Any = tn.exp(X[(0, 0), (n, 1)])  # wrong
    Y((0, 0), (n, 1)).store(x - tn.sum(x))


@tn.kernel
def kept_by_each(X: Any, Y: Any, *, n: int) -> None:
    for block in tn.parallel(4):
        x: Any = tn.exp(X[(0, block.index()), (n, 1)])  # wrong
        Y((0, block.index()), (n, 1)).store(x - tn.sum(x))


@pytest.mark.parametrize("kernel", [kept_once, kept_by_each])
def test_temporary_values(kernel: tn.Kernel, x: Array, y: Placed) -> None:
    """Compiled code does not know which value it is, and blames the kernel."""
    n = BYTES // 4
    name = kernel.__name__
    compiled = kernel.compile(x, y.array, n=n)
    for call in (compiled, compiled):
        with pytest.raises(tn.OutOfMemory) as caught:
            call(x, y.array)
        needed = int(caught.value.message.split(" bytes")[0].split(" ")[-1])
        assert BYTES <= needed < 2 * BYTES
        assert name in caught.value.message and "smaller tiles" in (caught.value.remedy or "")
        assert caught.value.location is not None
        assert caught.value.location.source == f"def {name}(X: Any, Y: Any, *, n: int) -> None:"
    with pytest.raises(tn.OutOfMemory) as caught:
        kernel(x, y.array, n=n, target="interpret")
    assert caught.value.remedy
    place = caught.value.location
    assert place is not None and "# wrong" in place.source
    assert y.is_unchanged


def test_a_memory_that_is_not_the_cause_is_not_blamed(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any, *, n: int) -> None:
        small = tn.memory(tn.float32, (1, 1))
        small.store(X[(0, 0), (1, 1)])
        x: Any = tn.exp(X[(0, 0), (n, 1)])
        Y((0, 0), (n, 1)).store(x - tn.sum(x) - small.load())

    with pytest.raises(tn.OutOfMemory, match="temporary values"):
        kernel(x, y.array, n=BYTES // 4)
    assert y.is_unchanged


LONG = np.broadcast_to(np.float32(1), (1 << 44,))
TALL = np.broadcast_to(np.float32(1), (1 << 31, 1))
WIDE = np.broadcast_to(np.float32(1), (1, 1 << 31))
CALLS: dict[str, Any] = {
    "add": lambda: tn.ops.add(LONG, 1.0),
    "add, beyond 64 bits": lambda: tn.ops.add(TALL, WIDE),
    "swiglu": lambda: tn.ops.swiglu(LONG, LONG),
    "gelu": lambda: tn.ops.gelu(LONG),
    "softmax": lambda: tn.ops.softmax(LONG),
    "layer_norm": lambda: tn.ops.layer_norm(LONG),
    "rms_norm": lambda: tn.ops.rms_norm(LONG),
    "matmul": lambda: tn.ops.matmul(LONG[:, None], LONG[None, :4]),
    "matmul, beyond 64 bits": lambda: tn.ops.matmul(TALL, WIDE),
    "sum": lambda: tn.ops.sum(np.empty((1 << 44, 0), np.float32), 1),
    "mean": lambda: tn.ops.mean(np.broadcast_to(np.int8(1), (1 << 44,))),
    "max": lambda: tn.ops.max(LONG[:, None], 1),
    "argmin": lambda: tn.ops.argmin(LONG[:, None], 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_of_operators(name: str) -> None:
    with pytest.raises(tn.OutOfMemory) as caught:
        CALLS[name]()
    assert name.partition(",")[0] in caught.value.message
    assert "smaller arrays" in (caught.value.remedy or "")
