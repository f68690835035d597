"""A program that borrows the regions of a tile or view and fills an array with them.

In: what is borrowed, and which slot each region goes to. Out: a module that verifies, and what it
leaves in its arguments.
"""

from __future__ import annotations

import numpy as np

from tilenest.dialects import registry
from tilenest.interp import interpret
from tilenest.ir import Module, parse_module
from tilenest.verify import verify_module

PROGRAM = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 12
dim %d2 "p" = 2
dim %d3 "q" = 3

func @main(%A: view<f32, [?, ?], [?, 1]>, %B: view<f32, [?, ?], [?, 1]>, %n: index, %s: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %c4 = scalar.constant 4 : index
  %whole = tile.load(%A, [%c0, %c0]) : tile<f32, %d0, %d1>
  %parts = array.partition(WHOLE) : array<tile<f32, %d2, %d3>, 2x4>
  %empty = array.make : array<tile<f32, %d2, %d3>, 2x4, filled>
  %full = exec.serial(lower = [%c0, %c0], upper = [%c2, %n], step = [%c1, %c1], initial = [%empty])
      : array<tile<f32, %d2, %d3>, 2x4, filled> {
      |%i: index, %j: index, %out: array<tile<f32, %d2, %d3>, 2x4, filled>|
    %part = array.get(%parts, [%i, %j]) : tile<f32, %d2, %d3>
    %to = scalar.apply "mul"(%j, %s) : index
    %more = array.set(%out, [%i, %to], %part) : array<tile<f32, %d2, %d3>, 2x4, filled>
    exec.yield(%more)
  }
  %result = array.assemble(%full) : tile<f32, %d0, %d1>
  tile.store(%B, [%c0, %c0], %result, dims = [%d0, %d1])
  func.return
}
"""


def program(whole: str = "%whole", slots: str = "%to") -> Module:
    text = PROGRAM.replace("WHOLE", whole).replace("[%i, %to]", f"[%i, {slots}]")
    module = parse_module(text, registry())
    verify_module(module)
    return module


def run(module: Module, count: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.arange(6 * 20, dtype=np.float32).reshape(6, 20)
    b = np.full((4, 12), np.nan, np.float32)
    interpret(module, [a, b, count, step])
    return a, b
