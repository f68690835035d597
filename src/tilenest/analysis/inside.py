"""Whether an access provably stays inside what it addresses.

In: an access, the view, buf or tile, and what is known of its loop dims and symbols. Out: one
answer an axis. Proofs come from intervals against static extents, and from a nest's index that
counts up to the very extent of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.analysis.extent_bounds import counts_to_extent
from tilenest.dialects import Access
from tilenest.ir import Value
from tilenest.layouts import DimRef, IndexExpr, Interval, Sym, bounds

Ranges = Mapping[DimRef | Sym, Interval]


def is_inside(
    access: Access, memory: Value, ranges: Ranges, symbols: Sequence[Value] = ()
) -> tuple[bool, ...]:
    """For each axis whether the access provably stays within it."""
    shape: tuple[int | None, ...] = getattr(memory.type, "shape", ())
    inside: list[bool] = []
    for axis, (result, extent) in enumerate(zip(access.map.results, shape, strict=True)):
        found = bounds(result, ranges)
        is_high_enough = found is not None and found[0] >= 0
        is_low_enough = found is not None and extent is not None and found[1] < extent
        inside.append(
            is_high_enough
            and (is_low_enough or _is_counted_along(result, memory, axis, ranges, symbols))
        )
    return tuple(inside)


def _is_counted_along(
    expr: IndexExpr, memory: Value, axis: int, ranges: Ranges, symbols: Sequence[Value]
) -> bool:
    """Whether an expression is at most an index that counts up to this extent."""
    for place in expr.used_syms():
        if place < len(symbols) and counts_to_extent(symbols[place], memory, axis):
            rest = bounds(expr - Sym(place), ranges)
            if rest is not None and rest[1] <= 0:
                return True
    return False
