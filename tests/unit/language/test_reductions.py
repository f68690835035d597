"""`tn.reduce`: its operation, its order, its seeds."""

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
from tilenest.dialects import Reduce, Reindex
from tilenest.errors import CaptureError, DTypeError, ShapeError


def test_the_operation() -> None:
    session = build(lambda a: tn.reduce(whole(a), 1, tn.add), random_array(3, 5))
    (made,) = find(session, Reduce)
    assert made.policy == "unordered_tree"
    assert made.rank == 1
    assert made.result.type is made.body.arguments[-1].type
    assert [argument.type for argument in made.body.arguments[:-1]] == [ir.INDEX]
    assert made.body.terminator.operands[0].type is made.result.type
    (projection,) = find(session, Reindex)
    assert projection.parent is made.body


ELEMENTS = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf]
NUMPY = {
    tn.add: np.add,
    tn.multiply: np.multiply,
    tn.maximum: np.maximum,
    tn.minimum: np.minimum,
    tn.fmax: np.fmax,
    tn.fmin: np.fmin,
}


@pytest.mark.parametrize("reducer", NUMPY, ids=str)
def test_the_result_over_nothing_changes_nothing_but_a_negative_zero(reducer: tn.Reducer) -> None:
    """A sum over nothing is +0, in NumPy too, and +0 is not what leaves -0 as it is."""
    start = np.float32(reducer.over_nothing(ir.float32))
    if reducer in (tn.add, tn.multiply):
        assert start.tobytes() == NUMPY[reducer].reduce(np.empty(0, np.float32)).tobytes()
    changed = {
        str(element)
        for element in map(np.float32, ELEMENTS)
        if NUMPY[reducer](start, element).tobytes() != element.tobytes()
    }
    assert changed == ({"-0.0"} if reducer is tn.add else set())
    array = random_array(3, 0)
    found = evaluate(lambda x: tn.reduce(x, 1, reducer), array)
    assert found.tobytes() == np.full(3, start).tobytes()


@pytest.mark.parametrize("axes", [0, 1, 2, -1, (0, 1), (2, 0), None, ()])
def test_axes_match_numpy(axes: Any) -> None:
    x = random_array(2, 3, 4, dtype=np.int64)
    expected = x if axes == () else x.sum(axis=axes)
    np.testing.assert_array_equal(evaluate(lambda a: tn.reduce(a, axes, tn.add), x), expected)


@pytest.mark.parametrize(
    ("reducer", "function"),
    [
        (tn.multiply, np.multiply),
        (tn.maximum, np.maximum),
        (tn.minimum, np.minimum),
        (tn.bitwise_and, np.bitwise_and),
        (tn.bitwise_or, np.bitwise_or),
        (tn.bitwise_xor, np.bitwise_xor),
    ],
)
def test_reducers_match_numpy(reducer: tn.Reducer, function: Any) -> None:
    x = random_array(4, 6, dtype=np.int32)
    result = evaluate(lambda a: tn.reduce(a, 1, reducer), x)
    np.testing.assert_array_equal(result, function.reduce(x, axis=1))


def test_other_dims_keep_their_identity() -> None:
    x = random_array(3, 3)
    result = evaluate(lambda a: a - tn.reduce(a, 1, tn.maximum), x)
    np.testing.assert_array_equal(result, x - x.max(1, keepdims=True))
    with open_session():
        m, n = tn.axis("m", 2), tn.axis("n", 3)
        assert tn.reduce(zeros(m, n), n, tn.add).dims == (m,)
        assert isinstance(tn.reduce(zeros(m, n), (m, n), tn.add), tn.Scalar)


