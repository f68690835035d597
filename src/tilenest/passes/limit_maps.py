"""Keep the constants of maps so near that no coordinate wraps.

In: Candidate form whose origins and symbols are limited. Out: a result of a map that lies outside
of every array, wherever its coordinates are, is moved to where it does not leave 64 bits: what lay
outside stays outside, in the same order. Maps whose coordinates leave 64 bits on the way from
inside to outside are refused, and so are views with elements farther away than in any array.

    view.remap(%A, map = (d0) -> (d0 + 2^63 - 1))     becomes   (d0) -> (d0 + 2^58)
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.analysis import range_of
from tilenest.decisions import Decision
from tilenest.dialects import Reindex, Remap
from tilenest.errors import TargetError
from tilenest.ir import LARGEST_EXTENT, Function, Rewriter
from tilenest.layouts import (
    Add,
    AffineMap,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Ranges,
    Sym,
    bounds,
)
from tilenest.passes.far_symbols import FARTHEST, extents_of, farthest_in, farthest_symbol

_MOST = (1 << 63) - FARTHEST
_WIDEST_TILE = 1 << 16
"""How far elements lie from an origin, where the extents of a view do not say it."""


def limit_maps(function: Function, rewriter: Rewriter) -> Iterable[Decision]:
    """Limit the maps of one function in place."""
    for op in function.walk():
        if isinstance(op, Reindex | Remap):
            _expect_extents(op)
            names = ["map", "valid"] if isinstance(op, Remap) and op.conditions else ["map"]
            for name in names:
                found: AffineMap = op.attributes[name]
                results = tuple(_near(op, result) for result in found.results)
                if results != found.results:
                    near = AffineMap(found.n_dims, found.n_syms, results)
                    rewriter.set_attribute(op, name, near)
    return ()


def _expect_extents(op: Reindex | Remap) -> None:
    """Origins and symbols are limited to where no view has an element."""
    for axis, size in enumerate(extents_of(op)):
        if size is not None and size > LARGEST_EXTENT:
            raise TargetError(
                f"axis {axis} of a view has extent {size}",
                remedy=f"use at most {LARGEST_EXTENT}, as arrays do",
                location=op.location,
            )


def _near(op: Reindex | Remap, expr: IndexExpr) -> IndexExpr:
    known = extents_of(op)
    ranges: dict[DimRef | Sym, tuple[int, int]] = {
        DimRef(d): (0, max(size - 1, 0)) for d, size in enumerate(known) if size is not None
    }
    if expr.linear() is not None:
        most = farthest_symbol(op)
        behind = _WIDEST_TILE + (farthest_in(op.result) if isinstance(op, Remap) else 0)
        ranges.update((DimRef(d), (0, behind)) for d, size in enumerate(known) if size is None)
        ranges.update(
            (Sym(place), range_of(value) or (-most, most)) for place, value in enumerate(op.symbols)
        )
    found = bounds(expr, ranges)
    if found is not None and found[0] > FARTHEST:
        expr = expr - (found[0] - FARTHEST)
    elif found is not None and found[1] < -FARTHEST:
        expr = expr - (found[1] + FARTHEST)
    if _reach(expr, ranges) > _MOST:
        raise TargetError(
            f"the coordinate {expr} leaves 64 bits",
            remedy="use smaller steps: no array is that long",
            location=op.location,
        )
    return expr


def _reach(expr: IndexExpr, ranges: Ranges) -> int:
    """A bound of every intermediate value's size; what is not known counts as small."""
    match expr:
        case Const(value):
            return abs(value)
        case DimRef() | Sym():
            return max(map(abs, ranges.get(expr, (0, 1))))
        case Add(operands):
            return sum(_reach(operand, ranges) for operand in operands)
        case Mul(left, right):
            return max(1, _reach(left, ranges)) * max(1, _reach(right, ranges))
        case FloorDiv(left, right) | Mod(left, right):
            return max(_reach(left, ranges), _reach(right, ranges))
        case BitExpr():
            return max(_reach(expr.left, ranges), _reach(expr.right, ranges))
    raise AssertionError(expr)
