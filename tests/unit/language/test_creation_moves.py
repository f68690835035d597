"""Making tiles and moving their elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.language.building import (
    build,
    evaluate,
    find,
    open_session,
    random_array,
    untyped,
    zeros,
)
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Map
from tilenest.errors import CaptureError, DTypeError, ShapeError


def test_constant_tiles() -> None:
    np.testing.assert_array_equal(evaluate(lambda: tn.zeros((2, 3), ir.int8)), np.zeros((2, 3)))
    np.testing.assert_array_equal(evaluate(lambda: tn.zeros(2, ir.bool_)), [False, False])
    tenth = evaluate(lambda: tn.full(2, 0.1, ir.float32))
    np.testing.assert_array_equal(tenth, np.full(2, 0.1, np.float32))
    np.testing.assert_array_equal(evaluate(lambda: tn.full((), 7, ir.int32)), 7)
    np.testing.assert_array_equal(
        evaluate(lambda: tn.full(2, np.int8(3))), np.array([3, 3], np.int8)
    )
    np.testing.assert_array_equal(evaluate(lambda: tn.zeros((0, 3), ir.int8)), np.zeros((0, 3)))


def test_full_of_a_runtime_scalar() -> None:
    x = random_array(3)
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.full((2, 2), a.at(1)), x), np.full((2, 2), x[1])
    )


def test_iota() -> None:
    result = evaluate(lambda: tn.iota(tn.axis("m", 4)))
    np.testing.assert_array_equal(result, np.arange(4))
    assert result.dtype == np.int64
    np.testing.assert_array_equal(evaluate(lambda: tn.iota(3, ir.float32)), np.arange(3.0))


def test_scalars() -> None:
    assert evaluate(lambda: tn.scalar(0.1, ir.float32)) == np.float32(0.1)
    assert evaluate(lambda: tn.scalar(np.int16(3))) == 3
    assert evaluate(lambda: tn.scalar(tn.scalar(2.5, ir.float32), ir.int32)) == 2
    with open_session():
        again = tn.scalar(1, ir.index)
        assert tn.scalar(again).value is again.value


def test_map() -> None:
    result = evaluate(lambda: tn.map((3, 4), lambda i, j: i * 10 + j))
    np.testing.assert_array_equal(result, np.arange(3)[:, None] * 10 + np.arange(4))
    assert result.dtype == np.int64
    result = evaluate(lambda: tn.map(3, lambda i: i.cast(ir.float32) * 0.5))
    np.testing.assert_array_equal(result, np.array([0, 0.5, 1], np.float32))
    np.testing.assert_array_equal(evaluate(lambda: tn.map(3, lambda _: 2, dtype=ir.int8)), [2] * 3)


def test_map_takes_outer_scalars_as_inputs() -> None:
    x = random_array(4)

    def body(a: tn.View) -> Any:
        outer = a.at(2).load()
        return tn.map(3, lambda i: outer * i.cast(ir.float32) + outer)

    session = build(body, x)
    (made,) = find(session, Map)
    assert len(made.inputs) == 1
    inside = {id(value) for op in made.walk() for value in op.results} | {
        id(value) for value in made.body.arguments
    }
    assert all(id(value) in inside for op in made.body.operations for value in op.operands)

    def scaled(a: tn.Tile) -> Any:
        outer = a.at(2)
        return tn.map(3, lambda i: outer * i.cast(ir.float32))

    np.testing.assert_array_equal(evaluate(scaled, x), x[2] * np.arange(3, dtype=np.float32))


def test_map_bodies_hold_scalars_only() -> None:
    with open_session() as (session, _):
        tile = zeros(4)
        wrongs: list[Any] = [lambda _: tile, tile.at, lambda _: tn.zeros(4, ir.float32)]
        for wrong in wrongs:
            with pytest.raises(CaptureError, match="computes one element"):
                tn.map(4, wrong)
        assert session.element_body is None
        with pytest.raises(CaptureError, match="a nest is opened inside"):
            untyped.map(4, lambda _: tn.serial(4))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: untyped.axis("m", -1), ShapeError),
        (lambda: untyped.axis("m", 2.5), ShapeError),
        (lambda: untyped.axis(4, 4), ShapeError),
        (lambda: untyped.zeros((untyped.scalar(4, ir.index),), ir.float32), ShapeError),
        (lambda: untyped.full(4, 1.0), DTypeError),
        (lambda: untyped.full(4, np.float64(1), ir.float32), DTypeError),
        (lambda: untyped.full(4, zeros(4)), ShapeError),
        (lambda: untyped.iota((2, 3)), ShapeError),
        (lambda: untyped.scalar(1.0), DTypeError),
        (lambda: untyped.scalar(zeros(4)), ShapeError),
        (lambda: untyped.map((), lambda: 1), ShapeError),
        (lambda: untyped.map(4, lambda _: 1.0), DTypeError),
        (lambda: untyped.reshape(zeros(4), 5), ShapeError),
        (lambda: untyped.reshape(zeros(4), (3, -1)), ShapeError),
        (lambda: untyped.reshape(zeros(4), ()), ShapeError),
        (lambda: untyped.broadcast(zeros(4), (4, 3)), ShapeError),
        (lambda: untyped.transpose(zeros(4, 3), (0,)), ShapeError),
        (lambda: untyped.transpose(zeros(4, 3), (0, 0)), ShapeError),
        (lambda: untyped.reindex(zeros(4, 3), 4, lambda i: i), ShapeError),
        (lambda: untyped.reindex(zeros(4), 4, lambda i: i * 0.5), DTypeError),
        (lambda: untyped.reindex(zeros(4), 4, lambda i: 1 if i else 2), CaptureError),
    ],
)
def test_mistakes(use: Any, error: type[Exception]) -> None:
    with open_session(), pytest.raises(error) as caught:
        use()
    assert "help: " in str(caught.value)


def test_one_axis_twice_in_a_shape() -> None:
    m = tn.axis("m", 4)
    with open_session(), pytest.raises(ShapeError, match="stands twice"):
        tn.zeros((m, m), ir.float32)


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(SHAPES, st.randoms(use_true_random=False))
def test_reshape_matches_numpy(shape: list[int], random: Any) -> None:
    x = random_array(*shape)
    other = [*shape, 1]
    random.shuffle(other)
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reshape(a, tuple(other)), x), x.reshape(other)
    )
    flat = evaluate(lambda a: tn.reshape(a, -1), x)
    np.testing.assert_array_equal(flat, x.reshape(-1))
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reshape(tn.reshape(a, -1), tuple(shape)), x), x
    )


@given(st.permutations(range(3)))
def test_transpose_matches_numpy(order: list[int]) -> None:
    x = random_array(2, 3, 4)
    np.testing.assert_array_equal(evaluate(lambda a: tn.transpose(a, order), x), x.transpose(order))


def test_reshape_without_elements() -> None:
    assert evaluate(lambda: tn.reshape(zeros(0, 3), (5, 0))).shape == (5, 0)


def test_broadcast_matches_numpy() -> None:
    x = random_array(3, 1)
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.broadcast(a, (2, 3, 4)), x), np.broadcast_to(x, (2, 3, 4))
    )
    assert evaluate(lambda a: tn.broadcast(a.at(0, 0), (2, 2)), x).tolist() == [[x[0, 0]] * 2] * 2
    with open_session():
        m, n = tn.axis("m", 3), tn.axis("n", 3)
        assert tn.broadcast(zeros(m), (n, m)).dims == (n, m)


def test_reindex_reads_anywhere() -> None:
    x = random_array(5)
    np.testing.assert_array_equal(evaluate(lambda a: tn.reindex(a, 5, lambda i: 4 - i), x), x[::-1])
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reindex(a, (2, 3), lambda i, j: (i + j * 2) % 5), x),
        x[(np.arange(2)[:, None] + np.arange(3) * 2) % 5],
    )
    shift = np.array([2], np.int32)
    np.testing.assert_array_equal(
        evaluate(lambda a, s: tn.reindex(a, 5, lambda i: i + s.at(0)), x, shift),
        [*x[2:], 0, 0],
    )
