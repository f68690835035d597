"""Rules TN11 and TN13: what memory is of, and who sees what others wrote there.

In: bufs that are placed in a class of memory, and the work that touches them. Out: faults where the
target has no such class, where its instances are not those of the owner, where what runs there
cannot do what is done, where memory of one unit is used by several, and where instances surely read
what others write with nothing in between. A buf whose class is left open is asked for the last
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from tilenest.analysis import (
    UnorderedRead,
    ancestor_in,
    enclosing_parallels,
    nearest_parallel,
    nested_equation,
    unordered_read,
)
from tilenest.dialects import Alloc, Parallel
from tilenest.execution import check_instances, failures
from tilenest.ir import EffectKind, Fault, Operation, Rule, Subject, Touch, Value
from tilenest.machine import OPEN_SCOPE, ResourceClass, Target
from tilenest.verify.targets import target_of

_OPEN = "auto"
_Access = tuple[Operation, Touch[Value]]


def _placed(subject: Subject) -> Iterator[tuple[Alloc, ResourceClass | None]]:
    classes = {resource.name: resource for resource in target_of(subject).resources}
    for op in subject.of(Alloc):
        if op.resource != _OPEN:
            yield op, classes.get(op.resource)


def _scope_of_owner(op: Operation, target: Target) -> str:
    """The scope of the owner's instances."""
    owner = nearest_parallel(op)
    return target.outermost if owner is None else owner.scope


def _users(op: Alloc) -> list[Operation]:
    return list(dict.fromkeys(op.result.users))


# TN11 ----------------------------------------------------------------------------------------


def _classes(subject: Subject) -> Iterator[Fault]:
    target = target_of(subject)
    names = ", ".join(resource.name for resource in target.resources)
    for op, resource in _placed(subject):
        if resource is None:
            yield Fault(
                op,
                f"is placed in {op.resource!r}, which the target does not have",
                f"use one of {names}",
            )
            continue
        scope = _scope_of_owner(op, target)
        reason = None if scope == OPEN_SCOPE else target.ownership_problem(resource, scope)
        if reason is not None:
            remedy = "make it where one instance of the class belongs to one owner"
            yield Fault(op, reason, remedy)
        yield from _operations(op, resource, target)


def _operations(op: Alloc, resource: ResourceClass, target: Target) -> Iterator[Fault]:
    done = {
        touch.operation
        for user in _users(op)
        for touch in user.accesses()
        if touch.memory is op.result
    }
    for operation in sorted({"allocate", *done}):
        reason = resource.refusal(target.accessor, operation)
        if reason is not None:
            yield Fault(op, reason, "use a class of memory in which this can be done")


# TN13 ----------------------------------------------------------------------------------------


def _visible(subject: Subject) -> Iterator[Fault]:
    target = target_of(subject)
    for op, resource in _placed(subject):
        owner = nearest_parallel(op)
        if resource is None or (owner is not None and owner.scope == OPEN_SCOPE):
            continue
        for user in _users(op):
            reason = (
                None if nearest_parallel(user) is owner else _hidden(op, user, resource, target)
            )
            if reason is not None:
                scope = _scope_of_owner(op, target)
                yield Fault(
                    user,
                    f"runs in a nest inside of the owner of %{op.result.name or '_'}: {reason}",
                    f"use memory of which each {scope} has one instance",
                )


def _hidden(op: Alloc, user: Operation, resource: ResourceClass, target: Target) -> str | None:
    """Why a user in a nest inside of the owner does not see its memory: not all that it runs is in
    the unit that has the instance, or nothing shows there what others stored."""
    nests = tuple(enclosing_parallels(user))[::-1]
    known = target.scopes.names
    if any(nest.scope not in known for nest in nests):
        return None
    failed = failures(check_instances(nested_equation(op, nests, target)))
    if failed:
        what = f"memory in {resource.name!r} is visible to one {resource.topology} alone"
        return f"{what}: {failed[0].answer}"
    return target.order_problem(resource)


def _in_between(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(Alloc):
        owner = nearest_parallel(op)
        sharing = [user for user in _users(op) if nearest_parallel(user) is not owner]
        stores = _done(op, sharing, EffectKind.WRITE)
        for load in _done(op, sharing, EffectKind.READ) if stores else ():
            for nest, found in islice(_unordered(op, load, stores), 1):
                levels = ", ".join(f"%{index.name or '_'}" for index in nest.body.arguments)
                yield Fault(
                    load[0],
                    f"instance {found.reader} of the parallel over {levels} reads element "
                    f"{found.element} of %{op.result.name or '_'}, which instance {found.writer} "
                    "stores, and nothing orders them",
                    "let every instance have memory of its own, or parts of its own",
                )


def _done(op: Alloc, users: list[Operation], kind: EffectKind) -> list[_Access]:
    """How some users touch the memory, of one kind."""
    return [
        (user, touch)
        for user in users
        for touch in user.accesses()
        if touch.memory is op.result and touch.kind is kind
    ]


def _unordered(
    op: Alloc, load: _Access, stores: list[_Access]
) -> Iterator[tuple[Parallel, UnorderedRead]]:
    """Its meetings with stores of other instances of the nests that share the memory."""
    shared = [nest for nest in enclosing_parallels(load[0]) if not nest.is_ancestor_of(op)]
    for nest, store in product(shared, stores):
        if nest.is_ancestor_of(store[0]) and not _are_ordered(nest, load[0], store[0]):
            found = unordered_read(load, store, nest)
            if found is not None:
                yield nest, found


def _are_ordered(nest: Parallel, first: Operation, second: Operation) -> bool:
    """Whether the nest's instances may wait for each other between two operations. Where they wait
    in a loop, that is believed."""
    waits = [op for op in nest.walk() if _is_wait_of(nest, op)]
    if any(op.parent is not nest.body for op in waits):
        return True
    here = list(nest.body.operations)
    places = [here.index(op) for op in waits]
    phases = []
    for op in (first, second):
        ancestor = ancestor_in(nest.body, op)
        assert ancestor is not None, "the nest is around both"
        phases.append(sum(place < here.index(ancestor) for place in places))
    return phases[0] != phases[1]


def _is_wait_of(nest: Parallel, op: Operation) -> bool:
    waits = any(effect.kind is EffectKind.SYNCHRONIZE for effect in op.effects())
    return waits and nearest_parallel(op) is nest


MEMORY_CLASS_RULES = (
    Rule("TN11", "memory is of a class that the target has for its owner", _classes),
    Rule("TN13", "memory is used where it is visible", _visible),
    Rule("TN13b", "instances read nothing that others store meanwhile", _in_between),
)
