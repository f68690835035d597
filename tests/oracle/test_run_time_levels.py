"""Levels of run-time extents fused, coalesced, split and tiled: the bits of NumPy.

One capture and one remap serve every shape, empty ones and those of one instance among them. The
interpreter runs instances in another order too; compiled code is called with all shapes in turn.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.compare import tn
from tilenest.analysis import remaps_of
from tilenest.execution import ExecLevel
from tilenest.ir import Module, print_module
from tilenest.passes import Remapping
from tilenest.records import record
from tilenest.verify import verify_module

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
PAIRS = ((3, 7), (0, 5), (5, 0), (0, 0), (1, 1), (1, 9), (9, 1), (13, 4))
TRIPLES = ((3, 4, 5), (0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1), (7, 1, 2), (1, 5, 3))


def flat(A: Any, C: Any) -> None:
    for block in tn.parallel(A.extent(0), A.extent(1)):
        i, j = block.index()
        C.at(i, j).store(A.at(i, j).load() * 3 + tn.cast(i * 100 + j, tn.int32))


def nested(A: Any, C: Any) -> None:
    for outer in tn.parallel(A.extent(0)):
        for inner in outer.parallel(A.extent(1)):
            i, j = outer.index(), inner.index()
            C.at(i, j).store(A.at(i, j).load() * 3 + tn.cast(i * 100 + j, tn.int32))


def in_order(A: Any, C: Any) -> None:
    """Each step sees what all steps before it left."""
    for i in tn.serial(A.extent(0)):
        for j in i.serial(A.extent(1)):
            last = C.at(0, 0).load() // 2 + A.at(i.index(), j.index()).load()
            C.at(i.index(), j.index()).store(last)
            C.at(0, 0).store(last)


def three(A: Any, C: Any) -> None:
    for block in tn.parallel(A.extent(0), A.extent(1), A.extent(2)):
        i, j, k = block.index()
        C.at(i, j, k).store(A.at(i, j, k).load() * 3 + tn.cast(i * 100 + j * 10 + k, tn.int32))


def placed(A: Array) -> Array:
    grid = np.indices(A.shape)
    weights = (100, 1) if A.ndim == 2 else (100, 10, 1)
    return (A * 3 + sum(at * by for at, by in zip(grid, weights, strict=True))).astype(np.int32)


def in_turn(A: Array) -> Array:
    C = np.full_like(A, 7)
    for place in np.ndindex(A.shape):
        last = C[0, 0] // np.int32(2) + A[place]
        C[place] = last
        C[0, 0] = last
    return C


def names_of(plan: Remapping) -> list[str]:
    return [level.identity for level in plan.levels.levels]


def fused(plan: Remapping) -> Remapping:
    return plan.fuse(*names_of(plan))


def fused_by_twos(plan: Remapping) -> Remapping:
    while len(names_of(plan)) > 1:
        plan = plan.fuse(*names_of(plan)[-2:])
    return plan


def coalesced(plan: Remapping) -> Remapping:
    return plan.unite(*names_of(plan)).coalesce()


def fused_and_split(plan: Remapping) -> Remapping:
    return fused(plan).split("+".join(names_of(plan)), 4)


def tiled(plan: Remapping) -> Remapping:
    i, j = names_of(plan)
    plan = plan.split(i, 2).split(j, 4)
    return plan.permute(f"{j}.0", f"{i}.1").fuse(f"{i}.0", f"{j}.0")


@record
class Case:
    kernel: Any
    expected: Callable[[Array], Array]
    steps: Callable[[Remapping], Remapping]
    shapes: tuple[Shape, ...]


CASES = {
    f"{kernel.__name__} {steps.__name__}": Case(kernel, expected, steps, shapes)
    for kernel, expected, shapes, ways in (
        (flat, placed, PAIRS, (fused, coalesced, fused_and_split, tiled)),
        (nested, placed, PAIRS, (fused, coalesced, fused_and_split)),
        (in_order, in_turn, PAIRS, (fused, fused_and_split)),
        (three, placed, TRIPLES, (fused, fused_by_twos, coalesced)),
    )
    for steps in ways
}


def remapped(case: Case) -> Module:
    spec = tn.spec((None,) * len(case.shapes[0]), tn.int32)
    module: Module = tn.kernel(case.kernel).capture(spec, spec)
    plan = case.steps(tn.remap(module))
    kept: list[ExecLevel] = [level for level in plan.levels.levels if isinstance(level.extent, str)]
    assert len(kept) == 1, "the run-time extents are fused"
    plan.apply()
    return module


@pytest.mark.parametrize("name", CASES)
def test_fused_levels_give_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILENEST_CACHE", "0")
    case = CASES[name]
    module = remapped(case)
    verify_module(tn.parse(print_module(module)))
    (function,) = module.functions
    assert len(remaps_of(function)) == 1
    compiled = tn.kernel(case.kernel).rearranged(
        lambda captured: case.steps(tn.remap(captured)).apply()
    )
    random = np.random.default_rng(7)
    for shape in case.shapes:
        source = random.integers(-9, 9, shape).astype(np.int32)
        wanted = case.expected(source)
        for run in (
            lambda *given: tn.interpret(module, [*given]),
            lambda *given: tn.interpret(module, [*given], shuffle=3),
            compiled,
        ):
            whole = np.full((shape[0] + 2, *shape[1:]), 7, np.int32)
            run(source, whole[1:-1])
            np.testing.assert_array_equal(whole[1:-1], wanted, err_msg=f"{name} {shape}")
            assert (whole[[0, -1]] == 7).all()
