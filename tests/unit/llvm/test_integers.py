"""Division, remainder and shifts against Python's own integers: exhaustive for 8 bits."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.llvm.loops import compile_loop, machines
from tilenest.backends.llvm.integers import (
    floor_divide,
    floor_remainder,
    shift_left,
    shift_right,
)

WIDTHS = [8, 16, 32, 64]
Pairs = tuple[NDArray[Any], NDArray[Any]]


def pairs(bits: int, is_signed: bool) -> Pairs:
    """Every pair of 8 bits; else edges with each other, and anything."""
    dtype = np.dtype(f"{'i' if is_signed else 'u'}{bits // 8}")
    facts = np.iinfo(dtype)
    if bits == 8:
        every = np.arange(facts.min, facts.max + 1).astype(dtype)
        left, right = np.meshgrid(every, every)
        return left.ravel(), right.ravel()
    middle = 1 << (bits // 2)
    edges = [0, 1, 2, 3, 7, 10, middle - 1, middle, middle + 1, facts.max // 2, facts.max - 1]
    edges += [facts.max, facts.min, facts.min + 1]
    edges += [-1, -2, -3, -7, -10, -middle] if is_signed else []
    both = np.array(list(itertools.product(edges, edges)), dtype)
    random = np.random.default_rng(5)
    raw = random.integers(0, 1 << 64, (2, 6000), dtype=np.uint64)
    raw[1, :3000] >>= np.uint64(64 - bits // 2)
    anything = raw.astype(f"u{bits // 8}").view(dtype)
    near = anything[0] // np.maximum(anything[1], 1) * np.maximum(anything[1], 1)
    left = np.concatenate([both[:, 0], anything[0], near, near - 1])
    right = np.concatenate([both[:, 1], *[anything[1]] * 3])
    return left, right


def wrapped(values: list[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    mask = (1 << (8 * dtype.itemsize)) - 1
    return (
        np.array([value & mask for value in values], np.uint64)
        .astype(f"u{dtype.itemsize}")
        .view(dtype)
    )


def check(
    expansion: Callable[..., Any],
    meaning: Callable[[int, int], int],
    operands: Pairs,
    lanes: int,
    machine: str,
) -> None:
    left, right = operands
    element = f"i{8 * left.itemsize}"
    loop = compile_loop(
        expansion, [element, element, element], lanes=lanes, machine=machines()[machine]
    )
    got = loop(left, right).view(left.dtype)
    both = zip(left.tolist(), right.tolist(), strict=True)
    want = wrapped([meaning(a, b) for a, b in both], left.dtype)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("bits", WIDTHS)
def test_division_is_pythons(bits: int, is_signed: bool, lanes: int, machine: str) -> None:
    operands = pairs(bits, is_signed)
    check(
        lambda f, a, b: floor_divide(f, a, b, is_signed=is_signed),
        lambda a, b: a // b if b else 0,
        operands,
        lanes,
        machine,
    )
    check(
        lambda f, a, b: floor_remainder(f, a, b, is_signed=is_signed),
        lambda a, b: a % b if b else 0,
        operands,
        lanes,
        machine,
    )


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts_past_the_width(bits: int, is_signed: bool, lanes: int, machine: str) -> None:
    left, right = pairs(bits, is_signed)
    counts = np.where(np.arange(right.size) % 3 == 0, right, right % (bits + 3))
    operands = (left, counts.astype(left.dtype))

    def shifted_left(value: int, count: int) -> int:
        return value << count if 0 <= count < bits else 0

    def shifted_right(value: int, count: int) -> int:
        return value >> (count if 0 <= count < bits else bits)

    check(shift_left, shifted_left, operands, lanes, machine)
    check(
        lambda f, a, b: shift_right(f, a, b, is_signed=is_signed),
        shifted_right,
        operands,
        lanes,
        machine,
    )
