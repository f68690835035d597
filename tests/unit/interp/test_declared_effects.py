"""Declared effects, judged by running: what an operation changes and reads, it has to declare.

After every operation that runs, storage that changed must be among its declared writes. Then
everything that it does not declare to read is changed, and it runs again: its results have to be
the same. An operation that raises must have declared that it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tilenest.dialects import base_of
from tilenest.driver import parse
from tilenest.errors import OutOfBounds
from tilenest.interp.entry import HANDLERS, bind
from tilenest.interp.frame import Frame
from tilenest.interp.values import Array, Pointer, RuntimeValue, Storage
from tilenest.ir import EffectKind, Module, Operation, RegionUse, Rewriter
from tilenest.machine import AVX512, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine

ACCESSES = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 3

func @kernel(%A: view<f32, [?, ?], [?, 1]>, %B: view<f32, [?], [1]>, %C: view<f32, [?, ?], [?, 1]>)
    with (alias_groups = [0, 1, 2]) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %two = scalar.constant 2 : index
  %eight = view.extent(%A, axis = 0) : index
  exec.parallel(lower = [%zero], upper = [%eight], step = [%two]) { |%i: index|
    %a = tile.load(%A, [%i, %one]) : tile<f32, %d0, %d1>
    %b = tile.load(%B, [%i], bounds = "BOUNDS") : tile<f32, %d1>
    %x = tile.load(%B, [%one]) : f32
    %is = scalar.apply "lt"(%x, %x) : bool
    %sum = tile.map(%a, %b, %x) : tile<f32, %d0, %d1> {
    |%0: index, %1: index, %e: f32, %f: f32, %g: f32|
      %h = scalar.apply "fma"(%e, %f, %g) : f32
      exec.yield(%h)
    }
    %start = tile.map(%x) : tile<f32, %d0> { |%0: index, %e: f32|
      exec.yield(%e)
    }
    %turned = tile.reindex(%sum, map = (d0, d1) -> (d1, d0)) : tile<f32, %d1, %d0>
    %product = tile.mma(%turned, %b, %start) : tile<f32, %d0>
    %total = exec.reduce(lower = [%zero], upper = [%two], step = [%one], initial = [%x]) : f32 {
    |%k: index, %s: f32|
      %e = tile.reindex(%product, [%k], map = ()[s0] -> (s0)) : f32
      %n = scalar.apply "add"(%s, %e) : f32
      exec.yield(%n)
    }
    tile.store(%C, [%i, %zero], %sum, dims = [%d0, %d1])
    exec.if(%is) {
      exec.yield
    } {
      tile.store(%C, [%i, %i], %total, bounds = "BOUNDS")
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""

ATOMICS = """
module "candidate"
dim %d0 "m" = 4

