"""Every parallel nest gets a scope of the target, every buf a class of memory, and work that has
fewer logical instances than it runs in says so.

In: Scheduled form, where scopes and classes may be left open. Out: the same with none open, and the
decisions about it.
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.ir import Function, On, Rewriter
from tilenest.machine import Target
from tilenest.plan import Placements, plan_anchors


def place(function: Function, target: Target, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Write the plan of one function into it."""
    plan = rewriter.analyses.get(Placements, On(function, target))
    for nest, scope in plan.scopes:
        rewriter.set_attribute(nest, "scope", scope)
    for alloc, resource in plan.resources:
        rewriter.set_attribute(alloc, "resource", resource)
    for operation, placement in tuple(plan_anchors(function, rewriter.analyses)):
        rewriter.set_attribute(operation, "place", placement)
    return plan.decisions
