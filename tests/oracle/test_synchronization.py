"""Instances that wait for each other, as machine code: phases, and what is kept between them.

The judges are NumPy and the interpreter, which runs instances in turns in any order. Every kernel
runs on one thread and on two, many times over, so that a phase that begins early is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, placed, poisoned

RUNS = 20


@pytest.fixture(params=[1, 2], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    count = tn.get_num_threads()
    tn.set_num_threads(request.param)
    yield
    tn.set_num_threads(count)


def results(kernel: tn.Kernel, *arguments: Any, **options: Any) -> list[Array]:
    """What the arrays hold afterwards, which is the same in every run and in the interpreter."""
    wanted: list[Array] = []
    for target, runs in (("interpret", 1), ("cpu", RUNS)):
        compiled = kernel.compile(*arguments, target=target, **options)
        for _ in range(runs):
            given = [placed(a) if isinstance(a, np.ndarray) else a for a in arguments]
            arrays = [a for a in given if not isinstance(a, int | float)]
            compiled(*(getattr(a, "array", a) for a in given))
            assert all(a.has_intact_guards for a in arrays)
            wanted = wanted or [a.array.copy() for a in arrays]
            for one, other in zip(wanted, arrays, strict=True):
                np.testing.assert_array_equal(other.array, one)
    return wanted


# Phases ------------------------------------------------------------------------------------------


@tn.kernel
def reversed_rows(X: Any, Shared: Any, Y: Any, *, rows: int) -> None:
    n = tn.axis("n", 37)
    for i in tn.parallel(rows):
        own: Any = i.index()
        Shared((own, 0), (1, n)).store(tn.exp(X[(own, 0), (1, n)]))
        tn.sync(i)
        Y((own, 0), (1, n)).store(Shared[(rows - 1 - own, 0), (1, n)])


@pytest.mark.parametrize("rows", [1, 2, 301])
def test_reversal_through_a_shared_array(rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 37)).astype(np.float32)
    empty = poisoned(x.shape, x.dtype).array
    given = [placed(a) for a in (x, empty, empty)]
    for _ in range(RUNS):
        reversed_rows(*(a.array for a in given), rows=rows)
        np.testing.assert_allclose(given[2].array, np.exp(x[::-1]), rtol=1e-6)
        given[1].array[...] = given[2].array[...] = np.nan
    assert all(a.has_intact_guards for a in given)


@tn.kernel
def stencil(X: Any, Y: Any, *, steps: int) -> None:
    """Each step makes Y of X and X of Y."""
    for i in tn.parallel(X.extent(0)):
        own: Any = i.index()
        for _ in i.serial(steps):
            Y.at(own).store(X.at(own - 1).load() + X.at(own).load() * 3 + X.at(own + 1).load())
            tn.sync(i)
            X.at(own).store(Y.at(own - 1).load() ^ Y.at(own + 1).load())
            tn.sync(i)


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("size", [0, 1, 5003])
def test_a_stencil_between_two_arrays(size: int, steps: int) -> None:
    x, y = np.arange(size, dtype=np.int64), np.zeros(size, np.int64)
    given = x.copy(), y.copy()
    for _ in range(steps):
        near = np.pad(x, 1)
        y = near[:-2] + x * 3 + near[2:]
        near = np.pad(y, 1)
        x = near[:-2] ^ near[2:]
    compiled = stencil.compile(*given, steps=steps)
    for _ in range(RUNS):
        found = given[0].copy(), given[1].copy()
        compiled(*found)
        np.testing.assert_array_equal(found[0], x)
        np.testing.assert_array_equal(found[1], y)


@tn.kernel
def tree(X: Any, *, levels: int) -> None:
    for i in tn.parallel(2**levels):
        own: Any = i.index()
        stride: Any = tn.scalar(2**levels // 2, tn.int64)
        for _ in i.serial(levels):
            if own < stride:
                X.at(own).store(X.at(own).load() + X.at(own + stride).load())
            stride = stride // 2
            tn.sync(i)


@pytest.mark.parametrize("levels", [0, 1, 12])
def test_a_tree_over_instances(levels: int) -> None:
    x = np.random.default_rng(1).integers(-99, 99, 2**levels)
    compiled = tree.compile(x.copy(), levels=levels)
    for _ in range(RUNS):
        found = x.copy()
        compiled(found)
        assert found[0] == x.sum()


def test_atomics_before_and_plain_loads_behind() -> None:
    @tn.kernel
    def kernel(X: Any, Total: Any, Y: Any) -> None:
        for i in tn.parallel(X.extent(0)):
            Total.at(0).atomic_add(X.at(i).load())
            tn.sync(i)
            Y.at(i).store(X.at(i).load() - Total.at(0).load())

    x = np.random.default_rng(2).integers(0, 1000, 20_001)
    compiled = kernel.compile(x, np.zeros(1, np.int64), x.copy())
    for _ in range(RUNS):
        total, y = np.zeros(1, np.int64), np.full_like(x, -1)
        compiled(x, total, y)
        np.testing.assert_array_equal(y, x - x.sum())


# What instances keep -----------------------------------------------------------------------------


def test_tiles_scalars_and_views_are_kept() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 8)
        for i in tn.parallel(range(2, 20, 3)):
            index: Any = i.index()
            own = (index - 2) // 3
            tile = tn.sqrt(X[(own, 0), (1, n)])
            scalar = X.at(own, 3).load()
            view = Y.slice((own, 0), (1, n))
            X((own, 0), (1, n)).store(tile * 2)
            tn.sync(i)
            view((0, 0), (1, n)).store(X[(5 - own, 0), (1, n)] + tile * scalar)

    x = np.random.default_rng(3).random((6, 8), np.float32)
    found_x, y = results(kernel, x, np.full_like(x, np.nan))
    np.testing.assert_array_equal(found_x, np.sqrt(x) * 2)
    np.testing.assert_allclose(y, np.sqrt(x)[::-1] * 2 + np.sqrt(x) * x[:, 3:4], rtol=1e-6)


def test_states_that_change_places_and_nests_in_nests() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 4)
        for i in tn.parallel(3):
            own: Any = i.index()
            a, b, count = X[(own, 0), (1, n)], X[(own, 0), (1, n)] * 0 + 1, own
            for k in i.serial(5):
                Y((own, 0), (1, n)).store(a)
                tn.sync(i)
                a, b = b + Y[((own + 1) % 3, 0), (1, n)], a
                steps: Any = k.index()
                count = count + steps
                for inner in k.serial(2):
                    tn.sync(i)
                    place = Y.at(own, inner)
                    place.store(place.load() + tn.cast(count, tn.float32))
                    tn.sync(i)
            Y((own, 0), (1, n)).store(Y[(own, 0), (1, n)] + a + b * 1000)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    results(kernel, x, np.full_like(x, np.nan))


def test_memory_of_an_instance_lasts() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 4)
        for i in tn.parallel(range(3, 12, 3)):
            index: Any = i.index()
            row = index // 3 - 1
            memory: Any = tn.memory(tn.float32, (n,))
            memory.store(X.at(row, 1).load())
            Y((row, 0), (1, n)).store(X[(row, 0), (1, n)])
            tn.sync(i)
            for _ in i.serial(2):
                memory.store(memory.load() * 2 + Y.at(2 - row, 0).load())
                tn.sync(i)
                Y((row, 0), (1, n)).store(X[(row, 0), (1, n)] + memory.load())
                tn.sync(i)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    results(kernel, x, np.full_like(x, np.nan))


def test_nests_in_nests_wait_by_themselves() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for outer in tn.parallel(50):
            for inner in outer.parallel(range(2, 10, 2)):
                first: Any = outer.index()
                step: Any = inner.index()
                place = first * 4 + step // 2 - 1
                kept = Y.at(place).load()
                X.at(place).store(kept)
                tn.sync(inner)
                Y.at(place).store(X.at(first * 4 + 4 - step // 2).load() * 1000 + kept)
            tn.sync(outer)
            own: Any = outer.index()
            X.at(own * 4).store(Y.at((49 - own) * 4 + 3).load())

    results(kernel, np.zeros(200), np.arange(200.0))


def test_any_number_of_instances_computes_again_what_nobody_changes() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for i in tn.parallel(X.extent(0)):
            own: Any = i.index()
            kept = tn.sqrt(X.at(own).load())
            Y.at(own).store(kept)
            tn.sync(i)
            Y.at(own).store(Y.at(own).load() + kept)

    x = np.random.default_rng(4).random(1001)
    _, y = results(kernel, x, np.full_like(x, np.nan))
    np.testing.assert_array_equal(y, 2 * np.sqrt(x))


def test_a_fault_in_a_phase_ends_the_call_before_the_next() -> None:
    @tn.kernel(bounds="check")
    def kernel(X: Any, Y: Any) -> None:
        for i in tn.parallel(4):
            X.at(i).store(1)
            tn.sync(i)
            Y.at(i).store(1)

    x, y = np.zeros(3, np.int32), np.zeros(4, np.int32)
    with pytest.raises(tn.OutOfBounds):
        kernel(x, y)
    assert not y.any()
