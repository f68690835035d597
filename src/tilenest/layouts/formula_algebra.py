"""How formulas join: composed, side by side, and one after another where the first fails.

In: formulas of two maps. Out: formulas of their composition, product or choice, with expressions
simplified over the domain's box and constraints dropped that the box implies. None means that no
formula of reasonable size says it: a constant left 64 bits, or the expressions grew too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilenest.errors import ShapeError
from tilenest.layouts.formula import Formula
from tilenest.layouts.index_expr import (
    Add,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Sym,
)
from tilenest.layouts.index_range import Interval, bounds, simplify
from tilenest.layouts.spaces import MOST_EXTENT, Constraint, IndexSet, Space
from tilenest.records import record, replace

Formulas = tuple[Formula, ...]
_MOST_NODES = 500
_MOST_FORMULAS = 64


@record
class Scope:
    """A space and all symbols in play over it: what expressions are simplified in."""

    space: Space
    symbols: tuple[str, ...]

    @property
    def ranges(self) -> dict[DimRef | Sym, Interval]:
        """An empty axis counts as one point: whatever is said of it holds."""
        ranges: dict[DimRef | Sym, Interval] = {
            DimRef(i): (0, max((MOST_EXTENT if isinstance(n, str) else n) - 1, 0))
            for i, n in enumerate(self.space.extents)
        }
        for name in self.space.symbols:
            ranges[Sym(self.symbols.index(name))] = (0, MOST_EXTENT)
        return ranges

    def last(self, value: int | str) -> IndexExpr:
        """The last coordinate of an axis with this extent, as an expression."""
        return Const(value - 1) if isinstance(value, int) else self.symbol(value) - 1

    def symbol(self, name: str) -> IndexExpr:
        return Sym(self.symbols.index(name))

    def respelled(
        self, expr: IndexExpr, symbols: Sequence[str], dims: Sequence[IndexExpr] | None = None
    ) -> IndexExpr:
        """An expression over `symbols` as one over this scope's."""
        kept = [DimRef(i) for i in range(self.space.rank)] if dims is None else dims
        return expr.substitute(kept, [self.symbol(name) for name in symbols])

    def respelled_constraints(
        self, index_set: IndexSet, dims: Sequence[IndexExpr] | None = None
    ) -> list[Constraint]:
        """The constraints of a set as ones over this scope, its coordinates being `dims`."""
        return [
            Constraint(self.respelled(c.expression, index_set.symbols, dims), c.is_equality)
            for c in index_set.constraints
        ]

    def inside(self, results: Sequence[IndexExpr], box: Space) -> list[Constraint]:
        """That the results lie in a box."""
        return [
            Constraint(bound)
            for result, extent in zip(results, box.extents, strict=True)
            for bound in (result, self.last(extent) - result)
        ]

    def set_of(self, constraints: Iterable[Constraint]) -> IndexSet:
        """The points at which constraints over this scope hold, without those the box implies."""
        if self.space.size == 0:
            return IndexSet(self.space)
        ranges = self.ranges
        dims = [DimRef(i) for i in range(self.space.rank)]
        implied = {constraint.expression for constraint in self.inside(dims, self.space)}
        kept: dict[Constraint, None] = {}
        for constraint in constraints:
            expr = simplify(constraint.expression, ranges)
            interval = bounds(expr, ranges)
            if constraint.is_equality:
                is_implied = interval == (0, 0)
            else:
                is_implied = expr in implied or (interval is not None and interval[0] >= 0)
            if not is_implied:
                kept[Constraint(expr, constraint.is_equality)] = None
        return self._spelled_for_set(tuple(kept))

    def _spelled_for_set(self, constraints: tuple[Constraint, ...]) -> IndexSet:
        used = {self.symbols[i] for c in constraints for i in c.expression.used_syms()}
        extra = tuple(sorted(used.difference(self.space.symbols)))
        if not constraints:
            return IndexSet(self.space)
        target = IndexSet(self.space, (), extra).symbols
        # Unused symbols need a place as well; it is never read.
        places = [Sym(target.index(name)) if name in target else Sym(0) for name in self.symbols]
        dims = [DimRef(i) for i in range(self.space.rank)]
        spelled = tuple(
            Constraint(c.expression.substitute(dims, places), c.is_equality) for c in constraints
        )
        return IndexSet(self.space, spelled, extra)


def merged_symbols(*groups: Iterable[str]) -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted({name for group in groups for name in group}))


def plain_formula(
    domain: Space, codomain: Space, results: Sequence[IndexExpr], extra: Iterable[str] = ()
) -> Formula:
    """The formula of a map defined on its whole space; `Sym(i)` is the i-th of all its names."""
    symbols = merged_symbols(domain.symbols, codomain.symbols, extra)
    ranges = Scope(domain, symbols).ranges
    simpler = tuple(simplify(result, ranges) for result in results)
    return Formula(IndexSet(domain), codomain, simpler, symbols)


def composed(first: Formulas | None, second: Formulas | None) -> Formulas | None:
    """The formulas of `second` after `first`."""
    if first is None or second is None or len(first) * len(second) > _MOST_FORMULAS:
        return None
    pairs = [_composed_pair(one, other) for one in first for other in second]
    kept = tuple(pair for pair in pairs if pair is not None)
    return kept if len(kept) == len(pairs) else None


