"""Which variables a region carries: the sets of definite assignment, judged by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.capture.kernels import captured, nests, numbers, only, poisoned, run, tn
from tilenest.dialects import Pipeline, Reduce, Serial


def test_a_variable_read_and_written_is_carried() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(8, tn.float32)
        for step in tn.serial(5):
            total = total + X[(step.index(), 0), (1, 8)].at(0, axis=0)
        Y(0, 8).store(total)

    x, y = numbers(5, 8), poisoned(8)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x.sum(0))
    assert len(only(result, Serial).results) == 1


def test_augmented_assignment_carries() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros((1, 8), tn.float32)
        for step in tn.serial(5):
            total += X[(step.index(), 0), (1, 8)]
        Y((0, 0), (1, 8)).store(total)

    x, y = numbers(5, 8), poisoned(1, 8)
    run(kernel, x, y)
    np.testing.assert_array_equal(y[0], x.sum(0))


def test_a_variable_only_read_is_a_capture() -> None:
    def kernel(X: Any, Y: Any) -> None:
        base = X[0, 4]
        for step in tn.serial(3):
            Y(step.index() * 4, 4).store(base)

    x, y = numbers(4), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, np.tile(x, 3))
    assert not only(result, Serial).results
    assert len(only(result, Serial).body.arguments) == 1


def test_a_written_variable_that_is_live_after_takes_its_incoming_value_as_initial() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        last = X[0, 4]
        for step in tn.serial(n):
            last = X[step.index() * 4, 4]
        Y(0, 4).store(last)

    x = numbers(12)
    for count, expected in [(0, x[:4]), (1, x[:4]), (3, x[8:])]:
        y = poisoned(4)
        result = run(kernel, x, np.int64(count), y)
        np.testing.assert_array_equal(y, expected)
        assert len(only(result, Serial).initial) == 1


def test_a_written_variable_that_is_dead_after_is_not_carried() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, 4]
        Y(0, 4).store(part)
        for step in tn.serial(3):
            part = X[step.index() * 4, 4]
            Y(step.index() * 4, 4).store(part)

    x, y = numbers(12), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x)
    assert not only(result, Serial).results


def test_a_dead_recurrence_stays_carried() -> None:
    def kernel(X: Any, Y: Any) -> None:
        running = tn.zeros(4, tn.float32)
        for step in tn.serial(3):
            running = running + X[step.index() * 4, 4]
            Y(step.index() * 4, 4).store(running)

    x, y = numbers(12), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), x.reshape(3, 4).cumsum(0))
    assert len(only(result, Serial).results) == 1


def test_a_snapshot_keeps_two_variables_of_one_value_apart() -> None:
    def kernel(X: Any, Y: Any) -> None:
        a = X[0, 4]
        b = a
        snapshot = a
        for _ in tn.serial(3):
            old = a
            a = a + snapshot
            b = old
        Y(0, 4).store(a)
        Y(4, 4).store(b)
        Y(8, 4).store(snapshot)

    x, y = numbers(4), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), [4 * x, 3 * x, x])
    assert len(only(result, Serial).results) == 2


def test_a_swap_is_simultaneous() -> None:
    def kernel(X: Any, Y: Any) -> None:
        a, b = X[0, 4], X[4, 4]
        for _ in tn.serial(3):
            a, b = b, a
        Y(0, 4).store(a)
        Y(4, 4).store(b)

    x, y = numbers(8), poisoned(8)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([x[4:], x[:4]]))


def test_a_rotation_of_three() -> None:
    def kernel(X: Any, Y: Any) -> None:
        a, b, c = X[0, 4], X[4, 4], X[8, 4]
        for _ in tn.serial(2):
            a, b, c = b, c, a
        for place, part in enumerate([a, b, c]):
            Y(place * 4, 4).store(part)

    x, y = numbers(12), poisoned(12)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([x[8:], x[:8]]))


def test_nested_loops_carry_through_both() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for outer in tn.serial(2):
            row = tn.zeros(4, tn.float32)
            for inner in outer.serial(3):
                part = X[(outer.index() * 3 + inner.index()) * 4, 4]
                row = row + part
                total = total + row
        Y(0, 4).store(total)

    x, y = numbers(24), poisoned(4)
    expected = x.reshape(2, 3, 4).cumsum(1).sum((0, 1))
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, expected)
    assert [len(nest.results) for nest in nests(result)] == [1, 2]


def test_a_value_unchanged_in_an_inner_loop_is_not_carried_by_it() -> None:
    def kernel(X: Any, Y: Any) -> None:
        a = X[0, 4]
        b = X[4, 4]
        for outer in tn.serial(2):
            a = a + b
            for inner in outer.serial(3):
                b = b + a + inner.index().cast(tn.float32)
        Y(0, 4).store(a)
        Y(4, 4).store(b)

    x, y = numbers(8), poisoned(8)
    a, b = x[:4], x[4:]
    for _ in range(2):
        a = a + b
        for inner in range(3):
            b = b + a + np.float32(inner)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([a, b]))
    assert [len(nest.results) for nest in nests(result)] == [2, 1]


def test_liveness_follows_the_back_edge_of_a_host_loop() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, 4]
        for turn in range(2):
            Y(turn * 4, 4).store(part)
            for step in tn.serial(3):
                part = X[step.index() * 4, 4]

    x, y = numbers(12), poisoned(8)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([x[:4], x[8:]]))


def test_a_variable_read_by_a_closure_is_live() -> None:
    def kernel(X: Any, Y: Any) -> None:
        part = X[0, 4]

        def current() -> Any:
            return part

        for step in tn.serial(3):
            part = X[step.index() * 4, 4]
        Y(0, 4).store(current())

    x, y = numbers(12), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x[8:])


def test_a_closure_reads_the_carried_value_inside_the_region() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)

        def plus(part: Any) -> Any:
            return total + part

        for step in tn.serial(3):
            total = plus(X[step.index() * 4, 4])
        Y(0, 4).store(total)

    x, y = numbers(12), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(3, 4).sum(0))


def test_list_slots_are_variables() -> None:
    def kernel(X: Any, Y: Any) -> None:
        sums = [tn.zeros(4, tn.float32) for _ in range(3)]
        for step in tn.serial(2):
            for slot in range(3):
                sums[slot] = sums[slot] + X[(step.index() * 3 + slot) * 4, 4]
        for slot, part in enumerate(sums):
            Y(slot * 4, 4).store(part)

    x, y = numbers(24), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(2, 12).sum(0))
    assert len(only(result, Serial).results) == 3


def test_a_helper_may_write_the_slots_of_a_list_it_is_given() -> None:
    def accumulate(sums: Any, part: Any) -> None:
        sums[0] += part
        sums[1] *= part

    def kernel(X: Any, Y: Any) -> None:
        state = [tn.zeros(4, tn.float32), tn.full(4, 1.0, tn.float32)]
        for step in tn.serial(3):
            accumulate(state, X[step.index() * 4, 4])
        Y(0, 4).store(state[0])
        Y(4, 4).store(state[1])

    x, y = numbers(12), poisoned(8)
    run(kernel, x, y)
    rows = x.reshape(3, 4)
    np.testing.assert_array_equal(y.reshape(2, 4), [rows.sum(0), rows.prod(0)])


def test_a_tuple_is_carried_value_by_value() -> None:
    def kernel(X: Any, Y: Any) -> None:
        state = (tn.zeros(4, tn.float32), X[0, 4])
        for step in tn.serial(3):
            total, largest = state
            part = X[step.index() * 4, 4]
            state = (total + part, tn.maximum(largest, part))
        Y(0, 4).store(state[0])
        Y(4, 4).store(state[1])

    x, y = numbers(12), poisoned(8)
    result = run(kernel, x, y)
    rows = x.reshape(3, 4)
    np.testing.assert_array_equal(y.reshape(2, 4), [rows.sum(0), rows.max(0)])
    assert len(only(result, Serial).results) == 2


def test_scalars_are_carried() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.scalar(0.0, tn.float32)
        for step in tn.serial(5):
            total = total + X.at(step.index()).load()
        Y.at(0).store(total)

    x, y = numbers(5), poisoned(1)
    run(kernel, x, y)
    assert y[0] == x.sum()


def test_reduce_takes_what_is_written_and_declared_outside_as_state() -> None:
    def kernel(X: Any, Y: Any) -> None:
        m = tn.axis("m", 6)
        for block in tn.parallel(2):
            row = X[block.index() * 6, m]
            total = tn.scalar(0.0, tn.float32)
            largest = row.at(0)
            for c in block.reduce(m):
                element = row.at(c)
                total += element
                largest = tn.maximum(largest, element)
            Y.at(block.index()).store(total)
            Y.at(block.index() + 2).store(largest)

    x, y = numbers(12), poisoned(4)
    result = run(kernel, x, y)
    rows = x.reshape(2, 6)
    np.testing.assert_array_equal(y, [*rows.sum(1), *rows.max(1)])
    assert len(only(result, Reduce).results) == 2
    assert only(result, Reduce).policy == "unordered_tree"


def test_an_empty_reduction_gives_the_seed() -> None:
    def kernel(X: Any, n: Any, Y: Any) -> None:
        total = tn.scalar(7.0, tn.float32)
        for c in tn.root().reduce(n):
            total += X.at(c.index()).load()
        Y.at(0).store(total)

    x, y = numbers(4), poisoned(1)
    run(kernel, x, np.int64(0), y)
    assert y[0] == 7.0


def test_a_fold_from_the_right_is_asked_for_by_policy() -> None:
    def kernel(X: Any, Y: Any) -> None:
        state = tn.scalar(0.0, tn.float32)
        for c in tn.root().reduce(3, policy=tn.reduction.fold_right):
            state = X.at(c.index()).load() - state
        Y.at(0).store(state)

    x, y = np.array([1, 2, 3], np.float32), poisoned(1)
    run(kernel, x, y)
    assert y[0] == 2.0


def test_parallel_carries_nothing() -> None:
    def kernel(X: Any, Y: Any) -> None:
        scale = X[0, 4]
        for block in tn.parallel(3):
            part = X[block.index() * 4, 4] * scale
            Y(block.index() * 4, 4).store(part)

    x, y = numbers(12), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y.reshape(3, 4), x.reshape(3, 4) * x[:4])
    (nest,) = nests(result)
    assert not nest.results
    assert len(nest.body.arguments) == 1


def test_two_axes_give_two_indices_in_order() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for block in tn.parallel(2, range(1, 3)):
            i, j = block.index()
            Y.at(i, j).store(X.at(j, i).load())

    x, y = numbers(3, 2), poisoned(2, 3)
    run(kernel, x, y)
    np.testing.assert_array_equal(y[:, 1:], x.T[:, 1:])
    assert np.isnan(y[:, 0]).all()


def test_names_the_user_wrote_survive() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for step in tn.serial(3):
            total = total + X[step.index() * 4, 4]
        Y(0, 4).store(total)

    result = captured(kernel, numbers(12), poisoned(4))
    nest = only(result, Serial)
    assert [argument.name for argument in nest.body.arguments] == ["step", "total"]
    assert [value.name for value in nest.results] == ["total"]
    (function,) = result.module.functions
    assert [argument.name for argument in function.arguments] == ["X", "Y"]


def test_a_pipeline_without_stages_has_one() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for step in tn.pipeline(3, window=2, interval=1):
            total = total + X[step.index() * 4, 4]
        Y(0, 4).store(total)

    x, y = numbers(12), poisoned(4)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(3, 4).sum(0))
    pipeline = only(result, Pipeline)
    assert (len(pipeline.regions), pipeline.window, pipeline.stage_names) == (1, 2, (None,))


def test_a_dead_variable_read_only_by_another_assignment_is_carried() -> None:
    def kernel(X: Any, Y: Any) -> None:
        current = X[0, 4]
        before = current
        for step in tn.serial(3):
            before = current
            current = X[step.index() * 4, 4]
        Y(0, 4).store(before)

    x, y = numbers(12), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x[4:8])
