"""Index values as formulas and intervals, and access maps over them.

In: SSA values of index type and access maps. Out: formulas over leaves (nest indices, arguments,
anything that is not index arithmetic), and intervals from the bounds of nests and views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilenest.analysis.structure import constant_of, induction_of
from tilenest.dialects import Apply, Extent
from tilenest.ir import INDEX, BlockArgument, OpResult, Value
from tilenest.layouts import (
    AffineMap,
    And,
    BitExpr,
    Const,
    DimRef,
    IndexExpr,
    Interval,
    ShiftLeft,
    ShiftRight,
    Sym,
    Xor,
    bounds,
    simplify,
)

LARGEST_EXTENT = 1 << 48
_ANY: Interval = (-(1 << 63), (1 << 63) - 1)
_ARITHMETIC: dict[str, Callable[[IndexExpr, IndexExpr], IndexExpr]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}

BIT_FUNCTIONS: Mapping[type[BitExpr], str] = {
    Xor: "xor",
    And: "and",
    ShiftLeft: "shl",
    ShiftRight: "shr",
}
"""The scalar function that computes a bitwise node."""


def formula_of(value: Value, leaf: Callable[[Value], IndexExpr]) -> IndexExpr:
    """The value as an expression over the leaves of its index arithmetic."""
    return _formula(value, leaf, {})


def _formula(
    value: Value, leaf: Callable[[Value], IndexExpr], known: dict[Value, IndexExpr]
) -> IndexExpr:
    found = known.get(value)
    if found is None:
        found = known[value] = _make_formula(value, leaf, known)
    return found


def _make_formula(
    value: Value, leaf: Callable[[Value], IndexExpr], known: dict[Value, IndexExpr]
) -> IndexExpr:
    if not isinstance(value, OpResult) or value.type is not INDEX:
        return leaf(value)
    owner = value.owner
    number = constant_of(value)
    if number is not None:
        return Const(int(number))
    if isinstance(owner, Extent):
        extent = owner.view.type.shape[owner.axis]  # type: ignore[attr-defined]  # a view
        return leaf(value) if extent is None else Const(extent)
    if isinstance(owner, Apply) and owner.function in (*_ARITHMETIC, "neg"):
        parts = [_formula(argument, leaf, known) for argument in owner.arguments]
        return -parts[0] if owner.function == "neg" else _ARITHMETIC[owner.function](*parts)
    return leaf(value)


def range_of(value: Value) -> Interval | None:
    """An interval that holds the value whenever it is defined."""
    leaves: list[Value] = []

    def leaf(part: Value) -> IndexExpr:
        if part not in leaves:
            leaves.append(part)
        return Sym(leaves.index(part))

    formula = formula_of(value, leaf)
    found = {Sym(i): _range_of_leaf(part) for i, part in enumerate(leaves)}
    return bounds(formula, {sym: part for sym, part in found.items() if part is not None})


def _range_of_leaf(value: Value) -> Interval | None:
    if isinstance(value, BlockArgument):
        return _range_of_argument(value)
    if not isinstance(value, OpResult) or value.type is not INDEX:
        return None
    owner = value.owner
    if isinstance(owner, Extent):
        return 0, LARGEST_EXTENT
    if isinstance(owner, Apply) and owner.function in ("minimum", "maximum"):
        one, other = (range_of(argument) or _ANY for argument in owner.arguments)
        pick = min if owner.function == "minimum" else max
        return pick(one[0], other[0]), pick(one[1], other[1])
    return None


def _range_of_argument(value: BlockArgument) -> Interval | None:
    found = induction_of(value)
    if found is None:
        return None
    first, last, step = range_of(found.lower), range_of(found.upper), constant_of(found.step)
    if first is None or last is None or step is None or step <= 0 or last[1] <= first[0]:
        return None
    highest = last[1] - 1
    if first[0] == first[1]:
        highest = first[0] + (highest - first[0]) // int(step) * int(step)
    return first[0], highest


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


def access_formulas(
    map_: AffineMap,
    dims: Sequence[IndexExpr],
    symbols: Sequence[IndexExpr],
    ranges: dict[DimRef | Sym, Interval],
) -> tuple[IndexExpr, ...]:
    """The results of a map with its dims and symbols replaced, simplified over the ranges."""
    return tuple(simplify(result.substitute(dims, symbols), ranges) for result in map_.results)