def side_by_side(first: Formulas | None, second: Formulas | None) -> Formulas | None:
    """The formulas of the product of two maps."""
    if first is None or second is None or len(first) * len(second) > _MOST_FORMULAS:
        return None
    return tuple(_beside(one, other) for one in first for other in second)


def chosen(domain: Space, choices: Sequence[tuple[IndexSet, Formulas | None]]) -> Formulas | None:
    """The formulas of a choice: each set's map where no earlier set holds."""
    names = merged_symbols(*(s.symbols for s, _ in choices))
    scope = Scope(domain, names)
    remaining: list[tuple[Constraint, ...]] = [()]
    found: list[Formula] = []
    try:
        for index_set, formulas in choices:
            if formulas is None:
                return None
            own = tuple(scope.respelled_constraints(index_set))
            found += [
                _narrowed(formula, names, rest + own) for rest in remaining for formula in formulas
            ]
            remaining = [rest + part for rest in remaining for part in _complement(own)]
            if max(len(found), len(remaining)) > _MOST_FORMULAS:
                return None
    except ShapeError:
        return None
    return tuple(found)


def outside(index_set: IndexSet) -> tuple[IndexSet, ...]:
    """Disjoint sets that hold the points of the space which a set does not."""
    scope = Scope(index_set.space, index_set.symbols)
    return tuple(scope.set_of(part) for part in _complement(index_set.constraints))


def both(first: IndexSet, second: IndexSet) -> IndexSet:
    """The points that two sets of one space share."""
    scope = Scope(first.space, merged_symbols(first.symbols, second.symbols))
    return scope.set_of(scope.respelled_constraints(first) + scope.respelled_constraints(second))


def operands_of(expr: IndexExpr) -> tuple[IndexExpr, ...]:
    """The expressions a node is made of."""
    match expr:
        case Add(operands):
            return operands
        case Mul(left, right) | FloorDiv(left, right) | Mod(left, right):
            return left, right
        case BitExpr():
            return expr.left, expr.right
    return ()


def _composed_pair(first: Formula, second: Formula) -> Formula | None:
    space, middle = first.domain.space, second.domain.space
    outer = merged_symbols(second.domain.symbols, second.symbols)
    scope = Scope(space, merged_symbols(first.domain.symbols, first.symbols, outer))
    try:
        inner = [scope.respelled(result, first.symbols) for result in first.results]
        constraints = scope.respelled_constraints(first.domain)
        constraints += scope.inside(inner, middle)
        constraints += scope.respelled_constraints(second.domain, inner)
        ranges = scope.ranges
        results = tuple(
            simplify(scope.respelled(result, second.symbols, inner), ranges)
            for result in second.results
        )
        domain = scope.set_of(constraints)
    except ShapeError:
        return None
    sizes = (*results, *(constraint.expression for constraint in domain.constraints))
    if sum(_nodes(expr) for expr in sizes) > _MOST_NODES:
        return None
    extents = merged_symbols(first.extents, middle.symbols, second.extents)
    return Formula(domain, second.codomain, results, scope.symbols, extents)


def _beside(first: Formula, second: Formula) -> Formula:
    space = first.domain.space.product(second.domain.space)
    codomain = first.codomain.product(second.codomain)
    names = [first.domain.symbols, first.symbols, second.domain.symbols, second.symbols]
    scope = Scope(space, merged_symbols(*names))
    rank = first.domain.space.rank
    places = ([DimRef(i) for i in range(rank)], [DimRef(i) for i in range(rank, space.rank)])
    results: list[IndexExpr] = []
    constraints: list[Constraint] = []
    for formula, dims in zip((first, second), places, strict=True):
        results += [scope.respelled(result, formula.symbols, dims) for result in formula.results]
        constraints += scope.respelled_constraints(formula.domain, dims)
    extents = merged_symbols(first.extents, second.extents)
    return Formula(scope.set_of(constraints), codomain, tuple(results), scope.symbols, extents)


def _narrowed(
    formula: Formula, names: tuple[str, ...], constraints: tuple[Constraint, ...]
) -> Formula:
    own = formula.domain
    scope = Scope(own.space, merged_symbols(own.symbols, names))
    kept = scope.respelled_constraints(own)
    kept += [Constraint(scope.respelled(c.expression, names), c.is_equality) for c in constraints]
    return replace(formula, domain=scope.set_of(kept))


def _complement(constraints: Sequence[Constraint]) -> list[tuple[Constraint, ...]]:
    """Disjoint conjunctions that together hold where not all the constraints do."""
    parts: list[tuple[Constraint, ...]] = []
    for place, constraint in enumerate(constraints):
        below = Constraint(-constraint.expression - 1)
        negations = [below]
        if constraint.is_equality:
            negations.append(Constraint(constraint.expression - 1))
        parts += [(*constraints[:place], negation) for negation in negations]
    return parts


def _nodes(expr: IndexExpr) -> int:
    return 1 + sum(map(_nodes, operands_of(expr)))
