"""Atomic updates and synchronizations on the way down: every step leaves what the interpreter gave,
in any order of instances; and what the split makes of nests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array
from tests.unit.interp.updating import program
from tests.unit.passes.lowering import lowered
from tilenest.analysis import remaps_of
from tilenest.dialects import Alloc, Launch, Parallel, Serial, Synchronize
from tilenest.driver import parse
from tilenest.interp import interpret
from tilenest.ir import Module
from tilenest.machine import AVX2, AVX512, Machine
from tilenest.verify import verify_module


@tn.kernel
def updates(X: Any, Y: Any) -> None:
    n = tn.axis("n", 5)
    for i in tn.parallel(3):
        own: Any = i.index()
        X(-1, n, mask=tn.iota(n, tn.int32) != 2).atomic_add(Y[own * 2, n])
        X.slice((1,), (3,)).at(i).atomic_add(own * 5)
    Y(0, n).store(X(2, n).atomic_exchange(7))


@tn.kernel
def phases(X: Any, Y: Any) -> None:
    n = tn.axis("n", 2)
    for i in tn.parallel(range(1, 7, 2)):
        index: Any = i.index()
        own = index // 2 * 2
        kept, total = X[own, n], X.at(own).load()
        Y(own, n).store(kept * 3)
        for step in i.serial(3):
            tn.sync(i)
            number: Any = step.index()
            total = total + Y.at(4 - own).load() * tn.cast(number, tn.int64)
            tn.sync(i)
            Y.at(own).store(total)
        tn.sync(i)
        X(own, n).store(Y[4 - own, n] + kept * 1000)


@tn.kernel
def meetings(X: Any, Y: Any) -> None:
    for i in tn.parallel(4):
        own: Any = i.index()
        Y.at(i).store(1)
        tn.sync(i)
        tn.sync(i)
        for step in i.serial(2):
            number: Any = step.index()
            X.at(i).store(Y.at((own + 1) % 4).load() + number)
            tn.sync(i)
        Y.at(i).store(X.at((own + 1) % 4).load())


def candidate(kernel: tn.Kernel) -> Module:
    return parse(kernel.compile(*arrays(), target="interpret").ir("candidate"))


def arrays() -> tuple[Array, Array]:
    return np.arange(6, dtype=np.int64), np.arange(6, dtype=np.int64)[::-1] * 10


def run(module: Module, shuffle: int | None = None) -> list[Array]:
    given = [array.copy() for array in arrays()]
    interpret(module, given, shuffle=shuffle)
    return given


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("kernel", [updates, phases, meetings], ids=lambda kernel: kernel.__name__)
def test_every_step_keeps_the_bits(kernel: tn.Kernel, machine: Machine) -> None:
    module = candidate(kernel)
    expected = run(module)
    for step, reached in lowered(module, machine):
        for shuffle in (None, 1, 2):
            for wanted, found in zip(expected, run(reached, shuffle), strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"after {step}")


def test_a_phase_is_a_nest_and_serial_nests_run_around_theirs() -> None:
    lifted = dict(lowered(candidate(meetings), AVX512))
    *_, machine = lifted.values()
    module = lifted["lift"]
    nests = [op for op in module.walk() if isinstance(op, Parallel)]
    assert [isinstance(op.parent_op, Serial) for op in nests] == [False, True, False]
    assert not any(isinstance(op, Synchronize | Alloc) for op in module.walk())
    assert sum(isinstance(op, Launch) for op in machine.walk()) == 3


def test_a_function_whose_nests_are_split_forgets_its_remaps() -> None:
    """The one of the program as written at the start, and later that of a level that went."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for i in tn.parallel(2, 1, 3):
            place: Any = i.index()
            own = place[0] * 3 + place[2]
            Y.at(own).store(X.at(5 - own).load())
            tn.sync(i)
            X.at(own).store(Y.at(5 - own).load() + Y.at(own).load())

    vector = tn.spec((6,), tn.int64)
    module = kernel.capture(vector, vector)
    expected = run(module)
    tn.remap(module, "i_0").permute("i_2", "i_0").apply()
    assert sum(len(remaps_of(function)) for function in module.functions) == 1
    remembered = []
    for step, reached in lowered(module, AVX2):
        remembered.append(sum(len(remaps_of(function)) for function in reached.functions))
        for wanted, found in zip(expected, run(reached), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"after {step}")
    assert (remembered[0], max(remembered), remembered[-1]) == (0, 1, 0)


FILLED = """
module "candidate"
dim %d0 "m" = 2
dim %d1 "n" = 4

func @main(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %t = tile.load(%A, [%c0]) : tile<f32, %d0>
  exec.parallel(lower = [%c0], upper = [%c2], step = [%c1]) { |%i: index|
    %none = array.make : array<tile<f32, %d0>, 2, filled>
    %half = array.set(%none, [%c0], %t) : array<tile<f32, %d0>, 2, filled>
    exec.sync
    %full = array.set(%half, [%c1], %t) : array<tile<f32, %d0>, 2, filled>
    %whole = array.assemble(%full) : tile<f32, %d1>
    %o = scalar.apply "mul"(%i, %c2) : index
    tile.store(%B, [%o], %whole, dims = [%d1])
    exec.yield
  }
  func.return
}
"""


def test_what_no_buf_can_keep_is_refused() -> None:
    updating = program("exec.sync\n    exec.yield_updates")
    for module, remedy in ((updating, "store to an array"), (parse(FILLED), "keep a tile")):
        verify_module(module)
        with pytest.raises(tn.TargetError) as caught:
            list(lowered(module, AVX2))
        assert remedy in (caught.value.remedy or "")
