"""Python in kernels: what the interpreter evaluates as Python does, and which calls it inlines."""

# These kernels exercise Python's forms, the unusual ones too.
# ruff: noqa: C416, C417, PLC3002

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, poisoned, run, tn
from tilenest import language
from tilenest.kernel import Kernel

SCALE = 3.0


def host_values(kernel: Callable[..., None]) -> list[object]:
    """What a kernel without staged values notes."""
    seen: list[object] = []

    def note(value: object) -> None:
        seen.append(value)

    captured(kernel, note=note)
    return seen


def test_expressions_mean_what_they_mean_in_python() -> None:
    def expected() -> list[object]:
        a, (b, *c), d = 1, (2, 3, 4), {"x": 5}
        matrix = [[i * j for j in range(3) if j != 1] for i in range(2)]
        return [
            a + b * 2 - 7 // 2 % 3,
            c,
            {**d, "y": 6},
            {1, *c},
            [*c, a],
            f"{a:>3}|{d['x']!r}|{3.14159:.{b}f}",
            matrix,
            {key: value for key, value in zip("ab", c, strict=False)},
            {i % 2 for i in range(4)},
            sum(i for i in range(5)),
            (lambda p, *rest, q=2, **more: (p, rest, q, more))(1, 2, 3, q=4, r=5),
            1 < 2 < 3 > 2,
            1 < 2 > 3,
            not a,
            (a and d) or "fallback",
            [][:1] or None,
            (n := 10) + n,
            -a,
            ~b,
            2**5,
            "abcdef"[1:5:2],
            "a" in "cat",
            5 not in c,
            None is None,
            [1, 2, 3][-1],
            (1 if a else 2),
            sorted([3, 1, 2], key=lambda item: -item),
            math.floor(2.7),
        ]

    def kernel(*, note: Callable[[object], None]) -> None:
        a, (b, *c), d = 1, (2, 3, 4), {"x": 5}
        matrix = [[i * j for j in range(3) if j != 1] for i in range(2)]
        note(
            [
                a + b * 2 - 7 // 2 % 3,
                c,
                {**d, "y": 6},
                {1, *c},
                [*c, a],
                f"{a:>3}|{d['x']!r}|{3.14159:.{b}f}",
                matrix,
                {key: value for key, value in zip("ab", c, strict=False)},
                {i % 2 for i in range(4)},
                sum(i for i in range(5)),
                (lambda p, *rest, q=2, **more: (p, rest, q, more))(1, 2, 3, q=4, r=5),
                1 < 2 < 3 > 2,
                1 < 2 > 3,
                not a,
                (a and d) or "fallback",
                [][:1] or None,
                (n := 10) + n,
                -a,
                ~b,
                2**5,
                "abcdef"[1:5:2],
                "a" in "cat",
                5 not in c,
                None is None,
                [1, 2, 3][-1],
                (1 if a else 2),
                sorted([3, 1, 2], key=lambda item: -item),
                math.floor(2.7),
            ]
        )

    assert host_values(kernel) == [expected()]


def test_statements_mean_what_they_mean_in_python() -> None:
    def kernel(*, note: Callable[[object], None]) -> None:
        total = 0
        for i in range(10):
            if i == 2:
                continue
            if i == 6:
                break
            total += i
        else:
            total = -1
        note(total)
        for _ in range(2):
            pass
        note("else")
        count = 5
        while count:
            count -= 1
            if count == 2:
                break
        note(count)
        items = [1, 2, 3]
        items[1] = 20
        items[0] += 5
        table = {"a": 1}
        table["b"] = 2
        note((items, table))
        first = second = [0]
        first.append(1)
        note(second)
        x: int = 4
        note(x)
        assert x == 4, "never"
        del x

        def inner(value: int, step: int = 2) -> int:
            if value > 6:
                return value
            return inner(value + step)

        note(inner(1))

    assert host_values(kernel) == [
        0 + 1 + 3 + 4 + 5,
        "else",
        2,
        ([6, 20, 3], {"a": 1, "b": 2}),
        [0, 1],
        4,
        7,
    ]


def test_comprehensions_have_a_scope_of_their_own() -> None:
    def kernel(*, note: Callable[[object], None]) -> None:
        i = 7
        squares = [i * i for i in range(3)]
        note((i, squares))
        last = [j := value for value in range(3)][-1]
        note((j, last))

    assert host_values(kernel) == [(7, [0, 1, 4]), (2, 2)]


def test_closures_see_later_assignments() -> None:
    def kernel(*, note: Callable[[object], None]) -> None:
        value = 1

        def read() -> int:
            return value

        value = 2
        note(read())
        functions: list[Any] = [lambda at=at: at for at in range(3)]
        note([function() for function in functions])

    assert host_values(kernel) == [2, [0, 1, 2]]


def scaled(part: Any, factor: float = SCALE) -> Any:
    return part * factor


def test_helpers_are_inlined_with_their_defaults() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(scaled(X[0, 4]))
        Y(4, 4).store(scaled(X[0, 4], factor=2.0))

    x, y = numbers(4), poisoned(8)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([3 * x, 2 * x]))


def copy_rows(X: Any, Y: Any, rows: int) -> None:
    for block in tn.parallel(rows):
        Y((block.index(), 0), (1, 4)).store(X[(block.index(), 0), (1, 4)])


