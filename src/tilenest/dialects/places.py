"""Where an operation runs, where that is not simply where it stands.

In: depths in the chain of levels around the operation. Out: the record that work may carry. Without
one the anchor is where the operation stands, and the frontier is the innermost parallel around it,
if that is deeper.
"""

from __future__ import annotations

from tilenest.layouts import AffineMap, Const, DimRef
from tilenest.records import record


@record
class Placement:
    """One logical instance for each instance of the first `anchor` levels, spread over those of the
    first `frontier`; where `active` is given, over the coordinates at which all of its results are
    at least 0."""

    anchor: int
    frontier: int
    active: AffineMap | None = None

    def without_levels(self, first: int, count: int) -> Placement:
        """The same place where `count` levels of one instance, from `first` on, are gone."""
        frontier = _without(self.frontier, first, count)
        active = self.active
        if active is not None:
            above = [DimRef(place) for place in range(first)]
            below = [DimRef(first + place) for place in range(active.n_dims)]
            dims = [*above, *[Const(0)] * count, *below][: active.n_dims]
            active = active.with_dims(dims, frontier)
        return Placement(_without(self.anchor, first, count), frontier, active)

    def below_levels(self, count: int) -> Placement:
        """The same place where `count` more levels are around all others."""
        frontier = self.frontier + count
        active = self.active
        if active is not None:
            active = active.with_dims([DimRef(d + count) for d in range(active.n_dims)], frontier)
        return Placement(self.anchor + count, frontier, active)


def _without(depth: int, first: int, count: int) -> int:
    return depth if depth <= first else max(first, depth - count)
