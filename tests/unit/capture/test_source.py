"""Finding source: definitions and lambdas in their files, and the places of operations."""

# ruff: noqa: PLC3002 - a lambda that makes a lambda is one of the forms

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, only, operations, poisoned, run, tn
from tests.unit.capture.test_stages import gemm
from tilenest.dialects import Load, Map, Mma, Parallel, Serial, Store
from tilenest.errors import SourceLocation


def text_at(location: SourceLocation) -> str:
    """The characters that a place names, read from the file itself."""
    line = linecache.getline(location.file, location.line).rstrip("\n")
    assert location.source == line
    return line[location.column - 1 : location.end_column - 1]


def test_operations_stand_at_their_expressions() -> None:
    result = captured(gemm, numbers(9, 13), numbers(13, 11), poisoned(9, 11))
    assert text_at(only(result, Mma).location) == "tn.mma(a, b, acc)"
    assert [text_at(load.location) for load in operations(result, Load)] == [
        "A[(i * bm, k0), (m, k)]",
        "B[(k0, j * bn), (k, n)]",
    ]
    assert text_at(only(result, Store).location) == "C((i * bm, j * bn), (m, n)).store(acc)"
    assert text_at(only(result, Parallel).location) == (
        "tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn))"
    )
    assert only(result, Mma).location.function == "gemm"


def doubled(part: Any) -> Any:
    return part + part


def test_inlined_operations_name_their_callers() -> None:
    def kernel(X: Any, Y: Any) -> None:
        def inner(part: Any) -> Any:
            return doubled(part)

        Y(0, 4).store(inner(X[0, 4]))

    location = only(captured(kernel, numbers(4), poisoned(4)), Map).location
    chain = []
    place: SourceLocation | None = location
    while place is not None:
        chain.append((place.function, text_at(place)))
        place = place.caller
    assert chain == [
        ("doubled", "part + part"),
        ("inner", "doubled(part)"),
        ("kernel", "inner(X[0, 4])"),
    ]


def test_functions_called_back_by_native_code_name_the_call() -> None:
    def kernel(X: Any, Y: Any) -> None:
        parts = sorted([X[0, 4], X[4, 4]], key=lambda part: len((part + 1.0).shape))
        Y(0, 4).store(parts[0])

    location = operations(captured(kernel, numbers(8), poisoned(4)), Map)[0].location
    assert text_at(location) == "part + 1.0"
    assert location.caller is not None
    assert text_at(location.caller).startswith("sorted(")


def marked(function: Any) -> Any:
    return function


@marked
@marked
def decorated(X: Any, Y: Any) -> None:
    """A kernel under decorators, with text that looks like code:
    def other(): pass
    """
    text = """
not indented
"""
    if text.count("\n") == 2:
        Y(0, 4).store(
            X[
                0,
                4,
            ]
        )


def test_decorators_and_strings_do_not_disturb() -> None:
    x, y = numbers(4), poisoned(4)
    result = run(decorated, x, y)
    np.testing.assert_array_equal(y, x)
    assert text_at(only(result, Load).location) == "X["
    assert text_at(only(result, Store).location) == "Y(0, 4).store("


@pytest.mark.parametrize("lines", [0, 1, 200])
def test_lines_at_the_margin_may_belong_to_a_definition(lines: int) -> None:
    source = (
        "def other(): pass\n"
        "def kernel(\n    X,\n    Y,\n):\n"
        '    text = """\n' + "x = 1\n" * lines + '"""\n'
        "# a note\n"
        f"    if len(text) == {1 + 6 * lines}:\n"
        "        Y(0, 4).store(X[0, 4])\n"
        "another = 1\n"
    )
    file = f"<margin of {lines}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(source, file, "exec"), space)
    x, y = numbers(4), poisoned(4)
    result = run(space["kernel"], x, y)
    np.testing.assert_array_equal(y, x)
    assert text_at(only(result, Load).location) == "X[0, 4]"


def test_lambdas_are_kernels_too() -> None:
    kernels: list[Any] = [
        lambda X, Y: Y(0, 4).store(X[0, 4]), lambda X, Y: Y(0, 4).store(X[0, 4] * 2.0),
        (lambda factor: lambda X, Y: Y(0, 4).store(X[0, 4] * factor))(3.0),
    ]  # fmt: skip
    for kernel, factor in zip(kernels, (1, 2, 3), strict=True):
        x, y = numbers(4), poisoned(4)
        result = run(kernel, x, y)
        np.testing.assert_array_equal(y, factor * x)
        assert text_at(only(result, Store).location).startswith("Y(0, 4).store(X[0, 4]")


class Kernels:
    """A class that holds a kernel."""

    @staticmethod
    def copy(X: Any, Y: Any) -> None:
        for step in tn.serial(2):
            Y(step.index() * 2, 2).store(X[step.index() * 2, 2])


def test_indented_definitions_keep_their_columns() -> None:
    x, y = numbers(4), poisoned(4)
    result = run(Kernels.copy, x, y)
    np.testing.assert_array_equal(y, x)
    assert text_at(only(result, Serial).location) == "tn.serial(2)"


def test_source_is_read_once_for_all_closures_of_a_definition() -> None:
    def make(factor: float) -> Any:
        def kernel(X: Any, Y: Any) -> None:
            Y(0, 4).store(X[0, 4] * factor)

        return kernel

    places = set()
    for factor in (1.0, 2.0):
        x, y = numbers(4), poisoned(4)
        result = run(make(factor), x, y)
        np.testing.assert_array_equal(y, factor * x)
        places.add(only(result, Store).location)
    assert len(places) == 1
