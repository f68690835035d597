"""CuTe's layout algebra: layouts `shape:stride`, their operators, swizzles, text, and maps.

In: nested tuples of integers, or CuTe's text. Out: frozen layouts, and layout maps of the grammar.
`from tilenest.layouts import cute` loads it; nothing else does.
"""

from tilenest.layouts.cute.algebra import (
    Tiler,
    coalesce,
    complement,
    composition,
    flatten,
    left_inverse,
    right_inverse,
)
from tilenest.layouts.cute.int_tuples import IntTuple, crd2idx, idx2crd, size
from tilenest.layouts.cute.layout import Layout, joined, make_layout
from tilenest.layouts.cute.maps import from_map, to_map
from tilenest.layouts.cute.swizzle import Swizzle, Swizzled
from tilenest.layouts.cute.text import parse
from tilenest.layouts.cute.tiling import (
    blocked_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)

__all__ = [
    "IntTuple",
    "Layout",
    "Swizzle",
    "Swizzled",
    "Tiler",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "crd2idx",
    "flatten",
    "from_map",
    "idx2crd",
    "joined",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_layout",
    "parse",
    "raked_product",
    "right_inverse",
    "size",
    "tiled_divide",
    "tiled_product",
    "to_map",
    "zipped_divide",
    "zipped_product",
]
