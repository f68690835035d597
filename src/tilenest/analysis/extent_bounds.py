"""Whether a nest's index stays below an extent that is only known at run time.

In: an index value, a view and an axis. Out: True when the index counts from 0 or more up to that
very extent, so `view[index]` is inside whatever the extent is."""

from __future__ import annotations

from tilenest.analysis.index_values import range_of
from tilenest.analysis.structure import constant_of
from tilenest.dialects import Extent, Nest
from tilenest.ir import BlockArgument, OpResult, Value


def counts_to_extent(index: Value, view: Value, axis: int) -> bool:
    """True when `index` is an index of a nest with lower bound >= 0 and upper bound
    `view.extent(axis)`."""
    if not isinstance(index, BlockArgument):
        return False
    nest = index.block.parent_op
    if not isinstance(nest, Nest) or index.index >= nest.rank:
        return False
    lower = range_of(nest.lower[index.index])
    step = constant_of(nest.step[index.index])
    upper = nest.upper[index.index]
    if lower is None or lower[0] < 0 or not isinstance(upper, OpResult):
        return False
    if step is None or step <= 0:
        return False
    owner = upper.owner
    return isinstance(owner, Extent) and owner.view is view and owner.axis == axis
