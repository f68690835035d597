"""Rule `OP84`: the patches of a parallel have what they take.

In: `exec.yield_updates` of a parallel. Out: findings about the numbers of payloads and origins, and
about predicates. That a patch fits the value it updates is an invariant, `TN08`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import Parallel, Patch, YieldUpdates, patch_rank
from tilenest.ir import ScalarType, TileType, describe_type
from tilenest.verify.expectations import (
    Findings,
    broadcasts_to,
    dims_of,
    expect_index,
    is_bool,
    op_rule,
)


def _updates(op: YieldUpdates) -> Findings:
    owner = op.parent_op
    if not isinstance(owner, Parallel):
        yield "stands in no parallel", "end the region with exec.yield"
        return
    wrong = list(_counts(op, owner))
    yield from wrong
    if wrong:
        return
    yield from expect_index("origin", op.origins)
    for place, bound in enumerate(op.bound()):
        if bound.predicate is not None:
            dims = dims_of(bound.payload.type) or ()
            if not (is_bool(bound.predicate.type) and broadcasts_to(bound.predicate.type, dims)):
                kind = describe_type(bound.predicate.type)
                yield (
                    f"the predicate of patch {place} is a {kind}",
                    "use a bool that broadcasts over the payload",
                )


def _counts(op: YieldUpdates, owner: Parallel) -> Findings:
    """Every operand belongs to one patch."""
    patches = [patch for patch in op.patches if isinstance(patch, Patch)]
    if len(patches) != len(op.patches):
        yield "`patches` holds something else than patches", "list #patch records"
        return
    for result in owner.results:
        if not isinstance(result.type, TileType | ScalarType):
            kind = describe_type(result.type)
            yield f"the parallel updates a {kind}", "update tiles and scalars"
            return
    for patch in patches:
        if patch.result not in range(len(owner.results)):
            yield f"patches result {patch.result} of {len(owner.results)}", "name a result it has"
            return
    ranks = [patch_rank(owner.results[patch.result]) for patch in patches]
    conditional = sum(patch.conditional for patch in patches)
    groups: Sequence[tuple[str, int, int]] = (
        ("payloads", len(op.payloads), len(patches)),
        ("origins", len(op.origins), sum(ranks)),
        ("predicates", len(op.predicates), conditional),
    )
    for name, found, wanted in groups:
        if found != wanted:
            yield f"has {found} {name} for patches that take {wanted}", f"give {wanted}"


UPDATE_RULES = (op_rule("OP84", "patches have what they take", YieldUpdates, _updates),)
