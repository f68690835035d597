"""Library compositions against NumPy in float64, with their edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import bounds
from tests.unit.language.building import evaluate, open_session, random_array, zeros
from tilenest import ir, library
from tilenest import language as tn
from tilenest.errors import DomainError, DTypeError

NAN, INF = np.nan, np.inf
EPSILON = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("axes", [0, -1, (0, 1), None])
def test_reductions_match_numpy(name: str, axes: Any) -> None:
    x = random_array(5, 7)
    result = evaluate(lambda a: getattr(library, name)(a, axes), x)
    exact = getattr(np, name)(x.astype(np.float64), axis=axes)
    # n terms round n - 1 times, each by at most half an epsilon of their magnitudes; a mean divides
    # that by n and rounds once. A whole epsilon a term also pays for the rest. Extrema are exact.
    count = x.size // max(1, np.size(exact))
    share = {"sum": 1.0, "mean": 1 / count}.get(name, 0.0)
    magnitudes = np.abs(x.astype(np.float64)).sum(axis=axes)
    assert (np.abs(result - exact) <= count * EPSILON * share * magnitudes).all()
    assert result.dtype == np.float32


def test_half_floats_are_summed_wide() -> None:
    x = np.full(4096, 1, np.float16)
    result = evaluate(lambda a: library.sum(a, policy=tn.reduction.fold_left), x)
    assert result == 4096
    assert result.dtype == np.float16
    assert evaluate(library.mean, x) == 1


def test_extremes_propagate_nan_and_order_zeros() -> None:
    x = np.array([[1, NAN, 3], [-0.0, 0.0, -0.0]], np.float32)
    result = evaluate(lambda a: library.max(a, 1), x)
    assert np.isnan(result[0])
    assert not np.signbit(result[1])
    assert np.signbit(evaluate(lambda a: library.min(a, 1), x)[1])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_positions_match_numpy(name: str, axis: Any) -> None:
    x = random_array(6, 9, dtype=np.int32)
    result = evaluate(lambda a: getattr(library, name)(a, axis), x)
    np.testing.assert_array_equal(result, getattr(np, name)(x, axis=axis))
    assert result.dtype == np.int64


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_special_numbers(name: str) -> None:
    x = np.array(
        [[1, NAN, NAN], [-0.0, 0.0, 0.0], [0.0, -0.0, 0.0], [INF, -INF, INF], [-INF] * 3],
        np.float32,
    )
    result = evaluate(lambda a: getattr(library, name)(a, 1), x)
    np.testing.assert_array_equal(result, getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name: str) -> None:
    with open_session(), pytest.raises(DomainError, match=f"nothing has no {name}"):
        getattr(library, name)(zeros(3, 0), 1)


def test_reductions_along_other_axes_of_an_empty_tile() -> None:
    x = np.zeros((3, 0), np.float32)
    assert evaluate(lambda a: library.max(a, 0), x).shape == (0,)
    assert evaluate(lambda a: library.sum(a, 1), x).tolist() == [0, 0, 0]
    assert np.isnan(evaluate(lambda a: library.mean(a, 1), x)).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(axis: int) -> None:
    x = random_array(5, 7) * 20
    result = evaluate(lambda a: library.softmax(a, axis), x)
    bounds.assert_within(result, bounds.softmax(x, axis))


def test_softmax_of_infinities() -> None:
    x = np.array([[-INF, -INF], [-INF, 1], [INF, 1]], np.float32)
    result = evaluate(lambda a: library.softmax(a, 1), x)
    np.testing.assert_array_equal(result, [[NAN, NAN], [0, 1], [NAN, NAN]])


def test_masked_softmax() -> None:
    x = random_array(4, 6)
    x[2, 3] = NAN
    x[3] = -INF
    mask = random_array(4, 6, seed=1) > 0
    mask[0] = False
    mask[2, 3] = False
    mask[3] = [True, False] * 3
    result = evaluate(lambda a, m: library.softmax(a, 1, m), x, mask)
    np.testing.assert_array_equal(result[~mask], 0)
    for row in (1, 2):
        bounds.assert_within(result[row][mask[row]], bounds.softmax(x[row][mask[row]], 0))
    assert np.isnan(result[3][mask[3]]).all()


def test_layer_norm() -> None:
    x, weight, bias = random_array(5, 7) + 3, random_array(7, seed=1), random_array(7, seed=2)
    result = evaluate(lambda a: library.layer_norm(a, 1), x)
    bounds.assert_within(result, bounds.layer_norm(x, None, None, 1e-5))
    result = evaluate(lambda a, w, b: library.layer_norm(a, 1, w, b, eps=1e-5), x, weight, bias)
    bounds.assert_within(result, bounds.layer_norm(x, weight, bias, 1e-5))


def test_rms_norm() -> None:
    x, weight = random_array(5, 7), random_array(7, seed=1)
    result = evaluate(lambda a, w: library.rms_norm(a, 1, w), x, weight)
    bounds.assert_within(result, bounds.rms_norm(x, weight, 1e-6))


def test_norms_of_half_floats_keep_their_dtype() -> None:
    x, weight = random_array(3, 8, dtype=np.float16), random_array(8)
    assert evaluate(lambda a, w: library.rms_norm(a, 1, w), x, weight).dtype == np.float16
    assert evaluate(lambda a: library.softmax(a, 1), x).dtype == np.float16
    assert evaluate(library.gelu, x).dtype == np.float16


def test_activations() -> None:
    x, y = random_array(41), random_array(41, seed=1)
    bounds.assert_within(evaluate(library.gelu, x), bounds.gelu(x, None, None))
    bounds.assert_within(evaluate(library.silu, x), bounds.swiglu(x, np.ones_like(x)))
    bounds.assert_within(evaluate(library.swiglu, x, y), bounds.swiglu(x, y))


@pytest.mark.parametrize("name", ["mean", "gelu", "silu", "softmax", "rms_norm", "layer_norm"])
def test_integers_are_refused(name: str) -> None:
    arguments: list[Any] = [zeros, 0] if name in ("softmax", "rms_norm", "layer_norm") else [zeros]
    with open_session(), pytest.raises(DTypeError, match=f"tn.{name}") as caught:
        getattr(library, name)(zeros(4, dtype=ir.int32), *arguments[1:])
    assert "cast(tn.float32)" in str(caught.value)


def test_swiglu_of_two_dtypes() -> None:
    with open_session(), pytest.raises(DTypeError, match=r"tn\.swiglu"):
        library.swiglu(zeros(4), zeros(4, dtype=ir.float64))
