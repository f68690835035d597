"""The nests around an operation as execution levels, with the instances in which it runs.

In: an operation and the facts of one call. Out: a frozen prefix: its levels from the outside in,
each counting 0, 1, ... up to the most trips it makes anywhere, what the index values are over these
counters, and constraints that keep the instances that exist. Where a condition is computed by the
program, both of its outcomes count, and the prefix says that it is not exact.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.analysis.index_values import Facts, constraints_of, index_formula
from tilenest.analysis.structure import enclosing_blocks
from tilenest.dialects import If, Nest
from tilenest.execution import ExecLevel
from tilenest.ir import Block, Induction, Operation, Value
from tilenest.layouts import Constraint, DimRef, IndexExpr, Interval, Sym, bounds
from tilenest.records import record


@record
class PrefixLevel:
    """One axis of one nest."""

    level: ExecLevel
    nest: Operation
    axis: int
    is_box: bool
    """whether it makes as many trips in every instance of the nests around"""


@record
class Prefix:
    """Where an operation runs. `DimRef(i)` is the counter of level i."""

    levels: tuple[PrefixLevel, ...]
    constraints: tuple[Constraint, ...]
    coordinates: Mapping[Value, IndexExpr]
    """index arguments of the nests, over the counters"""
    is_exact: bool

    @property
    def extents(self) -> tuple[int, ...]:
        extents = []
        for place in self.levels:
            assert isinstance(place.level.extent, int)
            extents.append(place.level.extent)
        return tuple(extents)


def prefix_of(operation: Operation, facts: Facts) -> Prefix | str:
    """The prefix, or why it cannot be counted."""
    found = _Prefix(facts)
    for block, holder in reversed(list(enclosing_blocks(operation))):
        reason = found.enter(block, holder)
        if reason is not None:
            return reason
    return Prefix(tuple(found.levels), tuple(found.constraints), found.coordinates, found.is_exact)


class _Prefix:
    """A prefix while it grows."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.levels: list[PrefixLevel] = []
        self.constraints: list[Constraint] = []
        self.coordinates: dict[Value, IndexExpr] = {}
        self.is_exact = True

    def enter(self, block: Block, holder: Operation) -> str | None:
        if isinstance(holder, If):
            is_first = block is holder.regions[0].block
            found = constraints_of(holder.condition, is_first, self.coordinates, self.facts)
            self.is_exact = self.is_exact and found is not None
            self.constraints += found or ()
            return None
        if not isinstance(holder, Nest):
            return f"{holder.NAME} is no nest and no condition"
        # The bounds of all axes are evaluated before any of them runs.
        bounds_of_axes = [self._axis(induction) for induction in holder.inductions()]
        for axis, found_axis in enumerate(bounds_of_axes):
            if isinstance(found_axis, str):
                return f"{holder.NAME}: {found_axis}"
            self._add(block, holder, axis, *found_axis)
        return None

    def _axis(self, induction: Induction[Value]) -> tuple[IndexExpr, IndexExpr, int] | str:
        """First index, end and step."""
        parts = (induction.lower, induction.upper, induction.step)
        lower, upper, step = (index_formula(v, self.coordinates, self.facts) for v in parts)
        if lower is None or upper is None or step is None:
            return "its domain is computed by the program"
        by = None if step.dim_mask else step.evaluate(())
        return (lower, upper, by) if by else "its step varies, or is 0"

    def _add(
        self,
        block: Block,
        nest: Nest,
        axis: int,
        lower: IndexExpr,
        upper: IndexExpr,
        step: int,
    ) -> None:
        place = len(self.levels)
        span = upper - lower if step > 0 else lower - upper
        found = bounds(span, self._ranges())
        longest = 0 if found is None else max(0, found[1])
        trips = -(-longest // abs(step))
        level = ExecLevel(
            f"{nest.LEVELS}{place}",
            block.arguments[axis].name or f"i{place}",
            nest.LEVELS,
            trips,
            policy=nest.policy,
        )
        self.levels.append(PrefixLevel(level, nest, axis, not span.dim_mask))
        if span.dim_mask:
            self.constraints.append(Constraint(span - DimRef(place) * abs(step) - 1))
        self.coordinates[block.arguments[axis]] = lower + DimRef(place) * step

    def _ranges(self) -> dict[DimRef | Sym, Interval]:
        ranges: dict[DimRef | Sym, Interval] = {}
        for place, level in enumerate(self.levels):
            assert isinstance(level.level.extent, int)
            ranges[DimRef(place)] = (0, max(0, level.level.extent - 1))
        return ranges
