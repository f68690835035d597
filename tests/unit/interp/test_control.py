"""Calls, branches and tuples, against Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.branching import (
    diamond,
    first_positive,
    ladder,
    nearest_power,
    sum_of_odds,
)
from tests.unit.interp.programs import Program
from tests.unit.passes.lowering import lowered
from tilenest.dialects import Aggregate, Call, Extract, registry
from tilenest.interp import interpret
from tilenest.ir import INDEX, ScalarType, TupleType, Value, float32, parse_module
from tilenest.machine import AVX512

F32 = ScalarType(float32)


@pytest.mark.parametrize("values", [(3, 5), (-3, 5), (-3, -5), (0, 0), (0, 7)])
def test_ways_meet_with_values_of_their_own(values: tuple[int, int]) -> None:
    expected = next((value for value in values if value > 0), -1)
    assert first_positive().run(*values) == [expected]


@pytest.mark.parametrize("values", [(3, 5), (5, 3), (4, 4)])
def test_ways_that_part_meet_again(values: tuple[int, int]) -> None:
    assert diamond().run(*values) == [abs(values[0] - values[1]) + values[0]]


@pytest.mark.parametrize("values", [(0, 4), (2, 9), (3, 3), (7, 2)])
def test_decisions_follow_each_other(values: tuple[int, int]) -> None:
    assert ladder(6).run(*values) == [len(range(max(values[0], 0), min(values[1], 6)))]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 100, 1024])
def test_a_branch_back_repeats(limit: int) -> None:
    """Circles have a meaning, though no target takes them."""
    power = 1
    while power < limit:
        power *= 2
    assert nearest_power().run(limit) == [power]


def test_a_nest_s_body_may_branch() -> None:
    program = sum_of_odds()
    assert [program.run(count)[0] for count in range(6)] == [0, 0, 1, 1, 4, 4]


CONDITIONAL = """module "candidate"

func @main(%B: view<i32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %k5 = scalar.constant 5 : i32
  %k7 = scalar.constant 7 : i32
  %p = scalar.apply "lt"(%c0, %n) : bool
  %q = scalar.apply "lt"(%c1, %n) : bool
  %x = exec.if(%p) : i32 {
    cf.cond_branch(%q, ^0, ^1)
  ^0 ||
    exec.yield(%k5)
  ^1 ||
    exec.yield(%k7)
  } {
    exec.yield(%k7)
  }
  tile.store(%B, [%c0], %x)
  func.return
}
"""


@pytest.mark.parametrize(("n", "expected"), [(0, 7), (1, 7), (2, 5)])
def test_a_conditional_may_branch(n: int, expected: int) -> None:
    module = parse_module(CONDITIONAL, registry())
    for _, reached in [("candidate", module), *lowered(module, AVX512)]:
        found = np.zeros(1, np.int32)
        interpret(reached, [found, n])
        assert found.tolist() == [expected]


def test_a_call_has_values_of_its_own() -> None:
    program = Program(F32)
    (x,) = program.arguments
    helper = Program(F32, F32, name="helper", into=program.module)
    a, b = helper.arguments
    helper.function.result_types = (F32, F32)
    helper.finish(helper.apply("sub", a, b), helper.apply("mul", a, b))
    one = program.constant(1.0, F32)
    first = program.add(Call(callee="helper", arguments=[x, one], result_types=[F32, F32]))
    second = program.add(
        Call(callee="helper", arguments=[first.results[1], x], result_types=[F32, F32])
    )
    program.finish(*first.results, *second.results)
    x_value = np.float32(2.5)
    assert program.run(x_value) == [1.5, 2.5, 0.0, 6.25]


def test_tuples_hold_their_items() -> None:
    program = Program(INDEX, F32)
    i, x = program.arguments
    inner = TupleType((F32, INDEX))
    pair = program.value(Aggregate(items=[x, i], result_types=[inner]))
    nested = program.value(Aggregate(items=[i, pair], result_types=[TupleType((INDEX, inner))]))

    def item(value: Value, index: int) -> Value:
        assert isinstance(value.type, TupleType)
        return program.value(
            Extract(aggregate=value, index=index, result_types=[value.type.items[index]])
        )

    program.finish(item(nested, 0), item(item(nested, 1), 0), item(item(nested, 1), 1))
    assert program.run(4, 0.5) == [4, 0.5, 4]
