"""The vocabulary of the IR: every op class, declared once, and the records attributes carry."""

from tilenest.dialects.exec import If, Nest, Parallel, Pipeline, Reduce, Return, Serial, Yield
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
from tilenest.dialects.scalar import (
    SCALAR_FUNCTIONS,
    Apply,
    Bitcast,
    Cast,
    Constant,
    ScalarFunction,
)
from tilenest.dialects.schedule import LOOP_POLICIES, Access, Loop, ResultSpec, Sched
from tilenest.dialects.stages import FORMS, Form
from tilenest.dialects.tensor import Alloc, MapReducePost, Read
from tilenest.dialects.tile import Extent, Load, Map, Mma, Reindex, Store, Stride
from tilenest.ir import Registry

OPERATIONS = (
    Return,
    Yield,
    Parallel,
    Serial,
    Reduce,
    Pipeline,
    If,
    Constant,
    Apply,
    Cast,
    Bitcast,
    Extent,
    Stride,
    Load,
    Store,
    Map,
    Reindex,
    Mma,
    MapReducePost,
    Alloc,
    Read,
    For,
    Branch,
    LoopYield,
    Launch,
    Offset,
    Check,
    MemoryLoad,
    MemoryStore,
    Gather,
    Scatter,
    Splat,
    Lanes,
    LaneMask,
    ReduceLanes,
    Transpose,
)
ATTRIBUTE_RECORDS = (Access, ResultSpec, Loop, Sched)
"""Records that may stand in attributes; their text is derived from the fields."""


def registry() -> Registry:
    """The vocabulary for `ir.parse_module`."""
    return Registry.of(OPERATIONS, ATTRIBUTE_RECORDS)


__all__ = [
    "ATTRIBUTE_RECORDS",
    "FORMS",
    "LOOP_POLICIES",
    "OPERATIONS",
    "SCALAR_FUNCTIONS",
    "Access",
    "Alloc",
    "Apply",
    "Bitcast",
    "Branch",
    "Cast",
    "Check",
    "Constant",
    "Extent",
    "For",
    "Form",
    "Gather",
    "If",
    "LaneMask",
    "Lanes",
    "Launch",
    "Load",
    "Loop",
    "LoopYield",
    "Map",
    "MapReducePost",
    "MemoryLoad",
    "MemoryStore",
    "Mma",
    "Nest",
    "Offset",
    "Parallel",
    "Pipeline",
    "Read",
    "Reduce",
    "ReduceLanes",
    "Reindex",
    "ResultSpec",
    "Return",
    "ScalarFunction",
    "Scatter",
    "Sched",
    "Serial",
    "Splat",
    "Store",
    "Stride",
    "Transpose",
    "Yield",
    "registry",
]
