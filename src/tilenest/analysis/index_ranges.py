"""Index arithmetic, which wraps at 64 bits, as formulas of integers that do not.

In: SSA values of index type. Out: formulas over the leaves of their arithmetic, and intervals. A
sum, product, quotient or remainder is part of a formula only where its value surely fits signed 64
bits, whatever the leaves are; any other one is a leaf itself, an index of which nothing is known.
So a formula is the number that the program computes, and never one that only wraps to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from tilenest.analysis.structure import constant_of, induction_of
from tilenest.dialects import Apply, Extent, Remap
from tilenest.errors import ShapeError
from tilenest.ir import INDEX, LARGEST_EXTENT, BlockArgument, OpResult, Value
from tilenest.layouts import Const, DimRef, IndexExpr, Interval, Ranges, Sym, bounds
from tilenest.records import record

ANY_INDEX: Interval = (-(1 << 63), (1 << 63) - 1)
EXTREMES = ("minimum", "maximum")
_ARITHMETIC: Mapping[str, Callable[..., IndexExpr]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
}
_RING = ("add", "sub", "mul", "neg")
_FARTHEST_COORDINATE = (1 << 64) - (1 << 49)
NumberOf = Callable[[Value], int | None]


def formula_of(
    value: Value, leaf: Callable[[Value], IndexExpr], number: NumberOf = lambda _: None
) -> IndexExpr:
    """The value as an expression over the leaves of its index arithmetic; `number` says which
    values are known."""
    return _formula(value, leaf, _Reader(number), {})


def coordinate_of(
    value: Value, leaf: Callable[[Value], IndexExpr], number: NumberOf = lambda _: None
) -> IndexExpr:
    """The value as a coordinate of an array, inside of which it is this formula.

    Sums and products are right modulo 2**64, whatever wraps in between. Where they stay so near
    that of all numbers they may wrap to only they themselves lie in an array, they may be more than
    64 bits hold: what is outside stays outside.
    """
    reader = _Reader(number)
    known: dict[Value, IndexExpr] = {}
    if reader.is_leaf(value):
        try:
            if reader.is_near(_ring(value, lambda part: reader.read(part).expression, {})):
                return _ring(value, lambda part: _formula(part, leaf, reader, known), {})
        except ShapeError:
            # A coefficient leaves 64 bits.
            pass
    return _formula(value, leaf, reader, known)


def _ring(
    value: Value, part: Callable[[Value], IndexExpr], known: dict[Value, IndexExpr]
) -> IndexExpr:
    """Sums and products of parts that are neither."""
    found = known.get(value)
    if found is None:
        apply = value.owner if isinstance(value, OpResult) else None
        if isinstance(apply, Apply) and value.type is INDEX and apply.function in _RING:
            parts = [_ring(argument, part, known) for argument in apply.arguments]
            found = _ARITHMETIC[apply.function](*parts)
        else:
            found = part(value)
        known[value] = found
    return found


def _formula(
    value: Value,
    leaf: Callable[[Value], IndexExpr],
    reader: _Reader,
    known: dict[Value, IndexExpr],
) -> IndexExpr:
    found = known.get(value)
    if found is not None:
        return found
    expression = reader.read(value).expression
    if isinstance(expression, Const):
        result: IndexExpr = expression
    elif not reader.is_leaf(value) and isinstance(value, OpResult):
        apply = value.owner
        assert isinstance(apply, Apply), "nothing else is arithmetic"
        parts = [_formula(argument, leaf, reader, known) for argument in apply.arguments]
        result = _ARITHMETIC[apply.function](*parts)
    else:
        result = leaf(value)
    known[value] = result
    return result


def range_of(value: Value) -> Interval | None:
    """An interval that holds the value whenever it is defined; None for any index at all."""
    if value.type is not INDEX:
        return None
    found = _Reader(lambda _: None).tightest(value)
    return None if found == ANY_INDEX else found


def ranges_of(extents: Sequence[int], symbols: Sequence[Value]) -> dict[DimRef | Sym, Interval]:
    """Intervals of a map's loop dims and symbols."""
    ranges: dict[DimRef | Sym, Interval] = {
        DimRef(i): (0, max(0, extent - 1)) for i, extent in enumerate(extents)
    }
    for i, symbol in enumerate(symbols):
        found = range_of(symbol)
        if found is not None:
            ranges[Sym(i)] = found
    return ranges


