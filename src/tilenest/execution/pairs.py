"""Claims about sets of instances, and about pairs of instances, as the emptiness of a set.

In: index sets, formulas over their coordinates, and conditions. Out: answers. "No two instances
agree here and differ there" is the emptiness of a set over the coordinates of both, where those
they share stand once. A witness of a pair is two points of the set that the pairs were made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from tilenest.execution.remap import box_ranges
from tilenest.layouts import (
    Answer,
    Axis,
    Const,
    Constraint,
    DimRef,
    Expressions,
    IndexExpr,
    IndexSet,
    Ranges,
    Space,
    Sym,
    Witness,
    bounds,
    disproven,
    is_bounded,
    proven,
    split_terms,
)
from tilenest.records import record, replace

STRUCTURE = "structure"


def is_empty(points: IndexSet, reason: str) -> Answer:
    """Whether a set has no point, for all values of its names; the reason says what that means."""
    if _has_contradiction(points):
        return proven(STRUCTURE, reason)
    # A map into a space without points is bounded exactly if it has none itself.
    nowhere = Expressions(points.space, Space.box(0), (Const(0),), points.symbols)
    answer = is_bounded(nowhere.restrict(points))
    if answer.is_disproven:
        return replace(answer, reason=f"not so: {reason}")
    return replace(answer, reason=reason if answer.is_proven else f"not decided: {reason}")


def all_proven(answers: Iterable[Answer], reason: str) -> Answer:
    """One answer for claims that have to hold together: the first failure, or a proof."""
    engines: dict[str, None] = {}
    doubt = None
    for answer in answers:
        if answer.is_disproven:
            return answer
        if not answer.is_proven:
            doubt = doubt or answer
        engines[answer.engine] = None
    return doubt or proven("+".join(engines) or STRUCTURE, reason)


def holds_on(points: IndexSet, claim: Constraint, reason: str) -> Answer:
    """Whether every point of a set meets a constraint over its coordinates and its names."""
    if claim in points.constraints:
        return proven(STRUCTURE, reason)
    breaks = [Constraint(-claim.expression - 1)]
    if claim.is_equality:
        breaks.append(Constraint(claim.expression - 1))
    return all_proven((is_empty(with_constraints(points, [c]), reason) for c in breaks), reason)


def with_constraints(points: IndexSet, further: Iterable[Constraint]) -> IndexSet:
    """The points of a set that meet further constraints."""
    return replace(points, constraints=(*points.constraints, *further))


@record
class Pairs:
    """Two points x and y of a set that agree in the `shared` coordinates."""

    points: IndexSet
    shared: frozenset[int]

    @property
    def space(self) -> Space:
        """The shared coordinates, then what x has of its own, then what y has."""
        axes = self.points.space.axes
        common = [axis for place, axis in enumerate(axes) if place in self.shared]
        own = [axis for place, axis in enumerate(axes) if place not in self.shared]
        return Space(
            (
                *common,
                *(Axis(f"x.{axis.name}", axis.extent) for axis in own),
                *(Axis(f"y.{axis.name}", axis.extent) for axis in own),
            )
        )

    def places(self, is_second: bool) -> tuple[int, ...]:
        """Where the coordinates of one of the two points stand."""
        rank, common = self.points.space.rank, len(self.shared)
        own = [place for place in range(rank) if place not in self.shared]
        start = common + is_second * len(own)
        shared = sorted(self.shared)
        return tuple(
            shared.index(place) if place in self.shared else start + own.index(place)
            for place in range(rank)
        )

    def sides(self, expression: IndexExpr) -> tuple[IndexExpr, IndexExpr]:
        """A formula at x, and at y."""
        names = [Sym(place) for place in range(len(self.points.symbols))]
        left, right = (
            expression.substitute([DimRef(at) for at in self.places(side)], names)
            for side in (False, True)
        )
        return left, right

    def same(self, expression: IndexExpr) -> Constraint:
        """A formula has one value at both."""
        left, right = self.sides(expression)
        return Constraint(left - right, is_equality=True)

    def less(self, expression: IndexExpr) -> Constraint:
        """A formula is smaller at x."""
        left, right = self.sides(expression)
        return Constraint(right - left - 1)

    def more(self, expression: IndexExpr) -> Constraint:
        """A formula is larger at x."""
        left, right = self.sides(expression)
        return Constraint(left - right - 1)

    def none(self, conditions: Sequence[Constraint], reason: str) -> Answer:
        """Whether no pair meets the conditions."""
        both = dict.fromkeys(
            Constraint(side, constraint.is_equality)
            for constraint in self.points.constraints
            for side in self.sides(constraint.expression)
        )
        kept = [c for c in conditions if not (c.is_equality and c.expression == Const(0))]
        answer = is_empty(IndexSet(self.space, (*both, *kept), self.points.symbols), reason)
        if answer.witness is None:
            return answer
        (point,) = answer.witness.points
        two = tuple(tuple(point[at] for at in self.places(side)) for side in (False, True))
        return disproven(answer.engine, answer.reason, Witness(two, answer.witness.symbols))


def no_pair(
    points: IndexSet,
    shared: Iterable[int],
    equal: Sequence[IndexExpr],
    less: IndexExpr,
    reason: str,
) -> Answer:
    """Whether no two points share coordinates, agree in some formulas and differ in one more."""
    agreed = frozenset(e.position for e in equal if isinstance(e, DimRef))
    pairs = Pairs(points, agreed.union(shared))
    return pairs.none([*map(pairs.same, equal), pairs.less(less)], reason)


def _has_contradiction(points: IndexSet) -> bool:
    """Whether a constraint, or two added up, can be seen to fail in the whole box."""
    space, names = points.space, points.symbols
    if space.size == 0:
        return True
    ranges = box_ranges(space)
    at_least = [c.expression for c in points.constraints if not c.is_equality]
    at_least += [
        Sym(names.index(extent)) - 1 - DimRef(place)
        for place, extent in enumerate(space.extents)
        if isinstance(extent, str)
    ]
    if any(_is_beyond(one, ranges) for one in at_least):
        return True
    units = [(one, split_terms(one)[0]) for one in at_least]
    # Where no unit cancels, a sum fails only if one of the two does.
    for (one, mine), (other, others) in combinations(units, 2):
        if _cancels(mine, others) and _is_beyond(one + other, ranges):
            return True
    exact = [c.expression for c in points.constraints if c.is_equality]
    return any(_is_beyond(e, ranges) or _is_beyond(-e, ranges) for e in exact)


def _cancels(mine: Mapping[IndexExpr, int], others: Mapping[IndexExpr, int]) -> bool:
    """Whether some unit counts for one sum and against the other."""
    return any(mine[unit] * others.get(unit, 0) < 0 for unit in mine)


def _is_beyond(expression: IndexExpr, ranges: Ranges) -> bool:
    """Whether a formula is negative at every point."""
    interval = bounds(expression, ranges)
    return interval is not None and interval[1] < 0
