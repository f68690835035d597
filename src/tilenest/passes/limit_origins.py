"""Keep every origin so near that adding a tile's coordinates cannot wrap.

In: Candidate form. Out: an origin of unknown size is limited to +-2^58, and the symbols of remaps
and reindexes are limited as `far_symbols` says. No array is that long, so what lay outside stays
outside and what lay inside is unchanged, while sums of several origins and extents now fit 64 bits.
In views of views, whose maps may scale coordinates on the way down, origins are kept nearer by as
much, so that products fit.

    tile.load %v[%o]     becomes   tile.load %v[minimum(maximum(%o, -2^58), 2^58)]
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.decisions import Decision
from tilenest.dialects import Atomic, Load, Partition, Reindex, Remap, Store, YieldUpdates
from tilenest.ir import Function, Operation, Rewriter, Value
from tilenest.passes.far_symbols import farthest, is_near, limit_symbols, limited

_GROUPS = {
    Load: "origins",
    Store: "origins",
    Atomic: "origins",
    Partition: "origins",
    YieldUpdates: "origins",
}


def limit_origins(function: Function, rewriter: Rewriter) -> Iterable[Decision]:
    """Limit the origins of every access in place."""
    for op in function.walk():
        if isinstance(op, Reindex | Remap):
            limit_symbols(op, rewriter)
        # "assume" promises small origins, and "check" reports the origin as it is.
        elif type(op) in _GROUPS and op.attributes.get("bounds", "zero") == "zero":
            limit_origins_of(op, rewriter)
    return ()


def limit_origins_of(op: Operation, rewriter: Rewriter) -> None:
    """Limit the origins of one operation in place."""
    most = farthest(op)
    origins: list[Value] = getattr(op, _GROUPS[type(op)])
    if not all(is_near(origin, most) for origin in origins):
        builder = rewriter.builder_before(op)
        near = [v if is_near(v, most) else limited(builder, v, most) for v in origins]
        rewriter.set_operands(op, "origins", near)
