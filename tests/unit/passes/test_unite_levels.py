"""Parallel nests that become one, levels of one instance that go, and nests that stay and why."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import run_stepwise
from tilenest import language, parse
from tilenest.analysis import remaps_of
from tilenest.capture import ArraySpec, capture
from tilenest.decisions import Decision
from tilenest.dialects import Load, Parallel, Placement
from tilenest.interp import interpret
from tilenest.ir import Function, Module, Rewriter, float32, print_module
from tilenest.passes import canonicalize, unite_levels
from tilenest.plan import LevelPlan
from tilenest.verify import verify_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language


def nested(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        for j in i.parallel(5):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * 2.0)


def strided(A: Any, C: Any) -> None:
    for i in tn.parallel(range(1, 3)):
        for j in i.parallel(range(0, 5, 2)):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() + 1.0)


def three_deep(A: Any, C: Any) -> None:
    n = tn.axis("n", 5)
    for one in tn.parallel(1):
        for i in one.parallel(3):
            for unit in i.parallel(1):
                row = i.index() + unit.index()
                C((row, 0), (tn.axis("u", 1), n)).store(tn.exp(A[(row, 0), (tn.axis("u", 1), n)]))


def unit_axes(A: Any, C: Any) -> None:
    for block in tn.parallel(1, 3, 1):
        zero, i, _ = block.index()
        n = tn.axis("n", 5)
        C((i, zero), (tn.axis("u", 1), n)).store(A[(i, 0), (tn.axis("u", 1), n)] + 1.0)


def one_after_another(A: Any, C: Any) -> None:
    for one in tn.parallel(1):
        for i in one.parallel(3):
            C.at(i.index(), 0).store(A.at(i.index(), 0).load())
        for j in one.parallel(4):
            C.at(0, j.index() + 1).store(C.at(0, 0).load() + A.at(0, j.index()).load())


def scaled(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        factor = A.at(i.index(), 0).load() + A.at(0, i.index()).load()
        for j in i.parallel(5):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * factor)


UNITED = {
    nested: [2],
    strided: [2],
    three_deep: [1],
    unit_axes: [1],
    one_after_another: [1, 1],
    scaled: [2],
}


@pytest.mark.parametrize("kernel", UNITED, ids=lambda kernel: kernel.__name__)
def test_united_nests_compute_the_same(kernel: Any) -> None:
    """Step by step the interpreter gives the same bits; the function still remembers the remap when
    it is scheduled, and the parsed text is verified anew."""
    arrays = [np.arange(15, dtype=np.float32).reshape(3, 5), np.full((3, 5), np.nan, np.float32)]
    done = run_stepwise(kernel, arrays)
    assert [nest.rank for nest in done.all(Parallel)] == UNITED[kernel]
    assert remaps_of(done.function)
    assert any("one nest of" in d.choice or d.choice == "no nest" for d in done.decisions)
    again = parse(print_module(done.module))
    verify_module(again)
    assert print_module(again) == print_module(done.module)


def test_a_repeated_read_says_how_often_it_runs() -> None:
    """It has an instance for each row, and runs in every column."""
    arrays = [np.ones((3, 5), np.float32), np.full((3, 5), np.nan, np.float32)]
    done = run_stepwise(scaled, arrays)
    places = [load.place for load in done.all(Load)]
    assert places.count(Placement(1, 2)) == 2 and None in places
    (applied,) = remaps_of(done.function)
    assert [one.moved for one in applied.observers if one.repeatable] == [2]


def every_element(A: Any, C: Any) -> None:
    for i in tn.parallel(A.extent(0)):
        for j in i.parallel(A.extent(1)):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load())


def test_extents_of_run_time() -> None:
    """A remap of levels that are counted at run time is proven as well."""
    module, (decision,) = united(every_element, (None, None))
    assert [nest.rank for nest in nests(module)] == [2]
    assert decision.choice == "one nest of i, j"
    source, target = np.ones((3, 5), np.float32), np.zeros((3, 5), np.float32)
    interpret(module, [source, target])
    np.testing.assert_array_equal(source, target)


def triangular(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        for j in i.parallel(i.index() + 1):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load())


def bound_apart(A: Any, C: Any) -> None:
    for i in tn.parallel(3, scope=tn.exec.group):
        for j in i.parallel(5, scope=tn.exec.worker):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load())


def waiting(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        for j in i.parallel(5):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load())
            tn.sync(j)


def owning(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 5)
    for i in tn.parallel(3):
        kept = tn.memory(float32, (u, n))
        kept.store(A[(i.index(), 0), (u, n)])
        for j in i.parallel(5):
            C((i.index() + j.index() * 0, 0), (u, n)).store(kept.load())


def reading_what_is_written(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        first = C.at(i.index(), 0).load()
        for j in i.parallel(5):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() + first)


def reading_before_nothing(A: Any, C: Any) -> None:
    for i in tn.parallel(3):
        first = A.at(i.index(), 0).load()
        for j in i.parallel(A.extent(1)):
            C.at(i.index(), j.index()).store(first)


STAYING = {
    triangular: "its domain depends on the instance around it",
    bound_apart: "one is bound to group, the other to worker",
    waiting: "its instances wait for each other",
    owning: "work between the nests cannot be repeated",
    reading_what_is_written: "work between the nests cannot be repeated",
    reading_before_nothing: "would not run where the inner one has no instance",
}


@pytest.mark.parametrize("kernel", STAYING, ids=lambda kernel: kernel.__name__)
def test_nests_that_stay_say_why(kernel: Any) -> None:
    module, decisions = united(kernel, (3, None))
    assert [nest.rank for nest in nests(module)] == [1, 1]
    (decision,) = decisions
    assert STAYING[kernel] in decision.reason and decision.location is not None
    assert not any(remaps_of(function) for function in module.functions)


def alone(A: Any, C: Any) -> None:
    for i in tn.parallel(1):
        C.at(i.index(), 0).store(A.at(i.index(), 0).load())


def bound_alone(A: Any, C: Any) -> None:
    for one in tn.parallel(1, scope=tn.exec.group):
        for i in one.parallel(5, scope=tn.exec.worker):
            C.at(0, i.index()).store(A.at(0, i.index()).load())


@pytest.mark.parametrize("kernel", [alone, bound_alone])
def test_a_nest_of_one_instance_stays_where_nothing_is_gained(kernel: Any) -> None:
    """No launch comes of it, or the program says what runs it."""
    module, decisions = united(kernel)
    assert all("one nest" in d.runner_up for d in decisions)
    assert nests(module)[0].rank == 1 and not remaps_of(next(iter(module.functions)))


def test_a_proof_that_fails_leaves_the_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a law is not proven nothing changes, and the decision has the reason."""

    def plan(function: Function) -> LevelPlan:
        found = [op for op in function.walk() if isinstance(op, Parallel)]
        return LevelPlan((tuple(found),), ())

    monkeypatch.setattr(import_module(unite_levels.__module__), "plan_levels", plan)
    module, (decision,) = united(waiting)
    assert [nest.rank for nest in nests(module)] == [1, 1]
    assert decision.choice == "a loop inside of parallel i"
    assert "changes which instances wait for each other" in decision.reason


def test_a_program_without_such_nests_costs_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module(unite_levels.__module__), "Remapping", None)
    module, decisions = united(alone)
    assert not decisions and len(nests(module)) == 1


def united(kernel: Any, shape: tuple[int | None, ...] = (3, 5)) -> tuple[Module, list[Decision]]:
    """A kernel after the pass, and what it decided."""
    module = capture(kernel, [ArraySpec(float32, shape)] * 2, {}).module
    rewriter = Rewriter()
    for function in module.functions:
        canonicalize(function, rewriter)
    decisions = unite_levels(module, rewriter)
    verify_module(module)
    return module, decisions


def nests(module: Module) -> list[Parallel]:
    return [op for op in module.walk() if isinstance(op, Parallel)]
