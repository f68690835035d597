"""Variables: a program that leaves choices open is the one that leaves them to the compiler."""

from __future__ import annotations

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

func @main(%A: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1], scope = ?where) { |%i: index|
    %x = tile.load(%A, [%i]) : f32
    %y = exec.pipeline(
        lower = [%c0], upper = [%n], step = [%c1], initial = [%x], window = ?many,
        stage_names = ["only"]) : f32 { |%k: index, %s: f32|
      %t = scalar.apply "add"(%s, %s) : f32
      exec.yield(%t)
    }
    tile.store(%A, %y, [%i])
    exec.yield
  }
  func.return
}
"""


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
    assert variables(module) == {Variable("where"), Variable("many")}
    decisions = close_variables(module.function("main"), Rewriter())
    assert [decision.subject for decision in decisions] == [
        "?where of exec.parallel",
        "?many of exec.pipeline",
    ]
    assert all(decision.location is not None for decision in decisions)
    assert not variables(module)
    plain = PROGRAM.replace(", scope = ?where", "").replace(", window = ?many", "")
    assert str(module) == str(parse_module(plain, registry()))


def test_every_step_leaves_a_module_that_runs_without_them() -> None:
    expected = np.arange(4, dtype=np.float32) * 16
    np.testing.assert_array_equal(result(program()), expected)
    for _, module in lowered(program(), AVX512):
        assert not variables(module)
        if module.form != "machine":
            np.testing.assert_array_equal(result(module), expected)
