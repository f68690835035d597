"""Compiled code takes exactly the calls that meet the guards of its variant, of all small calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tilenest.backends.llvm import MISSED, RAN
from tilenest.capture import ArraySpec, Specification
from tilenest.driver import Captured, capture_kernel
from tilenest.runtime.arguments import Accepted, accept
from tilenest.runtime.dispatch import grouped
from tilenest.runtime.loading import load
from tilenest.runtime.memory import share_elements

Arrays = tuple[Any, ...]
SPACE = np.zeros(64, np.float32)


def nothing_read(A: Any) -> None:
    A.extent(0)


def rows_read(A: Any) -> None:
    assert A.shape[0] >= 0


def columns_read(A: Any) -> None:
    assert A.shape[1] >= 0


def strides_read(A: Any) -> None:
    assert len([A.strides[0], A.strides[1]]) == 2


def all_read(A: Any) -> None:
    assert A.shape[0] >= 0
    assert A.shape[1] >= 0
    assert A.strides[0] is not None


def one_written(A: Any, B: Any) -> None:
    n = tn.axis("n", 2)
    B(0, n).store(A[0, n])


def size_read(A: Any, B: Any) -> None:
    B(0, tn.axis("n", A.shape[0])).store(0.0)


def both_read(A: Any, B: Any, C: Any) -> None:
    n = tn.axis("n", 2)
    C(0, n).store(tn.cast(A[0, n] + B[0, n], tn.float64))


def described(arguments: Arrays) -> tuple[Accepted, ...]:
    """The arguments as the runtime describes them to capture."""
    return grouped([accept("A", argument) for argument in arguments])


def specs_of(arguments: Arrays) -> list[Specification]:
    return [one.spec for one in described(arguments)]


def variant_of(kernel: Callable[..., None], arguments: Arrays) -> Captured:
    assert isinstance(kernel, FunctionType)
    return capture_kernel(kernel, specs_of(arguments), {})


def outcomes(captured: Captured, calls: Sequence[Arrays]) -> Iterator[tuple[Arrays, bool, bool]]:
    """Every call, whether it meets the guards, and whether compiled code runs."""
    run = load(captured).function
    for arguments in calls:
        outcome = run(*arguments)
        assert outcome in (RAN, MISSED)
        yield arguments, captured.guards.check_arguments(specs_of(arguments)), outcome == RAN


def array(shape: tuple[int, ...], strides: tuple[int, ...], start: int = 0) -> Any:
    steps = tuple(4 * stride for stride in strides)
    return np.lib.stride_tricks.as_strided(SPACE[start:], shape, steps)


MATRICES = [
    (array(shape, strides),)
    for shape in itertools.product(range(4), repeat=2)
    for strides in itertools.product((0, 1, 2, 5), repeat=2)
]
VECTORS = [array((size,), (1,), start) for size in range(3) for start in (0, 1, 4)]


@pytest.mark.parametrize("kernel", [nothing_read, rows_read, columns_read, strides_read, all_read])
@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((2, 3), (5, 1)),
        ((2, 3), (1, 2)),
        ((1, 3), (2, 1)),
        ((3, 1), (1, 5)),
        ((0, 2), (2, 2)),
    ],
)
def test_extents_and_strides(
    kernel: Callable[..., None], shape: tuple[int, int], strides: tuple[int, int]
) -> None:
    captured = variant_of(kernel, (array(shape, strides),))
    taken = 0
    for (given,), is_met, has_run in outcomes(captured, MATRICES):
        assert has_run == is_met, (captured.guards.facts, given.shape, given.strides)
        taken += has_run
    assert 0 < taken < len(MATRICES)


def overlap_in_part(one: Accepted, other: Accepted) -> bool:
    """What is no variant's, whatever its guards say."""
    assert one.memory is not None
    assert other.memory is not None
    return share_elements(one.memory, other.memory) and group_of(one) != group_of(other)


def group_of(one: Accepted) -> int:
    assert isinstance(one.spec, ArraySpec)
    return one.spec.group


@pytest.mark.parametrize("kernel", [one_written, size_read])
@pytest.mark.parametrize("is_same", [True, False])
def test_arrays_that_are_one(kernel: Callable[..., None], is_same: bool) -> None:
    first = array((2,), (1,))
    captured = variant_of(kernel, (first, first if is_same else array((2,), (1,), 4)))
    calls = list(itertools.product(VECTORS, repeat=2))
    taken = 0
    for arguments, is_met, has_run in outcomes(captured, calls):
        assert has_run == (is_met and not overlap_in_part(*described(arguments)))
        taken += has_run
    assert taken


def number_moved(A: Any, B: Any) -> None:
    B.at().store(A.at().load())


@pytest.mark.parametrize("is_same", [True, False])
def test_numbers_that_are_one(is_same: bool) -> None:
    one, other = array((), ()), array((), (), 4)
    captured = variant_of(number_moved, (one, one if is_same else other))
    found = list(outcomes(captured, [(one, one), (one, other), (other, one)]))
    assert [is_met for _, is_met, _ in found] == [is_same, not is_same, not is_same]
    assert all(is_met == has_run for _, is_met, has_run in found)


def test_arrays_that_are_one_and_only_read() -> None:
    """Code for arrays that are apart reads one array twice as well."""
    out = np.zeros(2)
    calls = [(*pair, out) for pair in itertools.product(VECTORS, repeat=2)]
    first = array((2,), (1,))
    for second in (first, array((2,), (1,), 4)):
        captured = variant_of(both_read, (first, second, out))
        for _, is_met, has_run in outcomes(captured, calls):
            assert has_run == (is_met or second is not first)
