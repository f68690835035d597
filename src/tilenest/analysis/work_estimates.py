"""A rough time of one run of a block, for choices of grain and of overlap only.

In: a block in any structured form. Out: nanoseconds on one core, from the elements that are
computed and the trips of loops; what is known at run time only counts as a handful. Nothing about
what a program computes may depend on it.
"""

from __future__ import annotations

from math import prod

from tilenest.analysis.structure import trip_counts
from tilenest.ir import Block, Operation, RegionUse

_NS_PER_ELEMENT = 0.1
_UNKNOWN_TRIPS = 16


def estimated_time(block: Block) -> float:
    """Of one run of the block."""
    return 1.0 + sum(map(_time_of, block.operations))


def _time_of(op: Operation) -> float:
    iteration = op.iteration()
    if iteration is not None:
        steps = len(op.body.operations) // 2 if op.regions else 1
        return prod(iteration.extents) * _NS_PER_ELEMENT * max(1, steps)
    if op.REGION_USE is RegionUse.REPEATED:
        trips = prod(_UNKNOWN_TRIPS if n is None else n for n in trip_counts(op))
        return trips * sum(map(estimated_time, _blocks(op)))
    return sum(map(estimated_time, _blocks(op)))


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]
