"""Whether a kernel may run when some of its arguments are the same array.

In: a Candidate function whose attribute `alias_groups` says which arguments coincide. Out: the
first access by which one parallel instance could meet what another one writes, or None. Within an
instance the program's order decides, and what is stored to one argument by several instances is the
user's promise; a read or write of another argument of the group has to stay in the instance's own
part: the very region that it stores, or one cut off from what all others store.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis.composed_accesses import ComposedAccess, compose
from tilenest.analysis.effects import TOUCHING, WRITING
from tilenest.analysis.meetings import apart_across, is_same_region
from tilenest.analysis.structure import enclosing, enclosing_parallels, trip_counts
from tilenest.dialects import base_of
from tilenest.ir import (
    BlockArgument,
    EffectKind,
    Function,
    Operation,
    RegionUse,
    Value,
    ViewType,
)
from tilenest.records import record


@record
class CoincidenceHazard:
    """An access that may meet the store of another instance, and the arguments of both."""

    access: Operation
    store: Operation
    arguments: tuple[Value, Value]


@record
class _Use:
    """What one operation does to an argument; `accesses` say where, if anybody knows."""

    operation: Operation
    kind: EffectKind
    argument: BlockArgument
    accesses: tuple[ComposedAccess, ...]


def coincidence_hazard(function: Function) -> CoincidenceHazard | None:
    """The first pair of accesses that makes the result depend on the order of instances."""
    groups: Sequence[int] = function.attributes.get("alias_groups") or ()
    if not groups:
        return None
    uses = [use for op in function.walk() for use in _uses(op)]
    for store in uses:
        if store.kind not in WRITING:
            continue
        for access in uses:
            one, other = access.argument, store.argument
            is_shared = one is not other and groups[one.index] == groups[other.index]
            if is_shared and not _stay_apart(access, store):
                return CoincidenceHazard(access.operation, store.operation, (one, other))
    return None


def _uses(op: Operation) -> list[_Use]:
    found: list[_Use] = []
    for effect in op.effects():
        view = effect.resource
        if effect.kind not in TOUCHING or view is None or not isinstance(view.type, ViewType):
            continue
        argument = base_of(view)
        assert isinstance(argument, BlockArgument), "a view is an argument of its function"
        touches = [touch for touch in op.accesses() if touch.memory is view]
        composed = tuple(compose(op, touch, thoroughly=True) for touch in touches)
        found.append(_Use(op, effect.kind, argument, composed))
    return found


def _stay_apart(access: _Use, store: _Use) -> bool:
    """Whether the access touches nothing that another instance stores."""
    around = enclosing_parallels(access.operation)
    shared = [op for op in around if op.is_ancestor_of(store.operation)][::-1]
    if not shared:
        return True
    pairs = [(one, other) for one in access.accesses for other in store.accesses]
    return bool(pairs) and all(
        (_is_stored_with(access, store) and is_same_region(other, one))
        or apart_across(one, other, shared).is_proven
        for one, other in pairs
    )


def _is_stored_with(access: _Use, store: _Use) -> bool:
    """Whether the store happens wherever the access does: what it stores is then the instance's
    own, or instances would store to one place."""
    if store.kind is not EffectKind.WRITE or any(a.touch.is_masked for a in store.accesses):
        # Instances may well update one place.
        return False
    alone = [op for op in enclosing(store.operation) if not op.is_ancestor_of(access.operation)]
    return all(op.REGION_USE is not RegionUse.ALTERNATIVE and _runs(op) for op in alone)


def _runs(op: Operation) -> bool:
    """Whether the regions of an operation surely run."""
    return all(trips is not None and trips > 0 for trips in trip_counts(op))
