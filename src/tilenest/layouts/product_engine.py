"""Proofs about maps that multiply or divide by run-time extents, such as digits of mixed radix.

In: one formula. Out: PROVEN, None, or UNKNOWN where the budget ended the search. A claim is proven
where no integers meet the conditions that break it (`product_sets`). That a place is reached is
shown by a point: results are solved for the coordinates by the rules of digits, `(e//n)*n + e%n` is
e, and j below n is `(i*n + j)%n`. What they give is a guess until it is proven that the map has
that point and sends it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd

from tilenest.layouts.answers import Answer, proven, unknown
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Formulas, Scope, merged_symbols, operands_of
from tilenest.layouts.index_expr import (
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Sym,
    join_terms,
    split_terms,
)
from tilenest.layouts.index_range import Ranges
from tilenest.layouts.product_sets import Budget, are_never_met
from tilenest.layouts.spaces import MOST_EXTENT, Constraint, IndexSet, Space
from tilenest.records import record

ENGINE = "products"
_Exprs = Sequence[IndexExpr]
_Equation = tuple[IndexExpr, IndexExpr]


def is_total(_: Formulas) -> Answer | None:
    """Left to the engines that know how large results get."""
    return None


def is_bounded(formulas: Formulas) -> Answer | None:
    """Whether every value lies in the codomain."""
    f = formulas[0]
    claims = _claims_of(formulas, spaces=[f.domain.space])
    if claims is None:
        return None
    (points,) = claims.points
    wanted = claims.scope.inside(claims.values(f, points), f.codomain)
    return claims.answer(
        claims.hold(claims.inside(f.domain, points), wanted), "all are in the codomain"
    )


def is_injective(formulas: Formulas) -> Answer | None:
    """Whether no two points have one value."""
    f = formulas[0]
    claims = _claims_of(formulas, spaces=[f.domain.space] * 2)
    if claims is None:
        return None
    both = claims.meeting(f, f)
    x, y = claims.points
    firsts = ([*_same(x[:at], y[:at]), Constraint(y[at] - x[at] - 1)] for at in range(len(x)))
    are_apart = all(claims.is_nowhere([*both, *first]) for first in firsts)
    return claims.answer(are_apart, "no two points have one value")


def is_surjective(formulas: Formulas) -> Answer | None:
    """Whether every point of the codomain is a value; constraints on the domain, such as what a
    symbol stands for, would have to hold everywhere."""
    f = formulas[0]
    return None if f.domain.constraints else covers(formulas, IndexSet(f.codomain))


def covers(formulas: Formulas, wanted: IndexSet) -> Answer | None:
    """Whether every point of a set of places is a value."""
    f = formulas[0]
    claims = _claims_of(formulas, sets=[wanted], spaces=[f.domain.space, f.codomain])
    if claims is None:
        return None
    points, places = claims.points
    point = _Solver(claims, len(points)).point(zip(claims.values(f, points), places, strict=True))
    needed = [*_same(claims.values(f, point), places), *claims.inside(f.domain, point)]
    return claims.answer(
        claims.hold(claims.inside(wanted, places), needed), "every place is reached"
    )


def equal(f: Formulas, g: Formulas) -> Answer | None:
    """Whether two maps on one domain have the same results."""
    claims = _claims_of(f, g, spaces=[f[0].domain.space])
    if claims is None or f[0].domain != g[0].domain:
        return None
    (points,) = claims.points
    wanted = _same(claims.values(f[0], points), claims.values(g[0], points))
    return claims.answer(claims.hold(claims.inside(f[0].domain, points), wanted), "the maps agree")


def are_disjoint(f: Formulas, g: Formulas) -> Answer | None:
    """Whether no value of one map is a value of the other."""
    claims = _claims_of(f, g, spaces=[f[0].domain.space, g[0].domain.space])
    if claims is None:
        return None
    return claims.answer(claims.is_nowhere(claims.meeting(f[0], g[0])), "no two points meet")


@record
class _Claims:
    """Claims about points of spaces; `extents` are the names that are never negative."""

    scope: Scope
    spaces: tuple[Space, ...]
    extents: frozenset[str]
    budget: Budget
    """of the question that all claims are for"""

    def answer(self, is_so: bool, reason: str) -> Answer | None:
        """The answer to the question."""
        if is_so:
            return proven(ENGINE, reason)
        limit = self.budget.exceeded
        return unknown(ENGINE, f"given up: {limit}") if limit else None

    @property
    def axes(self) -> list[int | str]:
        """What the coordinates of all points stay below."""
        return [extent for space in self.spaces for extent in space.extents]

    @property
    def points(self) -> list[list[IndexExpr]]:
        """A point of each space, of free coordinates."""
        found: list[list[IndexExpr]] = []
        start = 0
        for space in self.spaces:
            found.append([DimRef(start + place) for place in range(space.rank)])
            start += space.rank
        return found

    def values(self, f: Formula, point: _Exprs) -> list[IndexExpr]:
        """Where a map sends a point."""
        return [self.scope.respelled(result, f.symbols, point) for result in f.results]

    def inside(self, points: IndexSet, point: _Exprs) -> list[Constraint]:
        """That a point belongs to a set."""
        box = self.scope.inside(point, points.space)
        return box + self.scope.respelled_constraints(points, point)

    def meeting(self, f: Formula, g: Formula) -> list[Constraint]:
        """That two maps send the points of two spaces to one place."""
        x, y = self.points
        both = [*self.inside(f.domain, x), *self.inside(g.domain, y)]
        return [*both, *_same(self.values(f, x), self.values(g, y))]

    def is_nowhere(self, constraints: Iterable[Constraint]) -> bool:
        """Whether surely no numbers meet all of the constraints."""
        symbols = [Sym(at) for at, name in enumerate(self.scope.symbols) if name in self.extents]
        needed = [*constraints, *map(Constraint, symbols)]
        dims = [DimRef(at) for at in range(len(self.axes))]
        ranges: Ranges = dict.fromkeys(symbols, (0, MOST_EXTENT)) | dict.fromkeys(
            dims, (0, MOST_EXTENT - 1)
        )
        return are_never_met(needed, len(dims), len(self.scope.symbols), ranges, self.budget)

    def hold(self, given: Sequence[Constraint], wanted: Iterable[Constraint]) -> bool:
        """Whether constraints surely hold wherever the given ones do. What is proven helps with the
        others: two quotients that are equal make equal remainders of equal numbers."""
        known = [*given]
        waiting = [claim for claim in wanted if claim not in known]
        while waiting:
            left: list[Constraint] = []
            for claim in waiting:
                (known if self._holds(known, claim) else left).append(claim)
            if len(left) == len(waiting):
                return False
            waiting = left
        return True

    def digits(self, expr: IndexExpr) -> Iterator[tuple[IndexExpr, IndexExpr, IndexExpr]]:
        """(n, a, b) with `expr == n*a + b` where n is what some part of b stays below."""
        terms, constant = split_terms(expr)
        ends = dict.fromkeys(end for unit in terms if (end := self._end(unit)) is not None)
        for end in ends:
            above = {unit: _divided(unit, step, end) for unit, step in terms.items()}
            whole = sum((part for part in above.values() if part is not None), start=Const(0))
            rest = {unit: terms[unit] for unit, part in above.items() if part is None}
            if whole != Const(0) and rest:
                yield end, whole, join_terms(rest, constant)

    def _end(self, unit: IndexExpr) -> IndexExpr | None:
        """What a coordinate or a remainder stays below."""
        if isinstance(unit, DimRef):
            extent = self.axes[unit.position]
            return Const(extent) if isinstance(extent, int) else self.scope.symbol(extent)
        return unit.divisor if isinstance(unit, Mod) else None

    def _holds(self, known: Sequence[Constraint], claim: Constraint) -> bool:
        return all(self.is_nowhere([*known, way]) for way in _ways_to_break(claim))


def _claims_of(
    *maps: Formulas, spaces: Sequence[Space], sets: Sequence[IndexSet] = ()
) -> _Claims | None:
    """What is claimed of maps of one formula; None where nothing multiplies, which isl decides."""
    if any(len(formulas) != 1 for formulas in maps):
        return None
    pieces = [piece for (piece,) in maps]
    domains = [*sets, *(piece.domain for piece in pieces)]
    exprs = [expr for piece in pieces for expr in piece.results]
    exprs += [constraint.expression for points in domains for constraint in points.constraints]
    if not any(map(_multiplies, exprs)):
        return None
    boxes = [points.space for points in domains] + [piece.codomain for piece in pieces]
    named = [points.symbols for points in domains] + [piece.symbols for piece in pieces]
    extents = [space.symbols for space in boxes] + [piece.extents for piece in pieces]
    names = merged_symbols(*named, *extents)
    scope = Scope(Space(), names)
    return _Claims(scope, tuple(spaces), frozenset(merged_symbols(*extents)), Budget())


def _multiplies(expr: IndexExpr) -> bool:
    """Whether something multiplies or divides by what is no number."""
    is_by_variable = isinstance(expr, Mul | FloorDiv | Mod) and not isinstance(
        operands_of(expr)[1], Const
    )
    return is_by_variable or any(map(_multiplies, operands_of(expr)))


def _same(left: _Exprs, right: _Exprs) -> list[Constraint]:
    return [Constraint(a - b, is_equality=True) for a, b in zip(left, right, strict=True)]


def _ways_to_break(claim: Constraint) -> list[Constraint]:
    below = Constraint(-claim.expression - 1)
    return [below, Constraint(claim.expression - 1)] if claim.is_equality else [below]


class _Solver:
    """Solves equations for the first coordinates of some claims in terms of the others."""

    def __init__(self, claims: _Claims, rank: int) -> None:
        self.claims = claims
        self.dims: list[IndexExpr] = [DimRef(at) for at in range(len(claims.axes))]
        self.rank = rank
        self.known: dict[IndexExpr, IndexExpr] = {}

    def point(self, equations: Iterable[_Equation]) -> list[IndexExpr]:
        """The coordinates that equations tell; the others are 0."""
        waiting = [*equations]
        while waiting:
            waiting += self._learned(*waiting.pop())
        return [self.known.get(at, Const(0)) for at in self.dims[: self.rank]]

    def _learned(self, expr: IndexExpr, value: IndexExpr) -> list[_Equation]:
        """What follows of an expression that is equal to one without the coordinates."""
        mask = (1 << self.rank) - 1
        own = {unit: n for unit, n in split_terms(expr)[0].items() if unit.dim_mask & mask}
        if not own:
            return []
        first, *_ = own.values()
        whole, common = join_terms(own, 0), gcd(*own.values()) * (1 if first > 0 else -1)
        expr, value = whole // common, (value + whole - expr) // common
        if expr in self.known:
            return []
        self.known[expr] = value
        replaced = self._replaced(expr, value) if isinstance(expr, DimRef) else []
        digits = [
            equation
            for by, above, rest in self.claims.digits(expr)
            for equation in ((above, value // by), (rest, value % by))
        ]
        return [*replaced, *digits, *self._wholes()]

    def _replaced(self, coordinate: DimRef, value: IndexExpr) -> list[_Equation]:
        """What else is known, with a coordinate that was found."""
        dims = [value if at == coordinate else at for at in self.dims]
        symbols = [Sym(at) for at in range(len(self.claims.scope.symbols))]
        found = [
            expr
            for expr in self.known
            if expr != coordinate and expr.dim_mask >> coordinate.position & 1
        ]
        return [(expr.substitute(dims, symbols), self.known.pop(expr)) for expr in found]

    def _wholes(self) -> Iterator[_Equation]:
        """A quotient and a remainder by one divisor tell what was divided."""
        for expr, value in self.known.items():
            if isinstance(expr, Mod):
                whole = self.known.get(expr.dividend // expr.divisor)
                if whole is not None:
                    yield expr.dividend, whole * expr.divisor + value


def _divided(unit: IndexExpr, step: int, by: IndexExpr) -> IndexExpr | None:
    """A multiple of a divisor, divided; None where it is not seen to be one."""
    if isinstance(by, Const):
        return unit * (step // by.value) if by.value and step % by.value == 0 else None
    if unit == by:
        return Const(step)
    if not isinstance(unit, Mul):
        return None
    left, right = _divided(unit.left, step, by), _divided(unit.right, step, by)
    if right is not None:
        return unit.left * right
    return None if left is None else left * unit.right
