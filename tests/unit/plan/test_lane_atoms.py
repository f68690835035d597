"""Schedules lean on atoms whose contracts are proven for them, and do without where one is refused.

What a schedule computes is judged step by step by the interpreter; here is which one is chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Scheduled, run_stepwise
from tilenest import language
from tilenest.analysis import atom_sites
from tilenest.decisions import Decision
from tilenest.dialects import AtomCall, AtomChoice
from tilenest.ir import Module, Rewriter
from tilenest.layouts import AffineMap, DimRef
from tilenest.machine import AVX2, AVX512, LANE_REDUCTIONS, TRANSPOSE_LANES, Machine
from tilenest.passes import lower_machine
from tilenest.records import replace
from tilenest.verify import diagnose_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language
WITHOUT_VECTORS = replace(AVX2, name="scalar", vector_bytes=1)


def transposed(A: Any, B: Any) -> None:
    m, n = tn.axis("m", 24), tn.axis("n", 40)
    for _ in tn.parallel(1):
        B((0, 0), (n, m)).store(tn.transpose(A[(0, 0), (m, n)]))


def row_sums(A: Any, B: Any, *, policy: Any) -> None:
    m, n = tn.axis("m", 3), tn.axis("n", 40)
    for _ in tn.parallel(1):
        total = tn.reduce(A[(0, 0), (m, n)], n, tn.add, policy=policy)
        B((0, 0), (m, 1)).store(total)


def scheduled_transpose(machine: Machine) -> Scheduled:
    a = np.arange(24 * 40, dtype=np.float32).reshape(24, 40)
    return run_stepwise(transposed, [a, np.full((40, 24), np.nan, np.float32)], machine=machine)


def scheduled_sums(policy: Any, dtype: Any, machine: Machine) -> Scheduled:
    a = np.arange(3 * 40).reshape(3, 40).astype(dtype)
    return run_stepwise(
        row_sums, [a, np.full((3, 1), 77, dtype)], {"policy": policy}, machine=machine
    )


def presets(found: Scheduled) -> set[str]:
    return {op.schedule().preset for op in found.work}


def decisions_for(found: Scheduled, atom: str) -> list[Decision]:
    return [decision for decision in found.decisions if decision.choice.startswith(atom)]


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
def test_squares_are_transposed_by_a_proven_atom(machine: Machine) -> None:
    found = scheduled_transpose(machine)
    assert presets(found) == {"transposed"}
    (decision,) = decisions_for(found, TRANSPOSE_LANES)
    for clause in (
        "types",
        "order",
        "rounding",
        "participants",
        "layout of operand 0",
        "layout of result",
    ):
        assert clause in decision.reason


def test_without_the_feature_nothing_is_transposed() -> None:
    found = scheduled_transpose(WITHOUT_VECTORS)
    assert "transposed" not in presets(found)
    assert not decisions_for(found, TRANSPOSE_LANES)
    reasons = [decision.reason for decision in found.decisions]
    assert any("no atom for square of lanes" in reason for reason in reasons)
    assert any("vectors that the machine lacks" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("policy", "dtype", "is_split"),
    [
        (language.reduction.unordered_tree, np.float32, True),
        (language.reduction.ordered_tree, np.float32, False),
        (language.reduction.fold_left, np.float32, False),
        (language.reduction.fold_left, np.int32, True),
        (language.reduction.fold_right, np.int64, True),
    ],
)
def test_folds_along_lanes_need_an_order_that_the_atom_keeps(
    policy: Any, dtype: Any, is_split: bool
) -> None:
    found = scheduled_sums(policy, dtype, AVX512)
    assert ("reduction_vectorized" in presets(found)) == is_split
    decisions = decisions_for(found, LANE_REDUCTIONS["add"])
    assert len(decisions) == is_split
    assert all("order" in decision.reason for decision in decisions)


def test_without_the_feature_folds_stay_whole() -> None:
    found = scheduled_sums(language.reduction.unordered_tree, np.float32, WITHOUT_VECTORS)
    assert "reduction_vectorized" not in presets(found)


# What is chosen is what is emitted -------------------------------------------------------------


def scheduled_either(is_fold: bool) -> Scheduled:
    if is_fold:
        return scheduled_sums(language.reduction.unordered_tree, np.float32, AVX2)
    return scheduled_transpose(AVX2)


def calls(module: Module) -> list[AtomCall]:
    return [op for op in module.walk() if isinstance(op, AtomCall)]


def rules(module: Module) -> set[str]:
    return {diagnostic.rule for diagnostic in diagnose_module(module)}


@pytest.mark.parametrize("is_fold", [False, True])
def test_calls_are_of_the_atom_that_was_chosen(is_fold: bool) -> None:
    found = scheduled_either(is_fold)
    (work,) = (op for op in found.work if op.schedule().atoms)
    (choice,), (site,) = work.schedule().atoms, atom_sites(work, work.schedule().loops).values()
    machine = lower_machine(found.module)
    assert calls(machine)
    for call in calls(machine):
        assert (call.atom, call.version) == (choice.atom, choice.version)
        assert [layout for layout in call.layouts if layout] == list(site.operand_layouts)
        assert tuple(value.type for value in call.arguments) == site.operands
        assert tuple(value.type for value in call.results) == site.results
        assert call.semantic in ("", site.semantic)
    assert not rules(machine)


@pytest.mark.parametrize("is_fold", [False, True])
def test_tn16_holds_calls_of_compiled_modules(is_fold: bool) -> None:
    machine = lower_machine(scheduled_either(is_fold).module)
    call = calls(machine)[0]
    layout, *others = call.layouts
    turned = AffineMap(layout.n_dims, 0, tuple(reversed(layout.results)))
    Rewriter().set_attribute(call, "layouts", (turned, *others))
    assert rules(machine) == {"TN16"}


@pytest.mark.parametrize("is_fold", [False, True])
@pytest.mark.parametrize("name", ["cpu.lanes.extreme", "cpu.print", "cpu.nothing", None])
def test_tn16b_refuses_schedules_whose_atom_does_not_fit(is_fold: bool, name: str | None) -> None:
    found = scheduled_either(is_fold)
    (work,) = (op for op in found.work if op.schedule().atoms)
    assert not rules(found.module)
    atoms = () if name is None else (AtomChoice(name),)
    Rewriter().set_attribute(work, "sched", replace(work.schedule(), atoms=atoms))
    assert rules(found.module) == {"TN16b"}


def test_tn16b_refuses_squares_that_are_stored_as_they_were_read() -> None:
    """The layout of the result comes from the memory that it is stored to."""
    found = scheduled_transpose(AVX2)
    (work,) = (op for op in found.work if op.schedule().atoms)
    (site,) = atom_sites(work, work.schedule().loops).values()
    assert site.result_layouts == (AffineMap(2, 0, (DimRef(1), DimRef(0))),)
    rows, lanes, square = work.schedule().loops
    other = (replace(rows, dim=lanes.dim), replace(lanes, dim=rows.dim))
    loops = (*other, replace(square, dim=lanes.dim))
    (site,) = atom_sites(work, loops).values()
    assert site.result_layouts == (AffineMap.identity(2),)
    Rewriter().set_attribute(work, "sched", replace(work.schedule(), loops=loops))
    assert rules(found.module) == {"TN16b"}
