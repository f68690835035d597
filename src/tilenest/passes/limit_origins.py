"""Keep every origin so near that adding a tile's coordinates cannot wrap.

In: Candidate form. Out: an origin (or a reindex's symbol) of unknown size is limited to +-2^58. No
array is that long, so what lay outside stays outside and what lay inside is unchanged, while sums
of several origins and extents now fit 64 bits.

    tile.load %v[%o]     becomes   tile.load %v[minimum(maximum(%o, -2^58), 2^58)]
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.analysis import range_of
from tilenest.decisions import Decision
from tilenest.dialects import Apply, Constant, Load, Reindex, Store
from tilenest.ir import INDEX, Builder, Function, Rewriter, Value

_FARTHEST = 1 << 58
_GROUPS = {Load: "origins", Store: "origins", Reindex: "symbols"}


def limit_origins(function: Function, rewriter: Rewriter) -> Iterable[Decision]:
    """Limit the origins of every access in place."""
    for op in function.walk():
        group = _GROUPS.get(type(op))
        # "assume" promises small origins, and "check" reports the origin as it is.
        if group is None or op.attributes.get("bounds", "zero") != "zero":
            continue
        origins: list[Value] = getattr(op, group)
        limited = [origin if _is_near(origin) else None for origin in origins]
        if None in limited:
            builder = rewriter.builder_before(op)
            near = [
                _limited(builder, origin) if kept is None else kept
                for origin, kept in zip(origins, limited, strict=True)
            ]
            rewriter.set_operands(op, group, near)
    return ()


def _is_near(origin: Value) -> bool:
    found = range_of(origin)
    return found is not None and found[0] >= -_FARTHEST and found[1] <= _FARTHEST


def _limited(builder: Builder, origin: Value) -> Value:
    for function, limit in (("maximum", -_FARTHEST), ("minimum", _FARTHEST)):
        bound = builder.insert(Constant(value=limit, result_types=[INDEX])).result
        op = Apply(arguments=[origin, bound], function=function, result_types=[INDEX])
        origin = builder.insert(op).result
    return origin
