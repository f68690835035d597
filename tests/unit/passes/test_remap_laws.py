"""Reductions of which nobody vouches for laws: what the new bodies show is what is said of them.

The judge is NumPy: sums of float32 one after the other, in the order of the policy, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import poisoned
from tests.unit.ir.photograph import photograph
from tilenest.dialects import Reduce
from tilenest.ir import Module
from tilenest.kernel import Kernel
from tilenest.passes import Remapping

Step = Callable[[Remapping], Remapping]
SHAPE = (5, 13)
FOLDS = ["fold_left", "fold_right"]


def summed(policy: str) -> Kernel:
    order = getattr(tn.reduction, policy)

    @tn.kernel
    def kernel(A, C):
        total = tn.scalar(0.0, tn.float32)
        for a in tn.root().reduce(5, policy=order):
            for b in a.reduce(13, policy=order):
                total = total + A.at(a.index(), b.index()).load()
        C.at(0).store(total)

    return kernel


def largest(policy: str) -> Kernel:
    order = getattr(tn.reduction, policy)

    @tn.kernel
    def kernel(A, C):
        most = tn.scalar(-1000.0, tn.float32)
        for a in tn.root().reduce(A.extent(0), policy=order):
            for b in a.reduce(A.extent(1), policy=order):
                most = tn.maximum(most, A.at(a.index(), b.index()).load())
        C.at(0).store(most)

    return kernel


def chain(policy: str, extent: int) -> Kernel:
    order = getattr(tn.reduction, policy)

    @tn.kernel
    def kernel(A, C):
        total = tn.scalar(0.0, tn.float32)
        for a in tn.root().reduce(extent, policy=order):
            total = total + A.at(a.index(), 0).load()
        C.at(0).store(total)

    return kernel


def folded(values: Any, policy: str) -> Any:
    total = np.float32(0)
    for value in values[::-1] if policy == "fold_right" else values:
        total = np.float32(total + value)
    return total


def source_of(shape: tuple[int, int]) -> Any:
    return np.random.default_rng(5).uniform(-9, 9, shape).astype(np.float32)


def check(kernel: Kernel, steps: Step, source: Any, expected: Any) -> None:
    rearranged = kernel.rearranged(lambda module: steps(tn.remap(module)).apply())
    for target in ("interpret", "cpu"):
        result = poisoned((1,), np.float32)
        rearranged(source, result.array, target=target)
        assert result.array[0] == expected, target
        assert result.has_intact_guards


def laws(module: Module) -> list[list[str | None]]:
    nests = [op for op in module.walk() if isinstance(op, Reduce)]
    return [[law.merge for law in nest.contract.laws] for nest in nests]


NESTED: list[Step] = [
    lambda plan: plan.fuse("a", "b"),
    lambda plan: plan.unite("a", "b"),
    lambda plan: plan.fuse("a", "b").split("a+b", 13),
    lambda plan: plan.fuse("a", "b").split("a+b", 4),
    lambda plan: plan.split("b", 4),
]


@pytest.mark.parametrize("steps", NESTED)
@pytest.mark.parametrize("policy", FOLDS)
def test_nested_folds_are_rearranged(policy: str, steps: Step) -> None:
    """The outer body shows no law, and the inner one a sum."""
    kernel, source = summed(policy), source_of(SHAPE)
    module = kernel.capture(*(tn.spec(shape, tn.float32) for shape in (SHAPE, (1,))))
    assert laws(module) == [[], ["add"]]
    check(kernel, steps, source, folded(source.ravel(), policy))
    check(largest(policy), NESTED[0], source, source.max())


def test_one_nest_shows_the_law_of_both() -> None:
    module = summed("fold_left").capture(*(tn.spec(shape, tn.float32) for shape in (SHAPE, (1,))))
    tn.remap(module).fuse("a", "b").apply()
    assert laws(module) == [["add"]]
    tn.remap(module).split("a_b", 4).apply()
    assert laws(module) == [[]], "a condition shows no law"


@pytest.mark.parametrize(("extent", "factor"), [(5, 2), (13, 4), (5, 5), (12, 4), (1, 3)])
@pytest.mark.parametrize("policy", FOLDS)
def test_folds_have_tails(policy: str, extent: int, factor: int) -> None:
    source = source_of(SHAPE if extent <= 5 else (extent, 1))
    expected = folded(source[:extent, 0], policy)
    check(chain(policy, extent), lambda plan: plan.split("a", factor), source, expected)


def in_blocks_of(factor: int) -> Callable[[Module], object]:
    return lambda module: tn.remap(module, "a").split("a", factor).apply()


@pytest.mark.parametrize("policy", ["ordered_tree", "unordered_tree"])
def test_a_tree_has_no_tail(policy: str) -> None:
    specs = [tn.spec((12, 1), tn.float32), tn.spec((1,), tn.float32)]
    module = chain(policy, 12).capture(*specs)
    before = photograph(module)
    with pytest.raises(tn.RemapError, match=f"{policy}, which regroups") as refused:
        tn.remap(module, "a").split("a", 5).apply()
    assert "TN09" not in refused.value.message and refused.value.location is not None
    assert "2, 3, 12 divide 12" in str(refused.value.remedy)
    assert "tn.reduction.fold_left" in str(refused.value.remedy)
    assert photograph(module) == before
    tn.remap(module, "a").split("a", 3).apply()
    assert laws(module) == [["add"]]
    source = source_of((12, 1))
    for factor in (2, 3, 12):
        rearranged = chain(policy, 12).rearranged(in_blocks_of(factor))
        result = poisoned((1,), np.float32)
        rearranged(source, result.array)
        np.testing.assert_allclose(result.array[0], source.astype(np.float64).sum(), rtol=1e-5)
        assert result.has_intact_guards
