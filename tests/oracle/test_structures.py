"""Calls, updates, tuples and tile arrays as native code, against the interpreter, on 1 and 2
threads."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from tests.unit.interp import filling, updating
from tests.unit.llvm.programs import Array, assert_equal, run_both, set_threads
from tests.unit.passes import test_inline_calls, test_unpack_tuples
from tests.unit.passes.lowering import lowered
from tests.unit.passes.test_lift_updates import PATCHES
from tilenest.dialects import registry
from tilenest.errors import TargetError
from tilenest.interp import interpret
from tilenest.ir import DType, Module, index, parse_module
from tilenest.machine import AVX2

Scalars = list[tuple[bool | int | float, DType]]


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    set_threads(request.param)
    yield
    set_threads(2)


def check(module: Module, arrays: list[Array], scalars: Scalars) -> None:
    """Native code leaves what the interpreter leaves of the Candidate program."""
    expected = [array.copy() for array in arrays]
    interpret(module, [*expected, *(number for number, _ in scalars)])
    *_, (_, machine) = lowered(module, AVX2)
    for (native, _), wanted in zip(run_both(machine, arrays, scalars), expected, strict=True):
        assert_equal(native, wanted)


@pytest.mark.parametrize("name", PATCHES)
def test_updates(name: str) -> None:
    arrays: list[Array] = [updating.ENTRY.copy(), np.full((12, 8), np.nan, np.float32)]
    check(updating.program(PATCHES[name]), [*arrays, np.array([0.5], np.float32)], [])


@pytest.mark.parametrize("whole", ["%whole", "%A, [%c1, %c4]"])
def test_tile_arrays(whole: str) -> None:
    a = np.arange(6 * 20, dtype=np.float32).reshape(6, 20)
    b = np.full((4, 12), np.nan, np.float32)
    check(filling.program(whole), [a, b], [(4, index), (1, index)])


def test_tuples() -> None:
    module = parse_module(test_unpack_tuples.PROGRAM, registry())
    arrays = [np.arange(5, dtype=np.float32), np.full(16, np.nan, np.float32)]
    check(module, arrays, [(6, index)])


def test_calls() -> None:
    a, b, count = test_inline_calls.arguments()
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and isinstance(count, int)
    check(parse_module(test_inline_calls.CALLS, registry()), [a, b], [(count, index)])


BRANCHES = """
module "candidate"
dim %d0 "m" = 8

func @main(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %c8 = scalar.constant 8 : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1]) { |%i: index|
    %o = scalar.apply "mul"(%i, %c8) : index
    %a = tile.load(%A, [%o]) : tile<f32, %d0>
    %first = tile.load(%A, [%o]) : f32
    %zero = scalar.constant 0.0 : f32
    %below = scalar.apply "lt"(%first, %zero) : bool
    cf.cond_branch(%below, ^1(%a), ^0)
  ^0 ||
    %rest = scalar.apply "mod"(%i, %c2) : index
    %odd = scalar.apply "eq"(%rest, %c1) : bool
    cf.cond_branch(%odd, ^1(%a), ^2)
  ^1 |%v: tile<f32, %d0>|
    %w = tile.map(%v, %first) : tile<f32, %d0> { |%j: index, %x: f32, %y: f32|
      %z = scalar.apply "fma"(%x, %y, %x) : f32
      exec.yield(%z)
    }
    tile.store(%B, [%o], %w, dims = [%d0])
    exec.yield
  ^2 ||
    tile.store(%B, [%o], %first)
    exec.yield
  }
  func.return
}
"""


def test_branches() -> None:
    a = np.random.default_rng(5).standard_normal(61).astype(np.float32)
    check(parse_module(BRANCHES, registry()), [a, np.full_like(a, np.nan)], [(8, index)])


NESTED = """
module "candidate"
dim %d0 "m" = {rows}
dim %d1 "n" = {columns}
dim %d2 "p" = {height}
dim %d3 "q" = {width}

func @main(%A: view<f32, [?, ?], [?, 1]>, %B: view<f32, [?, ?], [?, 1]>, %n: index) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %rows = scalar.constant {rows} : index
  %height = scalar.constant {height} : index
  %width = scalar.constant {width} : index
  %down = scalar.constant {down} : index
  %across = scalar.constant {across} : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1]) {{ |%r: index|
    %o = scalar.apply "mul"(%r, %rows) : index
    %acc = tile.load(%A, [%o, %c0]) : tile<f32, %d0, %d1>
    %out = exec.parallel(
        lower = [%c0, %c0], upper = [%down, %across], step = [%c1, %c1], initial = [%acc]
    ) : tile<f32, %d0, %d1> {{ |%i: index, %j: index, %entry: tile<f32, %d0, %d1>|
      %y = scalar.apply "mul"(%i, %height) : index
      %x = scalar.apply "mul"(%j, %width) : index
      %own = tile.reindex(%entry, [%y, %x], map = (d0, d1)[s0, s1] -> (d0 + s0, d1 + s1))
          : tile<f32, %d2, %d3>
      %turned = tile.reindex(%entry, [%x, %y], map = (d0, d1)[s0, s1] -> (d1 + s1, d0 + s0))
          : tile<f32, %d2, %d3>
      %new = tile.map(%own, %turned) : tile<f32, %d2, %d3> {{
          |%a: index, %b: index, %u: f32, %v: f32|
        %w = scalar.apply "fma"(%u, %v, %u) : f32
        exec.yield(%w)
      }}
      exec.yield_updates(payloads = [%new, %own], origins = [%y, %x, %y, %x], patches = [
        #patch<result = 0{combine}>, #patch<result = 0{combine}>])
    }}
    tile.store(%B, [%o, %c0], %out, dims = [%d0, %d1])
    exec.yield
  }}
  func.return
}}
"""


@pytest.mark.parametrize("seed", range(6))
def test_updates_inside_an_instance(seed: int) -> None:
    """Grids that do not divide the tile: patches at the edges are cut."""
    chance = random.Random(seed)
    height, width = chance.choice((1, 3, 4)), chance.choice((1, 5, 8))
    down, across = chance.randrange(1, 4), chance.randrange(1, 4)
    rows = max(height * down - chance.randrange(2), 1)
    columns = max(width * across + chance.randrange(-1, 3), 1)
    combine = chance.choice(("", ', combine = "add"', ', combine = "minimum"'))
    text = NESTED.format_map(locals())
    a = np.random.default_rng(seed).standard_normal((3 * rows - 1, columns)).astype(np.float32)
    check(parse_module(text, registry()), [a, np.full_like(a, np.nan)], [(3, index)])


def test_an_atom_without_code_is_refused() -> None:
    text = """
module "candidate"

func @main(%x: f32) {
  atom.call "cpu.print"(%x, touches = [#atom_effect<kind = "call">])
  func.return
}
"""
    with pytest.raises(TargetError, match=r"no code for the atom cpu\.print") as caught:
        list(lowered(parse_module(text, registry()), AVX2))
    assert caught.value.remedy is not None and "interpret" in caught.value.remedy
