"""Choose what a program leaves open: every variable becomes the default of its attribute.

In: Candidate form. Out: the same without variables. The default says that later steps may do as
they find best, which is what a variable means to every reader.

    exec.pipeline(..., window = ?w)   becomes   exec.pipeline(...)
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.ir import Function, Rewriter, Variable, describe_attribute


def close_variables(function: Function, rewriter: Rewriter) -> list[Decision]:
    """Give every open attribute a value."""
    decisions: list[Decision] = []
    for op in function.walk():
        for field in op.SPEC.attributes:
            variable = op.attributes[field.name]
            if isinstance(variable, Variable):
                rewriter.set_attribute(op, field.name, field.default)
                decisions.append(
                    Decision(
                        f"{variable} of {op.NAME}",
                        f"{field.name} = {describe_attribute(field.default)}",
                        "a bound of its own",
                        "the steps that schedule it decide by their costs",
                        op.location,
                    )
                )
    return decisions
