"""Whether a kernel may run when some of its arguments are the same array.

In: a Candidate function whose attribute `alias_groups` says which arguments coincide. Out: the
first access by which one parallel instance could meet what another one writes, or None. Within an
instance the program's order decides, and what is stored to one argument by several instances is the
user's promise; a read or write of another argument of the group has to stay in the instance's own
part: the very region that it stores, or one cut off from all others along some axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis.index_values import formula_of
from tilenest.analysis.instances_apart import apart_across
from tilenest.analysis.layout_facts import ComposedAccess, accesses_of, compose
from tilenest.analysis.structure import constant_of, enclosing, enclosing_parallels
from tilenest.dialects import Atomic, Load, Parallel, Store, base_of, chain_of
from tilenest.ir import BlockArgument, Function, Operation, RegionUse, TileType, Value
from tilenest.layouts import IndexExpr, Sym
from tilenest.records import record

Write = Store | Atomic
Touching = Load | Write


@record
class CoincidenceHazard:
    """An access that may meet the store of another instance."""

    access: Touching
    store: Write


def coincidence_hazard(function: Function) -> CoincidenceHazard | None:
    """The first pair of accesses that makes the result depend on the order of instances."""
    groups: Sequence[int] = function.attributes.get("alias_groups") or ()
    if len(set(groups)) == len(groups):
        return None
    accesses = [op for op in function.walk() if isinstance(op, Touching)]
    for store in accesses:
        if not isinstance(store, Write):
            continue
        for access in accesses:
            bases = base_of(access.view), base_of(store.view)
            is_shared = bases[0] is not bases[1] and _group(access, groups) == _group(store, groups)
            if is_shared and not _stay_apart(access, store):
                return CoincidenceHazard(access, store)
    return None


def _group(access: Touching, groups: Sequence[int]) -> int:
    base = base_of(access.view)
    assert isinstance(base, BlockArgument)
    return groups[base.index]


def _stay_apart(access: Touching, store: Write) -> bool:
    """Whether the access touches nothing that another instance stores."""
    around = list(enclosing_parallels(access))
    shared = [op for op in around if op.is_ancestor_of(store)]
    if not shared:
        return True
    if chain_of(access.view) or chain_of(store.view):
        return _are_apart(access, store, shared)
    leaves: list[Value] = []

    def leaf(value: Value) -> IndexExpr:
        if value not in leaves:
            leaves.append(value)
        return Sym(leaves.index(value))

    ours = [formula_of(origin, leaf) for origin in access.origins]
    theirs = [formula_of(origin, leaf) for origin in store.origins]
    equal = [
        (formula, extent)
        for formula, other, extent, other_extent in zip(
            ours, theirs, _extents(access), _extents(store), strict=True
        )
        if formula == other and extent == other_extent
    ]
    if len(equal) == len(ours) and _is_stored_with(access, store):
        return True
    return all(
        any(_separates(formula, extent, index, op, leaves) for formula, extent in equal)
        for op in shared
        for index in op.body.arguments
    ) or _are_apart(access, store, shared)


def _are_apart(access: Touching, store: Write, shared: Sequence[Operation]) -> bool:
    """Whether integer sets prove that instances do not meet."""
    sides: list[ComposedAccess] = []
    for op in (access, store):
        found = [touch for touch in accesses_of(op) if touch.memory is op.view]
        if len(found) != 1:
            return False
        sides.append(compose(op, found[0], thoroughly=True))
    return apart_across(sides[0], sides[1], shared[::-1]).is_proven


def _is_stored_with(access: Touching, store: Write) -> bool:
    """Whether the whole region is stored wherever the access happens: then it is the instance's
    own, or instances would store to one place."""
    if isinstance(store, Atomic):
        # Instances may well update one place.
        return False
    branches = [op for op in enclosing(store) if op.REGION_USE is RegionUse.ALTERNATIVE]
    return store.mask is None and all(op.is_ancestor_of(access) for op in branches)


def _separates(
    formula: IndexExpr, extent: int, index: BlockArgument, op: Parallel, leaves: Sequence[Value]
) -> bool:
    """Whether different values of a parallel index give intervals that do not meet."""
    linear = formula.linear()
    if linear is None or index not in leaves:
        return False
    ((position, coefficient),) = linear.syms if len(linear.syms) == 1 else ((-1, 0),)
    step = constant_of(op.step[index.index])
    if position != leaves.index(index) or step is None:
        return False
    return abs(coefficient * step) >= extent


def _extents(access: Touching) -> tuple[int, ...]:
    if isinstance(access, Write):
        extents = tuple(dim.extent for dim in access.dims)
    else:
        type_ = access.result.type
        extents = type_.shape if isinstance(type_, TileType) else ()
    return extents or (1,) * len(access.origins)
