"""Memory effects of functions, judged by running: what changes, between which operations.

While random kernels run, in every form, storage is compared before and after every operation, and
since the end of those before it: what has changed must be written, as the analysis says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.random_programs import arguments
from tests.unit.analysis.random_functions import forms
from tilenest.analysis import MemoryEffects
from tilenest.driver import parse
from tilenest.interp import interpret
from tilenest.interp.frame import Frame
from tilenest.interp.values import Array, Storage
from tilenest.ir import Operation, Value, fresh


class Watch:
    """Holds what happens to storage against an answer."""

    def __init__(self, found: MemoryEffects, seed: int) -> None:
        self.found = found
        self.chance = random.Random(seed)
        self.versions: Counter[int] = Counter()
        self.ended: dict[Operation, Counter[int]] = {}
        self.arrays: list[Array] = []
        """all there were, so that none takes the place of another"""
        self.kept = self.changed = 0
        self.plain = Frame.step

    def step(self, frame: Frame, op: Operation) -> Any:
        if frame.lifted:
            return self.plain(frame, op)
        self.check_before(frame, op)
        olds = {place: array.copy() for place, array in storages(frame).values()}
        produced = self.plain(frame, op)
        changed = set()
        for value, (place, array) in storages(frame).items():
            self.arrays.append(array)
            old = olds.get(place)
            if old is not None and old.tobytes() != array.tobytes():
                assert self.found.may_write(op, value), f"{op.NAME} changes %{value.name}"
                changed.add(place)
        if not any(inner.NAME != op.NAME and inner.effects() for inner in op.walk()):
            self.versions.update(changed)
        self.changed += len(changed)
        self.ended[op] = self.versions.copy()
        return produced

    def check_before(self, frame: Frame, op: Operation) -> None:
        inner: Operation | None = op
        while inner is not None and inner.parent is not None:
            known = [first for first in before(inner) if first in self.ended]
            for first in self.chance.sample(known, min(3, len(known))):
                self.check_between(frame, first, op)
            inner = inner.parent_op

    def check_between(self, frame: Frame, first: Operation, last: Operation) -> None:
        for value, (place, _) in storages(frame).items():
            is_written = self.found.is_written_between(value, first, last)
            if self.versions[place] != self.ended[first][place]:
                assert is_written, f"%{value.name} between {first.NAME} and {last.NAME}"
            self.kept += not is_written


def before(op: Operation) -> Iterator[Operation]:
    """The operations of the block that stand before one."""
    earlier = op.previous
    while earlier is not None:
        yield earlier
        earlier = earlier.previous


def storages(frame: Frame) -> dict[Value, tuple[int, Array]]:
    """The arguments, bufs and memories of a frame, and where they are."""
    return {
        value: (int(storage.array.ctypes.data), storage.array)
        for value, storage in frame.values.items()
        if isinstance(storage, Storage)
    }


def run(module: Any, found: MemoryEffects, given: Sequence[Any], seed: int) -> Watch:
    watch = Watch(found, seed)

    def step(frame: Frame, op: Operation) -> Any:
        return watch.step(frame, op)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Frame, "step", step)
        interpret(module, given)
    return watch


@pytest.mark.parametrize("seed", range(10))
def test_memory_effects_of_random_programs(seed: int) -> None:
    x, n, y = arguments(2)
    kept = changed = 0
    for module in forms(seed):
        (function,) = module.functions
        given = [x, n, y.copy()][-len(function.arguments) :]
        assert len(given) == len(function.arguments)
        watch = run(module, fresh(MemoryEffects, function), given, seed)
        kept += watch.kept
        changed += watch.changed
    assert kept > 20
    assert changed > 0


COINCIDING = """
module "candidate"
dim %d0 "n" = 4
func @kernel(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %C: view<f32, [?], [1]>)
    with (alias_groups = [0, 0, 1]) {
  %zero = scalar.constant 0 : index
  %four = scalar.constant 4 : index
  %one = scalar.constant 1 : index
  %low = view.remap(%A, map = (d0) -> (d0)) : view<f32, [4], [1]>
  %high = view.remap(%B, map = (d0) -> (d0 + 4)) : view<f32, [4], [1]>
  %x = tile.load(%low, [%zero]) : tile<f32, %d0>
  exec.serial(lower = [%zero], upper = [%four], step = [%one]) { |%i: index|
    %y = tile.load(%C, [%zero]) : tile<f32, %d0>
    tile.store(%high, [%zero], %y, dims = [%d0])
    tile.store(%C, [%zero], %x, dims = [%d0])
    exec.yield
  }
  %z = tile.load(%B, [%zero]) : tile<f32, %d0>
  tile.store(%low, [%zero], %z, dims = [%d0])
  func.return
}
"""


def test_memory_effects_of_coinciding_arguments() -> None:
    module = parse(COINCIDING)
    function = module.function("kernel")
    found = fresh(MemoryEffects, function)
    a, c = np.arange(8, dtype=np.float32), np.arange(8, 16, dtype=np.float32)
    watch = run(module, found, [a, a, c], 0)
    assert watch.changed > 2
    names = {frozenset(value.name for value in group) for group in found.alias_sets}
    assert names == {frozenset({"A", "B", "low", "high"}), frozenset({"C"})}
