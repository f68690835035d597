"""Which elements of an explicit memory are surely stored: boxes between index formulas.

In: origins and extents of accesses, and the nests around them. Out: parts, and the answers whether
one lies in others. A part of which the origin is known at run time only is known by the values that
its origin is computed from. Parts that touch become one. What every turn of a nest stores is stored
behind the nest: as one part where each turn touches the one before, else turn by turn where these
are few; and so is, in a turn, what the turns before it stored. A number that a turn finds itself is
another one in each turn, so that parts of several turns are never over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from tilenest.analysis.effects import is_computation
from tilenest.analysis.index_values import Leaves
from tilenest.analysis.place_order import MOST_PROOFS, MOST_PROOFS_TO_KEEP, PlaceOrder
from tilenest.analysis.structure import constant_of, is_defined_above, trip_counts
from tilenest.dialects import CarryingNest, MemoryLoad, MemoryStore
from tilenest.errors import ShapeError
from tilenest.ir import LARGEST_EXTENT, MemoryType, Operation, TileType, Value
from tilenest.layouts import Const, IndexExpr, Interval, Sym, split_terms
from tilenest.records import record, replace

_MOST_PARTS = 128
"""of one state; what is stored further is not remembered"""
_MOST_TURNS = 1024
"""that are looked at one by one, of all parts that one axis of a nest stores"""
_MOST_COMPARISONS = 1 << 15
"""of what pairs of parts of two ways share, in one function; what further pairs share is not
remembered"""
_Limits = tuple[IndexExpr, IndexExpr]
_Compare = Callable[[IndexExpr, IndexExpr], bool | None]
Box = tuple[Interval, ...]
"""Along each axis from one number to before another."""


@record
class Part:
    """Elements of a memory of this shape: along each axis from one place to before another. What
    lies outside of the memory does not count."""

    shape: tuple[int, ...]
    limits: tuple[_Limits, ...]

    @property
    def leaves(self) -> frozenset[int]:
        """The numbers of the leaves that it depends on."""
        used = [expr.used_syms() for limits in self.limits for expr in limits]
        return frozenset().union(*used)


Stored = tuple[Part, ...]
"""Of which every element is stored."""


@record
class _Turns:
    """The turns of a nest along one axis: `end` is the first that does not run, `last` the last
    one where there surely is one."""

    leaf: Sym
    first: IndexExpr
    step: int
    end: IndexExpr | None
    last: IndexExpr | None
    count: int | None = None


class PartReader:
    """Reads accesses as parts, and answers about them."""

    def __init__(self) -> None:
        self._names: dict[Value, Value] = {}
        self._makers: dict[object, Value] = {}
        self._leaves = Leaves(names=self._names)
        self._order = PlaceOrder(self._leaves)
        self._comparisons = 0

    def note(self, op: Operation) -> None:
        """See an operation, in the order of the program: equal work on equal scalars makes one
        number."""
        if len(op.results) != 1 or not is_computation(op):
            return
        operands = tuple(self._names.get(value, value) for value in op.operands)
        attributes = tuple((name, type(v), repr(v)) for name, v in op.attributes.items())
        key = (type(op), op.segments, op.result.type, *operands, *attributes)
        first = self._makers.setdefault(key, op.result)
        if first is not op.result:
            self.alias(op.result, first)

    def alias(self, value: Value, same: Value) -> None:
        """Another name of a value."""
        self._names[value] = self._names.get(same, same)

    def part_of(self, op: MemoryLoad | MemoryStore) -> Part:
        """What an access touches."""
        type_ = op.memory.type
        assert isinstance(type_, MemoryType)
        if not op.origins:
            return Part(type_.shape, tuple((Const(0), Const(n)) for n in type_.shape))
        content = op.content
        assert isinstance(content, TileType)
        axes = zip(op.origins, content.shape, type_.shape, strict=True)
        is_read = isinstance(op, MemoryLoad)
        is_at_most = self._is_at_most_for_loads if is_read else self._is_at_most
        try:
            part = Part(type_.shape, tuple(self._limits(*axis) for axis in axes))
            return self._clipped(part, is_at_most)
        except ShapeError:
            # An end leaves 64 bits. What may be read is everything, what is surely stored nothing.
            limits = ((Const(0 if is_read else n), Const(n)) for n in type_.shape)
            return Part(type_.shape, tuple(limits))

    def _limits(self, origin: Value, size: int, extent: int) -> _Limits:
        # What wraps stays outside of all that is not larger.
        is_small = extent <= LARGEST_EXTENT
        start = self._leaves.coordinate(origin) if is_small else self._leaves.formula(origin)
        end = Const(extent)
        if self._order.at_a_glance(end, start):
            # It is empty, however near to the end of 64 bits it starts.
            return end, end
        return start, start + size

    # Answers -------------------------------------------------------------------------------

    def missing(self, part: Part, stored: Stored) -> Box | None:
        """Where elements of a part may be that are not stored; None where all are stored."""
        is_at_most = self._is_at_most_for_loads
        is_empty = self._is_empty(part, is_at_most)
        if is_empty or any(self._contains(p, part, is_at_most) for p in stored):
            return None
        hull = self._hull(part)
        left = [hull] if all(low < high for low, high in hull) else []
        for each in stored:
            left = [rest for box in left for rest in _without(box, self._kernel(each))]
            if len(left) > _MOST_PARTS:
                break
        return left[0] if left else None

    def with_part(self, stored: Stored, part: Part) -> Stored:
        """What is stored after one more part."""
        kept = list(stored)
        place = 0
        while place < len(kept):
            united = self._united(kept[place], part)
            if united is None:
                place += 1
                continue
            if united == kept[place]:
                return tuple(kept)
            # What has grown may touch what did not touch before.
            del kept[place]
            part, place = united, 0
        return (*kept, part) if len(kept) < _MOST_PARTS else tuple(kept)

    def with_parts(self, stored: Stored, parts: Iterable[Part]) -> Stored:
        for part in parts:
            stored = self.with_part(stored, part)
        return stored

    def in_both(self, one: Stored, other: Stored) -> Stored:
        """What is stored on either of two ways. A number that one way finds is any number on the
        other, where what both share is stored whatever it is."""
        if one == other:
            return one
        ones, others = set(one), set(other)
        found = tuple(part for part in one if part in others)
        pairs = product((a for a in one if a not in others), (b for b in other if b not in ones))
        for a, b in pairs:
            if len(found) == _MOST_PARTS or self._comparisons >= _MOST_COMPARISONS:
                break
            self._comparisons += 1 + len(found)
            shared = self._shared(a, b)
            if shared is not None and not self._is_empty(shared, self._order.at_a_glance):
                found = self.with_part(found, shared)
        return found

    # Nests ---------------------------------------------------------------------------------

    def after(self, nest: CarryingNest, stored: Stored) -> Stored:
        """What is stored behind a nest when each turn stores this."""
        try:
            all_turns, stored = self._turn_by_turn(nest, stored)
            for turns in reversed(all_turns):
                stored = self._swept(stored, turns)
        except ShapeError:
            # A number on the way leaves 64 bits.
            return ()
        return stored

    def before_turn(self, nest: CarryingNest, stored: Stored) -> Stored:
        """What is stored by the turns before one of a nest whose turns are in order, where each
        stores this."""
        try:
            return self._before_turn(nest, stored)
        except ShapeError:
            return ()

    def _before_turn(self, nest: CarryingNest, stored: Stored) -> Stored:
        found: Stored = ()
        all_turns, stored = self._turn_by_turn(nest, stored)
        for turns in reversed(all_turns):
            earlier = replace(turns, end=turns.leaf, last=None, count=None)
            bands = (self._band(part, earlier) for part in stored)
            found = self.with_parts(found, (band for band in bands if band is not None))
            stored = self._swept(stored, turns)
        return found

    def _turn_by_turn(self, nest: CarryingNest, stored: Stored) -> tuple[Sequence[_Turns], Stored]:
        """The turns of each axis, and the parts that are known of every turn. Another number that
        is made inside is not the same one in two turns, though it is one leaf."""
        all_turns = self._all_turns(nest)
        own = frozenset(turns.leaf.position for turns in all_turns)
        return all_turns, tuple(p for p in stored if self._inner_leaves(nest, p) <= own)

    def _all_turns(self, nest: CarryingNest) -> list[_Turns]:
        counts = zip(nest.inductions(), trip_counts(nest), strict=True)
        found: list[_Turns] = []
        for axis, (induction, count) in enumerate(counts):
            leaf = self._leaves.formula(nest.body.arguments[axis])
            step = constant_of(induction.step)
            assert isinstance(leaf, Sym)
            first = self._leaves.formula(induction.lower)
            if count is not None and step is not None:
                last = first + (count - 1) * int(step) if count else None
                end = first + count * int(step)
                found.append(_Turns(leaf, first, int(step), end, last, count))
                continue
            upper = self._leaves.formula(induction.upper)
            is_known = step == 1 and self._is_at_most(first, upper)
            last = upper - 1 if step == 1 and self._is_at_most(first + 1, upper) else None
            found.append(_Turns(leaf, first, int(step or 0), upper if is_known else None, last))
        return found

    def _swept(self, stored: Stored, turns: _Turns) -> Stored:
        return self.with_parts((), self._sweep(stored, turns))

    def _sweep(self, stored: Stored, turns: _Turns) -> Iterator[Part]:
        left = _MOST_TURNS
        for part in stored:
            if turns.leaf.position not in part.leaves:
                if turns.last is not None:
                    yield part
                continue
            band = self._band(part, turns)
            if band is not None:
                yield band
            elif turns.count is not None and turns.count <= left:
                left -= turns.count
                for turn in range(turns.count):
                    yield self._at(part, turns.leaf, turns.first + turn * turns.step)

    def _band(self, part: Part, turns: _Turns) -> Part | None:
        """All turns in one part, where it moves along one axis and no farther than it reaches."""
        leaf = turns.leaf
        moving = [
            axis
            for axis, limits in enumerate(part.limits)
            if any(leaf.position in expr.used_syms() for expr in limits)
        ]
        if len(moving) != 1 or turns.step <= 0:
            return None
        low, high = part.limits[moving[0]]
        by = _change_by(low, leaf)
        if not by or _change_by(high, leaf) != by:
            return None
        if not self._is_at_most(Const(abs(by) * turns.step), high - low):
            return None
        if turns.last is None and turns.end is None:
            return None

        def moved(expr: IndexExpr, turn: IndexExpr) -> IndexExpr:
            return expr + (turn - leaf) * by

        # Where no turn may have run, both ends meet.
        start, stop = moved(low, turns.first), moved(high, turns.first)
        if turns.last is not None:
            near, far = moved(low, turns.last), moved(high, turns.last)
        else:
            assert turns.end is not None
            near, far = moved(high, turns.end), moved(low, turns.end)
        limits = list(part.limits)
        limits[moving[0]] = (start, far) if by > 0 else (near, stop)
        return self._clipped(replace(part, limits=tuple(limits)), self._is_at_most)

    def _at(self, part: Part, leaf: Sym, place: IndexExpr) -> Part:
        symbols: list[IndexExpr] = [Sym(number) for number in range(1 + max(part.leaves))]
        symbols[leaf.position] = place
        limits = [(a.substitute((), symbols), b.substitute((), symbols)) for a, b in part.limits]
        return self._clipped(replace(part, limits=tuple(limits)), self._is_at_most)

    # Formulas ------------------------------------------------------------------------------

    def _inner_leaves(self, op: Operation, part: Part) -> frozenset[int]:
        """The leaves of a part that are made inside of an operation."""
        known = self._order.known().keys
        keys = [(number, known[number]) for number in part.leaves]
        values = ((number, key[0] if isinstance(key, tuple) else key) for number, key in keys)
        return frozenset(number for number, value in values if not is_defined_above(value, op))

    def _clipped(self, part: Part, is_at_most: _Compare) -> Part:
        """The same elements; ends that surely lie outside are those of the memory."""
        limits: list[_Limits] = []
        for extent, (low, high) in zip(part.shape, part.limits, strict=True):
            start, stop = Const(0), Const(extent)
            first = start if is_at_most(low, start) else low
            last = stop if is_at_most(stop, high) else high
            limits.append((first, last))
        return Part(part.shape, tuple(limits))

    def _is_empty(self, part: Part, is_at_most: _Compare) -> bool:
        return any(
            is_at_most(high, low) or is_at_most(high, Const(0)) or is_at_most(Const(extent), low)
            for extent, (low, high) in zip(part.shape, part.limits, strict=True)
        )

    def _contains(self, outer: Part, inner: Part, is_at_most: _Compare) -> bool:
        interval = self._order.interval
        for extent, (low, high), (first, last) in zip(
            outer.shape, outer.limits, inner.limits, strict=True
        ):
            if not is_at_most(low, first) and interval(low)[1] > 0:
                return False
            if not is_at_most(last, high) and interval(high)[0] < extent:
                return False
        return True

    def _united(self, one: Part, other: Part) -> Part | None:
        """Both as one part, where they are the same along all axes but one along which they
        touch."""
        if self._contains(one, other, self._order.at_a_glance):
            return one
        if self._contains(other, one, self._order.at_a_glance):
            return other
        pairs = list(zip(one.limits, other.limits, strict=True))
        axes = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(axes) != 1:
            return None
        (low, high), (first, last) = pairs[axes[0]]
        if not (self._is_at_most(first, high) and self._is_at_most(low, last)):
            return None
        starts, stops = self._ordered(low, first), self._ordered(high, last)
        if starts is None or stops is None:
            return None
        limits = list(one.limits)
        limits[axes[0]] = starts[0], stops[1]
        return Part(one.shape, tuple(limits))

    def _shared(self, one: Part, other: Part) -> Part | None:
        """What is in both, where it is known."""
        limits: list[_Limits] = []
        for (low, high), (first, last) in zip(one.limits, other.limits, strict=True):
            starts = self._ordered(low, first)
            stops = starts and self._ordered(high, last)
            if starts is None or stops is None:
                return None
            limits.append((starts[1], stops[0]))
        return Part(one.shape, tuple(limits))

    def _is_at_most(self, one: IndexExpr, other: IndexExpr) -> bool:
        """Whether a place is never behind another, as far as knowing what is stored may cost."""
        return self._order.is_at_most(one, other, budget=MOST_PROOFS_TO_KEEP)

    def _is_at_most_for_loads(self, one: IndexExpr, other: IndexExpr) -> bool:
        """The same for a place that is read."""
        return self._order.is_at_most(one, other, budget=MOST_PROOFS)

    def _ordered(self, one: IndexExpr, other: IndexExpr) -> _Limits | None:
        """The lesser and the greater, where it is known which that is."""
        if self._is_at_most(one, other):
            return one, other
        return (other, one) if self._is_at_most(other, one) else None

    # Numbers -------------------------------------------------------------------------------

    def _hull(self, part: Part) -> Box:
        """A box of numbers around a part."""
        return tuple(
            (max(0, self._order.interval(low)[0]), min(extent, self._order.interval(high)[1]))
            for extent, (low, high) in zip(part.shape, part.limits, strict=True)
        )

    def _kernel(self, part: Part) -> Box:
        """A box of numbers that is in the part, whatever the leaves are."""
        return tuple(
            (self._order.interval(low)[1], self._order.interval(high)[0])
            for low, high in part.limits
        )


def _without(box: Box, taken: Box) -> Iterator[Box]:
    """What is left of a box, in boxes."""
    axes = zip(box, taken, strict=True)
    shared = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in axes)
    if any(low >= high for low, high in shared):
        yield box
        return
    for axis, ((low, high), (first, last)) in enumerate(zip(box, shared, strict=True)):
        for side in ((low, first), (last, high)):
            if side[0] < side[1]:
                yield (*shared[:axis], side, *box[axis + 1 :])


def _change_by(expr: IndexExpr, leaf: Sym) -> int | None:
    """How much a formula grows when a leaf grows by 1; None where that varies."""
    change = 0
    for unit, coefficient in split_terms(expr)[0].items():
        if unit == leaf:
            change = coefficient
        elif leaf.position in unit.used_syms():
            return None
    return change