func @kernel(
    %A: view<f32, [?, ?], [?, 1]>, %B: view<f32, [?], [1]>, %C: view<f32, [?, ?], [?, 1]>
) {
  %two = scalar.constant 2 : index
  %b = tile.load(%B, [%two]) : tile<f32, %d0>
  %old = tile.atomic "add"(%B, [%two], %b, dims = [%d0]) : tile<f32, %d0>
  exec.sync
  tile.store(%C, [%two, %two], %old, dims = [1@1, %d0])
  func.return
}
"""


class Watching(Frame):
    """A frame that holds every operation against what it declares."""

    seen: set[str]

    def step(self, op: Operation) -> Sequence[RuntimeValue]:
        if op.regions and op.REGION_USE is not RegionUse.ELEMENTWISE:
            return super().step(op)
        kinds = {effect.kind for effect in op.effects()}
        memory = self.memory()
        before = [part.copy() for part in memory]
        try:
            produced = super().step(op)
        except OutOfBounds:
            assert kinds & {EffectKind.FAULT, EffectKind.CALL}, f"{op.NAME} raises"
            raise
        self.seen.add(op.NAME)
        if op.TERMINATOR or kinds & {EffectKind.CALL, EffectKind.ALLOCATE}:
            return produced
        written = self.declared(op, EffectKind.WRITE, EffectKind.ATOMIC)
        read = self.declared(op, EffectKind.READ, EffectKind.ATOMIC)
        for part, old in zip(memory, before, strict=True):
            is_same = part.tobytes() == old.tobytes()
            assert is_same or place(part) in written, f"{op.NAME} writes what it does not declare"
        self.repeat(op, produced, read, memory, before)
        return produced

    def repeat(
        self,
        op: Operation,
        produced: Sequence[RuntimeValue],
        read: set[int],
        memory: list[Array],
        before: list[Array],
    ) -> None:
        """Run again on memory that differs wherever the operation does not read."""
        after = [part.copy() for part in memory]
        for part, old in zip(memory, before, strict=True):
            part[...] = old if place(part) in read else ~old
        with np.errstate(all="ignore"):
            again = HANDLERS[type(op)](self, op)
        for one, other in zip(produced, again, strict=True):
            if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                is_same = one.tobytes() == other.tobytes()
                assert is_same, f"{op.NAME} reads what it does not declare"
        for part, new in zip(memory, after, strict=True):
            part[...] = new

    def memory(self) -> list[Array]:
        """The bytes of everything that can be addressed here, each storage once."""
        parts = [part for part in map(bytes_of, self.values.values()) if part is not None]
        return list({place(part): part for part in parts}.values())

    def declared(self, op: Operation, *kinds: EffectKind) -> set[int]:
        resources = [effect.resource for effect in op.effects() if effect.kind in kinds]
        values = [self.values[base_of(value)] for value in resources if value is not None]
        return {place(part) for part in map(bytes_of, values) if part is not None}

    def call(self, name: str, arguments: Sequence[RuntimeValue]) -> Sequence[RuntimeValue]:
        callee = watching(self.module, self.seen)
        return callee.run(self.module.function(name).body, arguments)


def bytes_of(value: RuntimeValue) -> Array | None:
    """The bytes of a storage, or of what a pointer points into."""
    if isinstance(value, Storage):
        return value.array.reshape(-1).view(np.uint8)
    return value.memory.data if isinstance(value, Pointer) else None


def place(part: Array) -> int:
    """What a storage is known by: where its bytes are."""
    return int(part.ctypes.data)


def watching(module: Module, seen: set[str]) -> Watching:
    frame = Watching(module, HANDLERS)
    frame.seen = seen
    return frame


def run(module: Module, arguments: Sequence[Array]) -> set[str]:
    """Run the kernel; the names of the operations that ran."""
    seen: set[str] = set()
    function = module.function("kernel")
    with np.errstate(all="ignore"):
        watching(module, seen).run(function.body, bind(function, arguments))
    return seen


def arguments() -> list[Any]:
    generator = np.random.default_rng(3)
    return [
        generator.standard_normal(shape).astype(np.float32) for shape in ((8, 6), (12,), (12, 12))
    ]


def forms(bounds: str) -> Iterator[Module]:
    """The program in every form that it goes through."""
    module = parse(ACCESSES.replace("BOUNDS", bounds))
    yield module
    rewriter, form = Rewriter(), module.form
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX512), rewriter)
        if module.form != form:
            yield module
            form = module.form
    yield module
    machine = lower_machine(module)
    simplify_machine(machine)
    yield machine


@pytest.mark.parametrize("bounds", ["zero", "check"])
def test_effects_are_what_operations_do(bounds: str) -> None:
    seen: set[str] = set()
    expected = arguments()
    run(parse(ACCESSES.replace("BOUNDS", "zero")), expected)
    for module in forms(bounds):
        given = arguments()
        seen |= run(module, given)
        np.testing.assert_allclose(given[2], expected[2], rtol=1e-5)
    assert {"tile.load", "tile.store", "tile.mma", "tile.reindex", "tile.map"} <= seen
    assert {"tensor.map_reduce_post", "buf.read", "address.load", "address.store"} <= seen
    assert ("address.check" in seen) == (bounds == "check")


def test_effects_of_accesses_that_raise() -> None:
    for module in forms("check"):
        given = arguments()
        given[1] = given[1][:5]
        with pytest.raises(OutOfBounds):
            run(module, given)


def test_effects_of_atomics() -> None:
    given = arguments()
    before = given[1].copy()
    assert {"tile.atomic", "exec.sync"} <= run(parse(ATOMICS), given)
    np.testing.assert_array_equal(given[1][2:6], 2 * before[2:6])
    np.testing.assert_array_equal(given[2][2, 2:6], before[2:6])
