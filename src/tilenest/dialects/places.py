"""Where an operation runs, where that is not simply where it stands.

In: depths in the chain of levels around the operation. Out: the record that work may carry. Without
one the anchor is where the operation stands, and the frontier is the innermost parallel around it,
if that is deeper.
"""

from __future__ import annotations

from tilenest.layouts import AffineMap
from tilenest.records import record


@record
class Placement:
    """One logical instance for each instance of the first `anchor` levels, spread over those of the
    first `frontier`; where `active` is given, over the coordinates at which all of its results are
    at least 0."""

    anchor: int
    frontier: int
    active: AffineMap | None = None
