"""Which scope of the target a parallel nest is bound to, and which memory a buf is in.

In: a function in Scheduled form and a target. Out: a scope for every parallel, a class of memory
for every buf, and decisions with their reasons. What the program names stays; what it leaves open
is the first scope that fits between the nests around and those inside. Memory that its owner alone
uses is the worker's that runs it; other memory has an instance for each unit of the owner's scope.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import nearest_parallel
from tilenest.decisions import Decision
from tilenest.dialects import Alloc, Parallel
from tilenest.errors import ScopeError, TargetError
from tilenest.ir import Function
from tilenest.machine import DEVICE, OPEN_SCOPE, WORKER, Target, preferred_scopes
from tilenest.records import record

_OPEN_MEMORY = "auto"


@record
class PlacementPlan:
    """What each nest is bound to and each buf is in, for those that leave it open."""

    scopes: tuple[tuple[Parallel, str], ...]
    resources: tuple[tuple[Alloc, str], ...]
    decisions: tuple[Decision, ...]


def plan_placement(function: Function, target: Target) -> PlacementPlan:
    """The places of one function."""
    scopes: dict[Parallel, str] = {}
    for op in function.walk():
        if isinstance(op, Parallel):
            scopes[op] = _scope(op, scopes, target)
    resources = {
        op: _resource(op, scopes, target)
        for op in function.walk()
        if isinstance(op, Alloc) and op.resource == _OPEN_MEMORY
    }
    return PlacementPlan(
        tuple((op, scope) for op, scope in scopes.items() if op.scope == OPEN_SCOPE),
        tuple(resources.items()),
        tuple(_decisions(resources)),
    )


def _scope(op: Parallel, outer: dict[Parallel, str], target: Target) -> str:
    """The scope of a nest, when those around it have theirs."""
    around = nearest_parallel(op)
    above = None if around is None else outer[around]
    inside = [
        nest.scope
        for nest in op.walk()
        if isinstance(nest, Parallel) and nest.scope != OPEN_SCOPE and nest is not op
    ]
    names = target.scopes.names
    for name in (op.scope, *inside):
        if name != OPEN_SCOPE and name not in names:
            raise TargetError(
                f"{target.name} has no execution scope {name!r}",
                f"use one of {', '.join(sorted(names))}, or leave the scope open",
                op.location,
            )
    within = target.scopes.is_within
    preferred = preferred_scopes(target.scopes, is_outermost=above is None)
    for name in preferred if op.scope == OPEN_SCOPE else (op.scope,):
        if (above is None or within(name, above)) and all(within(deep, name) for deep in inside):
            return name
    raise ScopeError(
        f"a parallel nest of scope {op.scope!r} cannot stand between {above or 'the call'} and "
        f"{', '.join(inside) or 'nothing'} on {target.name}",
        "bind nests inside one another to scopes that the target nests alike",
        op.location,
    )


def _resource(op: Alloc, scopes: dict[Parallel, str], target: Target) -> str:
    """The class of memory of a buf."""
    owner = nearest_parallel(op)
    scope = DEVICE if owner is None else scopes[owner]
    is_own = all(nearest_parallel(user) is owner for user in op.result.users)
    if owner is not None and is_own:
        return target.resource(_OPEN_MEMORY).name
    for resource in target.resources:
        if resource.topology == scope and (WORKER, "allocate") in resource.access:
            return resource.name
    return target.resource(_OPEN_MEMORY).name


def _decisions(resources: dict[Alloc, str]) -> Iterator[Decision]:
    for op, name in resources.items():
        owner = nearest_parallel(op)
        if owner is not None and any(nearest_parallel(u) is not owner for u in op.result.users):
            yield Decision(
                f"memory of %{op.result.name or '_'}",
                name,
                "a memory of each worker",
                "instances of a nest inside of its owner's use it",
                op.location,
            )
