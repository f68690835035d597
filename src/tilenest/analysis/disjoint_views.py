"""Whether two views of one storage have no element in common.

In: two views whose storage has the same elements. Out: true when the index maps down to it never
meet. A run-time number that is the same throughout a call is one unknown in both; any other may
differ between the two, since a view may be that of an earlier iteration.
"""

from __future__ import annotations

from itertools import count
from math import gcd

from tilenest.analysis.index_values import formula_of, range_of
from tilenest.dialects import chain_of, view_type
from tilenest.ir import Function, Value
from tilenest.layouts import DimRef, IndexExpr, Interval, Ranges, Sym, bounds

_LARGEST_EXTENT = 1 << 48


def are_apart(one: Value, other: Value) -> bool:
    """Whether two views of one storage are known to be disjoint."""
    if not chain_of(one) and not chain_of(other):
        return False
    places = _Places()
    pairs = zip(places.of(one), places.of(other), strict=True)
    return any(_is_never_zero(a - b, places.ranges) for a, b in pairs)


class _Places:
    """Coordinates of storage over unknowns, and the ranges of those."""

    def __init__(self) -> None:
        self.ranges: dict[DimRef | Sym, Interval] = {}
        self._fixed: dict[Value, Sym] = {}
        self._dims = count()
        self._symbols = count()

    def of(self, view: Value) -> list[IndexExpr]:
        """Where a view's elements are, over dims of their own."""
        dims: list[IndexExpr] = [self._dim(extent) for extent in _shape(view)]
        unfixed: dict[Value, Sym] = {}
        for op in chain_of(view):
            symbols = [formula_of(v, lambda leaf: self._leaf(leaf, unfixed)) for v in op.symbols]
            dims = [result.substitute(dims, symbols) for result in op.map.results]
        return dims

    def _dim(self, extent: int | None) -> DimRef:
        dim = DimRef(next(self._dims))
        self.ranges[dim] = (0, max(0, (_LARGEST_EXTENT if extent is None else extent) - 1))
        return dim

    def _leaf(self, leaf: Value, unfixed: dict[Value, Sym]) -> IndexExpr:
        known = self._fixed if _is_fixed(leaf) else unfixed
        if leaf not in known:
            known[leaf] = Sym(next(self._symbols))
            found = range_of(leaf)
            if found is not None:
                self.ranges[known[leaf]] = found
        return known[leaf]


def _shape(view: Value) -> tuple[int | None, ...]:
    if chain_of(view):
        return view_type(view).shape
    shape: tuple[int | None, ...] = getattr(view.type, "shape", ())
    return shape


def _is_fixed(value: Value) -> bool:
    """Whether a value is the same throughout a call: it is made in the function's first block."""
    block = value.defining_block
    region = None if block is None else block.parent
    if region is None or not isinstance(region.parent, Function):
        return False
    return block is region.blocks.first


def _is_never_zero(difference: IndexExpr, ranges: Ranges) -> bool:
    ends = bounds(difference, ranges)
    if ends is not None and not ends[0] <= 0 <= ends[1]:
        return True
    terms = difference.linear()
    if terms is None:
        return False
    # A sum of multiples of one step passes 0 by where its constant is no multiple.
    step = gcd(*(by for _, by in (*terms.dims, *terms.syms)))
    return step > 1 and terms.const % step != 0
