"""Run-time conditions: `if`, conditional expressions, `and`, `or`, `not`, chained comparisons."""

# Kernels here are written as users write them, with every form of a condition.
# ruff: noqa: RUF021, SIM108

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, operations, poisoned, run, tn
from tilenest.dialects import Apply, If
from tilenest.errors import CaptureError, CarriedTypeError, UndefinedVariableError


@pytest.mark.parametrize("n", [0, 3])
def test_both_arms_start_from_the_same_environment(n: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        a, b = X[0, 4], X[4, 4]
        if n > 1:
            a = a + b
            b = a
        else:
            b = a * 2
        Y(0, 4).store(a)
        Y(4, 4).store(b)

    x, y = numbers(8), poisoned(8)
    a, b = x[:4], x[4:]
    expected = [a + b, a + b] if n > 1 else [a, 2 * a]
    result = run(kernel, x, np.int64(n), y)
    np.testing.assert_array_equal(y.reshape(2, 4), expected)
    (operation,) = operations(result, If)
    assert len(operation.results) == 2


@pytest.mark.parametrize("n", range(5))
def test_elif_is_nested(n: int) -> None:
    def kernel(n: Any, Y: Any) -> None:
        if n == 0:
            value = tn.scalar(10.0, tn.float32)
        elif n == 1:
            value = tn.scalar(20.0, tn.float32)
        elif n < 4:
            value = tn.scalar(30.0, tn.float32)
        else:
            value = tn.scalar(40.0, tn.float32)
        Y.at(0).store(value)

    y = poisoned(1)
    run(kernel, np.int64(n), y)
    assert y[0] == [10, 20, 30, 30, 40][n]


@pytest.mark.parametrize("n", [0, 1])
def test_numbers_merge_into_a_scalar(n: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        place: Any = 0
        factor: Any = 1
        if n != 0:
            place = 4
            factor = 2.5
        Y(0, 4).store(X[place, 4] * factor)

    x, y = numbers(8), poisoned(4)
    run(kernel, x, np.int64(n), y)
    np.testing.assert_array_equal(y, x[4:] * 2.5 if n else x[:4])


def test_equal_host_values_stay_host_values() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        if n > 0:
            size = 4
            part = X[0, size]
        else:
            size = 4
            part = X[4, size]
        Y(0, size).store(part)

    x, y = numbers(8), poisoned(4)
    run(kernel, x, np.int64(0), y)
    np.testing.assert_array_equal(y, x[4:])


@pytest.mark.parametrize("n", [0, 2])
def test_stores_stand_under_their_condition(n: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        for block in tn.parallel(2):
            if block.index() < n:
                Y(block.index() * 4, 4).store(X[block.index() * 4, 4])

    x, y = numbers(8), poisoned(8)
    run(kernel, x, np.int64(n), y)
    np.testing.assert_array_equal(y, x if n else np.full(8, np.nan))


def test_a_variable_that_is_dead_after_is_not_merged() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        part = X[0, 4]
        if n > 0:
            part = X[0, 8]
            Y(0, 8).store(part)
        part = X[0, 8]
        Y(8, 8).store(part)

    x, y = numbers(8), poisoned(16)
    result = run(kernel, x, np.int64(1), y)
    np.testing.assert_array_equal(y, np.tile(x, 2))
    assert not operations(result, If)[0].results


def test_an_if_in_a_loop_carries_what_one_arm_keeps() -> None:
    def kernel(X: Any, Y: Any) -> None:
        best = X.at(0).load()
        place: Any = 0
        for step in tn.serial(6):
            value = X.at(step.index()).load()
            if value > best:
                best = value
                place = step.index()
        Y.at(0).store(best)
        Y.at(1).store(place.cast(tn.float32))

    x, y = numbers(6), poisoned(2)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, [x.max(), x.argmax()])


def test_list_slots_merge() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        parts = [X[0, 4], X[4, 4]]
        if n > 0:
            parts[0] = parts[1]
        Y(0, 4).store(parts[0])
        Y(4, 4).store(parts[1])

    x, y = numbers(8), poisoned(8)
    result = run(kernel, x, np.int64(1), y)
    np.testing.assert_array_equal(y, np.tile(x[4:], 2))
    assert len(operations(result, If)[0].results) == 1


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 5), (5, 0), (5, 5)])
def test_and_or_not_and_chains_on_scalars(n: int, m: int) -> None:
    def kernel(n: Any, m: Any, Y: Any) -> None:
        conditions = [
            n > 1 and m > 1,
            n > 1 or m > 1,
            not n > 1,
            0 < n < 9,
            m <= n <= 5 or n > 7,
            not (n > 1 and m > 1) and True,
            n > 1 and m > 1 or n == m,
        ]
        for place, condition in enumerate(conditions):
            Y.at(place).store(1.0 if condition else 0.0)

    y = poisoned(7)
    run(kernel, np.int64(n), np.int64(m), y)
    expected = [
        n > 1 and m > 1,
        n > 1 or m > 1,
        not n > 1,
        0 < n < 9,
        m <= n <= 5 or n > 7,
        not (n > 1 and m > 1),
        n > 1 and m > 1 or n == m,
    ]
    np.testing.assert_array_equal(y, np.array(expected, np.float32))


