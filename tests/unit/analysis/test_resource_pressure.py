"""Registers against what lowered nests carry, bytes and turns of workers against counting."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.unit.passes.lowering import lowered
from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.analysis import (
    ALONE_NS,
    CHUNK_NS,
    Footprint,
    ResourcePressure,
    ScratchLayout,
    frame_of,
    occupancy,
    register_pressure,
)
from tilenest.capture import capture
from tilenest.dialects import AddressStore, Alloc, For, MapReducePost
from tilenest.ir import BufType, Module, OpResult, VectorType, float32, fresh
from tilenest.machine import AVX2, AVX512, Machine

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language


def product(A: Any, B: Any, C: Any) -> None:
    m, n, k = tn.axis("m", A.shape[0]), tn.axis("n", B.shape[1]), tn.axis("k", A.shape[1])
    for _ in tn.parallel(1):
        acc = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (k, n)], tn.zeros((m, n), float32))
        C((0, 0), (m, n)).store(acc)


def column_sums(A: Any, _: Any, C: Any) -> None:
    m, n = tn.axis("m", A.shape[0]), tn.axis("n", A.shape[1])
    for _ in tn.parallel(1):
        C((0, 0), (1, n)).store(tn.reduce(A[(0, 0), (m, n)], 0, tn.add))


def row_sums(A: Any, _: Any, C: Any) -> None:
    m, n = tn.axis("m", A.shape[0]), tn.axis("n", A.shape[1])
    for _ in tn.parallel(1):
        C((0, 0), (m, 1)).store(tn.reduce(A[(0, 0), (m, n)], 1, tn.add))


def added(A: Any, _: Any, C: Any) -> None:
    m, n = tn.axis("m", A.shape[0]), tn.axis("n", A.shape[1])
    for _ in tn.parallel(1):
        C((0, 0), (m, n)).store(A[(0, 0), (m, n)] + 1.0)


def forms(
    kernel: Any, shapes: list[tuple[int, int]], machine: Machine, dtype: Any = np.float32
) -> tuple[Module, Module]:
    """The module in Scheduled and in Machine form."""
    arrays: list[Array] = [np.zeros(shape, dtype) for shape in shapes]
    module = capture(kernel, specs_of(arrays), {}).module
    *_, (_, result) = lowered(module, machine)
    return module, result


def carried(module: Module) -> int:
    """The most vectors that any loop carries."""
    loops = [op for op in module.walk() if isinstance(op, For)]
    return max(sum(isinstance(v.type, VectorType) for v in loop.initial) for loop in loops)


def most_live(module: Module) -> int:
    """The most vectors that are live in the body of the loop that carries the most."""
    loops = [op for op in module.walk() if isinstance(op, For)]
    loop = max(loops, key=lambda op: len(op.initial))
    block = loop.regions[0].block
    order = {op: place for place, op in enumerate(block.operations)}
    values = [*block.arguments, *(result for op in order for result in op.results)]
    lives = [
        (order[v.owner] if isinstance(v, OpResult) else -1, max(order[u] for u in v.users))
        for v in values
        if isinstance(v.type, VectorType) and v.has_uses
    ]
    return max(sum(first <= place < last for first, last in lives) for place in order.values())


def stored(module: Module) -> int:
    """The most vectors that any block stores."""
    stores = [op for op in module.walk() if isinstance(op, AddressStore)]
    vectors = [op.parent for op in stores if isinstance(op.value.type, VectorType)]
    return max(vectors.count(block) for block in vectors)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
@pytest.mark.parametrize("kernel", [product, column_sums, row_sums])
@pytest.mark.parametrize("n", [150, 200, 512])
def test_resource_pressure_counts_the_accumulators_of_loops(
    kernel: Any, machine: Machine, n: int
) -> None:
    shapes = {
        product: [(30, 9), (9, n), (30, n)],
        column_sums: [(9, n), (1, 1), (1, n)],
        row_sums: [(9, n), (1, 1), (9, 1)],
    }
    scheduled, module = forms(kernel, shapes[kernel], machine)
    pressure = [
        register_pressure(op, op.schedule(), machine)
        for op in scheduled.walk()
        if isinstance(op, MapReducePost) and op.folded_results
    ]
    assert max(p.states for p in pressure) == carried(module)
    assert all(p.fits for p in pressure)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
@pytest.mark.parametrize("n", [40, 64, 300])
def test_resource_pressure_counts_results_that_wait(machine: Machine, n: int) -> None:
    scheduled, module = forms(added, [(5, n), (1, 1), (5, n)], machine)
    (op,) = [op for op in scheduled.walk() if isinstance(op, MapReducePost)]
    assert register_pressure(op, op.schedule(), machine).states == stored(module)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
def test_resource_pressure_of_a_block_is_its_cells_columns_and_one_row(machine: Machine) -> None:
    scheduled, module = forms(product, [(84, 9), (9, 96), (84, 96)], machine)
    lanes = machine.lanes(4)
    for op in scheduled.walk():
        if isinstance(op, MapReducePost) and op.schedule().preset == "register_blocked":
            rows = next(loop.step for loop in op.schedule().loops if loop.dim == 0)
            vectors = next(loop.step for loop in op.schedule().loops if loop.dim == 1) // lanes
            found = register_pressure(op, op.schedule(), machine)
            assert found.needed == rows * vectors + vectors + 1 == most_live(module)
            return
    raise AssertionError("no block was planned")


# Scratch memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_resource_pressure_counts_every_byte_once(seed: int) -> None:
    chance = random.Random(seed)
    extents = [chance.randrange(1, 40) for _ in range(3)]
    shapes = [(extents[0], extents[2]), (extents[2], extents[1]), (extents[0], extents[1])]
    scheduled, _ = forms(product, shapes, chance.choice((AVX2, AVX512)))
    (function,) = scheduled.functions
    layout = fresh(ScratchLayout, function)
    found = fresh(ResourcePressure, function).footprints
    bytes_of: dict[tuple[str, Any], set[int]] = {}
    for op in function.walk():
        if isinstance(op, Alloc):
            type_ = op.result.type
            assert isinstance(type_, BufType)
            size = int(np.prod(type_.shape)) * type_.dtype.bytes
            size = -(-size // 64) * 64
            first = layout.bases[op]
            bytes_of.setdefault((op.resource, frame_of(op)), set()).update(
                range(first, first + size)
            )
    for footprint in found:
        # No byte below the last one is left out.
        covered = bytes_of.pop((footprint.resource, footprint.frame))
        assert covered == set(range(footprint.bytes))
    assert not bytes_of
    for footprint in found:
        sizes = [size for _, size in footprint.users]
        assert isinstance(footprint, Footprint)
        assert sizes == sorted(sizes, reverse=True)


# Workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_resource_pressure_of_workers(seed: int) -> None:
    chance = random.Random(seed)
    items, item_ns, cores = (
        chance.randrange(1, 5000),
        10 ** chance.uniform(0, 6),
        chance.choice((1, 2, 4, 64)),
    )
    found = occupancy(items, item_ns, cores)
    chunks = [list(range(items))[i : i + found.grain] for i in range(0, items, found.grain)]
    assert found.chunks == len(chunks) <= 256
    turns = [0] * found.workers
    for _ in chunks:
        turns[turns.index(min(turns))] += 1
    assert found.rounds == max(turns)
    assert found.busy == pytest.approx(sum(turns) / (max(turns) * len(turns)))
    if items * item_ns < ALONE_NS - item_ns:
        assert found.workers == 1
    elif len(chunks) > 1:
        assert len(chunks[0]) * item_ns >= CHUNK_NS * (1 - 1e-9)
