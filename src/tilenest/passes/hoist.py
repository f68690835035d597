"""Do work once that no instance of a loop changes.

In: lifted work on values, after packing and before fusion, which then sees one producer in front of
the loop. Out: the same results; work stands in front of the outermost loop its anchor allows.

    exec.serial { (%k): %e = map_reduce_post(%x) {exp}; ... }
    becomes   %e = map_reduce_post(%x) {exp};  exec.serial { (%k): ... }
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.ir import Function, Rewriter
from tilenest.plan import plan_hoists


def hoist(function: Function, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Move what the plan says."""
    plan = plan_hoists(function, rewriter.analyses)
    for operation, loop in plan.moves:
        rewriter.move_before(operation, loop)
    return plan.decisions
