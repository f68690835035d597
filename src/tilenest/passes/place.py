"""Every parallel nest gets a scope of the target, every buf a class of memory.

In: Scheduled form, where scopes and classes may be left open. Out: the same with none open, and the
decisions about it.
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.ir import Function, Rewriter
from tilenest.machine import Machine, cpu_target
from tilenest.plan import plan_placement


def place(function: Function, machine: Machine, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Write the plan of one function into it."""
    plan = plan_placement(function, cpu_target(machine))
    for nest, scope in plan.scopes:
        rewriter.set_attribute(nest, "scope", scope)
    for alloc, resource in plan.resources:
        rewriter.set_attribute(alloc, "resource", resource)
    return plan.decisions
