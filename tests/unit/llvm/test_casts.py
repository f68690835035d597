"""Casts against NumPy, ml_dtypes and exact integers: exhaustive for 8 and 16 bits, else edges."""

import itertools
import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.llvm.loops import Loop, compile_loop, machines
from tilenest.backends.llvm.casts import ELEMENTS, cast

Array = NDArray[Any]
NUMBERS = [name for name in ELEMENTS if name != "bool"]
INTEGERS = [name for name in NUMBERS if "int" in name]
FLOATS = [name for name in NUMBERS if "float" in name]
DTYPES = {name: np.dtype(name) for name in NUMBERS if name != "bfloat16"}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
PAIRS = [pair for pair in itertools.product(NUMBERS, NUMBERS) if pair[0] != pair[1]]


def compile_cast(source: str, target: str, lanes: int, machine: str) -> Loop:
    return compile_loop(
        lambda f, value: cast(f, value, source, target),
        [ELEMENTS[source], ELEMENTS[target]],
        lanes=lanes,
        machine=machines()[machine],
    )


def samples(name: str) -> Array:
    """Every value of 8 and 16 bits; else edges, powers of two and their neighbours, any bits."""
    dtype = DTYPES[name]
    bits = np.dtype(f"u{dtype.itemsize}")
    if dtype.itemsize <= 2:
        return np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32).astype(bits).view(dtype)
    random = np.random.default_rng(3)
    anything = random.integers(0, 1 << 64, 4000, dtype=np.uint64).astype(bits).view(dtype)
    if name in INTEGERS:
        powers = [
            sign * (1 << power) + by
            for power in range(64)
            for sign in (1, -1)
            for by in (-1, 0, 1, 1 << max(power - 9, 0), (1 << max(power - 9, 0)) + 1)
        ]
        facts = np.iinfo(dtype)
        kept = [value for value in powers if facts.min <= value <= facts.max]
        return np.concatenate([anything, np.array(kept, dtype)])
    halves = np.arange(1 << 16, dtype=np.uint16)
    targets = np.concatenate(
        [halves.view(np.float16).astype(dtype), halves.view(ml_dtypes.bfloat16).astype(dtype)]
    )
    between = (targets[1:] / 2 + targets[:-1] / 2).astype(dtype)
    edges = [2.0**power for power in (7, 8, 15, 16, 31, 32, 63, 64)]
    near = np.array([sign * edge for edge in edges for sign in (1, -1)], dtype)
    small = (random.standard_normal(4000) * 300).astype(dtype)
    parts = [anything, targets, between, near, small]
    both_sides = [
        np.nextafter(part, np.array(way, dtype))
        for part in (between, near)
        for way in (math.inf, -math.inf)
    ]
    return np.concatenate([*parts, *both_sides])


def expected(source: Array, name: str) -> Array:
    target = DTYPES[name]
    if source.dtype.kind in "iu":
        if name in INTEGERS:
            return source.astype(target)
        return rounded_integers(source, name)
    wide = source.astype(np.float64)
    if name in FLOATS:
        return rounded_floats(wide, name)
    facts = np.iinfo(target)
    exact = [
        0
        if math.isnan(value)
        else facts.max
        if value >= facts.max
        else facts.min
        if value <= facts.min
        else int(value)
        for value in wide.tolist()
    ]
    return np.array(exact, target)


def rounded_integers(source: Array, name: str) -> Array:
    """Through a fraction of 64 bits rounded once: longer integers than doubles hold exactly."""
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[name]
    rounded = []
    for value in source.tolist():
        excess = max(abs(value).bit_length() - digits, 0)
        rounded.append(float(round(Fraction(value, 1 << excess)) << excess))
    with np.errstate(over="ignore"):
        return np.array(rounded, np.float64).astype(DTYPES[name])


def rounded_floats(wide: NDArray[np.float64], name: str) -> Array:
    """ml_dtypes rounds a double to bfloat16 by way of float; here it is rounded once."""
    if name != "bfloat16":
        with np.errstate(all="ignore"):
            return wide.astype(DTYPES[name])
    bits = wide.view(np.uint64)
    smallest = 2.0**-133
    with np.errstate(all="ignore"):
        tiny = np.round(wide / smallest) * smallest
        normal = bits + np.uint64((1 << 44) - 1) + ((bits >> np.uint64(45)) & np.uint64(1))
        normal = (normal & ~np.uint64((1 << 45) - 1)).view(np.float64)
        once = np.where(np.abs(wide) < 2.0**-126, tiny, normal)
        once = np.where(np.isfinite(wide), once, wide)
        return once.astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair_of_number_types(source: str, target: str, machine: str) -> None:
    x = samples(source)
    bits = f"i{DTYPES[source].itemsize}"
    given = x if source in ("float16", "float32", "float64") else x.view(bits)
    got = compile_cast(source, target, 8, machine)(given).view(DTYPES[target])
    want = expected(x, target)
    assert_same_values(got, want)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_scalars_are_one_lane(source: str, target: str) -> None:
    x = samples(source)[::37]
    given = x if source in ("float16", "float32", "float64") else x.view(f"i{x.itemsize}")
    got = compile_cast(source, target, 1, "host")(given).view(DTYPES[target])
    assert_same_values(got, expected(x, target))


@pytest.mark.parametrize("source", NUMBERS)
def test_everything_but_zero_is_true(source: str) -> None:
    x = samples(source)
    given = x if source in ("float16", "float32", "float64") else x.view(f"i{x.itemsize}")
    loop = compile_loop(
        lambda f, value: f.zext(cast(f, value, source, "bool"), "i8"), [ELEMENTS[source], "i8"]
    )
    np.testing.assert_array_equal(loop(given), (x.astype(np.float64) != 0).astype(np.int8))


@pytest.mark.parametrize("target", NUMBERS)
def test_booleans_are_zero_and_one(target: str) -> None:
    loop = compile_loop(
        lambda f, value: cast(f, f.trunc(value, "i1"), "bool", target), ["i8", ELEMENTS[target]]
    )
    given = np.array([0, 1, 1, 0] * 4, np.int8)
    got = loop(given).view(DTYPES[target])
    np.testing.assert_array_equal(got.astype(np.float64), given.astype(np.float64))


def test_bfloat16_nan_keeps_its_sign() -> None:
    x = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFC12345], np.uint32).view(np.float32)
    got = compile_cast("float32", "bfloat16", 4, "host")(x).view(np.uint16)
    assert ((got & 0x7FC0) == 0x7FC0).all()
    np.testing.assert_array_equal(got >> 15, [0, 1, 0, 1])


def assert_same_values(got: Array, want: Array) -> None:
    """Bits, but that any NaN equals any other."""
    if want.dtype.kind in "iu":
        np.testing.assert_array_equal(got, want)
        return
    is_nan = np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), is_nan)
    bits = f"u{want.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~is_nan], want.view(bits)[~is_nan])
