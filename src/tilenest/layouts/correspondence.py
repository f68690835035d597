"""Correspondences: relations between two spaces, as a span of maps from one space of occurrences.

In: a map `left: F -> A` and a map `right: F -> B` from the same space. Out: the relation that holds
between `left(o)` and `right(o)` for every occurrence `o` where both are defined and in their
spaces. Replication has more occurrences than places on one side; a plain map is a span whose left
leg is the identity. Converse swaps the legs; composition pulls two spans back over what they share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import gcd, prod

from tilenest.errors import ShapeError
from tilenest.layouts.enumeration import points_within
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Scope, merged_symbols
from tilenest.layouts.index_expr import DimRef, IndexExpr
from tilenest.layouts.kinds import check_kind
from tilenest.layouts.layout_leaves import Expressions, FiniteTable
from tilenest.layouts.layout_map import Compose, Identity, LayoutMap, Point, Project, Values
from tilenest.layouts.spaces import Axis, Constraint, IndexSet, Space
from tilenest.records import record

DEFAULT_BUDGET = 1 << 16


@record
class Replication:
    """How the points of the left space are placed in the right one.

    `covered` of `total` points have a place; a point has between `least` and `most` different ones.
    """

    covered: int
    total: int
    least: int
    most: int


@record
class LayoutCorr:
    """The relation between `left(o)` and `right(o)` over all occurrences o."""

    left: LayoutMap
    right: LayoutMap

    def __post_init__(self) -> None:
        check_kind(self.left, LayoutMap, "the left leg")
        check_kind(self.right, LayoutMap, "the right leg")
        if self.left.domain != self.right.domain:
            raise ShapeError(
                f"the legs of a correspondence start from {self.left.domain} and "
                f"{self.right.domain}",
                remedy="give both legs the same space of occurrences",
            )

    @staticmethod
    def from_map(layout: LayoutMap) -> LayoutCorr:
        """The relation between a point and where a map sends it."""
        return LayoutCorr(Identity(layout.domain), layout)

    @staticmethod
    def of_widths(space: Space, old_bits: int, new_bits: int) -> LayoutCorr:
        """Elements of `old_bits` beside those of `new_bits` that the same memory holds.

        The last axis is the contiguous one and keeps its number of bits. One occurrence is the
        widest run of bits that lies in one element on both sides.
        """
        last = space.axes[-1] if space.rank else None
        if last is None or isinstance(last.extent, str) or min(old_bits, new_bits) < 1:
            raise ShapeError(
                f"elements of {old_bits} bits in {space} cannot be read as {new_bits} bits",
                remedy="use positive widths, and an extent of the last axis known when compiling",
            )
        n_bits = last.extent * old_bits
        if n_bits % new_bits:
            raise ShapeError(
                f"{last.extent} elements of {old_bits} bits are no whole number of {new_bits} bits",
                remedy="pad the last axis to a common multiple of both widths",
            )
        shared = gcd(old_bits, new_bits)
        outer = space.axes[:-1]
        occurrences = Space((*outer, Axis(last.name, n_bits // shared)))
        elements = Space((*outer, Axis(last.name, n_bits // new_bits)))
        place = DimRef(len(outer))
        rest = tuple(DimRef(i) for i in range(len(outer)))
        return LayoutCorr(
            Expressions(occurrences, space, (*rest, place // (old_bits // shared))),
            Expressions(occurrences, elements, (*rest, place // (new_bits // shared))),
        )

    @property
    def occurrences(self) -> Space:
        return self.left.domain

    @property
    def domain(self) -> Space:
        return self.left.codomain

    @property
    def codomain(self) -> Space:
        return self.right.codomain

    def converse(self) -> LayoutCorr:
        """The same relation read from right to left."""
        return LayoutCorr(self.right, self.left)

    def then(self, other: LayoutCorr, budget: int = DEFAULT_BUDGET) -> LayoutCorr:
        """Points related through a point of the space between, one occurrence a pair."""
        check_kind(other, LayoutCorr, "the other correspondence")
        if self.codomain != other.domain:
            raise ShapeError(
                f"a correspondence into {self.codomain} cannot be followed by one from "
                f"{other.domain}",
                remedy="put a recast between them, or give both the same axes and extents",
            )
        shared = _pullback_set(self.right, other.left)
        if shared is None:
            return _enumerated_pullback(self, other, budget)
        rank = self.occurrences.rank
        sides = (range(rank), range(rank, shared.space.rank))
        left, right = (Project(shared.space, tuple(side)) for side in sides)
        return LayoutCorr(
            Compose(left, self.left).restrict(shared), Compose(right, other.right).restrict(shared)
        )

    def pairs(self, values: Values | None = None) -> Iterator[tuple[Point, Point]]:
        """The related points, once an occurrence."""
        given = {} if values is None else values
        for occurrence in self.occurrences.points(given):
            left, right = self.left.apply(occurrence, given), self.right.apply(occurrence, given)
            if left is None or right is None:
                continue
            if self.domain.holds(left, given) and self.codomain.holds(right, given):
                yield left, right

    def placed(
        self, values: Values | None = None, budget: int = DEFAULT_BUDGET
    ) -> dict[Point, tuple[Point, ...]]:
        """The points that have a place, each with its different places in order."""
        _check_budget(self, values, budget)
        found: dict[Point, set[Point]] = defaultdict(set)
        for left, right in self.pairs(values):
            found[left].add(right)
        return {point: tuple(sorted(places)) for point, places in found.items()}

    def replication(
        self, values: Values | None = None, budget: int = DEFAULT_BUDGET
    ) -> Replication:
        """How many different places the points have; two occurrences at one place count once."""
        counts = [len(places) for places in self.placed(values, budget).values()]
        total = _size(self.domain, values)
        least = 0 if len(counts) < total else min(counts, default=0)
        return Replication(len(counts), total, least, max(counts, default=0))

    def __str__(self) -> str:
        return f"span({self.left}, {self.right})"


def _check_budget(corr: LayoutCorr, values: Values | None, budget: int) -> None:
    size = _size(corr.occurrences, values)
    most = points_within(budget, corr.left.n_nodes + corr.right.n_nodes)
    if size > most:
        raise ShapeError(
            f"{corr.occurrences} has {size} occurrences, over the budget of {most}",
            remedy="ask the layout questions, which can decide by formula, or raise the budget",
        )


def _size(space: Space, values: Values | None) -> int:
    if space.size is not None:
        return space.size
    return prod(space.shape({} if values is None else values))


def _pullback_set(right: LayoutMap, left: LayoutMap) -> IndexSet | None:
    """The pairs of occurrences that meet, as one set; None when the formulas are not single."""
    formulas = right.formulas(), left.formulas()
    if formulas[0] is None or formulas[1] is None:
        return None
    if len(formulas[0]) != 1 or len(formulas[1]) != 1:
        return None
    try:
        return _meeting_set(formulas[0][0], formulas[1][0])
    except ShapeError:
        # A constant of the set leaves 64 bits.
        return None


def _meeting_set(first: Formula, second: Formula) -> IndexSet:
    rank = first.domain.space.rank
    space = first.domain.space.product(second.domain.space)
    names = [first.domain.symbols, first.symbols, second.domain.symbols, second.symbols]
    scope = Scope(space, merged_symbols(*names))
    places = ([DimRef(i) for i in range(rank)], [DimRef(i) for i in range(rank, space.rank)])
    constraints: list[Constraint] = []
    results: list[list[IndexExpr]] = []
    for formula, dims in zip((first, second), places, strict=True):
        constraints += scope.respelled_constraints(formula.domain, dims)
        results.append(
            [scope.respelled(result, formula.symbols, dims) for result in formula.results]
        )
    constraints += scope.inside(results[0], first.codomain)
    constraints += [
        Constraint(one - other, is_equality=True)
        for one, other in zip(results[0], results[1], strict=True)
    ]
    return scope.set_of(constraints)


def _enumerated_pullback(first: LayoutCorr, second: LayoutCorr, budget: int) -> LayoutCorr:
    """The pairs of occurrences that meet, counted; for maps without a single formula."""
    legs = (first.left, first.right, second.left, second.right)
    names = merged_symbols(*(leg.symbols for leg in legs))
    if names:
        raise ShapeError(
            f"correspondences over the run-time numbers {', '.join(names)} cannot be joined point "
            "by point",
            remedy="use legs that are one formula each, or known extents",
        )
    for corr in (first, second):
        _check_budget(corr, None, budget)
    ends: dict[Point, list[Point]] = defaultdict(list)
    for middle, end in second.pairs():
        ends[middle].append(end)
    found = [(start, end) for start, middle in first.pairs() for end in ends[middle]]
    occurrences = Space.box(len(found), prefix="occurrence")
    starts, stops = (tuple(pair[side] for pair in found) for side in (0, 1))
    return LayoutCorr(
        FiniteTable(occurrences, first.domain, starts),
        FiniteTable(occurrences, second.codomain, stops),
    )