@record
class _Read:
    """A value over the leaves of one reader, and an interval that holds it."""

    expression: IndexExpr
    interval: Interval


class _Reader:
    """Reads values as formulas over symbols of its own, of which it knows intervals."""

    def __init__(self, number: NumberOf) -> None:
        self._number_of = number
        self._known: dict[Value, _Read] = {}
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._leaves: dict[Value, Sym] = {}

    def is_leaf(self, value: Value) -> bool:
        """Whether a value is no arithmetic, or may wrap."""
        self.read(value)
        return value in self._leaves

    def is_near(self, expression: IndexExpr) -> bool:
        found = bounds(expression, self._ranges)
        return found is not None and max(abs(end) for end in found) <= _FARTHEST_COORDINATE

    def read(self, value: Value) -> _Read:
        found = self._known.get(value)
        if found is None:
            number = self._number(value)
            if number is not None:
                found = _Read(Const(number), (number, number))
            else:
                found = self._arithmetic(value) or self._leaf(value)
            self._known[value] = found
        return found

    def tightest(self, value: Value) -> Interval:
        """The interval of the whole formula, in which equal terms have met."""
        read = self.read(value)
        found = bounds(read.expression, self._ranges)
        return read.interval if found is None or not _fits(found) else found

    def _number(self, value: Value) -> int | None:
        if value.type is not INDEX:
            return None
        constant = constant_of(value)
        if constant is not None:
            return int(constant)
        if isinstance(value, OpResult) and isinstance(value.owner, Extent):
            shape: tuple[int | None, ...] = getattr(value.owner.view.type, "shape", ())
            if shape[value.owner.axis] is not None:
                return shape[value.owner.axis]
        return self._number_of(value)

    def _arithmetic(self, value: Value) -> _Read | None:
        """A formula where it surely fits 64 bits."""
        apply = value.owner if isinstance(value, OpResult) else None
        if value.type is not INDEX or not isinstance(apply, Apply):
            return None
        compute = _ARITHMETIC.get(apply.function)
        if compute is None:
            return None
        parts = [self.read(argument) for argument in apply.arguments]
        try:
            expression = compute(*(part.expression for part in parts))
            alone = [Sym(place) for place in range(len(parts))]
            ranges: Ranges = {
                symbol: part.interval for symbol, part in zip(alone, parts, strict=True)
            }
            interval = bounds(compute(*alone), ranges)
            if interval is None or not _fits(interval):
                interval = bounds(expression, self._ranges)
        except ShapeError:
            # A coefficient leaves 64 bits.
            return None
        return _Read(expression, interval) if interval is not None and _fits(interval) else None

    def _leaf(self, value: Value) -> _Read:
        symbol = self._leaves[value] = Sym(len(self._leaves))
        interval = self._ranges[symbol] = self._range_of_leaf(value) or ANY_INDEX
        return _Read(symbol, interval)

    def _range_of_leaf(self, value: Value) -> Interval | None:
        if isinstance(value, BlockArgument):
            return self._range_of_argument(value)
        if not isinstance(value, OpResult) or value.type is not INDEX:
            return None
        owner = value.owner
        if isinstance(owner, Extent):
            below = owner.view.owner if isinstance(owner.view, OpResult) else None
            size = below.extent(owner.axis) if isinstance(below, Remap) else None
            return self.tightest(size) if isinstance(size, Value) else (0, LARGEST_EXTENT)
        if isinstance(owner, Apply) and owner.function in EXTREMES:
            one, other = (self.tightest(argument) for argument in owner.arguments)
            pick = min if owner.function == "minimum" else max
            return pick(one[0], other[0]), pick(one[1], other[1])
        return None

    def _range_of_argument(self, value: BlockArgument) -> Interval | None:
        found = induction_of(value)
        step = None if found is None else constant_of(found.step)
        if found is None or step is None or step <= 0:
            return None
        first, last = self.tightest(found.lower), self.tightest(found.upper)
        if last[1] <= first[0]:
            return None
        highest = last[1] - 1
        if first[0] == first[1]:
            highest = first[0] + (highest - first[0]) // int(step) * int(step)
        return first[0], highest


def _fits(interval: Interval) -> bool:
    return ANY_INDEX[0] <= interval[0] and interval[1] <= ANY_INDEX[1]
