"""Combining partial accumulators: identities of the merge functions and the fixed tree.

In: partial accumulators, one a lane and copy. Out: one scalar, combined in an order that depends
on the schedule alone, never on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilenest.dialects import ReduceLanes
from tilenest.ir import DType, ScalarType, Value, element_dtype
from tilenest.nests.emitter import Emitter, lanes_of
from tilenest.nests.lanes import apply_function


def identity_of(merge: str, dtype: DType) -> bool | int | float:
    """The number that leaves every element unchanged under `merge`."""
    if dtype.is_bool:
        return merge in ("and", "minimum", "mul")
    if merge == "add":
        return -0.0 if dtype.is_float else 0
    if merge == "mul":
        return 1.0 if dtype.is_float else 1
    if merge in ("or", "xor"):
        return 0
    if dtype.is_float:
        return math.inf if merge == "minimum" else -math.inf
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = (1 << (dtype.bits - 1)) - 1 if dtype.is_signed else (1 << dtype.bits) - 1
    if merge == "and":
        return -1 if dtype.is_signed else high
    return high if merge == "minimum" else low


def combine(merge: str, parts: Sequence[Value], emitter: Emitter) -> Value:
    """One scalar from partial accumulators: neighbours pairwise, then lanes by halving."""
    level = list(parts)
    while len(level) > 1:
        pairs = [
            apply_function(merge, level[i : i + 2], emitter) for i in range(0, len(level) - 1, 2)
        ]
        level = pairs if len(level) % 2 == 0 else [*pairs, level[-1]]
    total = level[0]
    if not lanes_of(total):
        return total
    type_ = ScalarType(element_dtype(total.type))
    return emitter.emit(ReduceLanes(value=total, function=merge, result_types=[type_]))
