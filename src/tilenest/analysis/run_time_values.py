"""What index values and conditions are where the numbers known at run time only are given.

In: `Facts` of one call (scalar arguments, extents and strides of views), values of the IR. Out: a
number, a formula over the counters of the nests around, or constraints that say when a condition
holds; None where the value depends on what the program computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from tilenest.analysis.index_values import formula_of
from tilenest.analysis.structure import constant_of
from tilenest.dialects import Apply, Cast, Extent, Stride
from tilenest.ir import INDEX, OpResult, Value, element_dtype
from tilenest.layouts import Const, Constraint, IndexExpr, bit_and, shift_right
from tilenest.records import record

_FUNCTIONS: Mapping[str, Callable[..., int]] = {
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
Coordinates = Mapping[Value, IndexExpr]
_SIGN = 63


@record
class Facts:
    """The numbers of one call. Extents and strides (in elements) are of the views of arguments."""

    scalars: Mapping[Value, int]
    extents: Mapping[Value, tuple[int, ...]]
    strides: Mapping[Value, tuple[int, ...]]
    workers: int = 1
    grain: int = 1
    """instances of a root parallel that a worker takes at once"""


class _NotKnownError(Exception):
    """A leaf of a formula is no number of the call."""


def number_of(value: Value, facts: Facts) -> int | None:
    """The number a scalar is, where only facts of the call decide it."""
    constant = constant_of(value)
    if constant is not None:
        return int(constant) if not isinstance(constant, float) else None
    if value in facts.scalars:
        return facts.scalars[value]
    if not isinstance(value, OpResult):
        return None
    match value.owner:
        case Extent(view=view, axis=axis) if view in facts.extents:
            return facts.extents[view][axis]
        case Stride(view=view, axis=axis) if view in facts.strides:
            return facts.strides[view][axis]
        case Cast() as cast if not element_dtype(cast.operands[0].type).is_float:
            return number_of(cast.operands[0], facts)
        case Apply() as apply if apply.function in _FUNCTIONS:
            return _applied(apply, facts)
    return None


def _applied(apply: Apply, facts: Facts) -> int | None:
    parts = [number_of(argument, facts) for argument in apply.arguments]
    if any(part is None for part in parts):
        return None
    return int(_FUNCTIONS[apply.function](*parts))


def index_formula(value: Value, coordinates: Coordinates, facts: Facts) -> IndexExpr | None:
    """An index value over the coordinates of nests; None where it is computed by the program."""

    def leaf(part: Value) -> IndexExpr:
        if part in coordinates:
            return coordinates[part]
        number = number_of(part, facts)
        if number is not None:
            return Const(number)
        match part:
            case OpResult(owner=Apply(function="minimum" | "maximum") as apply):
                return _extreme(apply.function, *(formula_of(a, leaf) for a in apply.arguments))
        raise _NotKnownError

    try:
        return formula_of(value, leaf)
    except _NotKnownError:
        return None


def _extreme(function: str, a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """The smaller or larger of two: b and what a lies below or above it, by the sign's bits."""
    more = a - b
    below = bit_and(more, shift_right(more, _SIGN))
    return b + (below if function == "minimum" else more - below)


def constraints_of(
    condition: Value, is_wanted: bool, coordinates: Coordinates, facts: Facts
) -> tuple[Constraint, ...] | None:
    """When a condition is as wanted, as constraints that all hold; None where none say exactly
    that."""
    number = number_of(condition, facts)
    if number is not None:
        return () if bool(number) is is_wanted else (Constraint(Const(-1)),)
    if not isinstance(condition, OpResult) or not isinstance(condition.owner, Apply):
        return None
    apply = condition.owner
    if apply.function == "not":
        return constraints_of(apply.arguments[0], not is_wanted, coordinates, facts)
    if apply.function == ("and" if is_wanted else "or"):
        parts = [constraints_of(a, is_wanted, coordinates, facts) for a in apply.arguments]
        known = [part for part in parts if part is not None]
        return tuple(c for part in known for c in part) if len(known) == len(parts) else None
    return _comparison(apply, is_wanted, coordinates, facts)


def _comparison(
    apply: Apply, is_wanted: bool, coordinates: Coordinates, facts: Facts
) -> tuple[Constraint, ...] | None:
    if any(argument.type is not INDEX for argument in apply.arguments):
        return None
    if len(apply.arguments) != 2:
        return None
    a, b = (index_formula(argument, coordinates, facts) for argument in apply.arguments)
    if a is None or b is None:
        return None
    function = apply.function
    if not is_wanted:
        function = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "ne": "eq"}.get(function, "")
    match function:
        case "lt":
            return (Constraint(b - a - 1),)
        case "le":
            return (Constraint(b - a),)
        case "gt":
            return (Constraint(a - b - 1),)
        case "ge":
            return (Constraint(a - b),)
        case "eq":
            return (Constraint(a - b, is_equality=True),)
    return None
