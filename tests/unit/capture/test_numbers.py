"""Host numbers that a region changes, and loops over run-time ranges, judged by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import nests, numbers, only, operations, poisoned, run, tn
from tilenest.dialects import Serial


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_fibonacci_of_tiles_over_any_number_of_iterations(count: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        a, b = X[0, 4], X[4, 4]
        for _ in tn.serial(n):
            a, b = b, a + b
        Y(0, 4).store(a)

    x, y = numbers(8), poisoned(4)
    a, b = x[:4], x[4:]
    for _ in range(count):
        a, b = b, a + b
    run(kernel, x, np.int64(count), y)
    np.testing.assert_array_equal(y, a)


def test_a_host_number_that_changes_becomes_a_scalar_of_the_dtype_the_body_assigns() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = 0
        for step in tn.serial(5):
            total = total + X.at(step.index()).load()
        Y.at(0).store(total)

    x, y = numbers(5), poisoned(1)
    result = run(kernel, x, y)
    assert y[0] == x.sum()
    (carried,) = only(result, Serial).results
    assert carried.type.dtype is tn.float32


def test_a_counter_becomes_a_scalar_that_indexes() -> None:
    def kernel(X: Any, Y: Any) -> None:
        place = 1
        for step in tn.serial(3):
            Y(step.index() * 4, 4).store(X[place * 4, 4])
            place = place * 2

    x, y = numbers(20), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), x.reshape(5, 4)[[1, 2, 4]])


def test_a_factor_scales_tiles_in_their_dtype() -> None:
    def kernel(X: Any, Y: Any) -> None:
        factor = 1.0
        for step in tn.serial(3):
            Y(step.index() * 4, 4).store(X[0, 4] * factor)
            factor = factor * 0.5

    x, y = numbers(4), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), [x, x / 2, x / 4])


def test_a_flag_of_the_first_iteration_becomes_a_run_time_if() -> None:
    def kernel(X: Any, Y: Any) -> None:
        is_first = True
        best = tn.zeros(4, tn.float32)
        for step in tn.serial(3):
            part = X[step.index() * 4, 4]
            best = part if is_first else tn.minimum(best, part)
            is_first = False
        Y(0, 4).store(best)

    x, y = numbers(12) + 9, poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(3, 4).min(0))


def test_numbers_that_change_together_settle_on_one_dtype() -> None:
    def kernel(X: Any, Y: Any) -> None:
        before = 0
        current = 1
        for step in tn.serial(4):
            before = current
            current = X.at(step.index()).load()
        Y.at(0).store(before)
        Y.at(1).store(current)

    x, y = numbers(4), poisoned(2)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x[2:])


def test_a_number_that_every_iteration_sets_alike_stays_a_number() -> None:
    def kernel(X: Any, Y: Any) -> None:
        size = 2
        for step in tn.serial(3):
            size = 4
            Y(step.index() * size, size).store(X[0, size])
        Y(12, size).store(X[0, size])

    x, y = numbers(4), poisoned(16)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, np.tile(x, 4))
    assert not only(result, Serial).results


def test_a_name_reused_for_a_loop_variable_is_no_state() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for place in range(2):
            Y(place * 4, 4).store(X[place * 4, 4])
        for block in tn.parallel(2):
            for place in range(2):
                at = (2 + block.index() * 2 + place) * 4
                Y(at, 4).store(X[at, 4])

    x, y = numbers(24), poisoned(24)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x)
    assert len(nests(result)) == 1


def test_a_weak_argument_takes_the_dtype_of_the_body() -> None:
    def kernel(X: Any, start: Any, Y: Any) -> None:
        total = start
        for step in tn.serial(4):
            total = total + X.at(step.index()).load()
        Y.at(0).store(total)

    x, y = numbers(4), poisoned(1)
    run(kernel, x, 2.5, y)
    assert y[0] == x.sum() + np.float32(2.5)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_host_loop_over_a_run_time_range_is_serial(count: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for i in range(n):
            total = total + X[i * 4, 4]
        Y(0, 4).store(total)

    x, y = numbers(12), poisoned(4)
    result = run(kernel, x, np.int64(count), y)
    np.testing.assert_array_equal(y, x.reshape(3, 4)[:count].sum(0))
    assert len(operations(result, Serial)) == 1


def test_a_run_time_range_has_bounds_and_a_step() -> None:
    def kernel(X: Any, low: Any, high: Any, Y: Any) -> None:
        total = tn.scalar(0.0, tn.float32)
        for i in range(low, high, 2):
            total += X.at(i).load()
        Y.at(0).store(total)

    x, y = numbers(9), poisoned(1)
    run(kernel, x, np.int64(1), np.int64(8), y)
    assert y[0] == x[1:8:2].sum()


def test_nests_may_open_inside_a_run_time_range() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        for block in tn.parallel(2):
            total = tn.zeros(4, tn.float32)
            for i in range(n):
                for step in block.serial(2):
                    total += X[((block.index() * 3 + i) * 2 + step.index()) * 4, 4]
            Y(block.index() * 4, 4).store(total)

    x, y = numbers(48), poisoned(8)
    run(kernel, x, np.int64(3), y)
    np.testing.assert_array_equal(y.reshape(2, 4), x.reshape(2, 6, 4).sum(1))


@pytest.mark.parametrize("count", [0, 2])
def test_a_number_set_in_a_loop_that_may_not_run_keeps_its_value_then(count: int) -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        factor = 1
        for _ in tn.serial(n):
            factor = 3
        Y(0, 4).store(X[0, 4] * factor)

    x, y = numbers(4), poisoned(4)
    run(kernel, x, np.int64(count), y)
    np.testing.assert_array_equal(y, x * (3 if count else 1))


def test_an_arm_that_keeps_a_number_reads_it() -> None:
    def kernel(X: Any, Y: Any) -> None:
        factor = 1
        for step in tn.serial(3):
            if step.index() == 1:
                factor = 5
            Y(step.index() * 4, 4).store(X[0, 4] * factor)

    x, y = numbers(4), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), [x, 5 * x, 5 * x])


def test_an_arm_that_reads_before_it_writes_reads_the_incoming_value() -> None:
    def kernel(X: Any, Y: Any) -> None:
        factor = 1
        for step in tn.serial(3):
            if step.index() == 0:
                factor = 3
            else:
                Y(step.index() * 4, 4).store(X[0, 4] * factor)
                factor = 4

    x, y = numbers(4), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4)[1:], [3 * x, 4 * x])


def test_an_assignment_in_one_arm_is_not_certain() -> None:
    def kernel(X: Any, Y: Any) -> None:
        factor = 1
        for step in tn.serial(3):
            if step.index() == 1:
                factor = 1
            Y(step.index() * 4, 4).store(X[0, 4] * factor)
            factor = 7

    x, y = numbers(4), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), [x, x, 7 * x])


def test_an_inner_loop_that_may_not_run_reads_what_it_carries() -> None:
    def kernel(X: Any, Y: Any) -> None:
        factor = 1
        for step in tn.serial(3):
            for _ in step.serial(1 - step.index()):
                factor = 5
            Y(step.index() * 4, 4).store(X[0, 4] * factor)

    x, y = numbers(4), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), [5 * x, 5 * x, 5 * x])
