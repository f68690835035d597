"""Random kernels on the CPU against the interpreter.

Every example is a text of its own (see `programs.py`), printed when it fails. A few examples of
each kind run always, a thousand in all when slow tests do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from tests.oracle.arrays import integers, special, whole
from tests.oracle.compare import Out, assert_same, check
from tests.oracle.programs import (
    INPUTS,
    elementwise,
    kernel_of,
    loops,
    reductions,
    region_reductions,
)

# Shrinking compiles hundreds of kernels: only where there is time for it.
few = settings(max_examples=12, phases=[Phase.explicit, Phase.generate])
many = settings(max_examples=200)
widths = st.sampled_from([1, 5, 16, 33, 130])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def compare_floats(folder: Path, program: tuple[str, int], width: int) -> None:
    text, rows = program
    note(text)
    x = special(INPUTS * width, seed=width).reshape(INPUTS, width)
    # Only the last row may end in a transcendental function.
    (z,) = check(kernel_of(text, folder), x, Out((rows, width)), ulps=2)
    kernel = kernel_of(text, folder)
    exact = np.full((rows, width), np.nan, np.float32)
    kernel.compile(x, exact, target="interpret")(x, exact)
    assert_same(z[:-1], exact[:-1])


def compare_integers(folder: Path, program: tuple[str, int], width: int) -> None:
    text, rows = program
    note(text)
    x = integers((INPUTS, width), np.int32, width)
    x[1] = np.arange(width) - 3
    check(kernel_of(text, folder), x, Out((rows, width), np.int32))


def compare_reduction(folder: Path, program: Any) -> None:
    text, dtype, shape, kept = program
    note(text)
    x = whole(shape, dtype, seed=len(text))
    check(kernel_of(text, folder), x, Out(kept, dtype), Out(shape, dtype))


def compare_loops(folder: Path, text: str, n: int) -> None:
    note(text)
    check(kernel_of(text, folder), whole((64,), seed=n), n, Out((4, 4, 35)))


def compare_region(folder: Path, program: tuple[str, tuple[int, int]]) -> None:
    text, shape = program
    note(text)
    x = whole(shape, seed=len(text))
    check(kernel_of(text, folder), x, Out((3, 70)), Out(shape))


@few
@given(elementwise("float32"), widths)
def test_float_graphs(folder: Path, program: tuple[str, int], width: int) -> None:
    compare_floats(folder, program, width)


@few
@given(elementwise("int32"), widths)
def test_integer_graphs(folder: Path, program: tuple[str, int], width: int) -> None:
    compare_integers(folder, program, width)


@few
@given(reductions())
def test_reductions(folder: Path, program: Any) -> None:
    compare_reduction(folder, program)


@few
@given(loops(), st.sampled_from([0, 1, 3]))
def test_loops(folder: Path, text: str, n: int) -> None:
    compare_loops(folder, text, n)


@few
@given(region_reductions())
def test_region_reductions(folder: Path, program: tuple[str, tuple[int, int]]) -> None:
    compare_region(folder, program)


@pytest.mark.slow
@many
@given(elementwise("float32"), widths)
def test_many_float_graphs(folder: Path, program: tuple[str, int], width: int) -> None:
    compare_floats(folder, program, width)


@pytest.mark.slow
@many
@given(elementwise("int32"), widths)
def test_many_integer_graphs(folder: Path, program: tuple[str, int], width: int) -> None:
    compare_integers(folder, program, width)


@pytest.mark.slow
@many
@given(reductions())
def test_many_reductions(folder: Path, program: Any) -> None:
    compare_reduction(folder, program)


@pytest.mark.slow
@many
@given(loops(), st.sampled_from([0, 1, 3]))
def test_many_loops(folder: Path, text: str, n: int) -> None:
    compare_loops(folder, text, n)


@pytest.mark.slow
@many
@given(region_reductions())
def test_many_region_reductions(folder: Path, program: tuple[str, tuple[int, int]]) -> None:
    compare_region(folder, program)
