"""The grammar of each form: which ops and which types of values a module may hold in it.

In: the op classes, which name the forms that they may stand in. Out: a table by the form's name. A
pass takes a module from one form to another; the verifier asks this table, and it is the place to
look up what a pass may meet. `lifted` is the half of Candidate in which tile ops have become
map_reduce_post on values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tilenest.ir import (
    ArrayType,
    BufType,
    MemoryType,
    Operation,
    PointerType,
    ScalarType,
    StateType,
    TileType,
    TokenType,
    TupleType,
    Type,
    VectorType,
    ViewType,
)
from tilenest.records import record

CANDIDATE = "candidate"
LIFTED = "lifted"
SCHEDULED = "scheduled"
"""A load that stays in it reads one element."""
MACHINE = "machine"
STRUCTURED = (CANDIDATE, LIFTED, SCHEDULED)
EVERY = (*STRUCTURED, MACHINE)

_TYPES: Mapping[str, frozenset[type[Type]]] = {
    CANDIDATE: frozenset(
        {ScalarType, TileType, ViewType, MemoryType, StateType, TupleType, ArrayType, TokenType}
    ),
    LIFTED: frozenset({ScalarType, TileType, ViewType, BufType, TokenType}),
    SCHEDULED: frozenset({ScalarType, ViewType, BufType, TokenType}),
    MACHINE: frozenset({ScalarType, VectorType, PointerType, TokenType}),
}


@record
class Form:
    """What may stand in a module of this form."""

    operations: frozenset[type[Operation]]
    types: frozenset[type[Type]]


def grammar(operations: Iterable[type[Operation]]) -> Mapping[str, Form]:
    """The table of these op classes, in the order in which a module goes through the forms."""
    ops = tuple(operations)
    return MappingProxyType(
        {
            form: Form(frozenset(op for op in ops if form in op.FORMS), types)
            for form, types in _TYPES.items()
        }
    )
