"""A program whose instances patch a tile and a scalar, with the patches left to fill in.

In: the text of the terminator, and how far apart instances are (%late is 3, which only the call
knows). Out: a module that verifies, and what it leaves in its arguments.
"""

from __future__ import annotations

import numpy as np

from tilenest.dialects import registry
from tilenest.interp import interpret
from tilenest.ir import Module, parse_module
from tilenest.verify import verify_module

PROGRAM = """
module "candidate"
dim %d0 "m" = 12
dim %d1 "n" = 8
dim %d2 "p" = 4

func @main(%A: view<f32, [?, ?], [?, 1]>, %B: view<f32, [?, ?], [?, 1]>, %S: view<f32, [?], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c3 = scalar.constant 3 : index
  %c4 = scalar.constant 4 : index
  %c5 = scalar.constant 5 : index
  %e = view.extent(%A, axis = 1) : index
  %late = scalar.apply "sub"(%e, %c5) : index
  %acc = tile.load(%A, [%c0, %c0]) : tile<f32, %d0, %d1>
  %sum = tile.load(%S, [%c0]) : f32
  %acc1, %sum1 = exec.parallel(
      lower = [%c0, %c0], upper = [%c3, %c1], step = [%c1, %c1], initial = [%acc, %sum]
  ) : (tile<f32, %d0, %d1>, f32) {
      |%i: index, %j: index, %entry: tile<f32, %d0, %d1>, %before: f32|
    %o = scalar.apply "mul"(%i, STRIDE) : index
    %mine = tile.reindex(%entry, [%o], map = (d0, d1)[s0] -> (d0 + s0, d1)) : tile<f32, %d2, %d1>
    %new = tile.map(%mine, %before) : tile<f32, %d2, %d1> { |%p: index, %n: index, %x: f32, %b: f32|
      %y = scalar.apply "add"(%x, %x) : f32
      %z = scalar.apply "add"(%y, %b) : f32
      exec.yield(%z)
    }
    %keep = tile.map : tile<bool, %d1> { |%n: index|
      %c = scalar.apply "le"(%n, %i) : bool
      exec.yield(%c)
    }
    %one = scalar.constant 1.5 : f32
    PATCHES
  }
  tile.store(%B, [%c0, %c0], %acc1, dims = [%d0, %d1])
  tile.store(%S, [%c0], %sum1)
  tile.store(%A, [%c0, %c0], %acc, dims = [%d0, %d1])
  func.return
}
"""


def program(patches: str, stride: str = "%c4") -> Module:
    text = PROGRAM.replace("PATCHES", patches).replace("STRIDE", stride)
    module = parse_module(text, registry())
    verify_module(module)
    return module


def run(module: Module, shuffle: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = (np.arange(96, dtype=np.float32) / 4).reshape(12, 8)
    b = np.full((12, 8), np.nan, np.float32)
    s = np.array([0.5], np.float32)
    interpret(module, [a, b, s], shuffle=shuffle)
    return a, b, s


ENTRY = (np.arange(96, dtype=np.float32) / 4).reshape(12, 8)
