"""Whether two accesses of one storage ever touch one element.

In: two composed accesses of the same storage, and how the numbers that they start from relate:
which are one number for both, which are given, and along which index of a nest the other is how
many turns further. Out: an answer, the turns at which they may meet, or whether they surely meet.
Coordinates are compared axis by axis, by intervals and by the steps they move in; integer sets come
last, where a caller asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd
from types import MappingProxyType

from tilenest import layouts
from tilenest.analysis.composed_accesses import ComposedAccess, inside
from tilenest.analysis.index_ranges import range_of
from tilenest.analysis.index_values import LeafKey
from tilenest.analysis.structure import constant_of, is_defined_above
from tilenest.errors import ShapeError
from tilenest.ir import Operation, Value
from tilenest.layouts import (
    Answer,
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    IndexSet,
    Interval,
    Space,
    Sym,
    Witness,
    bounds,
    proven,
    simplify,
    split_terms,
    unknown,
)
from tilenest.records import record

_INTERVALS = "intervals"
_EVER = 1 << 62
"""More turns than any loop has, and more than any extent: accesses outside count as well."""
ALWAYS: Interval = (-_EVER, _EVER)
AHEAD: Interval = (1, _EVER)
BEHIND: Interval = (-_EVER, -1)


@record
class Relation:
    """How the numbers of two accesses relate; of what is not said any two numbers may be.

    Of `indices`, one a side, the second is the first and `step` times some number of `turns`.
    """

    is_common: Callable[[Value], bool]
    """whether a value is one number for both"""
    indices: tuple[Value, Value] | None = None
    step: int = 1
    turns: Interval = ALWAYS
    given: tuple[Mapping[Value, int], Mapping[Value, int]] = (
        MappingProxyType({}),
        MappingProxyType({}),
    )
    """numbers that values of each side are"""


@record
class Meeting:
    """A point of each of two accesses at which they touch one element, and the numbers there."""

    points: tuple[tuple[int, ...], tuple[int, ...]]
    numbers: tuple[Mapping[LeafKey, int], Mapping[LeafKey, int]]


def never_meet(
    one: ComposedAccess, other: ComposedAccess, relation: Relation, *, thoroughly: bool = False
) -> Answer:
    """Whether the accesses touch no element in common; without `thoroughly` by what costs little,
    and a witness is given only with it."""
    try:
        pair = _Pair(one, other, relation)
        if pair.turns() is None:
            return proven(_INTERVALS, "the coordinates differ along an axis")
        return pair.by_sets() if thoroughly else unknown(_INTERVALS, "the coordinates may be equal")
    except ShapeError as error:
        return unknown(_INTERVALS, error.message)


def turns_met(one: ComposedAccess, other: ComposedAccess, relation: Relation) -> Interval | None:
    """The turns between which the accesses may meet, by what costs little; None where they never
    do."""
    try:
        return _Pair(one, other, relation).turns()
    except ShapeError:
        return relation.turns


def surely_meet(one: ComposedAccess, other: ComposedAccess, relation: Relation) -> bool:
    """Whether two windows of a storage share an element of it, whatever the numbers are that are
    not given. Both have to happen."""
    try:
        pair = _Pair(one, other, relation)
        return all(map(pair.is_surely_met, range(len(one.results))))
    except ShapeError:
        # They are farther apart than numbers go.
        return False


def is_same_region(whole: ComposedAccess, part: ComposedAccess) -> bool:
    """Whether an access touches every element that another one does, where all numbers are the
    same for both."""
    pair = _Pair(whole, part, Relation(lambda _: True))
    held = [
        {(pair.over(side, c.expression), c.is_equality) for c in access.constraints}
        for side, access in enumerate((whole, part))
    ]
    same = zip(whole.results, part.results, strict=True)
    return (
        whole.box == part.box
        and held[0] <= held[1]
        and all(pair.over(0, a) == pair.over(1, b) for a, b in same)
    )


def apart_across(one: ComposedAccess, other: ComposedAccess, nests: Sequence[Operation]) -> Answer:
    """Whether different instances of the nests around both, outermost first, touch different
    elements. What is defined outside of the nests is one number for both."""
    for relation in _differences(nests):
        answer = never_meet(one, other, relation, thoroughly=True)
        if not answer.is_proven:
            return answer
    return proven(_INTERVALS, "no two instances meet")


def meetings_across(
    one: ComposedAccess, other: ComposedAccess, nest: Operation
) -> Iterator[Meeting]:
    """Some meetings of different instances of a nest around both, each for numbers that there may
    be: at most two for every index of the nest."""
    for relation in _differences([nest]):
        pair = _Pair(one, other, relation)
        if pair.turns() is not None:
            answer = pair.by_sets()
            if answer.witness is not None:
                yield pair.meeting(answer.witness)


def _differences(nests: Sequence[Operation]) -> Iterator[Relation]:
    """How instances of nests differ: in one index, which is ahead or behind."""
    for nest in nests:
        for index, axis in zip(nest.body.arguments, nest.inductions(), strict=False):
            step = int(constant_of(axis.step) or 1)
            for turns in (AHEAD, BEHIND):
                yield Relation(
                    lambda value: is_defined_above(value, nests[0]), (index, index), step, turns
                )


class _Pair:
    """Two accesses over one set of names; the dims of the second stand behind those of the
    first."""

    def __init__(self, one: ComposedAccess, other: ComposedAccess, relation: Relation) -> None:
        self._accesses = one, other
        self._relation = relation
        self._numbers: dict[object, Sym] = {}
        self._offsets = 0, len(one.box)
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._symbols = [self._named(0, one), self._named(1, other)]
        self._turns = self._possible_turns()

    def over(self, side: int, expression: IndexExpr, offset: int = 0) -> IndexExpr:
        """An expression of one side over the names of the pair."""
        dims = [DimRef(offset + place) for place in range(len(self._accesses[side].box))]
        return expression.substitute(dims, self._symbols[side])

    # Names -----------------------------------------------------------------------------------

    def _named(self, side: int, access: ComposedAccess) -> list[IndexExpr]:
        """What the leaves of a side are called; its ranges are noted."""
        for place in range(len(access.box)):
            self._ranges[DimRef(self._offsets[side] + place)] = access.ranges[DimRef(place)]
        names: list[IndexExpr] = []
        for place, key in enumerate(access.leaves.keys):
            name = self._name(side, key)
            found = access.ranges.get(Sym(place))
            if isinstance(name, Sym) and found is not None:
                self._ranges[name] = found
            names.append(name)
        return names

    def _name(self, side: int, key: LeafKey) -> IndexExpr:
        relation = self._relation
        value = key[0] if isinstance(key, tuple) else key
        if not isinstance(key, tuple) and key in relation.given[side]:
            return Const(relation.given[side][key])
        if relation.indices is not None and key is relation.indices[side]:
            first = self._number((1, relation.indices[0]))
            return first + self._turn * relation.step if side else first
        return self._number((0 if relation.is_common(value) else 1 + side, key))

    def _number(self, key: object) -> Sym:
        return self._numbers.setdefault(key, Sym(len(self._numbers)))

    @property
    def _turn(self) -> Sym:
        return self._number("turn")

    def _possible_turns(self) -> Interval:
        """The turns asked about that there are: an index and the other one lie in one range."""
        relation = self._relation
        first, last = relation.turns
        if relation.indices is None:
            return first, last
        found = range_of(relation.indices[0])
        if found is not None:
            self._ranges[self._number((1, relation.indices[0]))] = found
            most = (found[1] - found[0]) // abs(relation.step)
            first, last = max(first, -most), min(last, most)
        self._ranges[self._turn] = first, last
        return first, last

    # What costs little -----------------------------------------------------------------------

    def turns(self) -> Interval | None:
        """The turns between which the coordinates may be equal."""
        if any(0 in access.box for access in self._accesses):
            return None
        first, last = self._turns
        for gap in self._gaps():
            if first > last or self._is_never_zero(gap):
                return None
            met = self._turns_along(gap)
            first, last = max(first, met[0]), min(last, met[1])
        return (first, last) if first <= last else None

    def _gaps(self) -> Iterator[IndexExpr]:
        """How far the second access is from the first, along each axis."""
        one, other = self._accesses
        for a, b in zip(one.results, other.results, strict=True):
            yield self._plain(1, b) - self._plain(0, a)

    def _plain(self, side: int, result: IndexExpr) -> IndexExpr:
        named = self.over(side, result, self._offsets[side])
        return named if named.linear() is not None else simplify(named, self._ranges)

    def _is_never_zero(self, gap: IndexExpr) -> bool:
        ends = bounds(gap, self._ranges)
        if ends is not None and not ends[0] <= 0 <= ends[1]:
            return True
        # A sum of multiples of one step passes 0 by where its constant is no multiple.
        terms, constant = split_terms(gap)
        step = gcd(*terms.values())
        return step > 1 and constant % step != 0

    def _turns_along(self, gap: IndexExpr) -> Interval:
        """The turns between which a gap, some number a turn and a rest, may be 0."""
        if self._relation.indices is None:
            return ALWAYS
        by = split_terms(gap)[0].get(self._turn, 0)
        rest = gap - self._turn * by
        ends = bounds(rest, self._ranges)
        if ends is None or rest.sym_mask & self._turn.sym_mask:
            return ALWAYS
        low, high = (-ends[1], -ends[0]) if by > 0 else ends
        if by == 0:
            return ALWAYS if low <= 0 <= high else (1, 0)
        return -(-low // abs(by)), high // abs(by)

    def is_surely_met(self, axis: int) -> bool:
        """Whether windows share a coordinate of the storage along an axis."""
        a, b = (self._origin(side, axis) for side in range(2))
        extent = self._accesses[0].extents[axis]
        if a is None or b is None or not isinstance(extent, Const):
            return False
        found, gap = bounds(a, self._ranges), simplify(b - a, self._ranges)
        if found is None or not isinstance(gap, Const):
            return False
        sizes = [access.box[axis] if access.box else 1 for access in self._accesses]
        first, last = max(0, gap.value), min(sizes[0], gap.value + sizes[1]) - 1
        low, high = found
        return first <= last and high + first < extent.value and low + last >= 0

    def _origin(self, side: int, axis: int) -> IndexExpr | None:
        """Where a window begins; None for what is no window."""
        access = self._accesses[side]
        begin = access.results[axis] - DimRef(axis) if access.box else access.results[axis]
        return None if begin.dim_mask else self.over(side, begin)

    # Integer sets ----------------------------------------------------------------------------

    def by_sets(self) -> Answer:
        """What the engines of layouts say, for every value of every number."""
        one, other = self._accesses
        names = tuple(f"n{place:04}" for place in range(len(self._numbers)))
        space = Space.box(*one.box, prefix="x").product(Space.box(*other.box, prefix="y"))
        answer = layouts.never_coincide(
            self._map(0, names),
            self._map(1, names),
            IndexSet(space, tuple(self._constraints()), names),
        )
        if answer.is_disproven and not self._is_exact:
            return unknown(answer.engine, answer.reason)
        return answer

    def meeting(self, witness: Witness) -> Meeting:
        """What a witness of the sets is for each access."""
        values = [number for _, number in witness.symbols]
        one, other = (
            {key: name.evaluate((), values) for key, name in zip(keys, names, strict=True)}
            for keys, names in zip(
                (access.leaves.keys for access in self._accesses), self._symbols, strict=True
            )
        )
        return Meeting((witness.points[0], witness.points[1]), (one, other))

    def _map(self, side: int, names: tuple[str, ...]) -> layouts.Expressions:
        access = self._accesses[side]
        places = Space.box(*[_EVER] * len(access.results), prefix="at")
        results = tuple(self.over(side, result) for result in access.results)
        return layouts.Expressions(Space.box(*access.box, prefix="d"), places, results, names)

    def _constraints(self) -> Iterator[Constraint]:
        for side, access in enumerate(self._accesses):
            outside = access.touch.bounds != "proven"
            touched = inside(access.results, access.extents) if outside else []
            for held in (*access.constraints, *touched):
                moved = self.over(side, held.expression, self._offsets[side])
                yield Constraint(moved, held.is_equality)
        if self._relation.indices is not None:
            first, last = self._turns
            yield Constraint(self._turn - first)
            yield Constraint(last - self._turn)

    @property
    def _is_exact(self) -> bool:
        """Whether the constraints say all there is to say."""
        indices = self._relation.indices
        return all(
            access.is_exact and (indices is None or indices[side] in access.leaves.keys)
            for side, access in enumerate(self._accesses)
        )
