"""A rough time of one run of each block, for choices of grain and of overlap only.

In: a function in any structured form. Out: for every block but those of scalar code inside an
operation nanoseconds on one core, from the elements that are computed and the trips of loops; what
is known at run time only counts as a handful. A fold whose contract keeps it a chain waits for each
step. Nothing about what a program computes may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar

from tilenest.analysis.reductions import Reductions, Regrouping
from tilenest.analysis.structure import trip_counts
from tilenest.dialects import MapReducePost
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    Edit,
    EditKind,
    Function,
    Operation,
    RegionUse,
)
from tilenest.records import record

_NS_PER_ELEMENT = 0.1
_NS_PER_LINK = 1.0
"""What a step of a chain waits for the one before; other cells go on meanwhile."""
_UNKNOWN_TRIPS = 16
_COUNTING = frozenset({"value", "extents", "specs", "dims"})
"""The attributes that trips and elements are counted by: of constants, of work, of stores."""


@record
class WorkEstimates(Analysis[Function, "WorkEstimates"]):
    """The times of the blocks of one function."""

    NAME: ClassVar[str] = "work estimates"
    DEPENDS_ON: ClassVar = (Reductions,)

    times: Mapping[Block, float]

    @classmethod
    def compute(cls, subject: Function, ask: Asker, /) -> WorkEstimates:
        found = _Estimate(ask)
        found.note(subject.region.blocks)
        return cls(MappingProxyType(found.times))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            return edit.detail in _COUNTING
        return edit.kind not in (EditKind.LABEL, EditKind.FUNCTION, EditKind.SUCCESSORS)


class _Estimate:
    """The times while they are counted."""

    def __init__(self, ask: Asker) -> None:
        self.ask = ask
        self.times: dict[Block, float] = {}

    def note(self, blocks: Iterable[Block]) -> float:
        """The time of one run of each of these blocks."""
        total = 0.0
        for block in blocks:
            self.times[block] = 1.0 + sum(map(self._time_of, block.operations))
            total += self.times[block]
        return total

    def _time_of(self, op: Operation) -> float:
        iteration = op.iteration()
        if iteration is not None:
            steps = len(op.body.operations) // 2 if op.regions else 1
            each = max(_NS_PER_ELEMENT * max(1, steps), self._wait(op))
            return prod(iteration.extents) * each
        inside = self.note(block for region in op.regions for block in region.blocks)
        if op.REGION_USE is RegionUse.REPEATED:
            inside *= prod(_UNKNOWN_TRIPS if n is None else n for n in trip_counts(op))
        return inside

    def _wait(self, op: Operation) -> float:
        """What an element waits for the one before, where lanes may not share a fold."""
        if not isinstance(op, MapReducePost) or not op.folded_results:
            return 0.0
        if all(answer.allows(Regrouping.LANES) for answer in self.ask.get(Reductions, op)):
            return 0.0
        kept = set.intersection(*(set(op.spec(result).dims) for result in op.folded_results))
        cells: int = prod(op.extents[dim] for dim in kept)
        return _NS_PER_LINK / max(1, cells)
