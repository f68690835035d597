"""Which parallel nests become one, and which levels of a single instance go.

In: a function in Candidate form. Out: the runs of parallel nests to unite, each directly inside the
one before, with the observers of the work between them that is repeated; and for each nest that
stays inside another, why. An inner parallel is a loop of one worker: two outer instances occupy two
workers, however many instances are inside. Nothing is proven here; the remap does that.
"""

from __future__ import annotations

from tilenest.analysis import (
    chain_along,
    is_met_in,
    may_repeat,
    nearest_parallel,
    passage_of,
    trip_counts,
)
from tilenest.decisions import Decision
from tilenest.dialects import MemoryAllocate, Nest, Parallel
from tilenest.ir import Function
from tilenest.machine import OPEN_SCOPE
from tilenest.records import record


@record
class LevelPlan:
    """What is rearranged, and why other nests stay as they are."""

    runs: tuple[tuple[Parallel, ...], ...]
    """nests that become one, or one nest that loses levels"""
    decisions: tuple[Decision, ...]


def plan_levels(function: Function) -> LevelPlan:
    """The runs of one function, outer ones first."""
    runs: list[tuple[Parallel, ...]] = []
    decisions: list[Decision] = []
    taken: set[Parallel] = set()
    for op in function.walk():
        if not isinstance(op, Parallel) or op in taken:
            continue
        nests = [op]
        while (inner := _only_nest(nests[-1])) is not None:
            obstacle = _obstacle(nests[-1], inner)
            if obstacle is not None:
                decisions.append(stays(inner, nests[-1], obstacle))
                break
            nests.append(inner)
        taken.update(nests)
        if len(nests) > 1 or _has_unit(op):
            runs.append(tuple(nests))
    return LevelPlan(tuple(runs), tuple(decisions))


def stays(inner: Parallel, outer: Parallel, reason: str) -> Decision:
    """That a nest is not united with the one around it."""
    return Decision(
        subject_of(inner),
        f"a loop inside of {subject_of(outer)}",
        "one nest with it",
        reason,
        inner.location,
    )


def subject_of(*nests: Parallel) -> str:
    """What nests are called in decisions."""
    names = [a.name or "_" for nest in nests for a in nest.body.arguments[: nest.rank]]
    return f"parallel {', '.join(names)}"


def _only_nest(nest: Parallel) -> Parallel | None:
    """The parallel directly inside a nest, if it is the only nest there."""
    inner = [op for op in nest.body.operations if isinstance(op, Nest)]
    return inner[0] if len(inner) == 1 and isinstance(inner[0], Parallel) else None


def _obstacle(outer: Parallel, inner: Parallel) -> str | None:
    """Why two nests stay two."""
    if outer.scope != inner.scope:
        return f"one is bound to {outer.scope}, the other to {inner.scope}"
    if outer.initial or inner.initial:
        return "updates of a tile are joined where the nest ends"
    if is_met_in(outer) or is_met_in(inner):
        return "its instances wait for each other"
    if chain_along((outer, inner)) is None:
        return "its domain depends on the instance around it"
    if passage_of(outer) is not inner:
        if not may_repeat(outer, inner):
            return "work between the nests cannot be repeated in each instance"
        if not all(trip_counts(inner)):
            return "work between the nests would not run where the inner one has no instance"
    return None


def _has_unit(nest: Parallel) -> bool:
    """Whether a nest has levels of one instance to lose. A nest of no other levels goes where that
    makes launches of the parallel nests inside, and nothing is its own."""
    counts = trip_counts(nest)
    if 1 not in counts or nest.initial:
        return False
    if any(count != 1 for count in counts):
        return True
    inside = [op for op in nest.walk() if op is not nest]
    owns = any(isinstance(op, MemoryAllocate) and nearest_parallel(op) is nest for op in inside)
    is_open = nest.scope == OPEN_SCOPE and not is_met_in(nest) and not owns
    return is_open and any(isinstance(op, Parallel) for op in inside)
