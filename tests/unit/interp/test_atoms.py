"""Atoms: what each entry of the catalogue does, and that there is a meaning for every one."""

from __future__ import annotations

import numpy as np
import pytest

from tilenest.dialects import registry
from tilenest.errors import AssertionFailed
from tilenest.interp import interpret
from tilenest.interp.atoms import MEANINGS
from tilenest.ir import parse_module
from tilenest.machine import CPU_ATOMS
from tilenest.verify import verify_module

PROGRAM = """
module "machine"

func @main(%x: f32, %y: f32, %p: bool) -> (f32, f32) {
  %a = vector.lanes : vector<4xf32>
  %b = vector.splat(%x) : vector<4xf32>
  %c = vector.splat(%y) : vector<4xf32>
  %r0, %r1, %r2, %r3 = atom.call "cpu.lanes.transpose"(%a, %b, %c, %b)
      : (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
  %sum = atom.call "cpu.lanes.reduce"(%r3, semantic = "combine.add") : f32
  %most = atom.call "cpu.lanes.extreme"(%r0, semantic = "combine.maximum") : f32
  %t = atom.call "cpu.print"(%sum, %r2, touches = [#atom_effect<kind = "call">],
      protocol = "output") : token
  %last = atom.call "cpu.print"(%t, %p, touches = [#atom_effect<kind = "call">],
      protocol = "output") : token
  atom.call "cpu.assert"(%p, touches = [#atom_effect<kind = "fault">])
  func.return(%sum, %most)
}
"""


def test_every_entry_has_a_meaning() -> None:
    assert set(MEANINGS) == {contract.id for contract in CPU_ATOMS}


def test_atoms_compute_and_print(capsys: pytest.CaptureFixture[str]) -> None:
    module = parse_module(PROGRAM, registry())
    verify_module(module)
    x, y = np.float32(0.5), np.float32(8)
    # Row 3 of the transposed square is 3, x, y, x; its row 0 is 0, x, y, x.
    assert interpret(module, [x, y, True]) == [3 + 0.5 + 8 + 0.5, 8]
    assert capsys.readouterr().out == "12.0 [2.  0.5 8.  0.5]\nTrue\n"


def test_an_assertion_that_fails_is_told() -> None:
    with pytest.raises(AssertionFailed, match="does not hold") as caught:
        interpret(parse_module(PROGRAM, registry()), [0.0, 0.0, False])
    assert isinstance(caught.value, AssertionError)
