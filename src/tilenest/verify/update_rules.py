"""Rule TN08: patches of an ancestor's value fit it, and instances that meet say how they combine.

In: the ends of parallels that update values. Out: faults at payloads of another type, functions
that the element type does not have, and elements over which two instances surely lay patches that
do not combine. Untouched elements and old snapshots are as they were by the form itself: a patch is
no store, and its result a new value.
"""

from __future__ import annotations

from tilenest.analysis import update_overlap
from tilenest.dialects import MERGES, SCALAR_FUNCTIONS, Parallel, Patch, YieldUpdates
from tilenest.ir import ScalarType, TileType, Type, describe_type, element_dtype
from tilenest.verify.expectations import Findings, expect_choice, op_rule


def _updates(op: YieldUpdates) -> Findings:
    owner = op.parent_op
    assert isinstance(owner, Parallel), "OP84 holds"
    is_typed = True
    for place, bound in enumerate(op.bound()):
        patched = owner.results[bound.patch.result].type
        for finding in (
            *_payload(place, bound.payload.type, patched),
            *_combine(bound.patch, patched),
        ):
            is_typed = False
            yield finding
    if is_typed:
        yield from _overlaps(op)


def _overlaps(op: YieldUpdates) -> Findings:
    found = update_overlap(op)
    if found is not None:
        one, other = found.instances
        yield (
            f"patch {found.first} of instance {one} and patch {found.second} of instance {other} "
            "lie over one element",
            "let every instance update a part of its own, or combine by one function",
        )


def _payload(place: int, payload: Type, patched: Type) -> Findings:
    """The same element type, and one dim for each axis, or one element."""
    is_fitting = isinstance(payload, ScalarType) or (
        isinstance(payload, TileType)
        and isinstance(patched, TileType)
        and len(payload.dims) == len(patched.dims)
    )
    if not is_fitting or element_dtype(payload) is not element_dtype(patched):
        yield (
            f"patch {place} lays a {describe_type(payload)} over a {describe_type(patched)}",
            "give it the same element type and rank, or one element",
        )


def _combine(patch: Patch, patched: Type) -> Findings:
    if patch.combine is None:
        return
    yield from expect_choice("`combine`", patch.combine, sorted(MERGES))
    dtype = element_dtype(patched)
    if patch.combine in MERGES and dtype.kind not in SCALAR_FUNCTIONS[patch.combine].domain:
        yield f"combines {dtype.text} by {patch.combine}", "use a function for the element type"


ANCESTOR_RULES = (op_rule("TN08", "updates of ancestors fit and combine", YieldUpdates, _updates),)
