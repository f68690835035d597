"""Parallel nests that stand directly in each other become one nest, and levels of one instance go.

In: Candidate form. Out: the same instances, all of them shared out among the workers, and decisions
about the nests that stay. Every change is a remap that is proven, applied whole, and remembered,
with the work that later passes will place below the levels as further observers.

    exec.parallel [1] { (%o): exec.parallel [%m] { (%i): exec.parallel [64] { (%i, %j): ... } } }
    becomes   exec.parallel [%m, 64] { (%i, %j): ... }
"""

from __future__ import annotations

from itertools import chain, pairwise

from tilenest.analysis import chain_along
from tilenest.decisions import Decision
from tilenest.dialects import Parallel
from tilenest.errors import RemapError
from tilenest.execution import ExecStructure, Observer, PrefixCut, identity
from tilenest.ir import Module, Rewriter
from tilenest.passes.remap import Remapping
from tilenest.plan import plan_levels, stays, subject_of


def unite_levels(module: Module, rewriter: Rewriter) -> list[Decision]:
    """Rearrange the nests of every function."""
    decisions: list[Decision] = []
    for function in module.functions:
        plan = plan_levels(function)
        decisions += plan.decisions
        # Inner runs first: a nest that is rebuilt is another one afterwards.
        decisions += chain.from_iterable(
            _apply(nests, module, rewriter) for nests in reversed(plan.runs)
        )
    return decisions


def _apply(nests: tuple[Parallel, ...], module: Module, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Rearrange one run, or say why not."""
    subject, location = subject_of(*nests), nests[0].location
    plan = _remapping(nests, module)
    try:
        plan.apply(rewriter)
    except RemapError as error:
        return tuple(stays(inner, outer, error.message) for outer, inner in pairwise(nests))
    levels = ", ".join(level.name for level in plan.levels.levels)
    choice = f"one nest of {levels}" if levels else "no nest"
    reason = "each instance of all levels is work for a worker of its own"
    if len(nests) == 1:
        reason = "a level of one instance shares nothing out"
    return (Decision(subject, choice, "the nests as they are written", reason, location),)


def _remapping(nests: tuple[Parallel, ...], module: Module) -> Remapping:
    """One nest with all levels but those of one instance."""
    found = chain_along(nests)
    assert found is not None, "the nests of a plan stand in each other"
    old = found.structure
    plan = Remapping(module, found, identity(old), expected=_later(old))
    for level in old.levels:
        if level.extent == 1:
            plan = plan.remove_unit(level.identity)
    kept = [level.identity for level in plan.levels.levels]
    if len({level.nest for level in plan.levels.levels}) > 1:
        plan = plan.unite(*kept)
    for observer in plan.observers:
        if observer.is_repeatable and observer.cut.depth < old.depth:
            plan = plan.reanchor(observer, len(kept))
    return plan


def _later(structure: ExecStructure) -> tuple[Observer, ...]:
    """Work, and memory for it, that later passes may place at any depth."""
    return tuple(
        Observer(f"work placed later at depth {depth}", kind, PrefixCut(depth))
        for depth in range(structure.depth + 1)
        for kind in ("anchor", "frontier", "owner")
    )
