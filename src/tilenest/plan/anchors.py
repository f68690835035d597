"""What is said of where work runs, where that is not simply where it stands.

In: a function in Scheduled form. Out: for each work of fewer logical instances than it runs in, its
anchor and its frontier, as depths in the levels around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import ExecutionStructure
from tilenest.dialects import Load, MapReducePost, Placement
from tilenest.ir import Asker, Function, Operation


def plan_anchors(function: Function, ask: Asker) -> Iterator[tuple[Operation, Placement]]:
    """The placements of one function; what states its own keeps it."""
    structure = ask.get(ExecutionStructure, function)
    for op in function.walk():
        if isinstance(op, Load | MapReducePost) and op.place is None:
            place = structure.place(op)
            if place.anchor.depth < len(place.levels):
                yield op, Placement(place.anchor.depth, place.frontier.depth)
