"""Proofs about sums of scaled coordinates, in plain integers.

In: one formula on a static box, and index sets. Out: answers, or None where the formula is not a
plain sum, or where these few arguments do not decide. The arguments: ends of intervals; a
coordinate whose step is longer than all others together reach; full column rank; two columns that
cancel; steps that leave no gap. An empty box is decided here for every formula. Nothing is looked
for: a question costs about as much as reading the formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import gcd

from tilenest.layouts.answers import Answer, proven
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Formulas, Scope
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr
from tilenest.layouts.index_range import bounds, simplify
from tilenest.layouts.spaces import Constraint, IndexSet, Space
from tilenest.layouts.witnesses import (
    INT64,
    Point,
    at_rest,
    collision_at,
    different_at,
    meeting_at,
    missed_at,
    out_of_bounds_at,
    undefined_at,
)
from tilenest.records import record

ENGINE = "affine"
_PRIME = (1 << 31) - 1


@record
class Sum:
    """`constant + steps[i] * x_i + ...` over a box; coordinates that cannot move have step 0."""

    steps: tuple[int, ...]
    constant: int
    extents: tuple[int, ...]

    @property
    def low(self) -> int:
        return self._end(is_high=False)

    @property
    def high(self) -> int:
        return self._end(is_high=True)

    @property
    def used(self) -> frozenset[int]:
        return frozenset(place for place, step in enumerate(self.steps) if step)

    def end_point(self, is_high: bool) -> Point:
        """A corner at which the sum is largest or smallest."""
        moves = zip(self.steps, self.extents, strict=True)
        return tuple(extent - 1 if step and (step > 0) == is_high else 0 for step, extent in moves)

    def ascending(self) -> list[tuple[int, int]]:
        """(length of step, coordinate) of the coordinates used, the shortest step first."""
        return sorted((abs(self.steps[place]), place) for place in self.used)

    def gap(self) -> int | None:
        """The smallest value between the ends that is surely missed, None where there is none."""
        reach = 0
        for length, place in self.ascending():
            if length > reach + 1:
                return self.low + reach + 1
            reach += length * (self.extents[place] - 1)
        return None

    def _end(self, is_high: bool) -> int:
        corner = self.end_point(is_high)
        return self.constant + sum(s * x for s, x in zip(self.steps, corner, strict=True))


@record
class SumMap:
    """A formula of sums on a box that is not empty."""

    extents: tuple[int, ...]
    sums: tuple[Sum, ...]
    has_constraints: bool

    @property
    def moving(self) -> frozenset[int]:
        return frozenset(place for place, extent in enumerate(self.extents) if extent > 1)

    @property
    def fits(self) -> bool:
        return all(total.low in INT64 and total.high in INT64 for total in self.sums)

    @property
    def is_separate(self) -> bool:
        """Whether each result can be solved by itself: no coordinate is used by two, and what is
        counted from the lowest value stays a constant of 64 bits."""
        is_countable = all(-total.low in INT64 for total in self.sums)
        return is_countable and all(not (a.used & b.used) for a, b in combinations(self.sums, 2))


@lru_cache(maxsize=512)
def sum_map(formula: Formula) -> SumMap | None:
    """A formula as sums over a static box that is not empty, or None."""
    extents = _static(formula.domain.space)
    if extents is None or 0 in extents:
        return None
    sums = [_sum_of(result, formula, extents) for result in formula.results]
    found = tuple(total for total in sums if total is not None)
    return (
        SumMap(extents, found, bool(formula.domain.constraints))
        if len(found) == len(sums)
        else None
    )


def _sum_of(result: IndexExpr, formula: Formula, extents: tuple[int, ...]) -> Sum | None:
    form = simplify(result, Scope(formula.domain.space, formula.symbols).ranges).linear()
    if form is None or form.syms:
        return None
    steps = dict(form.dims)
    moving = (steps.get(place, 0) if extent > 1 else 0 for place, extent in enumerate(extents))
    return Sum(tuple(moving), form.const, extents)


def is_total(formulas: Formulas) -> Answer | None:
    """Whether every result fits signed 64 bits, over the whole box."""
    if _is_empty(formulas[0].domain.space):
        return _vacuous()
    if len(formulas) != 1 or formulas[0].domain.constraints:
        return None
    found = sum_map(formulas[0])
    if found is None:
        return _total_by_bounds(formulas[0])
    outside = _end_outside(found, [INT64] * len(found.sums))
    if outside is None:
        return proven(ENGINE, "the ends of every sum fit 64 bits")
    return undefined_at(ENGINE, formulas, outside, at_rest(formulas), "a sum beyond 64 bits")


def is_bounded(formulas: Formulas) -> Answer | None:
    """Whether every value lies in the codomain."""
    found, shape = _only(formulas), _static(formulas[0].codomain)
    if _is_empty(formulas[0].domain.space):
        return _vacuous()
    if found is None or shape is None or not found.fits:
        return None
    outside = _end_outside(found, [range(extent) for extent in shape])
    if outside is None:
        return proven(ENGINE, "the ends of every sum are in the codomain")
    if found.has_constraints:
        return None
    reason = "a sum out of the codomain"
    return out_of_bounds_at(ENGINE, formulas, outside, at_rest(formulas), reason)


def is_injective(formulas: Formulas) -> Answer | None:
    """Whether no two points have one value."""
    if _is_empty(formulas[0].domain.space):
        return _vacuous()
    found = _only(formulas)
    if found is None or not found.fits:
        return None
    left = _unpeeled(found)
    if not left:
        return proven(ENGINE, "every coordinate outruns those left after it")
    columns = {place: tuple(total.steps[place] for total in found.sums) for place in left}
    if _rank(list(columns.values())) == len(left):
        return proven(ENGINE, "the columns are independent")
    difference = _cancelling(found, columns)
    if difference is None or found.has_constraints:
        return None
    pair = (
        tuple(max(0, -difference.get(place, 0)) for place in range(len(found.extents))),
        tuple(max(0, difference.get(place, 0)) for place in range(len(found.extents))),
    )
    return collision_at(ENGINE, formulas, pair, at_rest(formulas), "columns that cancel")


def is_surjective(formulas: Formulas) -> Answer | None:
    """Whether every point of the codomain is a value."""
    return covers(formulas, IndexSet(formulas[0].codomain))


def covers(formulas: Formulas, wanted: IndexSet) -> Answer | None:
    """Whether every place of a static box is a value."""
    shape = _static(wanted.space)
    if _is_empty(wanted.space):
        return _vacuous()
    if shape is None or wanted.constraints:
        return None
    if _is_empty(formulas[0].domain.space):
        return missed_at(ENGINE, wanted, (0,) * len(shape), at_rest(formulas), "no point at all")
    found = _only(formulas)
    if found is None or not found.fits:
        return None
    for place, (total, extent) in enumerate(zip(found.sums, shape, strict=True)):
        missed = _missed_value(total, extent)
        if missed is not None:
            target = tuple(missed if at == place else 0 for at in range(len(shape)))
            return missed_at(ENGINE, wanted, target, at_rest(formulas), "a value that no sum takes")
    has_gap = any(total.gap() is not None for total in found.sums)
    if has_gap or found.has_constraints or not found.is_separate:
        return None
    return proven(ENGINE, "the steps leave no gap")


def equal(f: Formulas, g: Formulas) -> Answer | None:
    """Whether two maps of one space are the same sums."""
    if _is_empty(f[0].domain.space):
        return _vacuous()
    left, right = _only(f), _only(g)
    if left is None or right is None or left.extents != right.extents:
        return None
    if not (left.fits and right.fits):
        return None
    if left.sums == right.sums:
        is_same = f[0].domain == g[0].domain
        return proven(ENGINE, "the same sums") if is_same else None
    if left.has_constraints or right.has_constraints:
        return None
    for step in (None, *sorted(left.moving)):
        point = tuple(int(place == step) for place in range(len(left.extents)))
        if _values(left, point) != _values(right, point):
            return different_at(ENGINE, f, g, point, at_rest(f, g), "different sums")
    raise AssertionError("sums that differ do so at the origin or one step from it")


def are_disjoint(f: Formulas, g: Formulas) -> Answer | None:
    """Whether no value of one map is a value of the other."""
    if _is_empty(f[0].domain.space) or _is_empty(g[0].domain.space):
        return _vacuous()
    left, right = _only(f), _only(g)
    if left is None or right is None or not (left.fits and right.fits):
        return None
    for a, b in zip(left.sums, right.sums, strict=True):
        if a.high < b.low or b.high < a.low:
            return proven(ENGINE, "intervals apart")
        common = gcd(*a.steps, *b.steps)
        if common and (a.constant - b.constant) % common:
            return proven(ENGINE, "different remainders")
    first, second = (0,) * len(left.extents), (0,) * len(right.extents)
    is_plain = not (left.has_constraints or right.has_constraints)
    if is_plain and _values(left, first) == _values(right, second):
        return meeting_at(ENGINE, f, g, (first, second), at_rest(f, g), "the origins meet")
    return None


def image(formulas: Formulas) -> tuple[Answer, tuple[IndexSet, ...]] | None:
    """The points of the codomain that are values."""
    found, codomain = _only(formulas), formulas[0].codomain
    if _is_empty(formulas[0].domain.space):
        return _vacuous(), ()
    if found is None or not found.fits or found.has_constraints or not found.is_separate:
        return None
    constraints: list[Constraint] = []
    for place, total in enumerate(found.sums):
        digits = _digits(total, DimRef(place))
        if total.gap() is None:
            low, high = DimRef(place) - total.low, total.high - DimRef(place)
            constraints += [Constraint(low), Constraint(high)]
        elif digits is not None:
            constraints += digits[1]
        else:
            return None
    return proven(ENGINE, "every sum by itself"), (IndexSet(codomain, tuple(constraints)),)


def inverse(formulas: Formulas) -> tuple[Answer, Formulas] | None:
    """The digits of each value, where every step is longer than what the shorter ones reach."""
    answer = is_injective(formulas)
    if answer is None or not answer.is_proven:
        return None if answer is None else (answer, ())
    found = _only(formulas)
    if found is None or found.has_constraints or not found.is_separate:
        return None
    results: dict[int, IndexExpr] = {}
    constraints: list[Constraint] = []
    for place, total in enumerate(found.sums):
        digits = _digits(total, DimRef(place))
        if digits is None:
            return None
        results |= digits[0]
        constraints += digits[1]
    space = formulas[0].domain.space
    sources = tuple(results.get(place, Const(0)) for place in range(space.rank))
    domain = IndexSet(formulas[0].codomain, tuple(constraints))
    return answer, (Formula(domain, space, sources),)


def _digits(total: Sum, value: IndexExpr) -> tuple[dict[int, IndexExpr], list[Constraint]] | None:
    """The coordinates that sum to a value, and when there are such; None where they may overlap."""
    if any(_reach(total, length) >= length for length, _ in total.ascending()):
        return None
    rest = value - total.low
    constraints = [Constraint(rest)]
    digits: dict[int, IndexExpr] = {}
    for length, place in reversed(total.ascending()):
        last = total.extents[place] - 1
        digit, rest = rest // length, rest % length
        digits[place] = digit if total.steps[place] > 0 else last - digit
        constraints.append(Constraint(last - digit))
    return digits, [*constraints, Constraint(rest, is_equality=True)]


def _reach(total: Sum, length: int) -> int:
    """How far the coordinates with steps shorter than a length reach, or with an equal one."""
    shorter = [item for item in total.ascending() if item[0] <= length]
    equal_ones = sum(item[0] == length for item in shorter) > 1
    reach = sum(step * (total.extents[place] - 1) for step, place in shorter if step < length)
    return length if equal_ones else reach


def _unpeeled(found: SumMap) -> frozenset[int]:
    """The coordinates left when those go whose step in some result is longer than all the other
    coordinates left reach there: such a one is known from the value."""
    left = found.moving
    while left:
        outrun = {place for place in left if any(_outruns(t, place, left) for t in found.sums)}
        if not outrun:
            break
        left -= outrun
    return left


def _outruns(total: Sum, place: int, left: frozenset[int]) -> bool:
    others = sum(abs(total.steps[at]) * (total.extents[at] - 1) for at in left if at != place)
    return abs(total.steps[place]) > others


def _cancelling(found: SumMap, columns: dict[int, tuple[int, ...]]) -> dict[int, int] | None:
    """A small difference of two points that no result sees: along one or two coordinates."""
    for place, column in columns.items():
        if not any(column):
            return {place: 1}
    for (a, left), (b, right) in combinations(columns.items(), 2):
        if any(x * w != y * z for (x, y), (z, w) in combinations(zip(left, right, strict=True), 2)):
            continue
        x, y = next((x, y) for x, y in zip(left, right, strict=True) if x)
        common = gcd(x, y)
        moves = {a: y // common, b: -x // common}
        if all(abs(move) < found.extents[place] for place, move in moves.items()):
            return moves
    return None


def _rank(rows: list[tuple[int, ...]]) -> int:
    """The rank modulo a prime, which the rank in the rationals is never below."""
    left = [[value % _PRIME for value in row] for row in rows]
    rank = 0
    for place in range(len(rows[0])):
        chosen = next((at for at in range(rank, len(left)) if left[at][place]), None)
        if chosen is None:
            continue
        left[rank], left[chosen] = left[chosen], left[rank]
        pivot = left[rank]
        rank += 1
        inverse_of_pivot = pow(pivot[place], -1, _PRIME)
        for row in left[rank:]:
            factor = row[place] * inverse_of_pivot
            row[:] = [(x - factor * y) % _PRIME for x, y in zip(row, pivot, strict=True)]
    return rank


def _missed_value(total: Sum, extent: int) -> int | None:
    """A value below an extent that a sum does not take, where its ends, its steps' common divisor
    or its first gap show one."""
    common = gcd(*total.steps)
    candidates = [0] if total.low > 0 else []
    candidates += [extent - 1] if total.high < extent - 1 else []
    if common > 1:
        candidates += [value for value in (0, 1) if (value - total.constant) % common]
    gap = total.gap()
    candidates += [] if gap is None else [gap]
    return next((value for value in candidates if 0 <= value < extent), None)


def _end_outside(found: SumMap, ranges: Sequence[range]) -> Point | None:
    for total, allowed in zip(found.sums, ranges, strict=True):
        if total.low not in allowed:
            return total.end_point(is_high=False)
        if total.high not in allowed:
            return total.end_point(is_high=True)
    return None


def _total_by_bounds(formula: Formula) -> Answer | None:
    ranges = Scope(formula.domain.space, formula.symbols).ranges
    intervals = [bounds(result, ranges) for result in formula.results]
    if any(found is None or found[0] not in INT64 or found[1] not in INT64 for found in intervals):
        return None
    return proven(ENGINE, "the bounds of every result fit 64 bits")


def _values(found: SumMap, point: Point) -> Point:
    return tuple(
        total.constant + sum(s * x for s, x in zip(total.steps, point, strict=True))
        for total in found.sums
    )


def _only(formulas: Formulas) -> SumMap | None:
    return sum_map(formulas[0]) if len(formulas) == 1 else None


def _vacuous() -> Answer:
    return proven(ENGINE, "an empty space")


def _is_empty(space: Space) -> bool:
    return 0 in space.extents


def _static(space: Space) -> Point | None:
    known = tuple(extent for extent in space.extents if isinstance(extent, int))
    return known if len(known) == space.rank else None
