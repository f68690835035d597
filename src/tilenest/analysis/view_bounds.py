"""Where the coordinates of a view of a view lie in the view below it.

In: a `view.remap`, and formulas over dims that run over spans, whose ends may be run-time numbers.
Out: the ends of a formula, and for each axis below whether no element of the view leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.analysis.index_values import Leaves
from tilenest.dialects import Remap
from tilenest.errors import ShapeError
from tilenest.layouts import (
    Add,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Ranges,
    Sym,
    bounds,
)

Ends = tuple[IndexExpr, IndexExpr]
"""No value is below the first or above the second."""


def ends_of(expr: IndexExpr, spans: Mapping[int, Ends], ranges: Ranges) -> Ends | None:
    """The ends of a formula whose dims have these ends; None where it does not follow them."""
    if not expr.used_dims():
        return expr, expr
    found: Ends | None = None
    match expr:
        case DimRef(position):
            return spans[position]
        case Add(operands):
            found = _ends_of_sum([ends_of(operand, spans, ranges) for operand in operands])
        case Mul(part, Const(factor)) | Mul(Const(factor), part):
            found = _scaled(ends_of(part, spans, ranges), factor)
        case FloorDiv(part, Const(by)) if by > 0:
            within = ends_of(part, spans, ranges)
            found = None if within is None else (within[0] // by, within[1] // by)
        case Mod(_, Const(by)) if by > 0:
            found = Const(0), Const(by - 1)
    numbers = bounds(expr, ranges) if found is None else None
    return found if numbers is None else (Const(numbers[0]), Const(numbers[1]))


def _scaled(ends: Ends | None, factor: int) -> Ends | None:
    if ends is None:
        return None
    low, high = ends if factor >= 0 else ends[::-1]
    return low * factor, high * factor


def _ends_of_sum(parts: list[Ends | None]) -> Ends | None:
    low: IndexExpr = Const(0)
    high: IndexExpr = Const(0)
    for part in parts:
        if part is None:
            return None
        low, high = low + part[0], high + part[1]
    return low, high


def stays_inside(op: Remap) -> tuple[bool, ...]:
    """For each axis of the view below whether all elements provably lie within it."""
    try:
        return _stays_inside(op)
    except ShapeError:
        # A number on the way leaves 64 bits.
        return (False,) * len(op.map.results)


def _stays_inside(op: Remap) -> tuple[bool, ...]:
    leaves = Leaves()
    sizes = [leaves.extent(op.result, axis) for axis in range(op.map.n_dims)]
    extents = [leaves.extent(op.view, axis) for axis in range(len(op.map.results))]
    symbols = [leaves.formula(value) for value in op.symbols]
    known = leaves.close()
    ranges: dict[DimRef | Sym, Interval] = dict(known.ranges)
    for axis, size in enumerate(sizes):
        found = bounds(size, known.ranges)
        if found is not None:
            ranges[DimRef(axis)] = (0, max(0, found[1] - 1))
    spans: dict[int, Ends] = {axis: (Const(0), size - 1) for axis, size in enumerate(sizes)}
    dims = [DimRef(axis) for axis in range(op.map.n_dims)]
    answers: list[bool] = []
    for result, extent in zip(op.map.results, extents, strict=True):
        ends = ends_of(result.substitute(dims, symbols), spans, ranges)
        answers.append(
            ends is not None
            and known.is_never_negative(ends[0], ranges)
            and known.is_never_negative(extent - 1 - ends[1], ranges)
        )
    return tuple(answers)
