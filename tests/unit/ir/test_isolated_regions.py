"""Regions that see nothing around them.

An operation says of its class whether its regions are such; the text of one that is shows the rule.
"""

from __future__ import annotations

from tilenest.dialects import registry
from tilenest.ir import parse_module, verify

ISOLATED = """
module "scheduled"

func @main(%A: view<f32, [8], [1]>, %x: f32) {
  tensor.map_reduce_post(
      inputs = [%x],
      outputs = [%A],
      extents = [8],
      input_access = [#access<map = (d0) -> ()>],
      output_access = [#access<map = (d0) -> (d0)>],
      specs = [#result_spec<dims = [0]>]
  ) { |%0: index, %1: f32|
    exec.yield(%1)
  }
  func.return
}
"""


def test_ir04_a_region_that_sees_nothing_around_it() -> None:
    assert verify(parse_module(ISOLATED, registry())) == []
    text = ISOLATED.replace("exec.yield(%1)", "exec.yield(%x)")
    (found,) = verify(parse_module(text, registry()))
    assert found.rule == "IR04"
    assert "defined outside of tensor.map_reduce_post" in found.message
    assert found.remedy.startswith("make it an operand of tensor.map_reduce_post")
