"""Rule `OP85`: the dependences a pipeline states.

In: pipelines that state dependences. Out: findings about stages that do not exist, and values that
do not travel. What the dependences have to keep is `TN14`.
"""

from __future__ import annotations

from tilenest.analysis import value_dependences
from tilenest.dialects import DEPENDENCE_KINDS, Dependence, Pipeline
from tilenest.verify.expectations import Findings, expect_choice, op_rule


def _stated(op: Pipeline) -> Findings:
    if op.dependences is None:
        return
    if not isinstance(op.dependences, tuple):
        yield "`dependences` is no list", "list #dependence records, or leave it out"
        return
    for stated in op.dependences:
        if isinstance(stated, Dependence):
            yield from _dependence(op, stated)
        else:
            yield "`dependences` holds something else than dependences", "list #dependence records"


def _dependence(op: Pipeline, stated: Dependence) -> Findings:
    stages = range(len(op.regions))
    name = f"the dependence of stage {stated.consumer} on stage {stated.producer}"
    yield from expect_choice(f"the kind of {name}", stated.kind, DEPENDENCE_KINDS)
    if stated.producer not in stages or stated.consumer not in stages:
        yield f"{name} names a stage of {len(stages)}", "name stages from 0 on"
    elif stated.distance < 0 or (stated.distance == 0 and stated.producer >= stated.consumer):
        yield (
            f"{name} over {stated.distance} iterations looks ahead",
            "depend on an earlier stage, or on an earlier iteration",
        )
    elif stated.kind == "value" and _is_readable(op) and stated not in value_dependences(op):
        yield (
            f"{name} over {stated.distance} iterations is of no value",
            "state what is yielded and used, or carried by the last stage, or an effect",
        )


def _is_readable(op: Pipeline) -> bool:
    """Whether stages hand on what later ones take, which is a rule of its own."""
    handed = op.rank + len(op.initial)
    for region in op.regions:
        entry = region.blocks.first
        ends = [block.terminator for block in region.blocks if not block.terminator.edges]
        if entry is None or not ends or len(entry.arguments) != handed:
            return False
        handed += len(ends[0].operands)
    return True


PIPELINE_RULES = (
    op_rule("OP85", "stated dependences are between stages, and real", Pipeline, _stated),
)
