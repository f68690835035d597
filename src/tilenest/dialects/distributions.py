"""Who holds which part of a value, as attributes that the text can hold.

In: extents and maps. Out: records on the operation that makes a value: on its storage, how it lies
there; on work that copies, from which distribution to which, and what that costs. The records
promise nothing: the verifier proves that every element has its place.
"""

from __future__ import annotations

from tilenest.layouts import AffineMap
from tilenest.records import record


@record
class Spread:
    """How a value of extents `logical` is held.

    Each of the `participants` has the places of a `fragment`; `placement` takes both to the
    coordinate held there. Participants are the instances of parallel nests inside of the value's
    owner, counted along the extent of each level; what stands in none but its owner has none. What
    is replicated may stand at several places, and what is masked has places without an element.
    """

    logical: tuple[int, ...]
    fragment: tuple[int, ...]
    placement: AffineMap
    participants: tuple[int, ...] = ()
    replicated: bool = False
    masked: bool = False


@record
class Repartition:
    """A value is held differently from here on.

    `moved` counts the elements that a participant needs from another, `kept` those it has.
    """

    source: Spread
    target: Spread
    moved: int
    kept: int
