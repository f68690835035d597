"""One kernel on the CPU and in the interpreter, on the same arguments in guarded memory.

`check(kernel, input, Out(shape, dtype), ...)` runs both and demands equal bits of every array (NaN
equals NaN whatever its payload), or at most so many ulp; inputs and guard bytes must not change.
What the CPU wrote comes back, for tests that also know the answer from elsewhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.oracle.arrays import Array, Placed, placed, poisoned
from tilenest import Kernel

tn: Any = importlib.import_module("tilenest")
"""The library as kernels use it. What they compute is known at capture, not to a type checker."""


@dataclass(frozen=True, slots=True)
class Out:
    """An array that the kernel fills."""

    shape: tuple[int, ...]
    dtype: Any = np.float32
    layout: str = "contiguous"


@dataclass(frozen=True, slots=True)
class InOut:
    """An array that the kernel reads and writes."""

    values: Array
    layout: str = "contiguous"


@dataclass(frozen=True, slots=True)
class In:
    """An input in another layout than its own."""

    values: Array
    layout: str


def check(
    kernel: Kernel, *arguments: Any, ulps: int = 0, slack: float = 0.0, **configuration: Any
) -> list[Array]:
    """The arrays that the CPU wrote, in order, after comparing them with the interpreter's.

    `slack` is a distance allowed beside `ulps`, for sums whose order is free."""
    results = []
    for target in ("interpret", "cpu"):
        held = [_placed(argument) for argument in arguments]
        given = [one.array if isinstance(one, Placed) else one for one in held]
        kernel.compile(*given, target=target, **configuration)(*given)
        results.append(_written(held, arguments, target))
    for expected, actual in zip(*results, strict=True):
        assert_same(actual, expected, ulps, slack)
    return results[1]


def _placed(argument: Any) -> Any:
    match argument:
        case Out():
            return poisoned(argument.shape, argument.dtype, argument.layout)
        case InOut() | In():
            return placed(argument.values, argument.layout)
        case np.ndarray():
            return placed(argument)
    return argument


def _written(held: Sequence[Any], arguments: Sequence[Any], target: str) -> list[Array]:
    written = []
    for place, (one, argument) in enumerate(zip(held, arguments, strict=True)):
        if isinstance(argument, Out | InOut):
            assert one.has_intact_guards, f"{target} wrote outside argument {place}"
            written.append(one.array)
        elif isinstance(one, Placed):
            assert one.is_unchanged, f"{target} changed the input at {place}"
    return written


def assert_same(actual: Array, expected: Array, ulps: int = 0, slack: float = 0.0) -> None:
    """Equal bits, but for NaN payloads, `ulps` and `slack`."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    wrong = distance(actual, expected) > ulps
    if slack:
        with np.errstate(invalid="ignore"):
            gap = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        wrong &= ~(gap <= slack)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.size} elements differ, first at {place}: "
            f"{actual[place]!r} where {expected[place]!r} is meant"
        )


def distance(actual: Array, expected: Array) -> Array:
    """How many representable numbers lie between; 0 between NaNs, huge between NaN and number."""
    if actual.dtype.kind in "biu":
        return np.where(actual == expected, 0, np.inf)
    one, other = _ordered(actual), _ordered(expected)
    gap = np.where(one > other, one - other, other - one).astype(np.uint64).astype(np.float64)
    is_nan, is_meant_nan = np.isnan(actual), np.isnan(expected)
    gap = np.where(is_nan & is_meant_nan, 0, gap)
    return np.where(is_nan ^ is_meant_nan, np.inf, gap)


def _ordered(values: Array) -> Array:
    """Floats as integers in the same order, -0 just below +0."""
    width = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(np.dtype(f"i{width}")).astype(np.int64)
    low = np.int64(-(1 << (8 * width - 1)))
    with np.errstate(over="ignore"):
        return np.where(bits < 0, low - bits - 1, bits).reshape(values.shape)
