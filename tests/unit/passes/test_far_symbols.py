"""How far symbols of maps may be limited, where padding tells which view was left."""

from __future__ import annotations

import pytest

from tilenest.analysis import range_of
from tilenest.dialects import Remap, views
from tilenest.errors import TargetError
from tilenest.ir import INDEX, Builder, Function, Module, Rewriter, ViewType, float32
from tilenest.layouts import AffineMap, DimRef, Sym
from tilenest.passes.far_symbols import limit_symbols

EXTENT = 16
STEPS = 2**20


def moved(fill: float | None, rows: int | None) -> Remap:
    """Sixteen elements, from any on, of a view that shows every so many'th; of the view's extent
    as little is known."""
    module = Module("candidate")
    types = [ViewType(float32, (None,), (1,)), INDEX, INDEX]
    function = module.add(Function("main", types, attributes={"alias_groups": (0,)}))
    array, start, count = function.arguments
    insert = Builder(function.body).insert
    below = views.strided_slice(insert, array, [0], [rows or count], [STEPS]).result
    map_ = AffineMap(1, 1, (DimRef(0) - Sym(0),))
    return views.remap(insert, below, map_, [EXTENT], [start], fill=fill)


@pytest.mark.parametrize(("fill", "rows"), [(None, None), (None, 100), (7.0, 100)])
def test_a_limited_symbol_is_outside(fill: float | None, rows: int | None) -> None:
    remap = moved(fill, rows)
    limit_symbols(remap, Rewriter())
    (symbol,) = remap.symbols
    limits = range_of(symbol)
    assert limits is not None
    # Elements of the array are shown up to 2**48 / STEPS only.
    last = 2**48 // STEPS if rows is None else rows
    assert limits[0] <= -last - EXTENT and limits[1] >= last + EXTENT
    assert max(map(abs, limits)) * STEPS <= 2**61


def test_padding_of_a_view_that_may_be_longer_is_refused() -> None:
    remap = moved(7.0, None)
    with pytest.raises(TargetError, match="may leave 64 bits"):
        limit_symbols(remap, Rewriter())
