"""Every step of a compilation keeps the invariants, for kernels whose claims are easily broken."""

from typing import Any

import pytest

import tilenest as tn
from tests.invariants.corpus import examples
from tilenest.dialects import MapReducePost, Repartition
from tilenest.ir import Rewriter
from tilenest.machine import AVX2, AVX512, Machine, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine
from tilenest.verify import diagnose_module

Shape = tuple[int, ...]


@tn.kernel
def from_another_tile(A: Any, B: Any, C: Any, bias: Any) -> None:
    """The product starts from a tile that does not grow with its blocks."""
    m, k, n = tn.axis("m", 33), tn.axis("k", 19), tn.axis("n", 21)
    start: Any = tn.broadcast(bias[0, n], (m, n))
    product = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (n, k)].T, start)
    C((0, 0), (m, n)).store(tn.maximum(product, 0.0))


@tn.kernel
def checked(X: Any, Y: Any) -> None:
    """What is read is inside because it was checked, row by row."""
    m, n = tn.axis("m", 4), tn.axis("n", 10)
    for part in tn.parallel(2):
        row = part.index() * 4
        Y((row, 0), (m, n)).store(X((row, 0), (m, n), bounds="check").load() + 1.0)


@tn.kernel
def backwards(X: Any, Y: Any) -> None:
    """The columns are counted from behind, up to an extent known at run time."""
    m = tn.axis("m", 20)
    for root in tn.parallel(1):
        total = tn.zeros((m,), tn.float32)
        for c in root.reduce(X.extent(1), policy=tn.reduction.fold_right):
            total = total * 0.5 + X[(0, c.index()), (m, 1)].at(0, axis=1)
        Y(0, m).store(total)


KERNELS: tuple[tuple[tn.Kernel, tuple[Shape, ...]], ...] = (
    (from_another_tile, ((33, 19), (21, 19), (33, 21), (21,))),
    (checked, ((8, 10), (8, 10))),
    (backwards, ((20, 13), (20,))),
)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize(("kernel", "shapes"), KERNELS, ids=["tile", "check", "backwards"])
def test_tn02_tn07_tn12_hold_after_every_step(
    kernel: tn.Kernel, shapes: tuple[Shape, ...], machine: Machine
) -> None:
    module = kernel.capture(*[tn.spec(shape, tn.float32) for shape in shapes])
    assert diagnose_module(module) == []
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        step(module, cpu_target(machine), rewriter)
        assert [str(found) for found in diagnose_module(module)] == [], name
    lowered = lower_machine(module)
    assert [str(found) for found in diagnose_module(lowered)] == []
    simplify_machine(lowered)
    assert [str(found) for found in diagnose_module(lowered)] == []


def test_tn07_sees_a_repartition_that_was_tampered_with() -> None:
    (text,) = [e.text for e in examples() if e.id == "TN07-accepted-copy-into-panels"]
    module = tn.parse(text)
    (work,) = [op for op in module.walk() if isinstance(op, MapReducePost)]
    change = work.repartition
    assert isinstance(change, Repartition)
    assert diagnose_module(module) == []
    swapped = Repartition(change.target, change.source, change.moved, change.kept)
    Rewriter().set_attribute(work, "repartition", swapped)
    assert {found.rule for found in diagnose_module(module)} == {"TN07b"}
