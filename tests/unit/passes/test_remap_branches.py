"""Nests whose bodies go from block to block: they are no levels to rearrange, and say so."""

import pytest

import tilenest as tn
from tests.unit.ir.photograph import photograph
from tilenest.analysis import chain_to, passage_of
from tilenest.dialects import Nest
from tilenest.errors import RemapError
from tilenest.ir import Module
from tilenest.verify import verify_module

FRAME = """module "candidate"
func @main(%A: view<f32, [8], [1]>, %p: bool) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c8 = scalar.constant 8 : index
  exec.serial(lower = [%c0], upper = [%c8], step = [%c1]) {{ |%i: index|
{body}
  }}
  func.return
}}
"""
BRANCHES = """
    cf.cond_branch(%p, ^0, ^1)
  ^0 ||
    %x = tile.load(%A, [%i]) : f32
    tile.store(%A, [%i], %x)
    exec.yield
  ^1 ||
    exec.yield"""
AROUND = """
    exec.serial(lower = [%c0], upper = [%c8], step = [%c1]) { |%k: index|
      %x = tile.load(%A, [%k]) : f32
      tile.store(%A, [%k], %x)
      exec.yield
    }
    cf.branch(^0)
  ^0 ||
    %y = tile.load(%A, [%i]) : f32
    tile.store(%A, [%i], %y)
    exec.yield"""
CONDITION = """
    exec.if(%p) {
      %x = tile.load(%A, [%i]) : f32
      tile.store(%A, [%i], %x)
      exec.yield
    } {
      cf.branch(^0)
    ^0 ||
      exec.yield
    }
    exec.yield"""


def written(body: str) -> Module:
    module = tn.parse(FRAME.format(body=body))
    verify_module(module)
    return module


@pytest.mark.parametrize("name", ["i", None])
@pytest.mark.parametrize("body", [BRANCHES, AROUND, CONDITION])
def test_nests_with_branches_are_refused(body: str, name: str | None) -> None:
    module = written(body)
    before = photograph(module)
    with pytest.raises(RemapError, match="goes from block to block") as refused:
        tn.remap(module, name)
    assert refused.value.remedy and refused.value.location is not None
    assert photograph(module) == before


def test_a_nest_with_branches_is_more_than_a_run_of_the_one_inside() -> None:
    """Its first block alone would be nothing else."""
    inner = [op for op in written(AROUND).walk() if isinstance(op, Nest)][-1]
    outer = chain_to(inner).nests[0]
    assert outer is not inner
    assert passage_of(outer) is None
