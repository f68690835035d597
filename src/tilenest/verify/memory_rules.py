"""Rules TN11 and TN13: what memory is of, and who sees what others wrote there.

In: bufs that are placed in a class of memory, and the work that touches them. Out: faults where the
target has no such class, where its instances are not those of the owner, where what runs there
cannot do what is done, where memory of one unit is used by several, and where instances surely read
what others write with nothing in between. A buf whose class is left open is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tilenest.analysis import (
    Touch,
    is_defined_above,
    nearest_parallel,
    touches_of,
    trip_counts,
)
from tilenest.dialects import Alloc, Parallel
from tilenest.ir import BufType, Fault, Operation, Rule, Subject, Value
from tilenest.machine import CPU_RESOURCES, CPU_SCOPES, DEVICE, OPEN_SCOPE, WORKER, ResourceClass

_OPEN = "auto"
_ACCESSOR = WORKER
"""All code of the CPU is run by workers; what is inside of one runs there, one after the other."""


def _placed(subject: Subject) -> Iterator[tuple[Alloc, ResourceClass | None]]:
    classes = {resource.name: resource for resource in CPU_RESOURCES}
    for op in subject.of(Alloc):
        if op.resource != _OPEN:
            yield op, classes.get(op.resource)


def _scope_of_owner(op: Operation) -> str:
    """The scope of the owner's instances."""
    owner = nearest_parallel(op)
    return DEVICE if owner is None else owner.scope


def _users(op: Alloc) -> list[Operation]:
    return list(dict.fromkeys(op.result.users))


# TN11 ----------------------------------------------------------------------------------------


def _classes(subject: Subject) -> Iterator[Fault]:
    names = ", ".join(resource.name for resource in CPU_RESOURCES)
    for op, resource in _placed(subject):
        if resource is None:
            yield Fault(
                op,
                f"is placed in {op.resource!r}, which the target does not have",
                f"use one of {names}",
            )
            continue
        yield from _owner(op, resource)
        yield from _operations(op, resource)


def _owner(op: Alloc, resource: ResourceClass) -> Iterator[Fault]:
    """An owner has instances of the class for itself; owners inside of one worker take turns."""
    scope = _scope_of_owner(op)
    if scope == OPEN_SCOPE or resource.topology == _ACCESSOR:
        return
    if not CPU_SCOPES.is_within(resource.topology, scope):
        yield Fault(
            op,
            f"each {scope} owns one, and {resource.name!r} has one instance for all of a "
            f"{resource.topology}",
            "make it where one instance of the class belongs to one owner",
        )


def _operations(op: Alloc, resource: ResourceClass) -> Iterator[Fault]:
    done = {
        touch.operation
        for user in _users(op)
        for touch in touches_of(user)
        if touch.memory is op.result
    }
    for operation in sorted({"allocate", *done}):
        reason = resource.refusal(_ACCESSOR, operation)
        if reason is not None:
            yield Fault(op, reason, "use a class of memory in which this can be done")


# TN13 ----------------------------------------------------------------------------------------


def _visible(subject: Subject) -> Iterator[Fault]:
    for op, resource in _placed(subject):
        owner = nearest_parallel(op)
        scope = _scope_of_owner(op)
        if resource is None or scope in (OPEN_SCOPE, resource.topology):
            continue
        for user in _users(op):
            if nearest_parallel(user) is not owner:
                yield Fault(
                    user,
                    f"runs in a nest inside of the owner's, and %{op.result.name or '_'} in "
                    f"{resource.name!r} is visible to one {resource.topology} alone",
                    f"use memory of which each {scope} has one instance",
                )


def _in_between(subject: Subject) -> Iterator[Fault]:
    for nest in subject.of(Parallel):
        trips = trip_counts(nest)
        known = [trip for trip in trips if trip is not None]
        if len(known) < len(trips) or prod(known) < 2:
            continue
        touched = [
            (op, touch)
            for op in nest.walk()
            for touch in touches_of(op)
            if isinstance(touch.memory.type, BufType) and _is_common(touch, nest)
        ]
        stored = {_element(touch) for _, touch in touched if touch.operation == "store"}
        for op, touch in touched:
            if touch.operation == "load" and _element(touch) in stored:
                yield Fault(
                    op,
                    f"reads elements of %{touch.memory.name or '_'} that every instance of the "
                    "parallel around it stores, and nothing orders them",
                    "let every instance have memory of its own, or parts of its own",
                )


def _is_common(touch: Touch, nest: Parallel) -> bool:
    """Whether all instances touch the same elements of memory that is none of theirs."""
    return all(is_defined_above(value, nest) for value in (touch.memory, *touch.symbols))


def _element(touch: Touch) -> tuple[Value, object, tuple[Value, ...]]:
    return touch.memory, touch.access.map, touch.symbols


MEMORY_CLASS_RULES = (
    Rule("TN11", "memory is of a class that the target has for its owner", _classes),
    Rule("TN13", "memory is used where it is visible", _visible),
    Rule("TN13b", "instances read nothing that others store meanwhile", _in_between),
)
