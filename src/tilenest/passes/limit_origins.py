"""Keep every origin so near that adding a tile's coordinates cannot wrap.

In: Candidate form. Out: an origin (or a symbol of a reindex) of unknown size is limited to +-2^58.
No array is that long, so what lay outside stays outside and what lay inside is unchanged, while
sums of several origins and extents now fit 64 bits. In views of views, whose maps may scale
coordinates on the way down, origins and symbols are kept nearer by as much, so that products fit.

    tile.load %v[%o]     becomes   tile.load %v[minimum(maximum(%o, -2^58), 2^58)]
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.analysis import range_of
from tilenest.decisions import Decision
from tilenest.dialects import (
    Apply,
    Atomic,
    Constant,
    Load,
    Partition,
    Reindex,
    Remap,
    Store,
    YieldUpdates,
    chain_of,
)
from tilenest.ir import INDEX, Builder, Function, Operation, Rewriter, Value
from tilenest.layouts import IndexExpr

FARTHEST = 1 << 58
_FARTHEST_IN_VIEWS = 1 << 50
_MOST = 1 << 62
_GROUPS = {
    Load: "origins",
    Store: "origins",
    Atomic: "origins",
    Reindex: "symbols",
    Remap: "symbols",
    Partition: "origins",
    YieldUpdates: "origins",
}


def limit_origins(function: Function, rewriter: Rewriter) -> Iterable[Decision]:
    """Limit the origins of every access in place."""
    for op in function.walk():
        group = _GROUPS.get(type(op))
        # "assume" promises small origins, and "check" reports the origin as it is.
        if group is None or op.attributes.get("bounds", "zero") != "zero":
            continue
        most = farthest(op)
        origins: list[Value] = getattr(op, group)
        limited = [
            origin if _is_near(origin, most) or _is_folded(op, place) else None
            for place, origin in enumerate(origins)
        ]
        if None in limited:
            builder = rewriter.builder_before(op)
            near = [
                _limited(builder, origin, most) if kept is None else kept
                for origin, kept in zip(origins, limited, strict=True)
            ]
            rewriter.set_operands(op, group, near)
    return ()


def farthest(op: Operation) -> int:
    """How far from 0 an origin or symbol may be, so that no view below scales it out of 64 bits."""
    if op.ACTION:
        (touch,) = op.accesses()
        chain = chain_of(touch.memory)
    elif isinstance(op, Partition):
        chain = chain_of(op.whole)
    elif isinstance(op, Remap):
        chain = [op, *chain_of(op.view)]
    else:
        chain = []
    if not chain:
        return FARTHEST
    scale = 1
    for remap in chain:
        scale *= max([1, *(_scale(result) for result in remap.map.results)])
    return min(_FARTHEST_IN_VIEWS, _MOST // scale)


def _scale(expr: IndexExpr) -> int:
    """How much a result grows when a coordinate or symbol does."""
    linear = expr.linear()
    if linear is None:
        steps = [expr.coefficient(dim) or 1 for dim in expr.used_dims()]
    else:
        steps = [step for _, step in (*linear.dims, *linear.syms)]
    return sum(abs(step) for step in steps)


def _is_folded(op: Operation, place: int) -> bool:
    """Whether a symbol of a view matters beyond its size: then no other number stands for it."""
    if not isinstance(op, Remap):
        return False
    return any(
        place in expr.used_syms() and expr.linear() is None
        for expr in (*op.map.results, *op.conditions)
    )


def _is_near(origin: Value, most: int) -> bool:
    found = range_of(origin)
    return found is not None and found[0] >= -most and found[1] <= most


def _limited(builder: Builder, origin: Value, most: int) -> Value:
    for function, limit in (("maximum", -most), ("minimum", most)):
        bound = builder.insert(Constant(value=limit, result_types=[INDEX])).result
        op = Apply(arguments=[origin, bound], function=function, result_types=[INDEX])
        origin = builder.insert(op).result
    return origin
