"""What operations read and write outside their own values.

In: operations. Out: their effects with those of nested operations; the storage one writes; whether
it may go when nobody uses its results, and whether it may run elsewhere.
"""

from __future__ import annotations

from tilenest.dialects import base_of
from tilenest.ir import EffectKind, Operation, Value
from tilenest.records import record

READING = frozenset({EffectKind.READ, EffectKind.ATOMIC})
WRITING = frozenset({EffectKind.WRITE, EffectKind.ATOMIC})
TOUCHING = READING | WRITING
HIDDEN = frozenset({EffectKind.CALL, EffectKind.SYNCHRONIZE})
"""What may touch any memory."""
CHANGING = WRITING | HIDDEN
_DISPENSABLE = frozenset({EffectKind.READ, EffectKind.ALLOCATE})
"""What nobody notices the lack of."""


@record
class Effects:
    """What an operation does besides computing its results, nested operations included."""

    reads: frozenset[Value]
    writes: frozenset[Value]
    kinds: frozenset[EffectKind] = frozenset()
    reads_anything: bool = False
    writes_anything: bool = False
    """Whether it may also touch what is not named: by a call, or by waiting for others."""


_NO_EFFECTS = Effects(frozenset(), frozenset())


def effects_of(operation: Operation) -> Effects:
    found = [effect for op in operation.walk() for effect in op.effects()]
    if not found:
        return _NO_EFFECTS
    named = [(effect.kind, effect.resource) for effect in found if effect.resource is not None]
    unnamed = {effect.kind for effect in found if effect.resource is None}
    kinds = frozenset(effect.kind for effect in found)
    return Effects(
        reads=frozenset(resource for kind, resource in named if kind in READING),
        writes=frozenset(resource for kind, resource in named if kind in WRITING),
        kinds=kinds,
        reads_anything=bool(kinds & HIDDEN or unnamed & READING),
        writes_anything=bool(kinds & HIDDEN or unnamed & WRITING),
    )


def stored_by(operation: Operation) -> frozenset[Value]:
    """The storage that an operation itself writes, below any views of it."""
    return frozenset(
        base_of(effect.resource)
        for effect in operation.effects()
        if effect.kind in WRITING and effect.resource is not None
    )


def is_pure(operation: Operation) -> bool:
    """Whether an operation may go when nobody uses its results."""
    if operation.TERMINATOR:
        return False
    return all(effect.kind in _DISPENSABLE for op in operation.walk() for effect in op.effects())


def is_computation(operation: Operation) -> bool:
    """Whether an operation does nothing but make its results from its operands, in one step: it may
    run earlier, where it does not run now, or once for several equal ones."""
    return not operation.TERMINATOR and not operation.regions and not operation.effects()
