"""Integer maps: dimensions and how they join, index expressions, affine maps.

In: extents and positions. Out: frozen formulas that say which element an iteration touches, with
what is known of their range. Pure integers: nothing here knows the IR, a dtype or an array.
"""

from tilenest.layouts.affine_map import AffineMap
from tilenest.layouts.dims import (
    Dim,
    dims_compatible_by_position,
    join_dims,
    positional_dim,
    shape_dims,
)
from tilenest.layouts.index_expr import (
    Add,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    LinearForm,
    Mod,
    Mul,
    Sym,
    as_index_expr,
    split_terms,
)
from tilenest.layouts.index_range import Interval, Ranges, bounds, simplify
from tilenest.layouts.index_text import parse_affine_map, parse_index_expr

__all__ = [
    "Add",
    "AffineMap",
    "Const",
    "Dim",
    "DimRef",
    "FloorDiv",
    "IndexExpr",
    "Interval",
    "LinearForm",
    "Mod",
    "Mul",
    "Ranges",
    "Sym",
    "as_index_expr",
    "bounds",
    "dims_compatible_by_position",
    "join_dims",
    "parse_affine_map",
    "parse_index_expr",
    "positional_dim",
    "shape_dims",
    "simplify",
    "split_terms",
]
