"""Candidate to Scheduled: the middle of the compiler, one page.

In: a Candidate module and a target. Out: after all of `SCHEDULE_PASSES`, the same module in
Scheduled form, and decisions with their reasons. Each pass does one step in place on one function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilenest.decisions import Decision
from tilenest.ir import Function, Module, Rewriter
from tilenest.machine import Machine, Target
from tilenest.passes.apply_schedules import apply_schedules
from tilenest.passes.block_products import block_products
from tilenest.passes.bufferize import bufferize
from tilenest.passes.canonicalize import canonicalize
from tilenest.passes.check_capacity import check_capacity
from tilenest.passes.close_variables import close_variables
from tilenest.passes.flatten import flatten
from tilenest.passes.fuse import fuse
from tilenest.passes.hoist import hoist
from tilenest.passes.inline_calls import inline_calls
from tilenest.passes.join import join
from tilenest.passes.lift import lift
from tilenest.passes.limit_maps import limit_maps
from tilenest.passes.limit_origins import limit_origins
from tilenest.passes.lower_machine import lower_machine
from tilenest.passes.pack import pack
from tilenest.passes.place import place
from tilenest.passes.remap import Remapping, forget_remaps, remap
from tilenest.passes.serialize_pipelines import serialize_pipelines
from tilenest.passes.share_scratch import share_scratch
from tilenest.passes.simplify_machine import simplify_machine
from tilenest.passes.structure_branches import structure_branches
from tilenest.passes.unite_levels import unite_levels
from tilenest.passes.unpack_tuples import unpack_tuples

Step = Callable[[Module, Target, Rewriter], Iterable[Decision]]
"""Steps share one rewriter: an answer about the module outlives a step that does not concern it."""


def _each(run: Callable[[Function, Rewriter], Iterable[Decision]], form: str | None = None) -> Step:
    """A step on functions that needs no target; `form` is the form it leaves the module in."""
    return _each_for(lambda function, _, rewriter: run(function, rewriter), form)


def _whole(run: Callable[[Module, Rewriter], Iterable[Decision]]) -> Step:
    """A step on all functions together."""
    return lambda module, _, rewriter: list(run(module, rewriter))


def _each_on(run: Callable[[Function, Machine, Rewriter], Iterable[Decision]]) -> Step:
    """A step on functions that needs the numbers of the machine."""
    return _each_for(lambda function, target, rewriter: run(function, target.machine, rewriter))


def _each_for(
    run: Callable[[Function, Target, Rewriter], Iterable[Decision]], form: str | None = None
) -> Step:
    """A step on functions for a target."""

    def step(module: Module, target: Target, rewriter: Rewriter) -> list[Decision]:
        decisions = [d for function in module.functions for d in run(function, target, rewriter)]
        rewriter.set_form(module, form or module.form)
        return decisions

    return step


SCHEDULE_PASSES: tuple[tuple[str, Step], ...] = (
    # The program as it is written was verified with them; later steps do not keep its nests.
    ("forget remaps", _each(forget_remaps)),
    ("close variables", _each(close_variables)),
    ("structure branches", _each(structure_branches)),
    ("inline calls", _whole(inline_calls)),
    # Stages hand tiles to each other; in one block the edges between them can be judged.
    ("serialize pipelines", _each_for(serialize_pipelines)),
    ("unpack tuples", _each(unpack_tuples)),
    ("canonicalize", _each(canonicalize)),
    ("unite levels", _whole(unite_levels)),
    # Before lifting copies origins into predicates and maps, where their sums must not wrap.
    ("limit origins", _each(limit_origins)),
    ("limit maps", _each(limit_maps)),
    ("lift", _each_for(lift, "lifted")),
    ("canonicalize", _each(canonicalize)),
    # On values, so that whatever computes an operand is fused into its panels.
    ("pack", _each_on(pack)),
    # Panels are there, and fusion sees one producer in front of a loop.
    ("hoist", _each(hoist)),
    ("fuse", _each(fuse)),
    ("join", _each(join)),
    ("canonicalize", _each(canonicalize)),
    ("bufferize", _each_for(bufferize, "scheduled")),
    ("block products", _each(block_products)),
    ("flatten", _each(flatten)),
    ("apply schedules", _each_for(apply_schedules)),
    ("canonicalize", _each(canonicalize)),
    ("place", _each_for(place)),
    ("share scratch", _each_for(share_scratch)),
)
"""Candidate to Scheduled, in order; every step leaves a module that runs."""


__all__ = [
    "SCHEDULE_PASSES",
    "Remapping",
    "Step",
    "apply_schedules",
    "block_products",
    "bufferize",
    "canonicalize",
    "check_capacity",
    "close_variables",
    "flatten",
    "fuse",
    "hoist",
    "inline_calls",
    "join",
    "lift",
    "lower_machine",
    "pack",
    "place",
    "remap",
    "share_scratch",
    "simplify_machine",
    "structure_branches",
    "unite_levels",
    "unpack_tuples",
]
