"""Which scope of the target a parallel nest is bound to, and which memory a buf is in.

In: a function in any form before Machine, and a target. Out: a scope for every parallel, a class of
memory for every buf, and decisions with their reasons. What the program names stays; what it leaves
open is the first scope that fits between the nests around and those inside. The class of a memory
is the target's choice, from who owns it, who else uses it, and what is done there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilenest.analysis import CONTRACTS, aligned, bytes_of, nearest_parallel
from tilenest.decisions import Decision
from tilenest.dialects import Alloc, MemoryAllocate, Parallel
from tilenest.errors import ScopeError, TargetError
from tilenest.ir import Analysis, Asker, Edit, EditKind, EffectKind, Function, On, Operation
from tilenest.machine import OPEN_SCOPE, MemoryNeed, ResourceClass, Target
from tilenest.records import record

_OPEN_MEMORY = "auto"
_ACCESSES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.ATOMIC})


@record
class PlacementPlan:
    """What each nest is bound to and each buf is in, for those that leave it open."""

    scopes: tuple[tuple[Parallel, str], ...]
    resources: tuple[tuple[Alloc, str], ...]
    decisions: tuple[Decision, ...]


class Placements(Analysis[On[Function, Target], PlacementPlan]):
    """The places of one function on a target."""

    __slots__ = ()
    NAME = "placements"

    @classmethod
    def compute(cls, subject: On[Function, Target], _: Asker, /) -> PlacementPlan:
        function, target = subject.place, subject.given
        scopes = plan_scopes(function, target)
        resources = {
            op: choose_memory(op, scopes, target).name
            for op in function.walk()
            if isinstance(op, Alloc) and op.resource == _OPEN_MEMORY
        }
        return PlacementPlan(
            tuple((op, scope) for op, scope in scopes.items() if op.scope == OPEN_SCOPE),
            tuple(resources.items()),
            tuple(_decisions(resources)),
        )

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        # Decisions hold names and locations, so that labels count.
        return edit.kind is not EditKind.FUNCTION and edit.detail not in CONTRACTS


def plan_scopes(function: Function, target: Target) -> Mapping[Parallel, str]:
    """What every nest is bound to."""
    scopes: dict[Parallel, str] = {}
    for op in function.walk():
        if isinstance(op, Parallel):
            scopes[op] = _scope(op, scopes, target)
    return scopes


def choose_memory(
    op: Alloc | MemoryAllocate, scopes: Mapping[Parallel, str], target: Target
) -> ResourceClass:
    """The class of memory that an allocation gets, from what it asks for."""
    owner = nearest_parallel(op)
    try:
        return target.choose(
            op.resource,
            MemoryNeed(
                target.outermost if owner is None else scopes[owner],
                _is_shared(op),
                _operations_on(op),
                aligned(op.bytes) if isinstance(op, MemoryAllocate) else bytes_of(op),
            ),
        )
    except TargetError as error:
        raise TargetError(error.message, error.remedy, op.location) from error


def _is_shared(op: Operation) -> bool:
    """Whether instances of a nest inside of its owner use a memory."""
    owner = nearest_parallel(op)
    return any(nearest_parallel(user) is not owner for user in op.results[0].users)


def _operations_on(op: Operation) -> frozenset[str]:
    """What is done in a memory."""
    memory = op.results[0]
    return frozenset(
        effect.kind.operation
        for user in memory.users
        for effect in user.effects()
        if effect.resource is memory and effect.kind in _ACCESSES
    )


def _scope(op: Parallel, outer: Mapping[Parallel, str], target: Target) -> str:
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
    preferred = target.root_scopes if above is None else target.nested_scopes
    for name in preferred if op.scope == OPEN_SCOPE else (op.scope,):
        if (above is None or within(name, above)) and all(within(deep, name) for deep in inside):
            return name
    raise ScopeError(
        f"a parallel nest of scope {op.scope!r} cannot stand between {above or 'the call'} and "
        f"{', '.join(inside) or 'nothing'} on {target.name}",
        "bind nests inside one another to scopes that the target nests alike",
        op.location,
    )


def _decisions(resources: Mapping[Alloc, str]) -> Iterator[Decision]:
    for op, name in resources.items():
        if nearest_parallel(op) is not None and _is_shared(op):
            yield Decision(
                f"memory of %{op.result.name or '_'}",
                name,
                "a memory of each worker",
                "instances of a nest inside of its owner's use it",
                op.location,
            )
