"""Index arithmetic, which wraps at 64 bits, as formulas of integers that do not.

In: SSA values of index type. Out: formulas over the leaves of their arithmetic, and intervals. A
sum, product, quotient or remainder is part of a formula only where its value surely fits signed 64
bits, whatever the leaves are; any other one is a leaf itself, an index of which nothing is known.
So a formula is the number that the program computes, and never one that only wraps to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence

from tilenest.analysis.structure import constant_of, induction_of
from tilenest.dialects import Apply, Cast, Extent, Remap
from tilenest.errors import ShapeError
from tilenest.ir import INDEX, LARGEST_EXTENT, BlockArgument, OpResult, ScalarType, Value, int64
from tilenest.layouts import MOST_PLACES, Const, DimRef, IndexExpr, Interval, Ranges, Sym, bounds
from tilenest.records import record

ANY_INDEX: Interval = (-(1 << 63), (1 << 63) - 1)
EXTREMES = ("minimum", "maximum")
ARITHMETIC: Mapping[str, Callable[..., IndexExpr]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
}
"""The scalar functions that formulas are made of."""
_RING = ("add", "sub", "mul", "neg")
_READ = (*ARITHMETIC, *EXTREMES)
_WIDE = (INDEX, ScalarType(int64))
"""The types of whole numbers that wrap at 64 bits."""
_FARTHEST_COORDINATE = (1 << 64) - (1 << 49)
NumberOf = Callable[[Value], int | None]


def formula_of(value: Value, leaf: Callable[[Value], IndexExpr]) -> IndexExpr:
    """The value as an expression over the leaves of its index arithmetic."""
    return Formulas(leaf).of(value)


class Formulas:
    """Index values as expressions over the leaves of their arithmetic.

    `leaf` says what a leaf is, and is asked only after what `below` says that it needs; `number`
    says which values are known.
    """

    def __init__(
        self,
        leaf: Callable[[Value], IndexExpr],
        number: NumberOf = lambda _: None,
        below: Callable[[Value], Sequence[Value]] = lambda _: (),
    ) -> None:
        self._leaf = leaf
        self._below = below
        self._reader = _Reader(number)
        self._known: dict[Value, IndexExpr] = {}

    def of(self, value: Value) -> IndexExpr:
        for part in operands_first(value, self._known, self._operands):
            self._known[part] = self._computed(part)
        return self._known[value]

    def coordinate(self, value: Value) -> IndexExpr:
        """The value as a coordinate of an array, inside of which it is this formula.

        Sums and products are right modulo 2**64, whatever wraps in between. Where they stay so near
        that of all numbers they may wrap to only they themselves lie in an array, they may be more
        than 64 bits hold: what is outside stays outside.
        """
        reader = self._reader
        if not reader.read(value).is_formula:
            try:
                if reader.is_near(_ring(value, reader.expression)):
                    return _ring(value, self.of)
            except ShapeError:
                # A coefficient leaves 64 bits, or the formula gets too large.
                pass
        return self.of(value)

    def _operands(self, value: Value) -> Sequence[Value]:
        read = self._reader.read(value)
        return read.arguments if read.is_formula else self._below(value)

    def _computed(self, value: Value) -> IndexExpr:
        read = self._reader.read(value)
        if isinstance(read.expression, Const):
            return read.expression
        try:
            if read.is_formula:
                return _computed(value, [self._known[argument] for argument in read.arguments])
        except ShapeError:
            # The leaves are formulas themselves, and these get too large.
            pass
        return self._leaf(value)


def operands_first(
    value: Value, known: Container[Value], operands: Callable[[Value], Sequence[Value]]
) -> Iterator[Value]:
    """What a value is computed from and is not known yet, each after its own operands.

    Who asks makes each known before the next. Chains may be longer than Python's stack.
    """
    waiting = [value]
    while waiting:
        current = waiting[-1]
        missing = [] if current in known else [v for v in operands(current) if v not in known]
        if missing:
            waiting += reversed(missing)
        elif current not in known:
            yield current
        else:
            waiting.pop()


def _ring(value: Value, part: Callable[[Value], IndexExpr]) -> IndexExpr:
    """Sums and products of parts that are neither."""
    known: dict[Value, IndexExpr] = {}
    for found in operands_first(value, known, lambda each: _arguments_of(each, _RING)):
        arguments = [known[argument] for argument in _arguments_of(found, _RING)]
        known[found] = _computed(found, arguments) if arguments else part(found)
    return known[value]


def _function_of(value: Value) -> str | None:
    """The scalar function that computes an index."""
    apply = value.owner if isinstance(value, OpResult) else None
    return apply.function if isinstance(apply, Apply) and value.type in _WIDE else None


def _arguments_of(value: Value, functions: Collection[str]) -> Sequence[Value]:
    """What some functions compute an index from; nothing where another one does."""
    if _function_of(value) not in functions or not isinstance(value, OpResult):
        return ()
    return value.owner.operands


def _computed(value: Value, arguments: Sequence[IndexExpr]) -> IndexExpr:
    """The value of arithmetic over those of its arguments; of an extreme only one counts."""
    compute = ARITHMETIC.get(_function_of(value) or "")
    return arguments[0] if compute is None else compute(*arguments)


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
    """A value over the leaves of one reader, an interval that holds it, and the arguments that it
    is a formula of; a leaf has none. Where there are too many leaves there is no expression."""

    expression: IndexExpr | None
    interval: Interval
    arguments: Sequence[Value] = ()

    @property
    def is_formula(self) -> bool:
        return bool(self.arguments) or isinstance(self.expression, Const)


class _Reader:
    """Reads values as formulas over symbols of its own, of which it knows intervals."""

    def __init__(self, number: NumberOf) -> None:
        self._number_of = number
        self._known: dict[Value, _Read] = {}
        self._ranges: dict[DimRef | Sym, Interval] = {}

    def is_near(self, expression: IndexExpr) -> bool:
        found = bounds(expression, self._ranges)
        return found is not None and max(abs(end) for end in found) <= _FARTHEST_COORDINATE

    def read(self, value: Value) -> _Read:
        for part in operands_first(value, self._known, self._operands):
            number = self._number(part)
            if number is not None:
                self._known[part] = _Read(Const(number), (number, number))
            else:
                found = self._arithmetic(part) or self._extreme(part)
                self._known[part] = found or self._leaf(part)
        return self._known[value]

    def expression(self, value: Value) -> IndexExpr:
        found = self.read(value).expression
        if found is None:
            raise ShapeError(f"an index has over {MOST_PLACES} leaves")
        return found

    def tightest(self, value: Value) -> Interval:
        """The interval of the whole formula, in which equal terms have met."""
        read = self.read(value)
        found = None if read.expression is None else bounds(read.expression, self._ranges)
        return read.interval if found is None or not _fits(found) else found

    def _operands(self, value: Value) -> Sequence[Value]:
        """What has to be read before a value."""
        if self._number(value) is not None:
            return ()
        found, below = induction_of(value), _size_of(value) or _source_of(value)
        if found is not None:
            return found.lower, found.upper
        return (below,) if isinstance(below, Value) else _arguments_of(value, _READ)

    def _number(self, value: Value) -> int | None:
        if value.type not in _WIDE:
            return None
        constant = constant_of(value)
        if constant is not None:
            return int(constant)
        size = _size_of(value)
        return size if isinstance(size, int) else self._number_of(value)

    def _arithmetic(self, value: Value) -> _Read | None:
        """A formula where it surely fits 64 bits."""
        arguments = _arguments_of(value, ARITHMETIC)
        if not arguments:
            return None
        parts = [self.read(argument) for argument in arguments]
        try:
            expression = _computed(value, [self.expression(argument) for argument in arguments])
            alone = [Sym(place) for place in range(len(parts))]
            ranges: Ranges = {
                symbol: part.interval for symbol, part in zip(alone, parts, strict=True)
            }
            interval = bounds(_computed(value, alone), ranges)
            if interval is None or not _fits(interval):
                interval = bounds(expression, self._ranges)
        except ShapeError:
            # A coefficient leaves 64 bits, or the formula gets too large.
            return None
        if interval is None or not _fits(interval):
            return None
        return _Read(expression, interval, arguments)

    def _extreme(self, value: Value) -> _Read | None:
        """The argument that a minimum or maximum always is, by the ranges of both."""
        arguments = _arguments_of(value, EXTREMES)
        if not arguments:
            return None
        one, other = (self.tightest(argument) for argument in arguments)
        if _function_of(value) == "maximum":
            arguments = arguments[::-1]
        for chosen, is_sure in ((0, one[1] <= other[0]), (1, other[1] <= one[0])):
            if is_sure:
                read = self.read(arguments[chosen])
                return _Read(read.expression, read.interval, (arguments[chosen],))
        return None

    def _leaf(self, value: Value) -> _Read:
        interval = self._range_of_leaf(value) or ANY_INDEX
        if len(self._ranges) == MOST_PLACES:
            return _Read(None, interval)
        symbol = Sym(len(self._ranges))
        self._ranges[symbol] = interval
        return _Read(symbol, interval)

    def _range_of_leaf(self, value: Value) -> Interval | None:
        if isinstance(value, BlockArgument):
            return self._range_of_argument(value)
        source = _source_of(value)
        if source is not None:
            return self.tightest(source)
        if not isinstance(value, OpResult) or value.type not in _WIDE:
            return None
        if isinstance(value.owner, Extent):
            size = _size_of(value)
            return self.tightest(size) if isinstance(size, Value) else (0, LARGEST_EXTENT)
        function = _function_of(value)
        if function in EXTREMES:
            one, other = (self.tightest(argument) for argument in value.owner.operands)
            pick = min if function == "minimum" else max
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


def _size_of(value: Value) -> Value | int | None:
    """What an extent of a view or buf is, where its type or the view itself says it."""
    extent = value.owner if isinstance(value, OpResult) else None
    if not isinstance(extent, Extent):
        return None
    shape: tuple[int | None, ...] = getattr(extent.view.type, "shape", ())
    if shape[extent.axis] is not None:
        return shape[extent.axis]
    remap = extent.view.owner if isinstance(extent.view, OpResult) else None
    return remap.extent(extent.axis) if isinstance(remap, Remap) else None


def _source_of(value: Value) -> Value | None:
    """The number of 64 bits that an index is cast from."""
    cast = value.owner if isinstance(value, OpResult) and value.type in _WIDE else None
    return cast.value if isinstance(cast, Cast) and cast.value.type in _WIDE else None


def _fits(interval: Interval) -> bool:
    return ANY_INDEX[0] <= interval[0] and interval[1] <= ANY_INDEX[1]
