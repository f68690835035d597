"""Tile arrays on the way to machine form, and arrays that no buf can stand for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.filling import program, run
from tests.unit.passes.lowering import lowered
from tilenest.dialects import registry
from tilenest.errors import TileArrayError
from tilenest.interp import interpret
from tilenest.ir import Rewriter, parse_module
from tilenest.machine import AVX2, AVX512, Machine, cpu_target
from tilenest.passes import lift
from tilenest.verify import verify_module


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("whole", ["%whole", "%A, [%c1, %c4]", "%A, [%c4, %c1]"])
def test_every_step_keeps_the_bits(whole: str, machine: Machine) -> None:
    module = program(whole)
    expected = run(module, 4, 1)[1]
    assert not np.isnan(expected).any()
    for step, reached in lowered(module, machine):
        np.testing.assert_array_equal(run(reached, 4, 1)[1], expected, err_msg=step)


CHOICE = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 2

func @main(%A: view<f32, [?], [1]>, %p: bool) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %a = tile.load(%A, [%c0]) : tile<f32, %d1>
  %b = tile.load(%A, [%c2]) : tile<f32, %d1>
  %empty = array.make : array<tile<f32, %d1>, 2, filled>
  %full = exec.if(%p) : array<tile<f32, %d1>, 2, filled> {
    %x = array.set(%empty, [%c1], %a) : array<tile<f32, %d1>, 2, filled>
    %y = array.set(%x, [%c0], %b) : array<tile<f32, %d1>, 2, filled>
    exec.yield(%y)
  } {
    %x = array.set(FIRST, [%c0], %a) : array<tile<f32, %d1>, 2, filled>
    %y = array.set(%x, [%c1], %b) : array<tile<f32, %d1>, 2, filled>
    exec.yield(%y)
  }
  %whole = array.assemble(%full) : tile<f32, %d0>
  tile.store(%A, [%c0], %whole, dims = [%d0])
  func.return
}
"""


@pytest.mark.parametrize("swap", [False, True])
def test_alternatives_fill_one_array(swap: bool) -> None:
    module = parse_module(CHOICE.replace("FIRST", "%empty"), registry())
    verify_module(module)
    for _, reached in lowered(module, AVX512):
        a = np.array([1, 2, 3, 4], np.float32)
        interpret(reached, [a, swap])
        np.testing.assert_array_equal(a, [3, 4, 1, 2] if swap else [1, 2, 3, 4])


def test_an_array_made_anew_in_a_region_is_refused() -> None:
    text = CHOICE.replace("FIRST", "%new").replace(
        "  } {\n", "  } {\n    %new = array.make : array<tile<f32, %d1>, 2, filled>\n"
    )
    function = next(iter(parse_module(text, registry()).functions))
    with pytest.raises(TileArrayError, match="not the one it was given") as caught:
        lift(function, cpu_target(AVX512), Rewriter())
    assert caught.value.remedy == "make the array once, before the region"
