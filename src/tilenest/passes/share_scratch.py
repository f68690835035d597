"""Every buf gets a base: the byte where it starts among the bufs of its class.

In: Scheduled form, every buf in a class of memory; a target. Out: the same with no base left open,
and the decisions about it, or a `TargetError` where a class of memory has too little. From here on
the program says which bufs share bytes, and the verifier judges it.
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.ir import Function, Rewriter
from tilenest.machine import Target
from tilenest.passes.check_capacity import check_capacity
from tilenest.plan import plan_scratch


def share_scratch(function: Function, target: Target, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Write the plan of one function into it."""
    plan = plan_scratch(function, target, rewriter.analyses)
    for alloc, base in plan.bases:
        rewriter.set_attribute(alloc, "base", base)
    return (*plan.decisions, *check_capacity(function, target, rewriter))
