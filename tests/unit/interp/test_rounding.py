"""Rounding once: fused multiply-add, narrowing and integers against exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.unit.interp.exact import FLOATS, FORMATS, assert_same, edges, nearest
from tests.unit.interp.programs import Program
from tilenest.dialects import Cast
from tilenest.interp.functions import apply, cast
from tilenest.interp.rounding import from_integers, narrow
from tilenest.interp.values import Array, numpy_dtype
from tilenest.ir import (
    DType,
    ScalarType,
    bfloat16,
    float16,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

INTEGERS = [int8, int16, int32, int64, uint8, uint16, uint32, uint64]


def exact_fma(x: float, y: float, z: float, dtype: DType) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return math.nan if math.isinf(z) and not math.isfinite(x * y) else x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        # Only the sign is left, and there IEEE addition of the product's zero decides.
        zero_product = math.copysign(0.0, math.copysign(1, x) * math.copysign(1, y))
        return zero_product + z if x == 0 or y == 0 else 0.0
    return nearest(exact, dtype)


def fma(dtype: DType, triples: list[tuple[float, float, float]]) -> Array:
    columns = np.array(triples, np.float64).T.astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        return apply("fma", dtype, list(columns))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_of_edge_values_rounds_once(dtype: DType) -> None:
    values = edges(dtype)[:: 2 if dtype is float64 else 1]
    triples = list(itertools.product(values, values[::3], values))
    assert_same(fma(dtype, triples), [exact_fma(*triple, dtype) for triple in triples])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_of_random_values_rounds_once(dtype: DType) -> None:
    generator = np.random.default_rng(7)
    scale = 2.0 ** generator.integers(-12, 12, (3, 2000))
    drawn = (generator.standard_normal((3, 2000)) * scale).astype(numpy_dtype(dtype))
    # Half of the sums cancel almost completely, where the low half of the product decides.
    with np.errstate(over="ignore"):
        drawn[2, ::2] = -(drawn[0, ::2] * drawn[1, ::2])
    triples = [(x, y, z) for x, y, z in drawn.astype(np.float64).T.tolist()]
    assert_same(fma(dtype, triples), [exact_fma(*triple, dtype) for triple in triples])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_next_to_a_tie(dtype: DType) -> None:
    precision, _ = FORMATS[dtype]
    ulp = 2.0 ** (1 - precision)
    tiny = 2.0**-24 if dtype is float16 else 2.0**-100
    # 1 + ulp/2 is a tie; the far smaller third operand says which side it is on.
    triples = [
        (sign * tiny, 1.0, start) for sign in (1.0, -1.0) for start in (1.0, 1 + ulp, -1.0)
    ] + [(1 + ulp, 1 + ulp, sign * tiny) for sign in (1.0, -1.0)]
    assert_same(fma(dtype, triples), [exact_fma(*triple, dtype) for triple in triples])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_of_special_values(dtype: DType) -> None:
    inf, nan = math.inf, math.nan
    values = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan]
    triples = list(itertools.product(values, values, values))
    expected = []
    for x, y, z in triples:
        invalid = {abs(x), abs(y)} == {0.0, inf}
        expected.append(nan if invalid else (x * y) + z)
    assert_same(fma(dtype, triples), expected)


@pytest.mark.parametrize("dtype", FLOATS[:3], ids=str)
def test_narrowing_from_double_rounds_once(dtype: DType) -> None:
    precision, lowest = FORMATS[dtype]
    ulp = 2.0 ** (1 - precision)
    bases = [1.0, 1 + ulp, 2.0**lowest, 2.0**lowest * ulp, 3 * 2.0**lowest * ulp, 0.0]
    halves = [base + step for base in bases for step in (ulp / 2, 2.0**lowest * ulp / 2)]
    largest = (2.0 - ulp) * 2.0 ** (1 - lowest)
    halves += [largest, largest * (1 + ulp / 4), largest * (1 + ulp / 2)]
    # Offsets below half a float32 ulp are what rounding twice would lose.
    values = [half * (1 + nudge) for half in halves for nudge in (0.0, 2.0**-45, -(2.0**-45))]
    values += np.random.default_rng(3).standard_normal(4000).tolist()
    values += [-value for value in values]
    with np.errstate(all="ignore"):
        narrowed = narrow(np.array(values), dtype)
    assert_same(
        narrowed, [nearest(Fraction(v), dtype) if v else math.copysign(0.0, v) for v in values]
    )


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_become_the_nearest_float(source: DType, target: DType) -> None:
    limits = np.iinfo(numpy_dtype(source))
    values = {0, 1, 2, 3, int(limits.max), int(limits.max) - 1, int(limits.min)}
    for bit in range(source.bits):
        for low in range(-3, 4):
            values |= {(1 << bit) + low, -(1 << bit) + low}
            # A tie of a narrower format, with the lowest bit set far below it.
            values |= {(1 << bit) + (1 << max(bit - shift, 0)) + low for shift in (8, 11, 24, 53)}
    kept = sorted(value for value in values if limits.min <= value <= limits.max)
    with np.errstate(all="ignore"):
        converted = from_integers(np.array(kept, limits.dtype), target)
    assert_same(converted, [nearest(Fraction(value), target) for value in kept])


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_saturate_to_integers(source: DType, target: DType) -> None:
    limits = np.iinfo(numpy_dtype(target))
    values = [*edges(source), math.inf, -math.inf, math.nan, 0.9, -0.9, 127.5, -128.5, 255.5]
    values += [2.0**bits + step for bits in (7, 8, 15, 16, 31, 32, 63, 64) for step in (-1, 0, 1)]
    values += [-value for value in values]
    with np.errstate(all="ignore"):
        given = np.array(values).astype(numpy_dtype(source))
        converted = cast(given, source, target)
    expected = []
    for value in given.astype(np.float64).tolist():
        if math.isnan(value):
            expected.append(0)
        elif math.isinf(value):
            expected.append(int(limits.max if value > 0 else limits.min))
        else:
            expected.append(min(max(math.trunc(value), int(limits.min)), int(limits.max)))
    assert converted.dtype == limits.dtype
    assert converted.tolist() == expected


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_wrap_to_the_width(source: DType, target: DType) -> None:
    limits, wanted = np.iinfo(numpy_dtype(source)), np.iinfo(numpy_dtype(target))
    values = [int(limits.min), int(limits.min) + 1, 0, 1, 77, int(limits.max)]
    converted = cast(np.array(values, limits.dtype), source, target)
    size = 1 << target.bits
    expected = [(value - int(wanted.min)) % size + int(wanted.min) for value in values]
    assert converted.tolist() == expected


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", FLOATS, ids=str)
def test_floats_narrow_to_the_nearest(source: DType, target: DType) -> None:
    with np.errstate(all="ignore"):
        given = np.array([*edges(source), 0.1, 1 / 3, 1e4]).astype(numpy_dtype(source))
        converted = cast(given, source, target)
    assert_same(
        converted,
        [
            nearest(Fraction(value), target) if value else value
            for value in given.astype(np.float64).tolist()
        ],
    )


def test_a_narrowing_cast_is_a_rounding_event() -> None:
    program = Program(ScalarType(float64))
    (x,) = program.arguments
    half = program.value(Cast(value=x, result_types=[ScalarType(bfloat16)]))
    back = program.value(Cast(value=half, result_types=[ScalarType(float64)]))
    program.finish(back)
    assert program.run(1.005) == [1.0078125]
    assert program.run(math.pi) == [3.140625]
