"""Which dtype operations compute in and how host numbers become constants."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.language.building import build, find, random_array, whole
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Apply, Cast, Constant
from tilenest.errors import DTypeError

NUMPY = {
    ir.float16: np.dtype(np.float16),
    ir.bfloat16: np.dtype(ml_dtypes.bfloat16),
    ir.float32: np.dtype(np.float32),
    ir.float64: np.dtype(np.float64),
}


@given(st.floats(width=64), st.sampled_from([ir.float16, ir.float32, ir.float64]))
def test_floats_round_once(number: float, dtype: ir.DType) -> None:
    with np.errstate(all="ignore"):
        expected = float(NUMPY[dtype].type(number))
    rounded = tn.constant_value(number, dtype)
    assert rounded == expected or (math.isnan(rounded) and math.isnan(expected))
    assert math.copysign(1, rounded) == math.copysign(1, expected) or math.isnan(number)


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_rounds_as_ml_dtypes_does_from_float32(number: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(ml_dtypes.bfloat16(np.float32(number)))
    assert tn.constant_value(number, ir.bfloat16) == expected


def test_rounding_twice_would_show() -> None:
    just_above_half = 1 + 2**-8 + 2**-40  # float32 drops the last term and leaves a tie
    assert tn.constant_value(just_above_half, ir.bfloat16) == 1 + 2**-7
    between = (1 << 60) + (1 << 36) + 1  # float64 drops the 1 and leaves a tie of float32
    assert tn.constant_value(between, ir.float32) == float((1 << 60) + (1 << 37))
    assert tn.constant_value(10**400, ir.float64) == math.inf


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (2.5, ir.int32),
        (2.0, ir.int32),
        (128, ir.int8),
        (-129, ir.int8),
        (-1, ir.uint8),
        (1 << 63, ir.index),
        (True, ir.float32),
        (1, ir.bool_),
    ],
)
def test_numbers_that_do_not_fit(number: Any, dtype: ir.DType) -> None:
    with pytest.raises(DTypeError) as caught:
        tn.constant_value(number, dtype)
    assert caught.value.remedy


def test_numbers_that_just_fit() -> None:
    assert tn.constant_value(-128, ir.int8) == -128
    assert tn.constant_value(255, ir.uint8) == 255
    assert tn.constant_value(np.float32(0.1), ir.float32) == float(np.float32(0.1))
    assert tn.constant_value(False, ir.bool_) is False


@pytest.mark.parametrize("given_dtype", [ir.float32, np.float32, np.dtype("float32")])
def test_dtypes_may_be_written_as_numpys(given_dtype: object) -> None:
    assert tn.as_dtype(given_dtype) is ir.float32


@pytest.mark.parametrize("wrong", [float, int, "float32", np.complex64, None, 3])
def test_what_is_no_dtype(wrong: object) -> None:
    with pytest.raises(DTypeError, match="dtype"):
        tn.as_dtype(wrong)


def test_a_python_number_takes_the_tiles_dtype() -> None:
    session = build(lambda a: whole(a) * 0.1, random_array(4))
    (constant,) = find(session, Constant)[1:]
    assert constant.value == float(np.float32(0.1))
    assert not find(session, Cast)


def test_a_numpy_scalar_keeps_its_dtype() -> None:
    def body(a: tn.View) -> None:
        assert (whole(a) * np.float32(2)).dtype is ir.float32
        with pytest.raises(DTypeError, match=r"float32 and tilenest\.float64") as caught:
            whole(a) * np.float64(2)
        assert "cast" in str(caught.value)
        with pytest.raises(DTypeError):
            np.float64(2) * whole(a)

    build(body, random_array(4))


def test_mixed_dtypes_name_both_and_a_cast() -> None:
    def body(a: tn.View, b: tn.View) -> None:
        with pytest.raises(DTypeError, match=r"tilenest\.float32 and tilenest\.int32") as caught:
            whole(a) + whole(b)
        assert "x.cast(tn.float32)" in str(caught.value)

    build(body, random_array(4), random_array(4, dtype=np.int32))


def test_index_mixes_with_integers() -> None:
    def body(a: tn.View, b: tn.View) -> None:
        extent = a.extent(0)
        assert extent.dtype is ir.index
        assert (extent + b.at(0).load()).dtype is ir.index
        assert (extent + 1).dtype is ir.index
        assert (whole(b) + extent).dtype is ir.int32
        assert (tn.iota(4) < extent).dtype is ir.bool_
        assert tn.full(4, extent).dtype is ir.int64
        assert tn.where(tn.iota(4) < 2, extent, 0).dtype is ir.int64
        with pytest.raises(DTypeError):
            whole(a) * extent

    build(body, random_array(4), random_array(4, dtype=np.int32))


def test_weak_scalars_take_what_they_meet() -> None:
    def body(a: tn.View, b: tn.View) -> None:
        session = tn.current_session()
        weak = tn.Scalar(session.value_of(tn.scalar(0.1, ir.float64)), session, is_weak=True)
        count = tn.Scalar(session.value_of(tn.scalar(3, ir.int64)), session, is_weak=True)
        assert (whole(a) * weak).dtype is ir.float32
        assert (whole(a) * count).dtype is ir.float32
        assert (whole(b) * count).dtype is ir.int32
        product = weak * 2
        assert product.is_weak
        assert product.dtype is ir.float64
        assert (count * 2).dtype is ir.int64
        assert (count / 2.0).dtype is ir.float64
        assert not (weak < 1).is_weak
        assert not weak.cast(ir.float64).is_weak
        with pytest.raises(DTypeError, match="Python float"):
            whole(b) * weak

    build(body, random_array(4), random_array(4, dtype=np.int32))


@pytest.mark.parametrize(
    ("operation", "dtype", "remedy"),
    [
        (lambda x: x / x, np.int32, "use // for integers"),
        (lambda x: x // x, np.float32, "tn.floor"),
        (lambda x: x % x, np.float32, "tn.floor"),
        (lambda x: x & x, np.float32, "tn.bitcast"),
        (tn.exp, np.int32, "x.cast(tn.float32)"),
        (lambda x: x + x, np.bool_, "mask.cast(tn.int32)"),
        (lambda x: x << x, np.float64, "tn.bitcast"),
    ],
)
def test_functions_without_a_meaning(operation: Any, dtype: Any, remedy: str) -> None:
    def body(a: tn.View) -> None:
        with pytest.raises(DTypeError) as caught:
            operation(whole(a))
        assert remedy in str(caught.value)

    build(body, np.ones(4, dtype))


def test_only_python_numbers() -> None:
    def body(a: tn.View) -> None:
        with pytest.raises(DTypeError, match="only Python numbers"):
            tn.sqrt(2.0)
        with pytest.raises(DTypeError, match="only Python numbers"):
            tn.where(whole(a) > 0, 1.0, 0.0)
        with pytest.raises(DTypeError, match="not bool"):
            tn.where(whole(a), whole(a), 0.0)

    build(body, random_array(4))


def test_scalars_make_no_map() -> None:
    def body(a: tn.View) -> None:
        a.extent(0) * 2 + 1

    session = build(body, random_array(4))
    assert [op.function for op in find(session, Apply)] == ["mul", "add"]
    assert all(op.parent is session.function.body for op in find(session, Apply))
