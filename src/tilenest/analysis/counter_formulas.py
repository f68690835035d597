"""Index values as formulas over the counters of rearranged levels and the names of their extents.

In: levels, and the values in a function that count their instances or are the extents that they
name. Out: formulas of other values, conditions as constraints, and the values of further names, as
a remap writes what they are made of. A value of which the formula may not be the number that the
program computes has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tilenest.analysis.effects import is_computation
from tilenest.analysis.index_ranges import ANY_INDEX, ARITHMETIC, Formulas, operands_first
from tilenest.analysis.index_values import BIT_FUNCTIONS
from tilenest.analysis.instance_limits import InstanceLimits, meeting
from tilenest.analysis.structure import constant_of
from tilenest.dialects import Apply
from tilenest.errors import ShapeError
from tilenest.execution import MOST_INSTANCES, ExecStructure
from tilenest.ir import INDEX, Induction, OpResult, Value
from tilenest.layouts import (
    Add,
    BitExpr,
    Const,
    Constraint,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Ranges,
    Sym,
    bit_and,
    bounds,
    shift_left,
    shift_right,
    simplify,
    xor,
)

_MOST_COMPARED = 1_000
"""Pairs of values, to see whether two are computed alike."""
_COMPUTED: Mapping[str, Callable[..., IndexExpr]] = {
    **ARITHMETIC,
    "xor": xor,
    "and": bit_and,
    "shl": shift_left,
    "shr": shift_right,
}
_COMPARED: Mapping[str, Callable[[IndexExpr, IndexExpr], Constraint]] = {
    "ge": lambda a, b: Constraint(a - b),
    "gt": lambda a, b: Constraint(a - b - 1),
    "le": lambda a, b: Constraint(b - a),
    "lt": lambda a, b: Constraint(b - a - 1),
    "eq": lambda a, b: Constraint(a - b, is_equality=True),
}


class CounterFormulas:
    """Formulas in which `DimRef(i)` counts the instances of `levels[i]`, and `Sym(i)` is the extent
    `symbols[i]`."""

    def __init__(self, structure: ExecStructure, symbols: tuple[str, ...]) -> None:
        levels = structure.levels
        self.structure = structure
        self.symbols = symbols
        self.values: dict[str, Value] = {}
        """what is known of the names"""
        self._domains: dict[str, Induction[Value]] = {}
        """of levels with so many instances that do not count from 0 by 1"""
        self._ends: dict[str, Value] = {}
        """where nests end that have so many instances; without instances, that may be below 0"""
        self._known: dict[Value, IndexExpr | None] = {}
        self._names: dict[str, Sym] = {}
        self._ranges: dict[DimRef | Sym, Interval] = {
            DimRef(place): (0, max(level.extent - 1, 0))
            for place, level in enumerate(levels)
            if isinstance(level.extent, int)
        }
        self._dims = [DimRef(place) for place in range(len(levels))]
        self._symbols: list[IndexExpr] = [Sym(place) for place in range(len(symbols))]
        self._intervals: dict[Value, Interval] = {}
        """of values that are computed"""

    # Values that are given ----------------------------------------------------------------------

    def count(self, level: int, counters: Iterable[Value]) -> None:
        """Let values count the instances of a level."""
        self._known.update(dict.fromkeys(counters, DimRef(level)))

    def end(self, name: str, value: Value) -> bool:
        """Let a name stand for the instances of a level that ends at a value, or at 0 where that is
        less; False where it stands for those of another one."""
        self.values.setdefault(name, value)
        end = _unclamped(value)
        return _is_same(self._ends.setdefault(name, end), end)

    def walk(self, name: str, domain: Induction[Value]) -> bool:
        """Whether a name that is known is how many indices a domain has. One that is not known
        stands for just that from here on."""
        if name in self.values:
            return _is_count(self.values[name], domain)
        known = self._domains.setdefault(name, domain)
        return all(map(_is_same, _parts_of(known), _parts_of(domain)))

    def _bind(self, name: str, value: Value) -> bool:
        """Let a name stand for a value; False where it stands for another one."""
        self.values.setdefault(name, value)
        return self._is_called(name, value)

    def _is_called(self, name: str, value: Value) -> bool:
        """Whether a name stands for a value. Of an end below 0 it does not matter whether the value
        is 0: there is no instance in which anybody asks."""
        end = self._ends.get(name)
        is_end = end is not None and _is_same(end, _unclamped(value))
        return is_end or _is_same(self.values[name], value)

    def define(self, name: str, meaning: IndexExpr, arguments: Sequence[str]) -> bool:
        """Whether a name, where it is known, stands for a value that computes a formula of other
        names, in the way in which a remap writes it. A name that stands for nothing yet stands for
        what is found in its place."""
        if name not in self.values:
            return True
        waiting = [(meaning, self._ends.get(name, self.values[name]))]
        while waiting:
            wanted, found = waiting.pop()
            if isinstance(wanted, Const):
                is_met = constant_of(found) == wanted.value
            elif isinstance(wanted, Sym):
                is_met = self._bind(arguments[wanted.position], found)
            else:
                parts = _parts(wanted, found)
                is_met = parts is not None
                waiting += parts or ()
            if not is_met:
                return False
        return True

    def settle(self) -> None:
        """Read the names in formulas from here on; of names of equal values, the first one."""
        for name, value in self.values.items():
            place = self.symbols.index(name)
            alike = self._given(value)
            if alike is None:
                self._names[name] = Sym(place)
            else:
                self._symbols[place] = alike
        self._limits = InstanceLimits(self.structure, self.symbols, self.values, self._symbols)

    # Values that are computed -------------------------------------------------------------------

    def simplified(self, expression: IndexExpr) -> IndexExpr:
        """A formula of equal value where there is an instance."""
        return simplify(expression, self._ranges)

    def settled(self, expression: IndexExpr) -> IndexExpr:
        """A formula in which numbers that are known to be equal are written alike."""
        return self.simplified(expression.substitute(self._dims, self._symbols))

    def of(self, value: Value) -> IndexExpr | None:
        """A value as a formula; None where it is something else, or may wrap."""
        for part in operands_first(value, self._known, _operands):
            self._known[part] = self._computed(part)
        return self._known[value]

    def condition(self, value: Value) -> tuple[Constraint, ...] | None:
        """When a condition holds, as constraints that all hold; None where that is not known."""
        found: list[Constraint] = []
        waiting = [value]
        while waiting:
            apply = _apply_of(waiting.pop())
            if apply is not None and apply.function == "and":
                waiting += apply.arguments
                continue
            compare = None if apply is None else _COMPARED.get(apply.function)
            if apply is None or compare is None:
                return None
            left, right = map(self.of, apply.arguments)
            if left is None or right is None:
                return None
            compared = compare(left, right)
            simple = self.simplified(compared.expression)
            found.append(Constraint(simple, compared.is_equality))
        return tuple(found)

    def _computed(self, value: Value) -> IndexExpr | None:
        # A name that is computed anew is that name, and not what it is made of.
        given, apply = self._given(value), _apply_of(value)
        compute = None if apply is None else _COMPUTED.get(apply.function)
        if given is not None or apply is None or compute is None or value.type is not INDEX:
            return given
        parts = [self._known[argument] for argument in apply.arguments]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        alone = [Sym(place) for place in range(len(parts))]
        ends_of = map(self._interval, apply.arguments)
        ranges: Ranges = dict(zip(alone, ends_of, strict=True))
        try:
            found = self.simplified(compute(*known))
            ends = meeting(self._limits.interval(found), bounds(compute(*alone), ranges))
        except ShapeError:
            # A number on the way leaves 64 bits, or the formula gets too large.
            return None
        if ends is None or ends[0] < ANY_INDEX[0] or ends[1] > ANY_INDEX[1]:
            return None
        self._intervals[value] = ends
        return found

    def _interval(self, value: Value) -> Interval:
        """What a value lies in that has a formula."""
        found, formula = self._intervals.get(value), self._known[value]
        if found is None and formula is not None:
            found = self._limits.interval(formula)
        return found or ANY_INDEX

    def _given(self, value: Value) -> IndexExpr | None:
        """A number, or a name that is read already and is computed alike."""
        number = constant_of(value)
        if number is not None and value.type is INDEX:
            return Const(int(number))
        called = (symbol for name, symbol in self._names.items() if self._is_called(name, value))
        return next(called, None)


# How a remap writes formulas -------------------------------------------------------------------


def _parts(wanted: IndexExpr, found: Value) -> Sequence[tuple[IndexExpr, Value]] | None:
    """The operands of a formula, each with the value in its place."""
    match wanted:
        case Add(operands):
            first = operands[0]
            for term in operands[1:-1]:
                first = first + term
            function, pair = "add", (first, operands[-1])
        case Mul(left, right):
            function, pair = "mul", (left, right)
        case FloorDiv(left, right):
            function, pair = "floordiv", (left, right)
        case Mod(left, right):
            function, pair = "mod", (left, right)
        case BitExpr():
            function, pair = BIT_FUNCTIONS[type(wanted)], (wanted.left, wanted.right)
        case _:
            return None
    apply = _apply_of(found)
    if apply is None or apply.function != function:
        return None
    a, b = apply.arguments
    return tuple(zip(pair, (_unbounded(a, b) if function == "mul" else a, b), strict=True))


def _unbounded(factor: Value, other: Value) -> Value:
    """A factor without the bound that keeps a product of extents within an index."""
    least = _apply_of(factor)
    if least is None or least.function != "minimum":
        return factor
    room = _apply_of(least.arguments[1])
    if room is None or room.function != "floordiv":
        return factor
    most, divisor = room.arguments
    is_bound = constant_of(most) == MOST_INSTANCES and _is_same(divisor, other)
    return least.arguments[0] if is_bound else factor


def _is_count(value: Value, domain: Induction[Value]) -> bool:
    """Whether a value is how many indices a domain has, as a remap writes it, or in other words
    where nothing wraps; without any, the value may be below 0."""
    count, step = _unclamped(value), constant_of(domain.step)
    if not isinstance(step, int) or step == 0:
        return False
    first, end = domain.lower, domain.upper
    if step < 0:
        first, end = end, first
    reached = list(_reached(count, first, end))
    difference = _apply_of(count)
    if reached and abs(step) == 1 and difference is not None and difference.function == "sub":
        return all(map(_is_same, difference.arguments, (reached[0], first)))
    try:
        return any(_is_quotient(count, first, last, abs(step)) for last in (end, *reached))
    except ShapeError:
        # A formula gets too large.
        return False


def _is_quotient(count: Value, first: Value, end: Value, step: int) -> bool:
    """Whether a value is how many steps there are between two others, of which the last may be
    one in part."""
    leaves: list[Value] = []

    def leaf(value: Value) -> IndexExpr:
        known = (place for place, one in enumerate(leaves) if _is_same(one, value))
        place = next(known, len(leaves))
        if place == len(leaves):
            leaves.append(value)
        return Sym(place)

    formulas = Formulas(leaf)
    # A sum that wraps on the way is still right where there are not more than an index holds.
    found, begins, ends = formulas.coordinate(count), formulas.of(first), formulas.of(end)
    rest = (begins % step - ends % step) // step
    ways = (ends - begins + (step - 1)) // step, ends // step - begins // step - rest
    return any(simplify(found - way, {}) == Const(0) for way in ways)


def _reached(count: Value, first: Value, end: Value) -> Iterator[Value]:
    """Where a domain ends, or begins if it ends before that, among what a count is made of."""
    seen = set[Value]()
    for part in operands_first(count, seen, _operands):
        seen.add(part)
        most = _apply_of(part)
        is_most = most is not None and most.function == "maximum"
        if most is not None and is_most and all(map(_is_same, most.arguments, (end, first))):
            yield part


def _parts_of(domain: Induction[Value]) -> Sequence[Value]:
    return domain.lower, domain.upper, domain.step


def _unclamped(end: Value) -> Value:
    """Where a nest ends as well, for it has no instances below 0."""
    most = _apply_of(end)
    if most is None or most.function != "maximum" or constant_of(most.arguments[1]) != 0:
        return end
    return most.arguments[0]


def _is_same(one: Value, other: Value) -> bool:
    """Whether two values are computed alike from the same ones."""
    waiting, seen = [(one, other)], set[tuple[Value, Value]]()
    while waiting:
        pair = waiting.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        if len(seen) > _MOST_COMPARED or not _are_alike(*pair):
            return False
        owners = [value.owner for value in pair if isinstance(value, OpResult)]
        waiting += zip(*(owner.operands for owner in owners), strict=True)
    return True


def _are_alike(one: Value, other: Value) -> bool:
    """Whether two values are the same result of operations that differ in their operands only."""
    if not isinstance(one, OpResult) or not isinstance(other, OpResult):
        return False
    a, b = one.owner, other.owner
    return (
        is_computation(a)
        and (a.NAME, one.index, one.type) == (b.NAME, other.index, other.type)
        and dict(a.attributes) == dict(b.attributes)
        and len(a.operands) == len(b.operands)
    )


def _operands(value: Value) -> Sequence[Value]:
    apply = _apply_of(value)
    return () if apply is None or value.type is not INDEX else apply.arguments


def _apply_of(value: Value) -> Apply | None:
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, Apply) else None
