"""Index values as formulas over the numbers that they start from, and what is known of those.

In: SSA values of index type, conditions, access maps. Out: formulas over leaves (an index of a
nest, the extent of a view, whatever is no index arithmetic), intervals, and `Leaves`, which numbers
the leaves of several formulas and says what holds between them. Where the `Facts` of one call and
the coordinates of nests stand for all leaves, a value is a number or a formula over coordinates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tilenest.analysis.index_ranges import EXTREMES, Formulas, operands_first, range_of
from tilenest.analysis.structure import constant_of, induction_of
from tilenest.dialects import Apply, Cast, Extent, Remap, Stride
from tilenest.errors import ShapeError
from tilenest.ir import INDEX, LARGEST_EXTENT, BlockArgument, OpResult, Type, Value, element_dtype
from tilenest.layouts import (
    AffineMap,
    And,
    BitExpr,
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    Interval,
    Ranges,
    ShiftLeft,
    ShiftRight,
    Sym,
    Xor,
    bit_and,
    bounds,
    shift_right,
    simplify,
    split_terms,
)
from tilenest.records import record

_MOST_NESTS = 4
"""Nests whose ends depend on each other's indices."""
_SIGN = 64
"""A shift right by more than any difference of two indices has bits leaves the sign."""
_NUMBERS: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "neg": operator.neg,
    "minimum": min,
    "maximum": max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
    "where": lambda condition, a, b: a if condition else b,
}
_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "ne": "eq"}

BIT_FUNCTIONS: Mapping[type[BitExpr], str] = {
    Xor: "xor",
    And: "and",
    ShiftLeft: "shl",
    ShiftRight: "shr",
}
"""The scalar function that computes a bitwise node."""
Coordinates = Mapping[Value, IndexExpr]
LeafKey = Value | tuple[Value, int]
"""A value, or a view and an axis whose extent is meant."""


def access_formulas(
    map_: AffineMap,
    dims: Sequence[IndexExpr],
    symbols: Sequence[IndexExpr],
    ranges: dict[DimRef | Sym, Interval],
) -> tuple[IndexExpr, ...]:
    """The results of a map with its dims and symbols replaced, simplified over the ranges."""
    return tuple(simplify(result.substitute(dims, symbols), ranges) for result in map_.results)


# Numbers of one call ---------------------------------------------------------------------------


@record
class Facts:
    """The numbers of one call. Extents and strides (in elements) are of the views of arguments."""

    scalars: Mapping[Value, int] = MappingProxyType({})
    extents: Mapping[Value, tuple[int, ...]] = MappingProxyType({})
    strides: Mapping[Value, tuple[int, ...]] = MappingProxyType({})
    workers: int = 1
    grain: int = 1
    """instances of a root parallel that a worker takes at once"""


_NO_FACTS = Facts()


def number_of(value: Value, facts: Facts) -> int | None:
    """The number a scalar is, where only facts of the call decide it."""
    return _Numbers(facts).of(value)


