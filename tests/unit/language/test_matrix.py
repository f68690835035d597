"""mma and matmul: how dims match, which dtypes, the numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import (
    Array,
    build,
    evaluate,
    find,
    open_session,
    random_array,
    untyped,
    whole,
    zeros,
)
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Mma, Reindex, Return
from tilenest.errors import DTypeError, ShapeError
from tilenest.verify import diagnose_module

M, N, K, OTHER = (tn.axis(name, 3) for name in "mnko")


def assert_product(actual: Array, a: Array, b: Array, c: Array) -> None:
    """k fused steps in float32 round k times, each by at most half an epsilon of what c and the
    products amount to; twice that also pays for the terms of second order."""
    a, b, c = (x.astype(np.float64) for x in (a, b, c))
    bound = a.shape[1] * np.finfo(np.float32).eps * (np.abs(c) + np.abs(a) @ np.abs(b))
    assert (np.abs(actual - (a @ b + c)) <= bound).all()


def test_axes_match_by_identity_in_any_order() -> None:
    with open_session() as (session, _):
        m, n, k, b = (tn.axis(name, 3) for name in "mnkb")
        tn.mma(zeros(k, m), zeros(n, k), zeros(n, m))
        tn.mma(zeros(b, m, k), zeros(k, n, b), zeros(b, m, n))
        tn.mma(zeros(m, k), zeros(k), zeros(m))
        assert not find(session, Reindex)
        first = find(session, Mma)[0]
        assert first.result.type is first.c.type


def test_plain_extents_match_by_position() -> None:
    x, y, z = random_array(3, 4), random_array(4, 5), random_array(3, 5)
    assert_product(evaluate(tn.mma, x, y, z), x, y, z)
    square = random_array(4, 4)
    assert_product(evaluate(lambda a: tn.mma(a, a, a), square), square, square, square)


def test_plain_extents_beside_axes() -> None:
    with open_session() as (session, _):
        m, n = tn.axis("m", 3), tn.axis("n", 5)
        made = tn.mma(zeros(m, 4), zeros(4, n), zeros(m, n))
        assert made.dims == (m, n)
        (op,) = find(session, Mma)
        assert isinstance(op.a.type, ir.TileType)
        assert isinstance(op.b.type, ir.TileType)
        assert op.a.type.dims[0] is m
        assert op.a.type.dims[1] is op.b.type.dims[0]
        assert op.b.type.dims[1] is n


def test_an_empty_contraction_gives_c() -> None:
    x, y, z = random_array(3, 0), random_array(0, 5), random_array(3, 5)
    np.testing.assert_array_equal(evaluate(tn.mma, x, y, z), z)


def test_ordered_is_recorded() -> None:
    session = build(
        lambda a: tn.mma(whole(a), whole(a), whole(a), ordered=True), random_array(3, 3)
    )
    assert [op.ordered for op in find(session, Mma)] == [True]


def test_narrow_inputs_accumulate_wide() -> None:
    x = random_array(3, 4, dtype=np.int8)
    y = random_array(4, 5, dtype=np.uint8)
    result = evaluate(tn.matmul, x, y)
    np.testing.assert_array_equal(result, x.astype(np.int32) @ y.astype(np.int32))
    assert result.dtype == np.int32
    half = random_array(3, 3, dtype=np.float16)
    result = evaluate(tn.matmul, half, half)
    assert_product(result, half, half, np.zeros((3, 3), np.float32))
    assert result.dtype == np.float32


def holds(accumulator: ir.DType, factor: ir.DType) -> bool:
    """Whether NumPy converts every number of `factor` safely within its kind."""
    is_kind = factor.is_float == accumulator.is_float
    if ir.bfloat16 in (factor, accumulator):
        return is_kind and (accumulator is factor or accumulator.bits > factor.bits)
    return is_kind and np.can_cast(factor.name, accumulator.name, casting="safe")


NUMBERS = [dtype for dtype in ir.DTYPES if dtype not in (ir.bool_, ir.index)]


@pytest.mark.parametrize("accumulator", NUMBERS, ids=str)
def test_the_accumulator_holds_what_both_inputs_hold(accumulator: ir.DType) -> None:
    for a, b in itertools.product(NUMBERS, NUMBERS):
        is_fit = holds(accumulator, a) and holds(accumulator, b) and (a is b or a.is_integer)
        assert Mma.takes(a, b, accumulator) == is_fit, (a, b)
    assert not Mma.takes(ir.bool_, ir.bool_, accumulator)
    assert not Mma.takes(ir.index, ir.index, accumulator)


def test_products_of_two_integer_dtypes_are_sound_ir() -> None:
    with open_session() as (session, _):
        int8, uint8 = zeros(M, K, dtype=ir.int8), zeros(K, N, dtype=ir.uint8)
        tn.mma(int8, uint8, zeros(M, N, dtype=ir.int32))
        assert tn.matmul(int8, zeros(K, N, dtype=ir.int64)).dtype is ir.int64
        session.insert(Return())
    assert diagnose_module(session.module) == []


def test_matmul_matches_numpy() -> None:
    for shape, other in [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4, 4), (4, 4))]:
        x, y = random_array(*shape, dtype=np.int64), random_array(*other, dtype=np.int64, seed=1)
        np.testing.assert_array_equal(evaluate(tn.matmul, x, y), x @ y)
    x = random_array(3, 4, dtype=np.int64)
    np.testing.assert_array_equal(evaluate(lambda a: tn.matmul(a, a.T), x), x @ x.T)


def test_matmul_of_axes() -> None:
    with open_session():
        m, n, k = (tn.axis(name, 3) for name in "mnk")
        assert tn.matmul(zeros(m, k), zeros(k, n)).dims == (m, n)
        assert tn.matmul(zeros(m, 3), zeros(k, n)).dims == (m, n)
        assert tn.matmul(zeros(m, k), zeros(n, k).T).dims == (m, n)


@pytest.mark.parametrize(
    ("use", "error", "part"),
    [
        (lambda: tn.mma(zeros(M, K), zeros(OTHER, N), zeros(M, N)), ShapeError, "share no axis"),
        (lambda: tn.mma(zeros(M, K), zeros(K, N), zeros(M, OTHER)), ShapeError, "is in b only"),
        (lambda: tn.mma(zeros(M, K), zeros(K), zeros(M, N)), ShapeError, "is in c only"),
        (lambda: tn.mma(zeros(3, 4), zeros(5, 3), zeros(3, 3)), ShapeError, "(M, K)"),
        (lambda: untyped.mma(zeros(M, K), 1.0, zeros(M, N)), ShapeError, "operand b"),
        (
            lambda: tn.mma(zeros(M, K), zeros(K, N, dtype=ir.float64), zeros(M, N)),
            DTypeError,
            "one dtype",
        ),
        (
            lambda: tn.mma(zeros(M, K), zeros(K, N), zeros(M, N, dtype=ir.float16)),
            DTypeError,
            "wider",
        ),
        (
            lambda: tn.mma(zeros(M, K, dtype=ir.int8), zeros(K, N, dtype=ir.int8), zeros(M, N)),
            DTypeError,
            "inputs' kind",
        ),
        (
            lambda: tn.mma(
                zeros(M, K, dtype=ir.int16),
                zeros(K, N, dtype=ir.uint16),
                zeros(M, N, dtype=ir.int16),
            ),
            DTypeError,
            "all their numbers",
        ),
        (lambda: tn.matmul(zeros(M, K), zeros(OTHER, N)), ShapeError, "cannot match"),
        (lambda: tn.matmul(zeros(3), zeros(3)), ShapeError, "at least 2"),
        (lambda: tn.matmul(zeros(M, K), zeros(K, M)), ShapeError, "stands twice"),
    ],
)
def test_mistakes(use: Any, error: type[Exception], part: str) -> None:
    with open_session(), pytest.raises(error) as caught:
        use()
    assert part in str(caught.value)
