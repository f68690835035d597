"""Variables: a program that leaves choices open is the one that leaves them to the compiler."""

from __future__ import annotations

import re

import numpy as np

from tests.unit.passes.lowering import lowered
from tilenest.dialects import registry
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, Variable, parse_module
from tilenest.machine import AVX512
from tilenest.passes import close_variables
from tilenest.verify import verify_module

PROGRAM = """
module "candidate"
dim %d0 "m" = 2

func @main(%A: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1], scope = ?where) { |%i: index|
    %x = tile.load(%A, [%i], place = ?here) : f32
    %m, %s0 = memory.allocate(resource = ?kind, layout = ?order) : (memory<f32, %d0>, state)
    %w = tile.map(%x, place = ?here) : tile<f32, %d0> { |%0: index, %e: f32|
      exec.yield(%e)
    }
    %s1 = memory.store(%m, %s0, %w) : state
    %v = memory.load(%m, %s1) : tile<f32, %d0>
    %z = tile.reindex(%v, [%c1], map = ()[s0] -> (s0)) : f32
    %y = exec.pipeline(
        lower = [%c0], upper = [%n], step = [%c1], initial = [%z], window = ?many,
        stage_names = ["only"]) : f32 { |%k: index, %s: f32|
      %t = scalar.apply "add"(%s, %s) : f32
      exec.yield(%t)
    }
    tile.store(%A, %y, [%i], place = ?there)
    exec.yield
  }
  func.return
}
"""


CLOSED = ("where", "here", "kind", "order", "many", "there")
"""The names of its variables."""


def program() -> Module:
    return parse_module(PROGRAM, registry())


def variables(module: Module) -> set[Variable]:
    return {v for op in module.walk() for v in op.attributes.values() if isinstance(v, Variable)}


def result(module: Module) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    numbers = np.arange(4, dtype=np.float32)
    interpret(module, [numbers, 4])
    return numbers


def test_variables_become_defaults_with_a_reason() -> None:
    module = program()
    verify_module(module)
    assert variables(module) == {Variable(name) for name in CLOSED}
    assert str(parse_module(str(module), registry())) == str(module)
    decisions = close_variables(module.function("main"), Rewriter())
    assert [(decision.subject, decision.choice) for decision in decisions] == [
        ("?where of exec.parallel", 'scope = "auto"'),
        ("?here of tile.load", "place = none"),
        ("?kind of memory.allocate", 'resource = "auto"'),
        ("?order of memory.allocate", "layout = none"),
        ("?here of tile.map", "place = none"),
        ("?many of exec.pipeline", "window = 0"),
        ("?there of tile.store", "place = none"),
    ]
    assert all(decision.location is not None for decision in decisions)
    assert not variables(module)
    plain = re.sub(r"(, )?[a-z]+ = \?[a-z]+", "", PROGRAM).replace("(, ", "(")
    assert str(module) == str(parse_module(plain, registry()))


def test_every_step_leaves_a_module_that_runs_without_them() -> None:
    expected = np.arange(4, dtype=np.float32) * 16
    np.testing.assert_array_equal(result(program()), expected)
    names: list[str] = []
    for name, module in lowered(program(), AVX512):
        names.append(name)
        assert bool(variables(module)) == ("close variables" not in names)
        if module.form != "machine":
            np.testing.assert_array_equal(result(module), expected)
