"""Sharing of memory, judged by listing every byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilenest.runtime.memory import Memory, coincide, nests, share_elements, shares_with_itself


def memory_of(array: np.ndarray) -> Memory:
    return Memory(array.ctypes.data, array.shape, array.strides, array.itemsize)


def bytes_of(memory: Memory) -> list[int]:
    starts = [memory.address]
    for extent, step in zip(memory.extents, memory.strides, strict=True):
        starts = [start + i * step for start in starts for i in range(extent)]
    return [start + i for start in starts for i in range(memory.itemsize)]


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    rank = draw(st.integers(0, 3))
    extents = draw(st.tuples(*[st.integers(0, 4)] * rank))
    strides = draw(st.tuples(*[st.integers(-6, 6)] * rank))
    return Memory(draw(st.integers(1000, 1030)), extents, strides, draw(st.sampled_from([1, 2, 4])))


@given(memories())
def test_the_span_holds_every_byte(memory: Memory) -> None:
    found = bytes_of(memory)
    if found:
        assert memory.span == (min(found), max(found) + 1)


@given(memories())
def test_sharing_with_itself_is_a_repeated_byte(memory: Memory) -> None:
    found = bytes_of(memory)
    assert shares_with_itself(memory) is (len(set(found)) < len(found))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.data(),
)
def test_sharing_is_a_common_byte(one: list[int], other: list[int], data: st.DataObject) -> None:
    # The addresses are real: NumPy solves the question on arrays.
    base = np.zeros(400, np.uint8)
    start = base.ctypes.data
    memories = []
    for extents in (one, other):
        strides = data.draw(st.tuples(*[st.integers(-9, 9)] * len(extents)))
        address = start + data.draw(st.integers(150, 200))
        memories.append(
            Memory(address, tuple(extents), strides, data.draw(st.sampled_from([1, 4])))
        )
    common = set(bytes_of(memories[0])) & set(bytes_of(memories[1]))
    assert share_elements(*memories) is bool(common)


def test_interleaved_halves_share_nothing() -> None:
    array = np.zeros(100, np.float32)
    assert not share_elements(memory_of(array[::2]), memory_of(array[1::2]))
    assert share_elements(memory_of(array[::2]), memory_of(array[::3]))


def test_coinciding_is_the_same_elements_at_the_same_coordinates() -> None:
    array = np.zeros((4, 4), np.float32)
    whole = memory_of(array)
    assert coincide(whole, memory_of(array[:]))
    assert not coincide(whole, memory_of(array.T))
    assert not coincide(whole, memory_of(array[:3]))
    assert not coincide(whole, memory_of(array[::-1]))
    assert coincide(memory_of(array[:1]), memory_of(array[0:1:2]))


def test_a_too_hard_question_counts_as_shared() -> None:
    # Seven axes of coprime steps that never meet: NumPy gives up before it knows.
    primes = [10007, 10009, 10037, 10039, 10061, 10067, 10069]
    base = np.zeros(2_000_000, np.uint8)
    extents = (9,) * len(primes)
    one = Memory(base.ctypes.data, extents, tuple(primes), 1)
    other = Memory(base.ctypes.data + 3, extents, tuple(p + 2 for p in primes), 1)
    assert share_elements(one, other)


def test_an_array_over_memory_is_that_memory() -> None:
    array = np.arange(24, dtype=np.int16).reshape(4, 6)[::-1, ::2]
    seen = memory_of(array).as_array(array.dtype)
    np.testing.assert_array_equal(seen, array)
    seen[0, 0] = 99
    assert array[0, 0] == 99
    empty = memory_of(np.zeros((0, 3), np.int16)).as_array(np.dtype(np.int16))
    assert empty.shape == (0, 3)


@pytest.mark.parametrize(
    ("strides", "expected"),
    [
        ((32, 8), True),
        ((8, 40), True),
        ((-64, 16), True),
        ((0, 8), False),
        ((8, 8), False),
        ((16, 8), False),
    ],
)
def test_axes_that_step_over_each_other(strides: tuple[int, int], expected: bool) -> None:
    assert nests(Memory(1 << 20, (5, 4), strides, 8)) is expected


def test_axes_in_another_order_are_left_to_the_exact_check() -> None:
    memory = Memory(1 << 20, (2, 3, 4), (32, 64, 8), 8)
    assert not nests(memory)
    assert not shares_with_itself(memory)
