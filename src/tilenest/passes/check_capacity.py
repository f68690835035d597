"""Refuse a program that needs more memory than the target has, and say how workers share it out.

In: Scheduled form, every buf in a class of memory; a target. Out: nothing changes; decisions about
the turns of workers, or a `TargetError` that names the largest users. Explicit memory and
temporaries of the compiler are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tilenest.analysis import (
    Footprint,
    ResourcePressure,
    WorkEstimates,
    frame_of,
    occupancy,
    trip_counts,
)
from tilenest.decisions import Decision
from tilenest.dialects import Alloc, Parallel
from tilenest.errors import TargetError
from tilenest.ir import Function, Rewriter, describe_type
from tilenest.machine import Target

_MOST_NAMED = 3


def check_capacity(function: Function, target: Target, rewriter: Rewriter) -> list[Decision]:
    """Compare what each class of memory holds with its capacity."""
    for footprint in rewriter.analyses.get(ResourcePressure, function).footprints:
        capacity = target.resource(footprint.resource).capacity
        if capacity is not None and footprint.bytes > capacity:
            raise _excess(footprint, capacity)
    return list(_turns(function, target, rewriter))


def _excess(footprint: Footprint, capacity: int) -> TargetError:
    named = footprint.users[:_MOST_NAMED]
    users = ", ".join(f"{_named(alloc)} with {size}" for alloc, size in named)
    return TargetError(
        f"an instance needs {footprint.bytes} bytes of {footprint.resource} memory, which has "
        f"{capacity}; "
        f"the largest users are {users}",
        "use smaller tiles, or memory of another class",
        footprint.users[0][0].location,
    )


def _named(alloc: Alloc) -> str:
    type_ = describe_type(alloc.result.type)
    return f"%{alloc.result.name} ({type_})" if alloc.result.name else f"a {type_}"


def _turns(function: Function, target: Target, rewriter: Rewriter) -> Iterator[Decision]:
    """How the workers share the items of each outermost parallel."""
    for op in function.walk():
        if not isinstance(op, Parallel) or frame_of(op) is not None:
            continue
        counts = [count for count in trip_counts(op) if count is not None]
        if len(counts) < op.rank or not prod(counts):
            continue
        cost = rewriter.analyses.get(WorkEstimates, function).times[op.body]
        found = occupancy(prod(counts), cost, target.machine.cores)
        yield Decision(
            "parallel",
            f"{found.items} instances, {found.grain} a chunk, on {found.workers} of "
            f"{target.machine.cores} workers",
            "one instance a chunk",
            f"an instance takes about {cost:.0f} ns; workers are busy {found.busy:.0%} of the time",
            op.location,
        )
