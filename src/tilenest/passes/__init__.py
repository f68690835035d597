"""Candidate to Scheduled: the middle of the compiler, one page.

In: a Candidate module and a machine. Out: after all of `SCHEDULE_PASSES`, the same module in
Scheduled form, and decisions with their reasons. Each pass does one step in place on one function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilenest.decisions import Decision
from tilenest.ir import Function, Module, Rewriter
from tilenest.machine import Machine
from tilenest.passes.apply_schedules import apply_schedules
from tilenest.passes.block_products import block_products
from tilenest.passes.bufferize import bufferize
from tilenest.passes.canonicalize import canonicalize
from tilenest.passes.flatten import flatten
from tilenest.passes.fuse import fuse
from tilenest.passes.join import join
from tilenest.passes.lift import lift
from tilenest.passes.limit_origins import limit_origins
from tilenest.passes.lower_machine import lower_machine
from tilenest.passes.pack import pack
from tilenest.passes.serialize_pipelines import serialize_pipelines
from tilenest.passes.simplify_machine import simplify_machine

Step = Callable[[Module, Machine], Iterable[Decision]]


def _each(run: Callable[[Function, Rewriter], Iterable[Decision]], form: str | None = None) -> Step:
    """A step on functions that needs no machine; `form` is the form it leaves the module in."""

    def step(module: Module, _: Machine) -> list[Decision]:
        rewriter = Rewriter()
        decisions = [d for function in module.functions for d in run(function, rewriter)]
        rewriter.set_form(module, form or module.form)
        return decisions

    return step


def _each_on(run: Callable[[Function, Machine, Rewriter], Iterable[Decision]]) -> Step:
    return lambda module, machine: [
        d for f in module.functions for d in run(f, machine, Rewriter())
    ]


SCHEDULE_PASSES: tuple[tuple[str, Step], ...] = (
    # Stages hand tiles to each other; in one block the edges between them can be judged.
    ("serialize pipelines", _each(serialize_pipelines)),
    ("canonicalize", _each(canonicalize)),
    # Before lifting copies origins into predicates and maps, where their sums must not wrap.
    ("limit origins", _each(limit_origins)),
    ("lift", _each(lift, "lifted")),
    ("canonicalize", _each(canonicalize)),
    # On values, so that whatever computes an operand is fused into its panels.
    ("pack", _each_on(pack)),
    ("fuse", _each(fuse)),
    ("join", _each(join)),
    ("canonicalize", _each(canonicalize)),
    ("bufferize", _each(bufferize, "scheduled")),
    ("block products", _each(block_products)),
    ("flatten", _each(flatten)),
    ("apply schedules", _each_on(apply_schedules)),
    ("canonicalize", _each(canonicalize)),
)
"""Candidate to Scheduled, in order; every step leaves a module that runs."""


__all__ = [
    "SCHEDULE_PASSES",
    "Step",
    "apply_schedules",
    "block_products",
    "bufferize",
    "canonicalize",
    "flatten",
    "fuse",
    "join",
    "lift",
    "lower_machine",
    "pack",
    "simplify_machine",
]
