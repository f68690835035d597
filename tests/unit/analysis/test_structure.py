"""What is around an operation: from the inside out, to an end that is left out."""

from collections.abc import Iterable

import tilenest as tn
from tilenest.analysis import enclosing, enclosing_nests, enclosing_parallels, nearest_parallel
from tilenest.dialects import If, Load
from tilenest.ir import Operation

TEXT = """module "candidate"

func @main(%A: view<f32, [4], [1]>, %B: view<f32, [4], [1]>, %c: bool) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%j: index|
      exec.if(%c) {
        exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%k: index|
          %x = tile.load(%A, [%k]) : f32
          tile.store(%B, [%i], %x)
          exec.yield
        }
        exec.yield
      } {
        exec.yield
      }
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


def names(operations: Iterable[Operation]) -> list[str]:
    return [op.NAME for op in operations]


def test_enclosing_operations_come_from_the_inside_out() -> None:
    module = tn.parse(TEXT)
    load = next(op for op in module.walk() if isinstance(op, Load))
    assert names(enclosing(load)) == ["exec.serial", "exec.if", "exec.parallel", "exec.parallel"]
    assert names(enclosing_nests(load)) == ["exec.serial", "exec.parallel", "exec.parallel"]
    inner, outer = enclosing_parallels(load)
    assert nearest_parallel(load) is inner
    assert nearest_parallel(inner) is outer
    assert nearest_parallel(outer) is None


def test_enclosing_operations_end_below_one() -> None:
    module = tn.parse(TEXT)
    load = next(op for op in module.walk() if isinstance(op, Load))
    branch = next(op for op in module.walk() if isinstance(op, If))
    inner = nearest_parallel(load)
    assert names(enclosing(load, inner)) == ["exec.serial", "exec.if"]
    assert list(enclosing(branch, inner)) == []