def test_host_operands_cut_a_condition_short() -> None:
    def kernel(n: Any, Y: Any, *, flag: bool) -> None:
        # The right operand would fail; a host value on the left decides without it.
        if not flag or Y.shape[7] > n:
            Y.at(0).store(1.0)

    y = poisoned(1)
    result = run(kernel, np.int64(3), y, flag=False)
    assert y[0] == 1.0
    assert not operations(result, If)


def test_integers_are_true_when_not_zero() -> None:
    def kernel(n: Any, Y: Any) -> None:
        Y.at(0).store(2.0 if n else 3.0)

    for n, expected in [(0, 3.0), (4, 2.0)]:
        y = poisoned(1)
        run(kernel, np.int64(n), y)
        assert y[0] == expected


def test_a_conditional_expression_of_scalars_is_a_where() -> None:
    def kernel(n: Any, Y: Any) -> None:
        Y.at(0).store((n if n > 3 else 3 - n).cast(tn.float32))

    y = poisoned(1)
    result = run(kernel, np.int64(1), y)
    assert y[0] == 2.0
    assert not operations(result, If)
    assert "where" in [op.function for op in operations(result, Apply)]


@pytest.mark.parametrize("n", [0, 1])
def test_a_conditional_expression_of_tiles_is_an_if(n: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] if n > 0 else X[4, 4] * 2)

    x, y = numbers(8), poisoned(4)
    result = run(kernel, x, np.int64(n), y)
    np.testing.assert_array_equal(y, x[:4] if n else x[4:] * 2)
    assert len(operations(result, If)) == 1


def test_min_max_and_abs_of_scalars() -> None:
    def kernel(n: Any, Y: Any) -> None:
        Y.at(0).store(min(n, 4).cast(tn.float32))
        Y.at(1).store(max([n, 4, 2]).cast(tn.float32))
        Y.at(2).store(abs(n - 9).cast(tn.float32))
        Y.at(3).store(max(2, 3) * 1.0)

    y = poisoned(4)
    run(kernel, np.int64(7), y)
    np.testing.assert_array_equal(y, [4, 7, 2, 3])


def test_a_variable_of_one_branch_is_undefined_afterwards() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        if n > 0:
            part = X[0, 4]
        Y(0, 4).store(part)  # type: ignore[possibly-undefined]  # the mistake

    with pytest.raises(UndefinedVariableError, match="'part' is defined in one branch") as caught:
        captured(kernel, numbers(4), np.int64(1), poisoned(4))
    location = caught.value.location
    assert location is not None
    assert location.source[location.column - 1 : location.end_column - 1] == "part"


def test_branches_of_different_shapes_name_both() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        if n > 0:
            part = X[0, 4]
        else:
            part = X[0, 8]
        Y(0, 8).store(part)

    with pytest.raises(CarriedTypeError, match=r"shape 4 .* shape 8"):
        captured(kernel, numbers(8), np.int64(1), poisoned(8))


def test_a_tile_is_no_condition() -> None:
    def kernel(X: Any, Y: Any) -> None:
        if X[0, 4] > 0:
            Y.at(0).store(1.0)

    with pytest.raises(CaptureError, match="a tile is used as the condition") as caught:
        captured(kernel, numbers(4), poisoned(4))
    assert "tn.where" in (caught.value.remedy or "")


def with_break(n: Any) -> None:
    for _ in range(3):
        if n > 1:
            break


def with_continue(n: Any) -> None:
    for _ in range(3):
        if n > 1:
            continue


def with_return(n: Any) -> None:
    if n > 1:
        return


def with_raise(n: Any) -> None:
    if n > 1:
        raise ValueError("n")


@pytest.mark.parametrize("kernel", [with_break, with_continue, with_return, with_raise])
def test_jumps_inside_a_run_time_if_are_refused(kernel: Any) -> None:
    word = kernel.__name__.removeprefix("with_")
    with pytest.raises(CaptureError, match=f"`{word}` stands inside a run-time `if`") as caught:
        captured(kernel, np.int64(1))
    assert caught.value.location is not None
    assert word in caught.value.location.source


def test_element_functions_of_a_map_may_choose() -> None:
    def kernel(Y: Any) -> None:
        m = tn.axis("m", 6)
        Y(0, 6).store(tn.map(m, lambda i: (i if i > 2 else 0 - i).cast(tn.float32)))

    y = poisoned(6)
    run(kernel, y)
    np.testing.assert_array_equal(y, [0, -1, -2, 3, 4, 5])
