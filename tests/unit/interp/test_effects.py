"""Atomic updates, synchronization, views and memory in the interpreter, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array, poisoned
from tilenest.dialects import registry
from tilenest.errors import InternalError
from tilenest.interp import interpret
from tilenest.ir import parse_module


def interpreted(kernel: tn.Kernel, *arguments: Any, **options: Any) -> None:
    kernel.compile(*arguments, target="interpret", **options)(*arguments)


# Atomic updates ----------------------------------------------------------------------------------


@tn.kernel
def histogram(X: Any, Y: Any) -> None:
    for i in tn.parallel(X.extent(0)):
        Y.at(X.at(i).load()).atomic_add(1)


def test_counts_of_all_instances() -> None:
    x = np.random.default_rng(0).integers(-1, 6, 100).astype(np.int32)
    y = np.zeros(5, np.int32)
    interpreted(histogram, x, y)
    assert y.tolist() == [int((x == value).sum()) for value in range(5)]


FUNCTIONS: dict[str, Any] = {
    "add": lambda old, value: old + value,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exchange": lambda old, value: value + 0 * old,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_what_was_there_before(name: str) -> None:
    method = {"and": "atomic_and", "or": "atomic_or"}.get(name, f"atomic_{name}")

    @tn.kernel
    def kernel(X: Any, V: Any, Old: Any) -> None:
        m, n = tn.axis("m", 3), tn.axis("n", 4)
        row: Any = V[(0, 0), (1, n)]
        old = getattr(X((1, -1), (m, n)), method)(row)
        Old((0, 0), (m, n)).store(old)

    x = np.arange(20, dtype=np.int32).reshape(4, 5) * 7
    value = np.array([[3, 50, -9, 12]], np.int32)
    before, old = x.copy(), poisoned((3, 4), np.int32)
    interpreted(kernel, x, value, old.array)
    inside = before[1:, :3]
    assert old.array[:, 1:].tolist() == inside.tolist()
    assert not old.array[:, 0].any()
    expected = before.copy()
    expected[1:, :3] = FUNCTIONS[name](inside, value[:, 1:])
    np.testing.assert_array_equal(x, expected)


def test_compare_exchange_is_about_bits() -> None:
    @tn.kernel
    def kernel(X: Any, E: Any, V: Any) -> None:
        n = tn.axis("n", 4)
        X(0, n).atomic_compare_exchange(E[0, n], V[0, n])

    x = np.array([0.0, -0.0, np.nan, 2.0], np.float32)
    interpreted(kernel, x, np.array([0.0, 0.0, np.nan, 3.0], np.float32), np.ones(4, np.float32))
    np.testing.assert_array_equal(x, np.array([1, -0.0, 1, 2], np.float32))
    assert np.signbit(x[1])


def test_masked_and_checked_updates() -> None:
    @tn.kernel
    def kernel(X: Any, first: Any) -> None:
        n = tn.axis("n", 4)
        mask = tn.iota(n, tn.int32) < 2
        X(first, n, mask=mask, bounds="check").atomic_add(5)

    x = np.zeros(4, np.int32)
    interpreted(kernel, x, 2)
    assert x.tolist() == [0, 0, 5, 5]
    with pytest.raises(tn.OutOfBounds):
        interpreted(kernel, x, 3)


def test_updates_through_views() -> None:
    @tn.kernel
    def kernel(X: Any) -> None:
        m, n = tn.axis("m", 3), tn.axis("n", 2)
        X.T.slice((0, 1), (3, 2))((0, 0), (m, n)).atomic_add(1)

    x = np.zeros((3, 4), np.int32)
    interpreted(kernel, x)
    assert x.tolist() == [[0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]


# Synchronization ---------------------------------------------------------------------------------


@tn.kernel
def neighbours(X: Any, Y: Any, *, steps: int) -> None:
    for i in tn.parallel(X.extent(0)):
        for _ in i.serial(steps):
            own: Any = i.index()
            Y.at(i).store(X.at(own + 1).load(other=-1))
            tn.sync(i)
            X.at(i).store(Y.at(i).load() * 2)
            tn.sync(i)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_instances_see_what_was_stored_before_they_met(steps: int) -> None:
    x = np.arange(6, dtype=np.int64) + 1
    expected = x.copy()
    for _ in range(steps):
        expected = np.append(expected[1:], -1) * 2
    for shuffle in (None, 3):
        given, out = x.copy(), np.zeros(6, np.int64)
        module = neighbours.compile(given, out, target="interpret", steps=steps).ir("candidate")
        interpret(parse_module(module, registry()), [given, out], shuffle=shuffle)
        np.testing.assert_array_equal(given, expected)


def test_errors_end_all_instances() -> None:
    @tn.kernel(bounds="check")
    def kernel(X: Any) -> None:
        for i in tn.parallel(4):
            tn.sync(i)
            X.at(i).store(1)

    with pytest.raises(tn.OutOfBounds):
        interpreted(kernel, np.zeros(3, np.int32))


def test_the_kernel_itself_waits_for_nobody() -> None:
    @tn.kernel
    def kernel(X: Any) -> None:
        tn.sync(tn.root())
        X.at(0).store(1)

    for target in ("interpret", "cpu"):
        x = np.zeros(1, np.int32)
        kernel.compile(x, target=target)(x)
        assert x.tolist() == [1]


# What programs must not do -----------------------------------------------------------------------

STATES = """
module "candidate"
func @main(%x: f32) -> f32 {{
  %m, %s0 = memory.allocate : (memory<f32>, state)
  %n, %t0 = memory.allocate : (memory<f32>, state)
  %s1 = memory.store(%m, %s0, %x) : state
  %s2 = memory.store(%m, %s1, %x) : state
  %y = memory.load({access}) : f32
  func.return(%y)
}}
"""


@pytest.mark.parametrize(
    ("access", "error", "message"),
    [
        ("%m, %s1", InternalError, "not the latest"),
        ("%n, %s2", InternalError, "not the latest"),
        ("%n, %t0", tn.UninitialisedMemoryError, "before anything"),
    ],
)
def test_states_that_do_not_reach_an_access(
    access: str, error: type[tn.TileError], message: str
) -> None:
    module = parse_module(STATES.format(access=access), registry())
    with pytest.raises(error, match=message):
        interpret(module, [np.float32(3)])
    good = parse_module(STATES.format(access="%m, %s2"), registry())
    assert interpret(good, [np.float32(3)]) == [3]


ROWS = """
module "candidate"
func @main(%x: f32, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %t = tile.map : tile<f32, 2, 3> { |%i: index, %j: index|
    exec.yield(%x)
  }
  %m, %s0 = memory.allocate : (memory<f32, 4, 3>, state)
  %s1 = memory.store(%m, %s0, %t, [%c1, %c0]) : state
  %y = memory.load(%m, %s1, [%n, %c1]) : tile<f32, 1, 5>
  func.return
}
"""


@pytest.mark.parametrize("row", range(-2, 6))
def test_each_element_is_known_to_be_stored_or_not(row: int) -> None:
    module = parse_module(ROWS, registry())
    if row in (0, 3):
        with pytest.raises(tn.UninitialisedMemoryError, match="before anything is stored"):
            interpret(module, [np.float32(3), row])
    else:
        interpret(module, [np.float32(3), row])


PADDED = """
module "candidate"
dim %d0 "m" = 8
func @main(%A: view<f32, [?], [?]>, %B: view<f32, [?], [?]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %outer = view.remap(%A, symbols = [%n], map = (d0)[s0] -> (d0 - s0),
      valid = (d0)[s0] -> (s0 + 2 - d0), fill = 7.0) : view<f32, [8], [?]>
  %twice = view.remap(%outer, map = (d0) -> (2 * d0), fill = 9.0) : view<f32, [8], [?]>
  %t = tile.load(%twice, [%c0]) : tile<f32, %d0>
  tile.store(%B, [%c0], %t, dims = [%d0])
  func.return
}
"""


def padded(a: Array, first: int) -> list[float]:
    """Element by element what the views of `PADDED` say."""

    def outer(d: int) -> float:
        inside = first + 2 - d >= 0 and 0 <= d - first < len(a)
        return float(a[d - first]) if inside else 7.0

    return [outer(2 * d) if 2 * d < 8 else 9.0 for d in range(8)]


@pytest.mark.parametrize("first", [-1, 0, 1, 3])
def test_each_view_on_the_way_has_its_own_fill(first: int) -> None:
    a, b = np.arange(1, 5, dtype=np.float32), np.full(8, np.nan, np.float32)
    interpret(parse_module(PADDED, registry()), [a, b, first])
    assert b.tolist() == padded(a, first)
