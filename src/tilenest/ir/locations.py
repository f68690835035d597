"""The place of what was made from several places.

In: locations. Out: the first one, which names the others, each once.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.errors import SourceLocation
from tilenest.records import replace

_MOST = 8
"""Places named together; a constant that stands for a hundred others need not name them all."""


def fuse_locations(locations: Iterable[SourceLocation | None]) -> SourceLocation | None:
    """One location for all, None when there is none; fusing fused ones keeps every place."""
    places: list[SourceLocation] = []
    for location in locations:
        if location is not None:
            for place in (location, *location.fused):
                bare = replace(place, fused=()) if place.fused else place
                if bare not in places:
                    places.append(bare)
    if not places:
        return None
    first, *others = places[:_MOST]
    return replace(first, fused=tuple(others)) if others else first
