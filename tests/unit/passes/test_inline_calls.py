"""Calls replaced by bodies: the same bits, locations that tell of the call, circles refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.programs import Program
from tests.unit.passes.lowering import lowered
from tilenest.dialects import Call, registry
from tilenest.errors import ControlFlowError, SourceLocation
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, ScalarType, float32, parse_module
from tilenest.machine import AVX512
from tilenest.passes import inline_calls
from tilenest.verify import verify_module

F32 = ScalarType(float32)
CALLS = """
module "candidate"
dim %d0 "m" = 8

func @main(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c8 = scalar.constant 8 : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1]) { |%i: index|
    %o = scalar.apply "mul"(%i, %c8) : index
    %a = tile.load(%A, [%o]) : tile<f32, %d0>
    %y, %s = func.call "twice"(%a, %B, %o) : (tile<f32, %d0>, f32)
    %z, %t = func.call "halve"(%y, %s) : (tile<f32, %d0>, f32)
    tile.store(%B, [%o], %z, dims = [%d0])
    exec.yield
  }
  func.return
}

func @halve(%x: tile<f32, %d0>, %s: f32) -> (tile<f32, %d0>, f32) {
  %y = tile.map(%x, %s) : tile<f32, %d0> { |%i: index, %u: f32, %v: f32|
    %h = scalar.constant 0.5 : f32
    %w = scalar.apply "fma"(%u, %h, %v) : f32
    exec.yield(%w)
  }
  func.return(%y, %s)
}

func @twice(%x: tile<f32, %d0>, %V: view<f32, [?], [1]>, %o: index) -> (tile<f32, %d0>, f32) {
  %first = tile.load(%V, [%o]) : f32
  %y = tile.map(%x) : tile<f32, %d0> { |%i: index, %u: f32|
    %w = scalar.apply "add"(%u, %u) : f32
    exec.yield(%w)
  }
  %z, %s = func.call "halve"(%y, %first) : (tile<f32, %d0>, f32)
  func.return(%z, %s)
}
"""


def arguments() -> list[np.ndarray | int]:
    chance = np.random.default_rng(3)
    a, b = chance.standard_normal((2, 21)).astype(np.float32)
    return [a, b, 3]


def expected() -> np.ndarray:
    a, b, _ = arguments()
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    result = b.copy()
    for start in range(0, 21, 8):
        part = a[start : start + 8].astype(np.float64)
        first = np.float64(b[start])
        result[start : start + 8] = np.float32(np.float32(part + first) * 0.5 + first)
    return result


def test_bodies_stand_where_calls_stood() -> None:
    module = parse_module(CALLS, registry())
    verify_module(module)
    given = arguments()
    interpret(module, given)
    np.testing.assert_array_equal(given[1], expected())
    inline_calls(module, Rewriter())
    verify_module(module)
    assert [function.name for function in module.functions] == ["main"]
    assert not any(isinstance(op, Call) for op in module.walk())
    again = arguments()
    interpret(module, again)
    np.testing.assert_array_equal(again[1], expected())


def test_a_program_with_calls_goes_all_the_way() -> None:
    module = parse_module(CALLS, registry())
    for name, reached in lowered(module, AVX512):
        given = arguments()
        interpret(reached, given)
        np.testing.assert_array_equal(given[1], expected(), err_msg=name)


UNCALLED = """
func @choose(%t: tile<i32, %d0>, %p: bool) -> tile<i32, %d0> {
  cf.cond_branch(%p, ^0(%t), ^1)
^0 |%u: tile<i32, %d0>|
  func.return(%u)
^1 ||
  func.return(%t)
}

func @same(%t: tile<i32, %d0>) -> tile<i32, %d0> {
  func.return(%t)
}

func @first(%A: view<f32, [?], [1]>, %n: index) {
  func.return
}
"""


def test_functions_of_tiles_that_nobody_calls_are_left_behind() -> None:
    module = parse_module(CALLS + UNCALLED, registry())
    for name, reached in lowered(module, AVX512):
        given = arguments()
        interpret(reached, given, function="main")
        np.testing.assert_array_equal(given[1], expected(), err_msg=name)
    assert [function.name for function in module.functions] == ["main", "first"]


def test_places_in_a_callee_name_the_call() -> None:
    program = Program(F32)
    helper = Program(F32, name="helper", into=program.module)
    helper.function.result_types = (F32,)
    helper.builder.location = SourceLocation("h.py", 7, 1, 2, "helper", "-x")
    helper.finish(helper.apply("neg", helper.arguments[0]))
    program.builder.location = SourceLocation("k.py", 3, 1, 2, "main", "helper(x)")
    call = program.add(Call(callee="helper", arguments=program.arguments, result_types=[F32]))
    program.finish(call.result)
    inline_calls(program.module, Rewriter())
    first = next(program.module.walk())
    assert first.location is not None and first.location.line == 7
    assert first.location.caller is not None and first.location.caller.line == 3


def circle() -> Module:
    program = Program(F32)
    for name, callee in (("ping", "pong"), ("pong", "ping")):
        helper = Program(F32, name=name, into=program.module)
        helper.function.result_types = (F32,)
        called = helper.add(Call(callee=callee, arguments=helper.arguments, result_types=[F32]))
        helper.finish(called.result)
    call = program.add(Call(callee="ping", arguments=program.arguments, result_types=[F32]))
    program.finish(call.result)
    return program.module


def test_circles_of_calls_are_refused() -> None:
    with pytest.raises(ControlFlowError, match="@ping calls @pong calls @ping"):
        inline_calls(circle(), Rewriter())


PLACED = """
module "candidate"
func @main(%A: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  exec.parallel(lower = [%c0, %c0], upper = [%n, %n], step = [%c1, %c1]) {
  |%i: index, %j: index|
    func.call "touch"(%A, %n)
    exec.yield
  }
  func.return
}

func @touch(%A: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  exec.serial(lower = [%c0], upper = [%n], step = [%c1]) { |%k: index|
    %x = tile.load(
        %A, [%c0], place = #placement<anchor = 0, frontier = 1, active = (d0) -> (d0)>
    ) : f32
    %y = tile.load(%A, [%c0], place = #placement<anchor = 1, frontier = 1>) : f32
    exec.yield
  }
  func.return
}
"""


def test_depths_in_a_callee_count_the_levels_around_the_call() -> None:
    module = parse_module(PLACED, registry())
    verify_module(module)
    inline_calls(module, Rewriter())
    verify_module(module)
    text = str(module)
    assert "#placement<anchor = 2, frontier = 3, active = (d0, d1, d2) -> (d2)>" in text
    assert "#placement<anchor = 3, frontier = 3>" in text