class _Numbers:
    """The numbers that facts decide, each found once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Value, int | None] = {}

    def of(self, value: Value) -> int | None:
        for part in operands_first(value, self._known, self._operands):
            self._known[part] = self._found(part)
        return self._known[value]

    def _operands(self, value: Value) -> Sequence[Value]:
        if value in self._facts.scalars or not isinstance(value, OpResult):
            return ()
        return value.owner.operands if isinstance(value.owner, Apply | Cast) else ()

    def _found(self, value: Value) -> int | None:
        constant = constant_of(value)
        if constant is not None:
            return int(constant) if not isinstance(constant, float) else None
        if value in self._facts.scalars:
            return self._facts.scalars[value]
        if not isinstance(value, OpResult):
            return None
        match value.owner:
            case Extent(view=view, axis=axis) if view in self._facts.extents:
                return self._facts.extents[view][axis]
            case Stride(view=view, axis=axis) if view in self._facts.strides:
                return self._facts.strides[view][axis]
            case Cast() as cast if not element_dtype(cast.operands[0].type).is_float:
                number = self._known[cast.operands[0]]
                return None if number is None else _wrapped(number, value.type)
            case Apply() as apply if apply.function in _NUMBERS:
                parts = [self._known[argument] for argument in apply.arguments]
                if None in parts:
                    return None
                return _wrapped(int(_NUMBERS[apply.function](*parts)), value.type)
        return None


def _wrapped(number: int, type_: Type) -> int:
    """A number as the machine keeps it in a scalar of the type."""
    dtype = element_dtype(type_)
    if not dtype.is_integer:
        return number
    below = 1 << dtype.bits - 1 if dtype.is_signed else 0
    return (number + below) % (1 << dtype.bits) - below


def index_formula(value: Value, coordinates: Coordinates, facts: Facts) -> IndexExpr | None:
    """An index value over the coordinates of nests; None where it is computed by the program."""
    try:
        return _NoLeaves(coordinates, facts).formula(value)
    except _NotKnownError:
        return None


def constraints_of(
    condition: Value, is_wanted: bool, coordinates: Coordinates, facts: Facts
) -> tuple[Constraint, ...] | None:
    """When a condition is as wanted, as constraints that all hold; None where none say exactly
    that."""
    try:
        return _NoLeaves(coordinates, facts).constraints(condition, is_wanted)
    except _NotKnownError:
        return None


class _NotKnownError(Exception):
    """A leaf of a formula is no number of the call."""


# Leaves ----------------------------------------------------------------------------------------


@record
class KnownLeaves:
    """The leaves by number, and what holds of them; `is_exact` where nothing else does."""

    keys: tuple[LeafKey, ...]
    names: tuple[str, ...]
    ranges: Ranges
    constraints: tuple[Constraint, ...]
    spans: Mapping[Sym, tuple[IndexExpr, IndexExpr]]
    """the lowest and the highest of an index of a nest, over other leaves"""
    is_exact: bool

    def is_never_negative(self, expr: IndexExpr, ranges: Ranges) -> bool:
        """Whether an expression is at least 0, by intervals and by the ends of nests."""
        for _ in range(_MOST_NESTS):
            found = bounds(simplify(expr, ranges), ranges)
            if found is not None and found[0] >= 0:
                return True
            terms, constant = split_terms(expr)
            if not any(unit in self.spans for unit in terms):
                return False
            expr = Const(constant)
            for unit, step in terms.items():
                ends = self.spans.get(unit) if isinstance(unit, Sym) else None
                least = unit if ends is None else ends[0 if step > 0 else 1]
                expr += least * step
        return False


class Leaves:
    """The leaves of some formulas, collected while these are made. What has a coordinate, or is a
    number of the call, is no leaf. `names` are other names of values."""

    def __init__(
        self,
        coordinates: Coordinates = MappingProxyType({}),
        facts: Facts = _NO_FACTS,
        names: Mapping[Value, Value] = MappingProxyType({}),
    ) -> None:
        self._coordinates = coordinates
        self._numbers = _Numbers(facts)
        self._formulas = Formulas(self._leaf, self._numbers.of, self._below)
        self._names = names
        self._leaves: dict[LeafKey, Sym] = {}
        self._constraints: list[Constraint] = []
        self._spans: dict[Sym, tuple[IndexExpr, IndexExpr]] = {}
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._described: list[LeafKey] = []
        self._is_exact = True

    def __len__(self) -> int:
        return len(self._leaves)

    def formula(self, value: Value) -> IndexExpr:
        """A value over the leaves."""
        return self._formulas.of(value)

    def coordinate(self, value: Value) -> IndexExpr:
        """A value as a coordinate: inside of every array it is this formula over the leaves."""
        return self._formulas.coordinate(value)

    def extent(self, view: Value, axis: int) -> IndexExpr:
        """An extent of a view or buf."""
        shape: tuple[int | None, ...] = getattr(view.type, "shape", ())
        known = shape[axis]
        if known is not None:
            return Const(known)
        owner = view.owner if isinstance(view, OpResult) else None
        size = owner.extent(axis) if isinstance(owner, Remap) else None
        return self._at((view, axis)) if not isinstance(size, Value) else self.formula(size)

    def constraints(self, condition: Value, is_wanted: bool) -> tuple[Constraint, ...] | None:
        """When a condition is as wanted, as constraints that all hold; None where none say exactly
        that."""
        number = self._numbers.of(condition)
        if number is not None:
            return () if bool(number) is is_wanted else (Constraint(Const(-1)),)
        if not isinstance(condition, OpResult) or not isinstance(condition.owner, Apply):
            return None
        apply = condition.owner
        if apply.function == "not":
            return self.constraints(apply.arguments[0], not is_wanted)
        if apply.function == ("and" if is_wanted else "or"):
            parts = [self.constraints(argument, is_wanted) for argument in apply.arguments]
            known = [part for part in parts if part is not None]
            return tuple(c for part in known for c in part) if len(known) == len(parts) else None
        return self._comparison(apply, is_wanted)

    def when(self, condition: Value, is_wanted: bool) -> None:
        """Only what holds where a condition is as wanted matters from here on."""
        found = self.constraints(condition, is_wanted)
        self._is_exact = self._is_exact and found is not None
        self._constraints += found or ()

    def hold(self, *constraints: Constraint) -> None:
        """The same, of constraints over the leaves and the dims of the access."""
        self._constraints += constraints

    def close(self) -> KnownLeaves:
        """What is known of all leaves; describing one may need further ones."""
        while len(self._described) < len(self._leaves):
            key = list(self._leaves)[len(self._described)]
            self._described.append(key)
            try:
                found = self._describe(key, self._leaves[key])
            except ShapeError:
                # A number on the way leaves 64 bits, so less is known.
                self._is_exact = False
                found = None if isinstance(key, tuple) else range_of(key)
            if found is not None:
                self._ranges[self._leaves[key]] = found
        names = tuple(f"s{place:04}" for place in range(len(self._leaves)))
        keys, held = tuple(self._leaves), tuple(self._constraints)
        ranges, spans = dict(self._ranges), dict(self._spans)
        return KnownLeaves(keys, names, ranges, held, spans, self._is_exact)

    def _leaf(self, value: Value) -> IndexExpr:
        """A value that formulas start from."""
        if value in self._names:
            return self.formula(self._names[value])
        if value in self._coordinates:
            return self._coordinates[value]
        if isinstance(value, OpResult) and isinstance(value.owner, Extent):
            return self.extent(value.owner.view, value.owner.axis)
        return self._at(value)

    def _below(self, _: Value) -> Sequence[Value]:
        """What a leaf is made of: nothing."""
        return ()

    def _at(self, key: LeafKey) -> IndexExpr:
        return self._leaves.setdefault(key, Sym(len(self._leaves)))

    def _comparison(self, apply: Apply, is_wanted: bool) -> tuple[Constraint, ...] | None:
        if len(apply.arguments) != 2 or any(a.type is not INDEX for a in apply.arguments):
            return None
        a, b = map(self.formula, apply.arguments)
        function = apply.function if is_wanted else _NEGATED.get(apply.function)
        try:
            match function:
                case "lt" | "gt":
                    return (Constraint((b - a if function == "lt" else a - b) - 1),)
                case "le" | "ge":
                    return (Constraint(b - a if function == "le" else a - b),)
                case "eq":
                    return (Constraint(a - b, is_equality=True),)
        except ShapeError:
            # A number on the way leaves 64 bits, or the formula gets too large.
            pass
        return None

    def _describe(self, key: LeafKey, leaf: Sym) -> Interval | None:
        if isinstance(key, tuple):
            self.hold(Constraint(leaf), Constraint(LARGEST_EXTENT - leaf))
            return 0, LARGEST_EXTENT
        extreme = _extreme_of(key)
        if induction_of(key) is not None:
            self._between(key, leaf)
        elif extreme is not None:
            self._is_exact = False
            is_least = extreme.function == "minimum"
            gaps = [self.formula(argument) - leaf for argument in extreme.arguments]
            self.hold(*(Constraint(gap if is_least else -gap) for gap in gaps))
        elif not _is_argument(key):
            self._is_exact = False
        return range_of(key)

    def _between(self, index: Value, leaf: Sym) -> None:
        """An index of a nest counts from its lower to its upper bound."""
        found = induction_of(index)
        assert found is not None
        step = constant_of(found.step)
        if not step:
            self._is_exact = False
            return
        lower, upper = self.formula(found.lower), self.formula(found.upper)
        self._spans[leaf] = (lower, upper - 1) if step > 0 else (upper + 1, lower)
        span, way = (leaf - lower, upper - leaf) if step > 0 else (lower - leaf, leaf - upper)
        self.hold(Constraint(span), Constraint(way - 1))
        if abs(step) != 1:
            self.hold(Constraint(span % abs(int(step)), is_equality=True))


class _NoLeaves(Leaves):
    """Every value is a number of the call or a formula over coordinates, or not known."""

    def _at(self, key: LeafKey) -> IndexExpr:
        raise _NotKnownError(key)

    def _below(self, value: Value) -> Sequence[Value]:
        extreme = None if value in self._coordinates else _extreme_of(value)
        return () if extreme is None else extreme.arguments

    def _leaf(self, value: Value) -> IndexExpr:
        """An extreme is b and what a lies below or above it, by the sign's bits."""
        extreme = None if value in self._coordinates else _extreme_of(value)
        if extreme is None:
            return super()._leaf(value)
        a, b = map(self.formula, extreme.arguments)
        try:
            more = a - b
            below = bit_and(more, shift_right(more, _SIGN))
            return b + (below if extreme.function == "minimum" else more - below)
        except ShapeError:
            # The formula gets too large.
            raise _NotKnownError(value) from None


def _extreme_of(value: Value) -> Apply | None:
    """The minimum or maximum that a value is."""
    apply = value.owner if isinstance(value, OpResult) else None
    return apply if isinstance(apply, Apply) and apply.function in EXTREMES else None


def _is_argument(value: Value) -> bool:
    """Whether a value is given by the caller, who may give any."""
    return (
        isinstance(value, BlockArgument)
        and value.block.parent_op is None
        and not value.block.incoming
    )
