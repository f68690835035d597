"""Remaps where some levels, or all of them, have one instance.

A level of one instance tells nobody apart, so that every law is kept in many places; the nests have
to stay nests all the same. What changes nothing is accepted and leaves the program as it is, and
what only cuts or joins levels of one nest is accepted whatever the extents are. The judge of
results is the interpreter of what was captured, and NumPy in float64; compiled code gives the same
bits as the interpreter.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import Array
from tests.oracle.compare import tn
from tests.unit.ir.photograph import of_region
from tilenest.ir import Module, print_module
from tilenest.passes import Remapping, remap
from tilenest.records import record
from tilenest.verify import verify_module

EXTENTS = (1, 2, 5)


def product_of(A: Any, B: Any, C: Any) -> None:
    m, n, k = tn.axis("m", 2), tn.axis("n", 2), tn.axis("k", 2)
    for block in tn.parallel(tn.cdiv(A.shape[0], 2), tn.cdiv(B.shape[1], 2)):
        i, j = block.index()
        acc = tn.zeros((m, n), tn.float32)
        for step in block.serial(tn.cdiv(A.shape[1], 2)):
            a = A[(i * 2, step.index() * 2), (m, k)]
            b = B[(step.index() * 2, j * 2), (k, n)]
            acc = tn.mma(a, b, acc)
        C((i * 2, j * 2), (m, n)).store(acc)


def chain(A: Any, B: Any, C: Any) -> None:
    """A nest of each kind with something between every two, states handed on by the inner ones."""
    for i in tn.parallel(A.shape[0]):
        factor = B.at(i.index()).load()
        for j in i.parallel(A.shape[1]):
            total = factor * 0.5
            for k in j.serial(A.shape[2]):
                part = total * 0.25
                for r in k.reduce(A.shape[3], policy=tn.reduction.fold_left):
                    at = i.index(), j.index(), k.index(), r.index()
                    part = part * 0.5 + A.at(*at).load()
                total = total + part
            C.at(i.index(), j.index()).store(total)


def staged(A: Any, B: Any, C: Any) -> None:
    for i in tn.parallel(A.shape[0], A.shape[1]):
        row, column = i.index()
        total = B.at(row).load()
        for step in i.pipeline(A.shape[2], window=2):
            step.stage("load")
            x = A.at(row, column, step.index(), 0).load()
            step.stage("add")
            total = total * 0.5 + x
        C.at(row, column).store(total)


@record
class Case:
    """A kernel, the extents of its levels, and the name of the innermost one."""

    kernel: Any
    extents: tuple[int, ...]
    leaf: str

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        if self.kernel is product_of:
            rows, columns, steps = self.extents
            return (2 * rows, 2 * steps - 1), (2 * steps - 1, 2 * columns), (2 * rows, 2 * columns)
        whole = (*self.extents, 1)[:4]
        return whole, whole[:1], whole[:2]

    def arrays(self) -> tuple[Array, Array, Array]:
        random = np.random.default_rng(7)
        a, b = (random.standard_normal(shape, np.float32) for shape in self.shapes[:2])
        return a, b, np.full(self.shapes[2], np.nan, np.float32)

    def captured(self) -> Module:
        found = tn.kernel(self.kernel).capture(*(tn.spec(s, tn.float32) for s in self.shapes))
        assert isinstance(found, Module)
        return found

    def interpreted(self, module: Module, shuffle: int | None = None) -> Array:
        a, b, c = self.arrays()
        tn.interpret(module, [a, b, c], shuffle=shuffle)
        return c

    def __str__(self) -> str:
        return f"{self.kernel.__name__}-{'x'.join(map(str, self.extents))}"


Step = Callable[[Remapping], Remapping]


def ends(plan: Remapping) -> list[str]:
    return [level.identity for level in plan.levels.levels]


def of_level(place: int, factor: int) -> Step:
    return lambda plan: plan.split(ends(plan)[place], factor)


PRODUCTS = [Case(product_of, extents, "step") for extents in product(EXTENTS, repeat=3)]
CHAINS = [Case(chain, extents, "r") for extents in product(EXTENTS, repeat=4)]
PIPELINES = [Case(staged, extents, "step") for extents in product(EXTENTS, repeat=3)]

SURE: dict[Any, tuple[Step, ...]] = {
    product_of: (
        *(of_level(place, factor) for place in range(3) for factor in (1, 2, 7)),
        lambda plan: plan.permute("block_1", "block_0"),
        lambda plan: plan.fuse("block_0", "block_1"),
        lambda plan: (
            plan.split("block_1", 3)
            .permute("block_0", "block_1.0", "block_1.1")
            .fuse("block_0", "block_1.0")
        ),
        lambda plan: plan.insert_unit(0, "u", "parallel"),
        lambda plan: plan.insert_unit(3, "u"),
    ),
    chain: (
        *(of_level(place, factor) for place in range(4) for factor in (1, 2, 7)),
        lambda plan: plan.insert_unit(0, "u", "parallel"),
    ),
    staged: (
        *(of_level(place, factor) for place in range(2) for factor in (1, 2, 7)),
        lambda plan: plan.permute("i_1", "i_0"),
        lambda plan: plan.fuse("i_0", "i_1"),
    ),
}
"""Steps that every program of a kernel allows, whatever its extents are."""


def open_steps(depth: int) -> tuple[Step, ...]:
    """Steps of so many levels that some programs refuse."""
    pairs = range(depth - 1)
    return (
        *(lambda plan, at=at: plan.remove_unit(ends(plan)[at]) for at in range(depth)),
        *(lambda plan, at=at: plan.insert_unit(at, "u") for at in range(depth + 1)),
        *(lambda plan, at=at: plan.insert_unit(at, "u", "parallel") for at in range(1, depth + 1)),
        *(lambda plan, at=at: plan.permute(*reversed(ends(plan)[at : at + 2])) for at in pairs),
        *(lambda plan, at=at: plan.fuse(*ends(plan)[at : at + 2]) for at in pairs),
        *(lambda plan, at=at: plan.unite(*ends(plan)[at : at + 2]) for at in pairs),
        lambda plan: plan.reshape((ends(plan)[-1],), (3, 2)),
        lambda plan: plan.permute(*reversed(ends(plan))),
        lambda plan: plan.coalesce(),
    )


def check(case: Case, module: Module, plan: Remapping, expected: Array) -> None:
    """What a remap left does what the program did."""
    verify_module(tn.parse(print_module(module)))
    for shuffle in (None, 3):
        found = case.interpreted(module, shuffle)
        np.testing.assert_array_equal(found, expected, err_msg=f"{case} {plan}")


def check_open(case: Case) -> int:
    """How many of the open steps were applied."""
    expected, applied = case.interpreted(case.captured()), 0
    for step in open_steps(len(case.extents)):
        module = case.captured()
        before = print_module(module)
        try:
            plan = step(remap(module, case.leaf))
            plan.apply()
        except tn.RemapError:
            assert print_module(module) == before
            continue
        applied += 1
        check(case, module, plan, expected)
    return applied


@pytest.mark.parametrize("case", [*PRODUCTS, *CHAINS, *PIPELINES], ids=str)
def test_what_moves_nothing_changes_nothing(case: Case) -> None:
    module = case.captured()
    before = [of_region(function.region) for function in module.functions]
    remap(module, case.leaf).apply()
    assert [of_region(function.region) for function in module.functions] == before


def check_sure(case: Case) -> None:
    expected = case.interpreted(case.captured())
    if case.kernel is product_of:
        a, b, _ = case.arrays()
        np.testing.assert_allclose(expected, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
    for step in SURE[case.kernel]:
        module = case.captured()
        plan = step(remap(module, case.leaf))
        plan.apply()
        check(case, module, plan, expected)


def few(cases: list[Case]) -> list[Case]:
    """Those with one instance a level, but for one level at most."""
    return [case for case in cases if sum(extent > 1 for extent in case.extents) <= 1]


@pytest.mark.parametrize("case", few([*PRODUCTS, *PIPELINES]), ids=str)
def test_steps_inside_of_a_nest_are_applied(case: Case) -> None:
    check_sure(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*PRODUCTS, *CHAINS, *PIPELINES], ids=str)
def test_steps_inside_of_any_nest_are_applied(case: Case) -> None:
    check_sure(case)


@pytest.mark.parametrize("case", [PRODUCTS[0], PRODUCTS[1], CHAINS[0], PIPELINES[0]], ids=str)
def test_compiled_code_agrees(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    # What was compiled before is compiled again.
    monkeypatch.setenv("TILENEST_CACHE", "0")
    for step in (lambda plan: plan, SURE[case.kernel][1], SURE[case.kernel][-1]):
        expected = case.interpreted(case.captured())
        arrays = case.arrays()
        kernel = tn.kernel(case.kernel).rearranged(
            lambda captured, step=step: step(remap(captured, case.leaf)).apply()
        )
        kernel(*arrays)
        np.testing.assert_array_equal(arrays[-1], expected)


@pytest.mark.parametrize("case", few(PRODUCTS), ids=str)
def test_what_is_accepted_is_right(case: Case) -> None:
    assert check_open(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*PRODUCTS, *CHAINS, *PIPELINES], ids=str)
def test_whatever_is_accepted_is_right(case: Case) -> None:
    assert check_open(case)
