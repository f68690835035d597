"""Two versions of a nest: one condition up front instead of a mask on every read.

In: an op, its clipped domain, its operands. Out: a run-time condition under which every read of
some checked axes stays inside, computed from the corners of the domain, or None when nothing is to
be gained. Only axes that are linear in the loop dims take part; the others keep their masks in
both versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tilenest.analysis import is_inside, ranges_of
from tilenest.dialects import MapReducePost
from tilenest.ir import Value
from tilenest.layouts import IndexExpr
from tilenest.nests.addresses import Address
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Index
from tilenest.records import record

READ_GROUPS = {"input": "inputs", "seed": "seeds", "post": "posts"}
CheckedAxis = tuple[str, int, int]
"""(group, position in the group, axis)"""


@record
class Guard:
    """`proven` axes need no check anywhere; where `condition` holds, those in `guarded` need none
    either (no condition: nothing is gained by testing)."""

    proven: tuple[CheckedAxis, ...]
    condition: Value | None
    guarded: tuple[CheckedAxis, ...]


def inside_guard(
    op: MapReducePost,
    origins: Sequence[IndexExpr],
    sizes: Sequence[Index],
    symbols: Sequence[IndexExpr],
    slots: Coordinates,
    memory_of: Callable[[Value], Address | None],
) -> Guard:
    """The guard of an op over origins[d] <= d < origins[d] + sizes[d]."""
    lasts = [
        slots.add(slots.emitter.subtract(size, 1), (-1, extent - 1), 0)
        for size, extent in zip(sizes, op.extents, strict=True)
    ]
    corners = origins, [origin + last for origin, last in zip(origins, lasts, strict=True)]
    ranges = ranges_of(op.extents, op.symbols)
    proven: list[CheckedAxis] = []
    guarded: list[CheckedAxis] = []
    conditions: dict[tuple[str, IndexExpr, Index], None] = {}
    for group, position, address in _checked_reads(op, memory_of):
        results = op.access(group, position).map.results
        value: Value = getattr(op, READ_GROUPS[group])[position]
        inside = is_inside(op.access(group, position), value, ranges, op.symbols)
        for axis, (expr, extent) in enumerate(zip(results, address.extents, strict=True)):
            if inside[axis]:
                proven.append((group, position, axis))
                continue
            found = _axis_conditions(expr, extent, corners, symbols, slots)
            if found is not None:
                (guarded if found else proven).append((group, position, axis))
                conditions.update(dict.fromkeys(found))
    return Guard(tuple(proven), _conjunction(conditions, slots), tuple(guarded))


def _conjunction(
    conditions: Iterable[tuple[str, IndexExpr, Index]], slots: Coordinates
) -> Value | None:
    condition: Value | None = None
    for function, expr, bound in conditions:
        part = slots.emitter.compare(function, slots.emit(expr), bound)
        condition = slots.emitter.both(condition, part, 0)
    return condition


def _checked_reads(
    op: MapReducePost, memory_of: Callable[[Value], Address | None]
) -> Iterator[tuple[str, int, Address]]:
    for group, name in READ_GROUPS.items():
        values: Sequence[Value] = getattr(op, name)
        for position, value in enumerate(values):
            address = memory_of(value)
            if address is not None and op.access(group, position).bounds == "zero":
                yield group, position, address


def _axis_conditions(
    expr: IndexExpr,
    extent: Index,
    corners: tuple[Sequence[IndexExpr], Sequence[IndexExpr]],
    symbols: Sequence[IndexExpr],
    slots: Coordinates,
) -> list[tuple[str, IndexExpr, Index]] | None:
    """What keeps 0 <= expr < extent over the whole domain (nothing where it is known); None when
    the axis is not linear or surely leaves the extent somewhere."""
    rank = len(corners[0])
    signs = [expr.coefficient(dim) for dim in range(rank)]
    if any(sign is None for sign in signs):
        return None
    rising = [sign is not None and sign > 0 for sign in signs]
    least = [corners[not up][dim] for dim, up in enumerate(rising)]
    most = [corners[up][dim] for dim, up in enumerate(rising)]
    low = slots.simplify(expr.substitute(least, symbols))
    high = slots.simplify(expr.substitute(most, symbols))
    low_range, high_range = slots.bounds(low), slots.bounds(high)
    conditions: list[tuple[str, IndexExpr, Index]] = []
    if low_range is None or low_range[0] < 0:
        if low_range is not None and low_range[1] < 0:
            return None
        conditions.append(("ge", low, 0))
    if high_range is None or not isinstance(extent, int) or high_range[1] >= extent:
        if high_range is not None and isinstance(extent, int) and high_range[0] >= extent:
            return None
        conditions.append(("lt", high, extent))
    return conditions
