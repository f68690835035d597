"""Tiles and scalars: operators against NumPy, joins, slices, projections, refusals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import (
    build,
    evaluate,
    find,
    open_session,
    random_array,
    whole,
    zeros,
)
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Apply, Map
from tilenest.errors import CaptureError, DTypeError, RankError, ShapeError

ARITHMETIC = [operator.add, operator.sub, operator.mul]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("function", [*ARITHMETIC, *COMPARISONS])
def test_operators_match_numpy(function: Any, dtype: Any) -> None:
    a, b = random_array(3, 5, dtype=dtype), random_array(3, 5, dtype=dtype, seed=1)
    result = evaluate(function, a, b)
    np.testing.assert_array_equal(result, function(a, b))
    assert result.dtype == function(a, b).dtype


@pytest.mark.parametrize("function", BITS)
def test_bit_operators_match_numpy(function: Any) -> None:
    for dtype in (np.int32, np.uint8, np.bool_):
        a = random_array(17, dtype=np.int32).astype(dtype)
        b = random_array(17, dtype=np.int32, seed=1).astype(dtype)
        np.testing.assert_array_equal(evaluate(function, a, b), function(a, b))


def test_reflected_and_unary_operators() -> None:
    x = random_array(4) + np.float32(3)
    np.testing.assert_array_equal(evaluate(lambda a: 1 - a, x), 1 - x)
    np.testing.assert_array_equal(evaluate(lambda a: 1 / a, x), np.float32(1) / x)
    np.testing.assert_array_equal(evaluate(lambda a: a < 2.5, x), x < 2.5)
    np.testing.assert_array_equal(evaluate(lambda a: -a, x), -x)
    np.testing.assert_array_equal(evaluate(lambda a: abs(-a), x), x)
    n = random_array(9, dtype=np.int32)
    np.testing.assert_array_equal(evaluate(lambda a: ~a, n), ~n)
    np.testing.assert_array_equal(evaluate(lambda a: 7 // (a * a + 1), n), 7 // (n * n + 1))
    np.testing.assert_array_equal(evaluate(lambda a: a % 5, n), n % 5)
    np.testing.assert_array_equal(evaluate(lambda a: a << 2, n), n << 2)
    np.testing.assert_array_equal(evaluate(lambda a: a >> 2, n), n >> 2)
    np.testing.assert_array_equal(evaluate(lambda a: np.float32(2) * a, x), np.float32(2) * x)


@pytest.mark.parametrize("exponent", [1, 2, 3, 7, 10])
def test_powers(exponent: int) -> None:
    x = random_array(6, dtype=np.int64)
    np.testing.assert_array_equal(evaluate(lambda a: a**exponent, x), x**exponent)


@pytest.mark.parametrize("exponent", [0, -1, 0.5, 65, True])
def test_other_powers_are_refused(exponent: Any) -> None:
    with open_session(), pytest.raises(DTypeError, match="host int from 1 to 64"):
        zeros(4) ** exponent


def test_positional_tiles_broadcast_as_numpy() -> None:
    a, b, c = random_array(3, 4), random_array(1, 4), random_array(3, 1)
    np.testing.assert_array_equal(evaluate(lambda x, y, z: x + y * z, a, b, c), a + b * c)
    row = random_array(4)
    np.testing.assert_array_equal(evaluate(lambda x, y: y - x, a, row), row - a)


def test_axes_join_by_identity() -> None:
    with open_session() as (session, _):
        m, n, other = tn.axis("m", 3), tn.axis("n", 4), tn.axis("m", 3)
        x, y = zeros(m, n), zeros(n, m)
        assert (x + y).dims == (m, n)
        assert (zeros(m) * zeros(n)).dims == (m, n)
        assert (zeros(m) * zeros(other)).dims == (m, other)
        joined = find(session, Map)[-1]
        assert len(joined.body.arguments) == 2 + 2


def test_shapes_that_do_not_join() -> None:
    with open_session(), pytest.raises(ShapeError, match="does not join"):
        zeros(3, 4) + zeros(3, 5)


def test_one_operand_used_twice_is_one_input() -> None:
    session = build(lambda a: tn.square(whole(a)), np.ones(4))
    (made,) = find(session, Map)
    assert len(made.inputs) == 1
    (multiply,) = find(session, Apply)
    assert multiply.arguments[0] is multiply.arguments[1]


def test_casts_and_bits() -> None:
    x = np.array([1.5, 2.5, -0.5, np.nan, 1e10], np.float32)
    np.testing.assert_array_equal(
        evaluate(lambda a: a.cast(tn.as_dtype(np.int32)), x), [1, 2, 0, 0, 2**31 - 1]
    )
    np.testing.assert_array_equal(evaluate(lambda a: a.bitcast(np.int32), x), x.view(np.int32))
    with open_session():
        tile = zeros(4)
        assert tile.cast(ir.float32).value is tile.value
        with pytest.raises(DTypeError, match="cannot be read as"):
            tile.bitcast(ir.int64)
        with pytest.raises(DTypeError, match="cannot hold index"):
            tile.cast(ir.index)


def test_slices_read_zero_outside() -> None:
    x = random_array(3, 5)
    result = evaluate(lambda a: a[(1, -1), (3, 4)], x)
    expected = np.zeros((3, 4), np.float32)
    expected[:2, 1:] = x[1:3, 0:3]
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(evaluate(lambda a: a[4, 3], x[0].copy()), [x[0, 4], 0, 0])


def test_slice_at_a_runtime_origin() -> None:
    x, at = random_array(7), np.array([2], np.int32)
    result = evaluate(lambda a, i: a[i.at(0), 3], x, at)
    np.testing.assert_array_equal(result, x[2:5])


def test_projections() -> None:
    x = random_array(3, 5)
    assert evaluate(lambda a: a.at(1, 2), x) == x[1, 2]
    assert evaluate(lambda a: a.at(1, 7), x) == 0
    np.testing.assert_array_equal(evaluate(lambda a: a.at(2, axis=0), x), x[2])
    np.testing.assert_array_equal(evaluate(lambda a: a.at(2, axis=1), x), x[:, 2])
    np.testing.assert_array_equal(evaluate(lambda a: a.at(-1, axis=1), x), np.zeros(3))


def test_projection_at_a_nest() -> None:
    with open_session() as (session, _):
        m, n = tn.axis("m", 3), tn.axis("n", 5)
        x = zeros(m, n)
        place = [tn.scalar(2, ir.index)]
        assert x.at(tn.NestHandle(session, tn.serial(n), place)).dims == (m,)
        with pytest.raises(ShapeError, match="does not have") as caught:
            x.at(tn.NestHandle(session, tn.serial(tn.axis("k", 5)), place))
        assert "axis=m" in str(caught.value)
        with pytest.raises(ShapeError, match="1 coordinates for a tile of rank 2"):
            x.at(tn.NestHandle(session, tn.serial(5), place))
        row = x.at(0, axis=m)
        assert isinstance(row, tn.Tile)
        assert isinstance(row.at(tn.NestHandle(session, tn.serial(5), place)), tn.Scalar)


def test_transpose_renumbers_plain_extents() -> None:
    x = random_array(3, 3)
    np.testing.assert_array_equal(evaluate(lambda a: a.T, x), x.T)
    np.testing.assert_array_equal(evaluate(lambda a: a.T + a, x), x.T + x)
    with open_session():
        m, n = tn.axis("m", 3), tn.axis("n", 4)
        assert zeros(m, n).T.dims == (n, m)


@pytest.mark.parametrize(
    ("use", "remedy"),
    [
        (bool, "tn.where"),
        (int, "keyword-only parameter"),
        (float, "keyword-only parameter"),
        (operator.index, "keyword-only parameter"),
        (list, "nest.serial"),
        (np.asarray, "tn functions"),
        (lambda x: x @ x, "tn.matmul"),
    ],
)
def test_uses_that_have_no_meaning(use: Any, remedy: str) -> None:
    with open_session():
        for value in (zeros(4), tn.scalar(1, ir.float32)):
            with pytest.raises(CaptureError) as caught:
                use(value)
            assert remedy in str(caught.value)


def test_bad_keys() -> None:
    with open_session():
        x = zeros(3, 4)
        for key in (0, (0, 1, 2), (slice(None), 0), ((0, 0), (slice(2), 4))):
            with pytest.raises(RankError):
                x[key]
        with pytest.raises(RankError, match="1 coordinates where 2"):
            x[0, (3, 4)]
        with pytest.raises(ShapeError, match="slice of rank 1"):
            x[(0, 0), 3]
        with pytest.raises(DTypeError, match="coordinate"):
            x[(0.5, 0), (3, 4)]
        with pytest.raises(DTypeError, match="coordinate"):
            x.at(tn.scalar(1.0, ir.float32), 0)
        with pytest.raises(ShapeError, match="no axis"):
            x.at(0, axis=tn.axis("k", 3))


def test_arrays_and_views_are_no_operands() -> None:
    def body(a: tn.View) -> None:
        view: Any = a
        for wrong in (a, np.ones(4), "x", None, [1.0]):
            with pytest.raises(DTypeError):
                whole(a) + wrong
        with pytest.raises(DTypeError, match="load a tile"):
            tn.exp(view)

    build(body, random_array(4))
