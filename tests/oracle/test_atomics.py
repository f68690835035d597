"""Atomic updates as machine code: what they compute, and what many threads make of one element.

Values are judged by the interpreter, bit by bit where one instance updates; counts, sums and
extremes of many instances by NumPy, on one thread and on several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from skimage import data

import tilenest as tn
from tests.oracle.arrays import Array, placed
from tilenest.driver import parse

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
FLOATS = tuple(EPSILONS)
DTYPES = (*INTEGERS, *FLOATS, "bool")
THREADS = (1, 2, 7)


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values(name: str, shape: tuple[int, int], seed: int) -> Array:
    random, dtype = np.random.default_rng(seed), numpy_dtype(name)
    if name == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    if name in INTEGERS:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    found = random.standard_normal(shape) * 10
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.0, -0.0]
    found[:, : len(special)] = random.permuted([special] * shape[0], axis=1)
    return random.permuted(found, axis=1).astype(dtype)


def functions_of(name: str) -> list[str]:
    found = ["exchange"]
    if name != "bool":
        found += ["add", "min", "max"]
    return found if name in FLOATS else [*found, "and", "or", "xor"]


@pytest.fixture(params=THREADS)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    count = tn.get_num_threads()
    tn.set_num_threads(request.param)
    yield request.param
    tn.set_num_threads(count)


# What is computed --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_every_function_as_the_interpreter_has_it(name: str) -> None:
    functions = functions_of(name)
    rows = len(functions) + 1

    @tn.kernel
    def kernel(X: Any, V: Any, E: Any, M: Any, Old: Any) -> None:
        n = tn.axis("n", 16)
        for row, function in enumerate(functions):
            old = getattr(X((row, -2), (1, n), mask=M[(0, 0), (1, n)]), f"atomic_{function}")(
                V[(row, 0), (1, n)]
            )
            Old((row, 0), (1, n)).store(old)
        last = rows - 1
        part = X((last, 0), (1, n))
        old = part.atomic_compare_exchange(E[(last, 0), (1, n)], V[(last, 0), (1, n)])
        Old((last, 0), (1, n)).store(old)

    x, v = values(name, (rows, 15), 1), values(name, (rows, 16), 2)
    e = values(name, (rows, 16), 3)
    e[:, ::2] = np.append(x, x[:, :1], axis=1)[:, ::2]
    m = np.random.default_rng(4).integers(0, 4, (1, 16)) > 0
    results = []
    for target in ("interpret", "cpu"):
        given, old = placed(x), placed(np.full((rows, 16), 1, x.dtype))
        kernel.compile(given.array, v, e, m, old.array, target=target)(
            given.array, v, e, m, old.array
        )
        assert given.has_intact_guards and old.has_intact_guards
        results.append((given.array, old.array))
    for wanted, found in zip(*results, strict=True):
        is_nan = wanted != wanted
        np.testing.assert_array_equal(is_nan, found != found)
        assert np.where(is_nan, 0, wanted).tobytes() == np.where(is_nan, 0, found).tobytes()


BOOL_UPDATES: dict[str, Callable[[bool, bool], bool]] = {
    "exchange": lambda _, value: value,
    "and": lambda old, value: old and value,
    "or": lambda old, value: old or value,
    "xor": lambda old, value: old != value,
}


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("function", [*BOOL_UPDATES, "compare_exchange"])
def test_every_byte_but_0_is_true(function: str, target: str) -> None:
    """An array of bools that is a view of bytes may hold any of them."""

    @tn.kernel
    def kernel(X: Any, V: Any, E: Any, Old: Any) -> None:
        n = tn.axis("n", 16)
        given = (V[0, n],) if function != "compare_exchange" else (E[0, n], V[0, n])
        Old(0, n).store(getattr(X(0, n), f"atomic_{function}")(*given))

    held = np.array([0, 1, 2, 3, 4, 127, 128, 255], np.uint8).repeat(4)[:32].reshape(2, 16)
    for row in held:
        x, old = row.copy().view(np.bool_), np.zeros(16, np.bool_)
        v, e = np.resize([False, True], 16), np.resize([False, False, True, True], 16)
        kernel.compile(x, v, e, old, target=target)(x, v, e, old)
        before = [byte != 0 for byte in row.tolist()]
        numbers = zip(before, v.tolist(), e.tolist(), strict=True)
        if function == "compare_exchange":
            wanted = [value if was == known else was for was, value, known in numbers]
        else:
            wanted = [BOOL_UPDATES[function](was, value) for was, value, _ in numbers]
        after = x.view(np.uint8).tolist()
        assert [byte != 0 for byte in after] == wanted
        # Bytes that are 0 or 1 stay so.
        assert all(new in (0, 1) for new, was in zip(after, row.tolist(), strict=True) if was < 2)
        assert old.view(np.uint8).tolist() == [int(was) for was in before]


def test_an_exchange_that_does_not_happen_acquires() -> None:
    """Instances that look whether a bool is set see what was written before it was."""

    @tn.kernel
    def kernel(X: Any, E: Any, V: Any) -> None:
        X.at(0).atomic_compare_exchange(E.at(0).load(), V.at(0).load())

    x, e, v = np.zeros(1, np.bool_), np.ones(1, np.bool_), np.ones(1, np.bool_)
    text = kernel.compile(x, e, v).text("llvm")
    reads = [line for line in text.splitlines() if "load atomic" in line]
    assert reads and all("acquire" in line for line in reads)


def test_updates_in_branches_reductions_and_views() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        m, n = tn.axis("m", 3), tn.axis("n", 2)
        X.T.slice((0, 1), (3, 2))((0, 0), (m, n)).atomic_add(1)
        X.T.slice((0, 1), (3, 2)).at(2, 1).atomic_max(9)
        total = tn.scalar(0, tn.int64)
        for step in tn.root().reduce(5, policy=tn.reduction.fold_left):
            index: Any = step.index()
            if index > 1:
                total = total + X.at(0, 0).atomic_add(1)
        Y.at(0).store(total)

    results = []
    for target in ("interpret", "cpu"):
        x, y = np.zeros((3, 4), np.int64), np.full(1, -1, np.int64)
        kernel.compile(x, y, target=target)(x, y)
        results.append((x.tolist(), y.tolist()))
    assert results[0] == results[1]
    assert results[1][1] == [3]


def test_checked_updates_are_refused_before_anything_is_written() -> None:
    @tn.kernel
    def kernel(X: Any, first: Any) -> None:
        n = tn.axis("n", 4)
        mask = tn.iota(n, tn.int32) < 2
        X(first, n, mask=mask, bounds="check").atomic_add(5)

    x = np.zeros(4, np.int32)
    kernel(x, 2)
    assert x.tolist() == [0, 0, 5, 5]
    for target in ("cpu", "interpret"):
        compiled = kernel.compile(x, 3, target=target)
        with pytest.raises(tn.OutOfBounds, match="atomic update of X"):
            compiled(x, 3)
    assert x.tolist() == [0, 0, 5, 5]


def test_an_instance_sees_its_own_updates_in_order() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for i in tn.parallel(64):
            own: Any = i.index()
            before = X.at(own).load()
            X.at(own).atomic_add(own)
            after = X.at(own).load()
            X.at(own).store(after * 2)
            Y.at(own).store(X.at(own).atomic_xor(1) * 1000 + after - before)

    x, y = np.arange(64), np.full(64, -1)
    kernel(x, y)
    np.testing.assert_array_equal(y, np.arange(64) * 4000 + np.arange(64))
    np.testing.assert_array_equal(x, np.arange(64) * 4 + 1)


def test_an_operand_is_loaded_before_any_element_changes() -> None:
    @tn.kernel
    def kernel(X: Any) -> None:
        n = tn.axis("n", 15)
        X(1, n).atomic_add(X[0, n])

    x = np.arange(16)
    kernel(x)
    np.testing.assert_array_equal(x, np.append(0, np.arange(15) * 2 + 1))


# Many instances ----------------------------------------------------------------------------------


@tn.kernel
def histogram(X: Any, Y: Any) -> None:
    for i in tn.parallel(X.extent(0)):
        Y.at(X.at(i).load()).atomic_add(1)


@tn.kernel
def histogram_of_tiles(X: Any, Y: Any) -> None:
    n = tn.axis("n", 256)
    for part in tn.parallel(tn.cdiv(X.extent(0), 256)):
        first: Any = part.index()
        for step in part.serial(256):
            index: Any = first * 256 + step.index()
            if index < X.extent(0):
                level: Any = X.at(index).load()
                Y(0, n).atomic_add(tn.cast(tn.iota(n, tn.uint8) == level, tn.int64))


@pytest.mark.usefixtures("threads")
def test_histogram_of_a_photograph() -> None:
    pixels = np.asarray(data.camera()).reshape(-1).astype(np.uint8)
    counts = placed(np.zeros(256, np.int64))
    histogram(pixels, counts.array)
    np.testing.assert_array_equal(counts.array, np.bincount(pixels, minlength=256))
    assert counts.has_intact_guards
    few = np.zeros(256, np.int64)
    histogram_of_tiles(pixels[:3001], few)
    np.testing.assert_array_equal(few, np.bincount(pixels[:3001], minlength=256))


@pytest.mark.usefixtures("threads")
def test_tickets_are_given_once() -> None:
    @tn.kernel
    def kernel(Counter: Any, Ticket: Any) -> None:
        for i in tn.parallel(Ticket.extent(0)):
            Ticket.at(i).store(Counter.at(0).atomic_add(1))

    counter, tickets = np.zeros(1, np.int32), np.full(200_003, -1, np.int32)
    kernel(counter, tickets)
    assert counter[0] == len(tickets)
    np.testing.assert_array_equal(np.sort(tickets), np.arange(len(tickets)))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", EPSILONS)
def test_sums_of_floats_are_as_near_as_their_order_allows(name: str) -> None:
    @tn.kernel
    def kernel(X: Any, Sum: Any, Most: Any, Least: Any) -> None:
        for i in tn.parallel(X.extent(0)):
            x = X.at(i).load()
            Sum.at(0).atomic_add(x)
            Most.at(0).atomic_max(x)
            Least.at(0).atomic_min(x)

    dtype = numpy_dtype(name)
    count = 100_001 if dtype.itemsize > 2 else 101
    x = np.random.default_rng(5).standard_normal(count).astype(dtype)
    total, most, least = (np.full(1, start, dtype) for start in (0, -np.inf, np.inf))
    kernel(x, total, most, least)
    exact = x.astype(np.float64)
    bound = count * EPSILONS[name] * np.abs(exact).sum()
    assert abs(float(total[0]) - exact.sum()) <= bound
    assert (float(most[0]), float(least[0])) == (exact.max(), exact.min())


@pytest.mark.usefixtures("threads")
def test_one_instance_wins_each_exchange() -> None:
    """Slot i % 64 goes to whoever comes first; the others see who that was."""

    @tn.kernel
    def kernel(Slot: Any, Seen: Any) -> None:
        for i in tn.parallel(Seen.extent(0)):
            own: Any = i.index()
            Seen.at(own).store(Slot.at(own % 64).atomic_compare_exchange(-1, own))

    slots, seen = np.full(64, -1), np.full(50_000, -7)
    kernel(slots, seen)
    winners = np.flatnonzero(seen == -1)
    assert sorted(winners % 64) == list(range(64))
    np.testing.assert_array_equal(slots, winners[np.argsort(winners % 64)])
    others = np.flatnonzero(seen != -1)
    np.testing.assert_array_equal(seen[others], slots[others % 64])


@pytest.mark.usefixtures("threads")
def test_bits_of_all_instances_meet() -> None:
    @tn.kernel
    def kernel(X: Any, Bits: Any) -> None:
        for i in tn.parallel(X.extent(0)):
            x = X.at(i).load()
            Bits.at(0).atomic_or(x)
            Bits.at(1).atomic_and(x)
            Bits.at(2).atomic_xor(x)

    x = np.random.default_rng(6).integers(1 << 3, 1 << 60, 30_000) | 5
    bits = np.array([0, -1, 0])
    kernel(x, bits)
    reduced = [np.bitwise_or.reduce(x), np.bitwise_and.reduce(x), np.bitwise_xor.reduce(x)]
    assert bits.tolist() == reduced


def test_an_array_that_instances_update_is_promised_to_none() -> None:
    """No address of it is said to be the only way to its bytes."""
    module = parse(histogram.compile(np.zeros(8, np.int64), np.zeros(5, np.int64)).ir("machine"))
    promised = {
        (function.name, argument.name): function.attributes["noalias"][argument.index]
        for function in module.functions
        for argument in function.arguments
        if argument.name in ("X", "Y")
    }
    assert len(promised) == 2 * len(list(module.functions)) == 4
    assert all(is_alone == (name == "X") for (_, name), is_alone in promised.items())
