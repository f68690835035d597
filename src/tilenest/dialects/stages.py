"""The grammar of each form: which ops and which types of values a module may hold in it.

In: nothing. Out: a table by the form's name. A pass takes a module from one form to another; the
verifier asks this table, and it is the place to look up what a pass may meet. `lifted` is the half
of Candidate in which tile ops have become map_reduce_post on values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilenest.dialects.exec import If, Parallel, Pipeline, Reduce, Return, Serial, Yield
from tilenest.dialects.loop import (
    Branch,
    Check,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopYield,
    MemoryLoad,
    MemoryStore,
    Offset,
    ReduceLanes,
    Scatter,
    Splat,
    Transpose,
)
from tilenest.dialects.scalar import Apply, Bitcast, Cast, Constant
from tilenest.dialects.tensor import Alloc, MapReducePost, Read
from tilenest.dialects.tile import Extent, Load, Map, Mma, Reindex, Store, Stride
from tilenest.ir import (
    BufType,
    Operation,
    PointerType,
    ScalarType,
    TileType,
    Type,
    VectorType,
    ViewType,
)
from tilenest.records import record


@record
class Form:
    """What may stand in a module of this form."""

    operations: frozenset[type[Operation]]
    types: frozenset[type[Type]]


_STRUCTURE = {Return, Yield, Parallel, Serial, Reduce, Pipeline, If}
_SCALAR = {Constant, Apply, Cast, Bitcast}
_VIEW_FACTS = {Extent, Stride}
_LOOPS = {For, Branch, LoopYield, Launch, Return}
_MEMORY = {Check, Offset, MemoryLoad, MemoryStore, Gather, Scatter}
_LANES = {Splat, Lanes, LaneMask, ReduceLanes, Transpose}


def _form(operations: set[type[Operation]], types: set[type[Type]]) -> Form:
    return Form(frozenset(operations), frozenset(types))


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "candidate": _form(
            _STRUCTURE | _SCALAR | _VIEW_FACTS | {Load, Store, Map, Reindex, Mma},
            {ScalarType, TileType, ViewType},
        ),
        "lifted": _form(
            _STRUCTURE | _SCALAR | _VIEW_FACTS | {Load, Store, MapReducePost, Check},
            {ScalarType, TileType, ViewType},
        ),
        "scheduled": _form(
            _STRUCTURE | _SCALAR | _VIEW_FACTS | {Load, MapReducePost, Alloc, Read, Check},
            {ScalarType, ViewType, BufType},
        ),
        "machine": _form(
            _LOOPS | _SCALAR | _MEMORY | _LANES,
            {ScalarType, VectorType, PointerType},
        ),
    }
)
"""Candidate, lifted, scheduled, machine; a load that stays in scheduled form reads one element."""
