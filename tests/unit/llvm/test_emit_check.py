"""Checks of bounds in native code: what the entry hands back, and which stores happened before."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.unit.llvm.programs import Program, described, load_kernel, set_threads
from tilenest.backends.llvm import RAN, Fault
from tilenest.dialects import Check
from tilenest.ir import DType, ScalarType, Value, bool_, float32, index


@pytest.fixture(autouse=True)
def one_thread_afterwards() -> Iterator[None]:
    yield
    set_threads(1)


def check(program: Program, first: Value, extent: Value, condition: Value | None = None) -> None:
    operation = Check(
        first=first,
        extent=extent,
        condition=condition,
        access="load of A",
        axis=1,
        count=3,
        site=5,
        depth=2,
    )
    program.builder.insert(operation)


CASES = [
    (0, 3, True, None),
    (0, 2, False, None),
    (1, 3, True, 3),
    (0, 0, True, 0),
    (-1, 9, True, -1),
    (9, 4, True, 9),
    (2**63 - 1, 4, True, 2**63 - 1),
    (-(2**63), 4, True, -(2**63)),
]


@pytest.mark.parametrize(("first", "extent", "condition", "expected"), CASES)
def test_a_check_compares_without_wrapping(
    first: int, extent: int, condition: bool, expected: int | None
) -> None:
    dtypes: list[DType] = [index, index, bool_]
    program = Program([], dtypes)
    check(program, *program.scalars)
    kernel = load_kernel(program.finish(), described([], dtypes))
    outcome = kernel.call(first, extent, condition)
    if expected is None:
        assert outcome == RAN
        return
    assert isinstance(outcome, bytes)
    assert Fault.of(outcome) == Fault(5, 1, expected, extent, depth=2)


def launched(total: int, limit: int) -> Program:
    """Item i checks i .. i+2 against `limit`, then writes 1."""
    program = Program([1])
    pointer = program.view(0)[0]
    bound = program.number(limit)
    with program.launch(program.number(total), [pointer, bound], cost_ns=50_000.0) as arguments:
        begin, end, _, array, extent = arguments
        one, value = program.number(1), program.number(1.0, ScalarType(float32))

        def item(i: Value) -> list[Value]:
            check(program, i, extent)
            program.store(value, program.at(array, i, 4))
            return []

        program.loop(begin, end, one, item)
    return program


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_fault_in_any_chunk_reaches_the_caller(threads: int) -> None:
    set_threads(threads)
    array = np.zeros(64, np.float32)
    kernel = load_kernel(launched(64, 66).finish(), described([array]))
    assert kernel.call(array) == RAN and (array == 1).all()
    kernel = load_kernel(launched(64, 20).finish(), described([array]))
    for _ in range(50):
        array[:] = 0
        outcome = kernel.call(array)
        assert isinstance(outcome, bytes)
        fault = Fault.of(outcome)
        assert (fault.site, fault.axis, fault.extent) == (5, 1, 20)
        assert 20 <= fault.index < 64
        assert (array[:18] == 1).all() and (array[18:] == 0).all()


def test_one_thread_reports_the_first_fault() -> None:
    set_threads(1)
    array = np.zeros(64, np.float32)
    kernel = load_kernel(launched(64, 20).finish(), described([array]))
    faults = {kernel.call(array) for _ in range(20)}
    assert len(faults) == 1
    (outcome,) = faults
    assert isinstance(outcome, bytes)
    assert Fault.of(outcome) == Fault(5, 1, 20, 20, depth=2)
