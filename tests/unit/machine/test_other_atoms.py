"""A target with atoms of its own: what is planned, what it needs of the machine, and what the
verifier holds it against come from that target's catalogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.analysis import needed_features
from tilenest.capture import capture
from tilenest.dialects import MapReducePost, Sched
from tilenest.errors import VerifyError
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter
from tilenest.machine import AVX2, Catalogue, Target, cpu_target
from tilenest.passes import SCHEDULE_PASSES
from tilenest.records import replace
from tilenest.verify import verify_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

CPU = cpu_target(AVX2)
OTHER = replace(
    CPU,
    name="other",
    atoms=Catalogue(
        tuple(
            replace(contract, id=contract.id.replace("cpu.", "other."), needs=frozenset({"wide"}))
            for contract in CPU.atoms
        )
    ),
    features=CPU.features | {"wide"},
)


def sums(A: Any, B: Any) -> None:
    m, n = tn.axis("m", 3), tn.axis("n", 64)
    for _ in tn.parallel(1):
        B(0, m).store(tn.reduce(A[(0, 0), (m, n)], n, tn.add))


def scheduled(target: Target) -> Module:
    arrays: list[Array] = [np.zeros((3, 64), np.float32), np.zeros(3, np.float32)]
    kernel: Any = sums
    module = capture(kernel, specs_of(arrays), {}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, target, rewriter))
        verify_module(module, target)
    return module


def chosen(module: Module) -> set[str]:
    works = [op.sched for op in module.walk() if isinstance(op, MapReducePost)]
    return {choice.atom for sched in works if isinstance(sched, Sched) for choice in sched.atoms}


@pytest.mark.parametrize(("target", "name"), [(CPU, "cpu"), (OTHER, "other")])
def test_atoms_of_the_target_are_planned_and_say_what_they_need(target: Target, name: str) -> None:
    module = scheduled(target)
    assert chosen(module) == {f"{name}.lanes.reduce"}
    needed = needed_features(module.walk(), target.atoms)
    assert ("wide" in needed) is (target is OTHER)
    a = np.arange(192, dtype=np.float32).reshape(3, 64)
    b = np.full(3, np.nan, np.float32)
    interpret(module, [a, b])
    np.testing.assert_array_equal(b, a.sum(axis=1))


@pytest.mark.parametrize(("made_for", "judged_for"), [(CPU, OTHER), (OTHER, CPU)])
def test_atoms_of_another_target_are_refused(made_for: Target, judged_for: Target) -> None:
    module = scheduled(made_for)
    verify_module(module, made_for)
    with pytest.raises(VerifyError, match=r"no catalogue has the atom") as refusal:
        verify_module(module, judged_for)
    assert f"atoms are {judged_for.name}." in str(refusal.value)
