"""Memory equations of random kernels: every event is where walking the program finds it.

A seed is a program of `tests/random_programs.py`, alone and as the body of a parallel whose
instances have arrays of their own. Where a condition or a bound is a number that the program
counts, an equation covers both outcomes: what happens is in it, at the same place.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.oracle.memory_model import Array, MemoryModel, documented_bases
from tests.random_programs import PLACES, SIZE, TILES, Writer, function_of, open_nest
from tilenest import kernel, language
from tilenest.analysis import (
    Facts,
    MemoryEquations,
    MemoryUse,
    memory_equations,
)
from tilenest.dialects import Alloc
from tilenest.driver import parse
from tilenest.execution import check_equation, failures
from tilenest.ir import Function, Rewriter, Value, float32
from tilenest.machine import AVX512, cpu_target

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

TARGET = cpu_target(AVX512)
INSTANCES = 5
TRIPS = (0, 1, 3)
X_SIZE, Y_SIZE = len(TILES) * SIZE, PLACES * SIZE
MANY = 200


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILENEST_VERIFY", "1")
    monkeypatch.setenv("TILENEST_CACHE", "0")


def in_parallel(text: str) -> str:
    """The program as the body of a parallel, each instance on its own parts of X and Y."""
    head, *body = text.splitlines()
    spread = [re.sub(r"Y\((\d+), ", rf"Y(w * {Y_SIZE} + \1, ", line) for line in body]
    spread = [re.sub(r"X\[(\d+), ", rf"X[w * {X_SIZE} + \1, ", line) for line in spread]
    opened = [f"    for block in tn.parallel({INSTANCES}):", "        w = block.index()"]
    return "\n".join([head, *opened, *(f"    {line}" for line in spread)]) + "\n"


def scheduled(text: str, trips: int, instances: int) -> Function:
    names = SimpleNamespace(root_or_inner=open_nest, parallel=language.parallel)
    x = np.zeros(X_SIZE * instances, np.int32)
    y = np.zeros(Y_SIZE * instances, np.int32)
    program = kernel(function_of(text, names))
    compiled = program.compile(x, np.int64(trips), y, target="cpu")
    return parse(compiled.ir("scheduled")).function("kernel")


def known(function: Function, trips: int, instances: int) -> dict[Value, int | Array]:
    arrays = {"X": (X_SIZE * instances,), "Y": (Y_SIZE * instances,)}
    return {
        argument: Array(arrays[argument.name], (1,)) if argument.name in arrays else trips
        for argument in function.arguments
    }


def equations_of(
    function: Function, given: dict[Value, Any], workers: int, grain: int
) -> MemoryEquations:
    arrays = {value: a for value, a in given.items() if isinstance(a, Array)}
    facts = Facts(
        {value: n for value, n in given.items() if isinstance(n, int)},
        {value: array.shape for value, array in arrays.items()},
        {value: array.strides for value, array in arrays.items()},
        workers,
        grain,
    )
    return memory_equations(function, facts, TARGET)


def compare(text: str, seed: int, instances: int) -> None:
    trips, workers, grain = TRIPS[seed % len(TRIPS)], 1 + seed % 3, 1 + seed % 2
    function = scheduled(text, trips, instances)
    given = known(function, trips, instances)
    model = MemoryModel(function, given, workers, grain)
    found = equations_of(function, given, workers, grain)
    lie_as_documented(function)
    assert not found.undecided, [u.reason for u in found.undecided]
    keys = set()
    for use in found.uses:
        key = (use.operation, use.touch.group, use.touch.position)
        keys.add(key)
        agree(use, dict(model.events.get(key, {})), text)
    assert set(model.events) <= keys


def lie_as_documented(function: Function) -> None:
    stated = {op: op.base for op in function.walk() if isinstance(op, Alloc)}
    assert stated == documented_bases(function)


def agree(use: MemoryUse, walked: dict[Any, Any], text: str) -> None:
    equation = use.equation
    for event, place in equation.places():
        assert place is not None, f"{equation.name} {event}\n{text}"
        wanted = walked.pop(event, None)
        if wanted is None:
            assert not use.is_exact, f"{equation.name} {event} does not happen\n{text}"
            continue
        assert place.instance == wanted.instance, f"{equation.name} {event}\n{text}"
        assert place.base == wanted.base, f"{equation.name} {event}\n{text}"
        assert place.version == (wanted.version,), f"{equation.name} {event}\n{text}"
        assert place.byte == wanted.byte, f"{equation.name} {event}\n{text}"
        assert equation.right.resource == wanted.resource
    assert not walked, f"{equation.name} has no event {next(iter(walked))}\n{text}"


@pytest.mark.parametrize("seed", range(20))
def test_every_event_of_a_random_program(seed: int) -> None:
    text = Writer(seed).text()
    compare(text, seed, 1)
    compare(in_parallel(text), seed, INSTANCES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 20 + MANY))
def test_every_event_of_many_random_programs(seed: int) -> None:
    text = Writer(seed).text()
    compare(text, seed, 1)
    compare(in_parallel(text), seed, INSTANCES)


@pytest.mark.parametrize("seed", [3, 5])
def test_equations_of_random_programs_are_proven(seed: int) -> None:
    function = scheduled(in_parallel(Writer(seed).text()), 3, INSTANCES)
    found = equations_of(function, known(function, 3, INSTANCES), 2, 2)
    failed = [str(c) for use in found.uses for c in failures(check_equation(use.equation))]
    assert found.uses
    assert not failed


# Kernels with what random programs lack ---------------------------------------------------------


def ragged_product(A: Any, B: Any, C: Any) -> None:
    """Panels, clipped steps, an accumulator in place, an epilogue on the last block."""
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", 5), tn.axis("n", 6), tn.axis("k", 3)
    for block in tn.parallel(tn.cdiv(M, 5), tn.cdiv(N, 6)):
        i, j = block.index()
        acc = tn.zeros((m, n), float32)
        for step in block.pipeline(tn.cdiv(K, 3), window=2):
            a = A[(i * 5, step.index() * 3), (m, k)]
            b = B[(step.index() * 3, j * 6), (k, n)]
            acc = tn.mma(a, b, acc)
        C((i * 5, j * 6), (m, n)).store(tn.maximum(acc, 0.0))


def row_statistics(A: Any, B: Any, C: Any) -> None:
    """Folds with seeds and epilogues, a run-time number of columns, and rows past the end."""
    columns = tn.axis("columns", 40)
    for block in tn.parallel(tn.cdiv(A.extent(0), 4)):
        rows = tn.axis("rows", 4)
        a = A[(block.index() * 4, 0), (rows, columns)]
        total = tn.reduce(a, columns, tn.add)
        low = tn.reduce(a, columns, tn.minimum, policy=tn.reduction.fold_left)
        B((block.index() * 4, 0), (rows, columns)).store(a - total)
        C((block.index() * 4, 0), (rows, 1)).store(total * low)


def triangle(A: Any, B: Any, C: Any) -> None:
    """Nests whose bounds and steps depend on others, inside a parallel inside a parallel."""
    row = tn.axis("row", 8)
    for block in tn.parallel(3):
        i = block.index()
        acc = A[(i, 0), (1, row)]
        for step in block.serial(range(1, i + 2)):
            if step.index() < i:
                acc = acc + A[(step.index(), -1), (1, row)]
        for inner in block.parallel(2):
            part = acc * 2.0
            for _ in inner.serial(i):
                part = part + acc
            B((i * 2 + inner.index(), 0), (1, row)).store(part)
        C((i, 0), (1, row)).store(acc)


def padded_memory(A: Any, B: Any) -> None:
    """Explicit memory whose rows are padded, filled in every step and read after it."""
    m, n = tn.axis("m", 3), tn.axis("n", 5)
    for block in tn.parallel(4):
        kept = tn.memory(float32, tn.layout((m, n), stride=(8, 1)))
        total = tn.zeros((m, n), float32)
        for step in block.serial(2):
            kept.store(A[(block.index() * 3, step.index()), (m, n)])
            total = total + kept.load()
        B((block.index() * 3, 0), (m, n)).store(total + kept.load())


def arrays_of(*shapes: tuple[int, ...]) -> list[Any]:
    return [np.ones(shape, np.float32) for shape in shapes]


KERNELS: dict[str, tuple[Any, list[Any]]] = {
    "ragged_product": (ragged_product, arrays_of((7, 5), (5, 8), (7, 8))),
    "product_of_views": (
        ragged_product,
        [
            np.ones((5, 7), np.float32).T,
            np.ones((5, 9), np.float32)[:, ::-1][:, :8],
            np.ones((14, 12), np.float32)[::-2, :8],
        ],
    ),
    "row_statistics": (row_statistics, arrays_of((10, 33), (10, 33), (10, 1))),
    "padded_memory": (padded_memory, arrays_of((12, 6), (12, 5))),
    "triangle": (triangle, arrays_of((3, 7), (6, 8), (3, 8))),
}


def kernel_equations(name: str, workers: int, grain: int) -> tuple[MemoryEquations, MemoryModel]:
    function, arrays = KERNELS[name]
    compiled = kernel(function).compile(*arrays, target="cpu")
    (lowered,) = parse(compiled.ir("scheduled")).functions
    given: dict[Value, int | Array] = {
        argument: Array(array.shape, tuple(s // array.itemsize for s in array.strides))
        for argument, array in zip(lowered.arguments, arrays, strict=True)
    }
    model = MemoryModel(lowered, given, workers, grain)
    lie_as_documented(lowered)
    return equations_of(lowered, given, workers, grain), model


@pytest.mark.parametrize("name", KERNELS)
def test_every_event_of_a_kernel(name: str) -> None:
    found, model = kernel_equations(name, 2, 1)
    assert not found.undecided, [u.reason for u in found.undecided]
    for use in found.uses:
        key = (use.operation, use.touch.group, use.touch.position)
        agree(use, dict(model.events.pop(key, {})), name)
        assert use.is_exact
    assert not any(model.events.values())


@pytest.mark.parametrize("name", KERNELS)
def test_equations_of_a_kernel_are_proven(name: str) -> None:
    found, _ = kernel_equations(name, 3, 2)
    claims = [claim for use in found.uses for claim in check_equation(use.equation)]
    assert not [str(claim) for claim in failures(tuple(claims))]


def test_bufs_in_one_place_are_found_overwritten() -> None:
    """The walk notices when bufs that are needed at once share bytes."""
    text = in_parallel(Writer(17).text())
    function = scheduled(text, 3, INSTANCES)
    given = known(function, 3, INSTANCES)
    MemoryModel(function, given, 2, 1)
    rewriter = Rewriter()
    for op in list(function.walk()):
        if isinstance(op, Alloc):
            rewriter.set_attribute(op, "base", 0)
    with pytest.raises(AssertionError, match="overwritten"):
        MemoryModel(function, given, 2, 1)
