"""mma and matmul: how dims match, which dtypes, the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import (
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
from tilenest.dialects import Mma, Reindex
from tilenest.errors import DTypeError, ShapeError


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
    exact = x.astype(np.float64) @ y + z
    np.testing.assert_allclose(evaluate(tn.mma, x, y, z), exact, rtol=1e-5)
    square = random_array(4, 4)
    exact = square.astype(np.float64) @ square + square
    np.testing.assert_allclose(
        evaluate(lambda a: tn.mma(a, a, a), square), exact, rtol=1e-5, atol=1e-6
    )


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
    np.testing.assert_allclose(result, half.astype(np.float64) @ half, rtol=1e-5, atol=1e-6)
    assert result.dtype == np.float32


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


M, N, K, OTHER = (tn.axis(name, 3) for name in "mnko")


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
            "of its kind",
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
