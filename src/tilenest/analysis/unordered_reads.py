"""Reads of elements that other instances of a parallel surely store.

In: a load and a store of one buf, and a parallel around both whose instances share the buf. Out:
two instances and the element at which they meet, or None where no meeting is proven. Sets say
where they may meet; one such meeting is then proven by itself: both accesses happen there, in range
and at one element, whatever the numbers are that only a call knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilenest.analysis.clips import output_clips
from tilenest.analysis.composed_accesses import ComposedAccess, compose, inside
from tilenest.analysis.meetings import Meeting, meetings_across
from tilenest.analysis.structure import induction_of, is_defined_above
from tilenest.dialects import MapReducePost, Parallel
from tilenest.errors import ShapeError
from tilenest.ir import EffectKind, Operation, Touch, Value
from tilenest.layouts import (
    AffineMap,
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    Interval,
    Sym,
    bounds,
    simplify,
)
from tilenest.records import record

_Pair = tuple[ComposedAccess, ComposedAccess]


@record
class UnorderedRead:
    """The instance that reads, the one that stores, and the element that both touch."""

    reader: tuple[int, ...]
    writer: tuple[int, ...]
    element: tuple[int, ...]


def unordered_read(
    load: tuple[Operation, Touch[Value]], store: tuple[Operation, Touch[Value]], nest: Parallel
) -> UnorderedRead | None:
    """A proven meeting of the load in one instance of the nest and the store in another."""
    if not _is_described(*load):
        return None
    try:
        pair = compose(*load, thoroughly=True), compose(*store, thoroughly=True)
        for meeting in meetings_across(*pair, nest):
            if any(_Proof(pair, meeting, nest, given).holds() for given in (nest, None)):
                return _read(pair[0], meeting, nest)
    except ShapeError:
        # A number on the way leaves 64 bits.
        pass
    return None


def _is_described(op: Operation, touch: Touch[Value]) -> bool:
    """Whether the composed access says all about when it happens: cells that their output drops
    have no seed and no epilogue."""
    if isinstance(op, MapReducePost) and touch.group in ("seed", "post"):
        return not output_clips(op)
    return True


def _read(reading: ComposedAccess, meeting: Meeting, nest: Parallel) -> UnorderedRead:
    reader, writer = (
        tuple(numbers[index] for index in nest.body.arguments) for numbers in meeting.numbers
    )
    values = [meeting.numbers[0][key] for key in reading.leaves.keys]
    element = tuple(result.evaluate(meeting.points[0], values) for result in reading.results)
    return UnorderedRead(reader, writer, element)


class _Proof:
    """That a meeting takes place, for all values of what is no index.

    An index is the number that it is in the meeting. Where a nest is `given`, what is defined
    around it has any value with which the nest runs.
    """

    def __init__(
        self, pair: _Pair, meeting: Meeting, nest: Parallel, given: Parallel | None
    ) -> None:
        self._pair = pair
        self._meeting = meeting
        self._nest = nest
        self._given = given
        self._names: dict[object, Sym] = {}
        self._ranges: dict[DimRef | Sym, Interval] = {}

    def holds(self) -> bool:
        taken = set() if self._given is None else set(self._taken(self._given))
        places = []
        for side, access in enumerate(self._pair):
            at = self._over(side, access, access.results)
            extents = self._over(side, access, access.extents)
            needed = [*self._constraints(side, access)]
            needed += inside(at, extents) if access.touch.bounds != "proven" else ()
            if not all(held in taken or self._is_met(held) for held in needed):
                return False
            places.append(at)
        same = [Constraint(a - b, is_equality=True) for a, b in zip(*places, strict=True)]
        return all(map(self._is_met, same))

    def _taken(self, given: Parallel) -> Iterator[Constraint]:
        """What holds wherever the nest runs."""
        storage = self._pair[0].storage
        origin = AffineMap(0, 0, (Const(0),) * len(self._pair[0].results))
        touch = Touch("nest", 0, storage, EffectKind.READ, origin, "proven")
        return self._constraints(0, compose(given, touch, thoroughly=True))

    def _constraints(self, side: int, access: ComposedAccess) -> Iterator[Constraint]:
        over = self._over(side, access, [held.expression for held in access.constraints])
        for held, expression in zip(access.constraints, over, strict=True):
            yield Constraint(expression, held.is_equality)

    def _over(
        self, side: int, access: ComposedAccess, expressions: Sequence[IndexExpr]
    ) -> list[IndexExpr]:
        dims = [Const(number) for number in self._meeting.points[side]]
        symbols = [self._symbol(side, access, place) for place in range(len(access.leaves.keys))]
        return [expression.substitute(dims, symbols) for expression in expressions]

    def _symbol(self, side: int, access: ComposedAccess, place: int) -> IndexExpr:
        key = access.leaves.keys[place]
        value = key[0] if isinstance(key, tuple) else key
        is_any = self._given is not None and is_defined_above(value, self._given)
        if not isinstance(key, tuple) and induction_of(key) is not None and not is_any:
            return Const(self._meeting.numbers[side][key])
        owner = 0 if is_defined_above(value, self._nest) else 1 + side
        name = self._names.setdefault((owner, key), Sym(len(self._names)))
        found = access.ranges.get(Sym(place))
        if found is not None:
            self._ranges[name] = found
        return name

    def _is_met(self, held: Constraint) -> bool:
        ends = bounds(simplify(held.expression, self._ranges), self._ranges)
        return ends is not None and (ends == (0, 0) if held.is_equality else ends[0] >= 0)
