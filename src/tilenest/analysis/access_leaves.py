"""The numbers that index arithmetic starts from, and what is known of them.

In: index values. Out: formulas over symbols, one a leaf (an index of a nest, the extent of a view,
anything that is no index arithmetic), and what holds of the leaves: an interval each, and
constraints between them, such as that an index of a nest lies between the nest's bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilenest.analysis.index_values import LARGEST_EXTENT, formula_of, range_of
from tilenest.analysis.run_time_values import Facts, constraints_of
from tilenest.analysis.structure import constant_of, induction_of
from tilenest.dialects import Apply, Extent, Remap
from tilenest.errors import ShapeError
from tilenest.ir import BlockArgument, OpResult, Value
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    Interval,
    Ranges,
    Sym,
    bounds,
    simplify,
    split_terms,
)
from tilenest.records import record

_MOST_NESTS = 4
"""Nests whose ends depend on each other's indices."""
_NO_FACTS = Facts({}, {}, {})
LeafKey = Value | tuple[Value, int]
"""A value, or a view and an axis whose extent is meant."""


@record
class KnownLeaves:
    """The leaves by number, and what holds of them; `is_exact` where nothing else does."""

    keys: tuple[LeafKey, ...]
    names: tuple[str, ...]
    ranges: Ranges
    constraints: tuple[Constraint, ...]
    spans: Mapping[Sym, tuple[IndexExpr, IndexExpr]]
    """the lowest and the highest of an index of a nest, over other leaves"""
    is_exact: bool

    def is_never_negative(self, expr: IndexExpr, ranges: Ranges) -> bool:
        """Whether an expression is at least 0, by intervals and by the ends of nests."""
        for _ in range(_MOST_NESTS):
            found = bounds(simplify(expr, ranges), ranges)
            if found is not None and found[0] >= 0:
                return True
            terms, constant = split_terms(expr)
            if not any(unit in self.spans for unit in terms):
                return False
            expr = Const(constant)
            for unit, step in terms.items():
                ends = self.spans.get(unit) if isinstance(unit, Sym) else None
                least = unit if ends is None else ends[0 if step > 0 else 1]
                expr += least * step
        return False


class Leaves:
    """The leaves of some formulas, collected while these are made."""

    def __init__(self) -> None:
        self._leaves: dict[LeafKey, Sym] = {}
        self._constraints: list[Constraint] = []
        self._spans: dict[Sym, tuple[IndexExpr, IndexExpr]] = {}
        self._is_exact = True

    def formula(self, value: Value) -> IndexExpr:
        """A value over the leaves."""
        return formula_of(value, self.leaf)

    def extent(self, view: Value, axis: int) -> IndexExpr:
        """An extent of a view or buf."""
        shape: tuple[int | None, ...] = getattr(view.type, "shape", ())
        known = shape[axis]
        if known is not None:
            return Const(known)
        owner = view.owner if isinstance(view, OpResult) else None
        size = owner.extent(axis) if isinstance(owner, Remap) else None
        return self._at((view, axis)) if not isinstance(size, Value) else self.formula(size)

    def when(self, condition: Value, is_wanted: bool) -> None:
        """Only what holds where a condition is as wanted matters from here on."""
        found = constraints_of(condition, is_wanted, _EveryLeaf(self), _NO_FACTS)
        self._is_exact = self._is_exact and found is not None
        self._constraints += found or ()

    def hold(self, *constraints: Constraint) -> None:
        """The same, of constraints over the leaves and the dims of the access."""
        self._constraints += constraints

    def close(self) -> KnownLeaves:
        """What is known of all leaves; describing one may need further ones."""
        ranges: dict[DimRef | Sym, Interval] = {}
        done = 0
        while done < len(self._leaves):
            key = list(self._leaves)[done]
            try:
                found = self._describe(key, self._leaves[key])
            except ShapeError:
                # A number on the way leaves 64 bits, so less is known.
                self._is_exact = False
                found = None if isinstance(key, tuple) else range_of(key)
            if found is not None:
                ranges[self._leaves[key]] = found
            done += 1
        names = tuple(f"s{place:04}" for place in range(len(self._leaves)))
        keys, held = tuple(self._leaves), tuple(self._constraints)
        return KnownLeaves(keys, names, ranges, held, self._spans, self._is_exact)

    def leaf(self, value: Value) -> IndexExpr:
        """A value that formulas start from."""
        if isinstance(value, OpResult) and isinstance(value.owner, Extent):
            return self.extent(value.owner.view, value.owner.axis)
        chosen = _decided_extreme(value)
        if chosen is not None:
            return self.formula(chosen)
        return self._at(value)

    def _at(self, key: LeafKey) -> Sym:
        return self._leaves.setdefault(key, Sym(len(self._leaves)))

    def _describe(self, key: LeafKey, leaf: Sym) -> Interval | None:
        if isinstance(key, tuple):
            self._constraints += [Constraint(leaf), Constraint(LARGEST_EXTENT - leaf)]
            return 0, LARGEST_EXTENT
        if induction_of(key) is not None:
            self._between(key, leaf)
        elif isinstance(key, OpResult) and isinstance(key.owner, Apply):
            self._is_exact = False
            self._extreme(key.owner, leaf)
        elif not _is_argument(key):
            self._is_exact = False
        return range_of(key)

    def _between(self, index: Value, leaf: Sym) -> None:
        """An index of a nest counts from its lower to its upper bound."""
        found = induction_of(index)
        assert found is not None
        step = constant_of(found.step)
        if not step:
            self._is_exact = False
            return
        lower, upper = self.formula(found.lower), self.formula(found.upper)
        self._spans[leaf] = (lower, upper - 1) if step > 0 else (upper + 1, lower)
        span, way = (leaf - lower, upper - leaf) if step > 0 else (lower - leaf, leaf - upper)
        self._constraints += [Constraint(span), Constraint(way - 1)]
        if abs(step) != 1:
            self._constraints.append(Constraint(span % abs(int(step)), is_equality=True))

    def _extreme(self, op: Apply, leaf: Sym) -> None:
        if op.function in ("minimum", "maximum"):
            for argument in op.arguments:
                gap = self.formula(argument) - leaf
                self._constraints.append(Constraint(gap if op.function == "minimum" else -gap))


def _decided_extreme(value: Value) -> Value | None:
    """The argument that a minimum or maximum always is, by the ranges of both."""
    apply = value.owner if isinstance(value, OpResult) else None
    if not isinstance(apply, Apply) or apply.function not in ("minimum", "maximum"):
        return None
    one, other = apply.arguments
    ranges = range_of(one), range_of(other)
    if ranges[0] is None or ranges[1] is None:
        return None
    if ranges[0][1] <= ranges[1][0]:
        return one if apply.function == "minimum" else other
    if ranges[1][1] <= ranges[0][0]:
        return other if apply.function == "minimum" else one
    return None


class _EveryLeaf(Mapping[Value, IndexExpr]):
    """Any value, over the leaves."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves

    def __contains__(self, value: object) -> bool:
        return constant_of(value) is None if isinstance(value, Value) else False

    def __getitem__(self, value: Value) -> IndexExpr:
        return self._leaves.leaf(value)

    def __iter__(self) -> Iterator[Value]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _is_argument(value: Value) -> bool:
    """Whether a value is given by the caller, who may give any."""
    return (
        isinstance(value, BlockArgument)
        and value.block.parent_op is None
        and not value.block.incoming
    )
