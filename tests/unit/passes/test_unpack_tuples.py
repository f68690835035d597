"""Tuples through nests and conditionals: unpacked at once, folded away, never stored."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.passes.lowering import lowered
from tilenest.dialects import Aggregate, Extract, registry
from tilenest.errors import TargetError
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, parse_module
from tilenest.machine import AVX512
from tilenest.passes import unpack_tuples
from tilenest.verify import verify_module

PROGRAM = """
module "candidate"
dim %d0 "m" = 5

func @main(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %x = tile.load(%A, [%c0]) : tile<f32, %d0>
  %i0 = value.aggregate(%c0, %x) : tuple<index, tile<f32, %d0>>
  %t0 = value.aggregate(%i0, %c1) : tuple<tuple<index, tile<f32, %d0>>, index>
  %t1 = exec.serial(lower = [%c0], upper = [%n], step = [%c1], initial = [%t0])
      : tuple<tuple<index, tile<f32, %d0>>, index> {
      |%i: index, %s: tuple<tuple<index, tile<f32, %d0>>, index>|
    %in = value.extract(%s, index = 0) : tuple<index, tile<f32, %d0>>
    %b = value.extract(%s, index = 1) : index
    %a = value.extract(%in, index = 0) : index
    %v = value.extract(%in, index = 1) : tile<f32, %d0>
    %c = scalar.apply "add"(%a, %b) : index
    %odd = scalar.apply "mod"(%i, %c2) : index
    %is = scalar.apply "eq"(%odd, %c1) : bool
    %next = exec.if(%is) : tuple<index, tile<f32, %d0>> {
      %w = tile.map(%v, %v) : tile<f32, %d0> { |%j: index, %p: f32, %q: f32|
        %r = scalar.apply "add"(%p, %q) : f32
        exec.yield(%r)
      }
      %m = value.aggregate(%b, %w) : tuple<index, tile<f32, %d0>>
      exec.yield(%m)
    } {
      %k = value.aggregate(%b, %v) : tuple<index, tile<f32, %d0>>
      exec.yield(%k)
    }
    %t = value.aggregate(%next, %c) : tuple<tuple<index, tile<f32, %d0>>, index>
    exec.yield(%t)
  }
  %p = exec.pipeline(lower = [%c0], upper = [%n], step = [%c1], initial = [%t1])
      : tuple<tuple<index, tile<f32, %d0>>, index> {
      |%i: index, %s: tuple<tuple<index, tile<f32, %d0>>, index>|
    %in = value.extract(%s, index = 0) : tuple<index, tile<f32, %d0>>
    exec.yield(%in)
  } { |%i: index, %s: tuple<tuple<index, tile<f32, %d0>>, index>,
      %in: tuple<index, tile<f32, %d0>>|
    %b = value.extract(%s, index = 1) : index
    %c = scalar.apply "add"(%b, %c1) : index
    %t = value.aggregate(%in, %c) : tuple<tuple<index, tile<f32, %d0>>, index>
    exec.yield(%t)
  }
  %last = value.extract(%p, index = 0) : tuple<index, tile<f32, %d0>>
  %to = value.extract(%last, index = 0) : index
  %out = value.extract(%last, index = 1) : tile<f32, %d0>
  %count = value.extract(%p, index = 1) : index
  %cast = scalar.cast(%count) : f32
  tile.store(%B, [%to], %out, dims = [%d0])
  tile.store(%B, [%c0], %cast)
  func.return
}
"""


def run(module: Module, count: int) -> np.ndarray:
    a, b = np.arange(5, dtype=np.float32), np.full(16, np.nan, np.float32)
    interpret(module, [a, b, count])
    return b


def expected(count: int) -> np.ndarray:
    first, second, tile = 0, 1, np.arange(5, dtype=np.float32)
    for i in range(count):
        first, second = second, first + second
        tile = tile + tile if i % 2 else tile
    result = np.full(16, np.nan, np.float32)
    result[first : first + 5] = tile
    result[0] = second + count
    return result


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_every_step_keeps_the_bits(count: int) -> None:
    module = parse_module(PROGRAM, registry())
    verify_module(module)
    np.testing.assert_array_equal(run(module, count), expected(count))
    for step, reached in lowered(module, AVX512):
        np.testing.assert_array_equal(run(reached, count), expected(count), err_msg=step)
        if step == "canonicalize":
            assert not any(isinstance(op, Aggregate | Extract) for op in reached.walk())


def test_a_kernel_that_takes_a_tuple_is_refused() -> None:
    text = 'module "candidate"\n\nfunc @main(%t: tuple<f32, index>) {\n  func.return\n}\n'
    function = next(iter(parse_module(text, registry()).functions))
    with pytest.raises(TargetError, match="@main takes or returns a tuple"):
        unpack_tuples(function, Rewriter())
