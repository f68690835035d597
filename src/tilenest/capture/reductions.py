"""Contracts of reductions, once the whole kernel is captured and every body is final.

In: a function in Candidate form, whose reductions know their policies. Out: each with the laws that
its body shows; or an error, where a tree is asked of a body without a known merge.
"""

from __future__ import annotations

from tilenest.analysis import Reductions, lacking_merges, shown_laws
from tilenest.dialects import Reduce
from tilenest.errors import ReductionPolicyError
from tilenest.ir import Function, fresh
from tilenest.records import replace


def resolve_reductions(function: Function) -> None:
    """Write the laws; what builtin reducers claim of themselves stays."""
    for op in function.walk():
        if not isinstance(op, Reduce):
            continue
        answers = fresh(Reductions, op)
        if lacking_merges(op, answers):
            raise ReductionPolicyError(
                f"the policy {op.policy} regroups contributions, but this reduction's body "
                "has no known merge",
                remedy="write each state as `state + f(elements)` (or *, min, max, and, or, xor), "
                "or give the reduction a fold policy such as tn.reduction.fold_left",
                location=op.location,
            )
        if not op.contract.laws:
            op.attributes["contract"] = replace(op.contract, laws=shown_laws(op))