def test_folds_keep_their_order() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    minus: Any = tn.subtract

    def fold(policy: tn.ReductionPolicy) -> Any:
        # The element stands on the right from the left, on the left from the right.
        return evaluate(lambda a: tn.reduce(a, 0, minus, init=0, policy=policy), x)

    assert fold(tn.reduction.fold_left) == -6
    assert fold(tn.reduction.fold_right) == 0 - 3 - 2 - 1
    spread = np.array([1e8, 1, -1e8, 1], np.float32)
    left = evaluate(lambda a: tn.reduce(a, 0, tn.add, policy=tn.reduction.fold_left), spread)
    right = evaluate(lambda a: tn.reduce(a, 0, tn.add, policy=tn.reduction.fold_right), spread)
    assert (left, right) == (1, 0)


def test_a_reducer_of_fold_right_has_the_element_on_the_left() -> None:
    session = build(
        lambda a: tn.reduce(whole(a), 0, tn.add, policy=tn.reduction.fold_right), random_array(4)
    )
    (made,) = find(session, Reduce)
    (apply,) = [op for op in made.body.operations if op.NAME == "scalar.apply"]
    assert apply.operands[1] is made.body.arguments[-1]


def test_seeds() -> None:
    x = random_array(3, 4, dtype=np.int32)
    rows = random_array(3, dtype=np.int32)
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reduce(a, 1, tn.add, init=100), x), x.sum(1) + 100
    )
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reduce(a, 0, tn.add, init=a.at(1, 1)), x), x.sum(0) + x[1, 1]
    )
    np.testing.assert_array_equal(
        evaluate(lambda a, r: tn.reduce(a, 1, tn.add, init=r), x, rows), x.sum(1) + rows
    )
    np.testing.assert_array_equal(evaluate(lambda a: tn.reduce(a, (), tn.add, init=5), x), x + 5)


def test_an_empty_axis_gives_the_seed() -> None:
    x = np.zeros((2, 0), np.float32)
    np.testing.assert_array_equal(evaluate(lambda a: tn.reduce(a, 1, tn.add), x), [0, 0])
    np.testing.assert_array_equal(
        evaluate(lambda a: tn.reduce(a, 1, tn.maximum), x), [-np.inf, -np.inf]
    )
    assert evaluate(lambda a: tn.reduce(a, 0, tn.add), x).shape == (0,)


def test_a_function_of_state_and_element() -> None:
    x = random_array(5, dtype=np.int64)
    result = evaluate(
        lambda a: tn.reduce(a, 0, lambda s, e: s * 2 + e, init=1, policy=tn.reduction.fold_left),
        x,
    )
    expected = 1
    for element in x:
        expected = expected * 2 + element
    assert result == expected


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: untyped.reduce(zeros(4), 1, tn.add), ShapeError),
        (lambda: untyped.reduce(zeros(4, 3), (0, 0), tn.add), ShapeError),
        (lambda: untyped.reduce(zeros(4), tn.axis("m", 4), tn.add), ShapeError),
        (lambda: untyped.reduce(zeros(4), True, tn.add), ShapeError),
        (lambda: untyped.reduce(tn.scalar(1, ir.int32), 0, tn.add), ShapeError),
        (lambda: untyped.reduce(zeros(4), 0, tn.add, policy="fold_left"), CaptureError),
        (lambda: untyped.reduce(zeros(4), 0, lambda s, e: s + e), CaptureError),
        (lambda: untyped.reduce(zeros(4), 0, tn.add, init=np.float64(1)), DTypeError),
        (lambda: untyped.reduce(zeros(4), 0, tn.add, init=zeros(5)), ShapeError),
        (lambda: untyped.reduce(zeros(4, dtype=ir.bool_), 0, tn.add), DTypeError),
        (lambda: untyped.reduce(zeros(4), 0, tn.bitwise_or), DTypeError),
        (lambda: untyped.reduce(zeros(4), 0, lambda s, e: s < e, init=0), DTypeError),
        (lambda: untyped.reduce(zeros(4), 0, lambda s, _: s + zeros(2), init=0), ShapeError),
    ],
)
def test_mistakes(use: Any, error: type[Exception]) -> None:
    with open_session(), pytest.raises(error) as caught:
        use()
    assert "help: " in str(caught.value)