def test_a_helper_may_hold_a_whole_nest() -> None:
    def kernel(X: Any, Y: Any) -> None:
        copy_rows(X, Y, X.shape[0])

    x, y = numbers(3, 4), poisoned(3, 4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x)


def test_a_lambda_among_others_on_its_line_is_found() -> None:
    functions: list[Any] = [lambda t: t + 1.0, lambda t: t * 2.0]
    one, two = functions

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(two(one(X[0, 4])))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, (x + 1) * 2)


class Affine:
    """A callable object of the user's, with methods."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, part: Any) -> Any:
        return self.shift(part * self.factor)

    def shift(self, part: Any) -> Any:
        return part + 1.0


def test_methods_and_callable_objects_are_inlined() -> None:
    affine = Affine(2.0)

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(affine(X[0, 4]))
        Y(4, 4).store(affine.shift(X[0, 4]))

    x, y = numbers(4), poisoned(8)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([2 * x + 1, x + 1]))


@language.function
def library_sum(X: Any, rows: int) -> Any:
    total = tn.zeros(4, tn.float32)
    for step in tn.serial(rows):
        total = total + X[(step.index(), 0), (1, 4)].at(0, axis=0)
    return total


def test_library_functions_are_interpreted() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(library_sum(X, X.shape[0]))

    x, y = numbers(3, 4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x.sum(0))


def test_a_kernel_called_in_a_kernel_is_inlined() -> None:
    inner = Kernel(copy_rows_of_two)

    def kernel(X: Any, Y: Any) -> None:
        inner(X, Y)

    x, y = numbers(2, 4), poisoned(2, 4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x)


def copy_rows_of_two(X: Any, Y: Any, *, rows: int = 2) -> None:
    copy_rows(X, Y, rows)


def test_partial_functions_are_unwrapped() -> None:
    half = functools.partial(scaled, factor=0.5)

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(half(X[0, 4]))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x / 2)


class Pair(NamedTuple):
    """A named tuple of tiles."""

    low: Any
    high: Any


def test_named_tuples_are_carried_and_keep_their_names() -> None:
    def kernel(X: Any, Y: Any) -> None:
        pair = Pair(X[0, 4], X[0, 4])
        for step in tn.serial(3):
            part = X[step.index() * 4, 4]
            pair = Pair(tn.minimum(pair.low, part), tn.maximum(pair.high, part))
        Y(0, 4).store(pair.low)
        Y(4, 4).store(pair.high)

    x, y = numbers(12), poisoned(8)
    run(kernel, x, y)
    rows = x.reshape(3, 4)
    np.testing.assert_array_equal(y.reshape(2, 4), [rows.min(0), rows.max(0)])


@dataclass
class Tiles:
    """A record of the user's that holds tiles."""

    a: Any
    b: Any


def combined(tiles: Tiles) -> Any:
    if tiles.a is None:
        return tiles.b
    return tiles.a + tiles.b


def test_records_may_hold_tiles() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(combined(Tiles(X[0, 4], X[4, 4])))

    x, y = numbers(8), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x[:4] + x[4:])


def test_none_arguments_are_host_constants() -> None:
    def kernel(X: Any, bias: Any, Y: Any) -> None:
        part = X[0, 4]
        if bias is not None:
            part = part + bias[0, 4]
        Y(0, 4).store(part)

    x, b = numbers(4), numbers(4, seed=1)
    for bias, expected in [(None, x), (b, x + b)]:
        y = poisoned(4)
        result = run(kernel, x, bias, y)
        np.testing.assert_array_equal(y, expected)
        assert result.arguments == ((0, 2) if bias is None else (0, 1, 2))
        assert result.written == {2}


def test_native_functions_may_call_interpreted_ones_back() -> None:
    def kernel(X: Any, Y: Any) -> None:
        parts = [X[at * 4, 4] for at in range(3)]
        total = functools.reduce(lambda a, b: a + b, map(lambda part: part * 2.0, parts))
        Y(0, 4).store(total)

    x, y = numbers(12), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, 2 * x.reshape(3, 4).sum(0))


def test_host_recursion_unrolls() -> None:
    def tree(parts: list[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return tree(parts[:half]) + tree(parts[half:])

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(tree([X[at * 4, 4] for at in range(8)]))

    x, y = numbers(32), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(8, 4).sum(0))


def test_a_kernel_method_with_a_local_decorator() -> None:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda part: function(function(part))

    def kernel(X: Any, Y: Any) -> None:
        @twice
        def grow(part: Any) -> Any:
            return part + 1.0

        Y(0, 4).store(grow(X[0, 4]))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x + 2)


def test_errors_of_host_code_pass_through_with_the_kernels_line() -> None:
    def kernel() -> None:
        table = {"a": 1}
        table["b"]

    with pytest.raises(KeyError) as caught:
        captured(kernel)
    (note,) = caught.value.__notes__
    assert 'table["b"]' in note
    assert "in kernel" in note


def test_a_failed_assertion_is_the_users() -> None:
    def kernel(X: Any) -> None:
        assert X.shape[0] == 5, f"got {X.shape[0]}"

    with pytest.raises(AssertionError, match="got 4"):
        captured(kernel, numbers(4))


def test_a_raise_on_a_host_condition_is_the_users() -> None:
    def kernel(X: Any) -> None:
        if X.shape[0] % 8:
            raise ValueError("rows come in eights")

    with pytest.raises(ValueError, match="eights"):
        captured(kernel, numbers(4))
