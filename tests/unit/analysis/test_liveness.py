"""Liveness: what may still use a value, through branches and the next iterations of loops."""

from __future__ import annotations

import pytest

from tilenest.analysis import Liveness
from tilenest.dialects import Serial
from tilenest.driver import parse
from tilenest.ir import Function, Operation, Value, fresh

PROGRAM = """
module "candidate"

func @kernel(%flag: bool) {
  %zero = scalar.constant 0 : index
  %four = scalar.constant 4 : index
  %one = scalar.constant 1 : index
  %start = scalar.constant 1.0 : f32
  %once = scalar.constant 2.0 : f32
  %each = scalar.constant 3.0 : f32
  %end = exec.serial(lower = [%zero], upper = [%four], step = [%one], initial = [%start]) : f32 {
  |%i: index, %state: f32|
    %twice = scalar.apply "mul"(%state, %each) : f32
    %chosen = exec.if(%flag) : f32 {
      %sum = scalar.apply "add"(%twice, %state) : f32
      exec.yield(%sum)
    } {
      %less = scalar.apply "neg"(%twice) : f32
      exec.yield(%less)
    }
    exec.yield(%chosen)
  }
  %after = scalar.apply "add"(%end, %once) : f32
  func.return
}
"""


@pytest.fixture(scope="module")
def function() -> Function:
    return parse(PROGRAM).function("kernel")


def value(function: Function, name: str) -> Value:
    results = [result for op in function.walk() for result in op.results]
    arguments = [a for op in function.walk() if isinstance(op, Serial) for a in op.body.arguments]
    return next(v for v in (*results, *arguments) if v.name == name)


def definer(function: Function, name: str) -> Operation:
    return next(op for op in function.walk() if any(r.name == name for r in op.results))


@pytest.mark.parametrize(
    ("name", "point", "is_read"),
    [
        ("start", "once", True),
        ("start", "twice", False),  # the loop takes it over
        ("start", "end", False),
        ("once", "sum", True),
        ("once", "after", False),
        ("each", "sum", True),  # by the next iteration
        ("each", "end", False),
        ("state", "twice", True),
        ("state", "less", False),  # only the other branch would
        ("state", "chosen", False),
        ("twice", "sum", False),
        ("twice", "each", False),  # not defined yet
        ("chosen", "less", False),
        ("chosen", "chosen", True),
        ("end", "chosen", False),
        ("sum", "less", False),
    ],
)
def test_liveness_after_a_point(function: Function, name: str, point: str, is_read: bool) -> None:
    found = fresh(Liveness, function).is_live_after(value(function, name), definer(function, point))
    assert found == is_read


@pytest.mark.parametrize(
    ("name", "is_read"),
    [("start", False), ("each", True), ("once", True), ("state", False), ("end", False)],
)
def test_liveness_in_a_loop_or_after(function: Function, name: str, is_read: bool) -> None:
    loop = definer(function, "end")
    assert fresh(Liveness, function).is_live_into(value(function, name), loop) == is_read


def test_liveness_at_the_end_of_an_iteration(function: Function) -> None:
    liveness = fresh(Liveness, function)
    end = definer(function, "end").body.terminator
    names = ["start", "once", "each", "state", "twice", "chosen"]
    read = [name for name in names if liveness.is_live_after(value(function, name), end)]
    assert read == ["once", "each"]
