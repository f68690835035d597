"""How far an access moves in memory when one loop dim grows by one.

In: the type of a view or buf, an access map and a loop dim. Out: the distance in elements, or None
where it is not one number known now.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.ir import BufType, ScalarType, Type, ViewType
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr, Interval, Sym, simplify


def offset_step(memory: Type, map_: AffineMap, dim: int, extents: Sequence[int]) -> int | None:
    """Elements between neighbours along `dim`; 0 for a scalar."""
    if isinstance(memory, ScalarType):
        return 0
    offset: IndexExpr = Const(0)
    for result, stride in zip(map_.results, _strides(memory), strict=True):
        if stride is not None:
            offset += result * stride
        elif result.dim_mask >> dim & 1:
            return None
    ranges: dict[DimRef | Sym, Interval] = {
        DimRef(d): (0, max(0, extent - 1)) for d, extent in enumerate(extents)
    }
    return simplify(offset, ranges).coefficient(dim)


def _strides(memory: Type) -> tuple[int | None, ...]:
    if isinstance(memory, ViewType):
        return memory.strides
    assert isinstance(memory, BufType), memory
    strides: list[int] = []
    step = 1
    for extent in reversed(memory.shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
