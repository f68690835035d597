"""Index expressions: integer formulas over a map's dimensions and run-time symbols.

In: ints, `DimRef(position)` and `Sym(position)`, combined with `+ - * // %`. Out: frozen, hashable
nodes in canonical form: sums are flattened, ordered and expanded over products, so equal
polynomials are equal nodes, and division by a constant gives up every part it divides exactly.
Division floors as Python's does, and by zero gives 0; a constant that leaves 64 bits is an error,
never a wrap. Build nodes with the operators; the classes are there to match on. The bitwise nodes
are in `index_bits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd
from typing import Any, ClassVar, SupportsIndex

from tilenest.errors import ShapeError
from tilenest.layouts.kinds import check_size, small_constant, small_position, tuple_of
from tilenest.layouts.linear_form import LinearForm
from tilenest.records import record

_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
_set = object.__setattr__


class IndexExpr:
    """The base of all nodes; holds what every node knows about itself from construction."""

    __slots__ = ("depth", "digest", "dim_mask", "order", "size", "sym_mask")

    # Nested tuples of ints: comparing two of them never calls back into Python code.
    order: tuple[object, ...]
    digest: int
    depth: int
    size: int
    dim_mask: int
    sym_mask: int

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, IndexExpr):
            return NotImplemented
        return self.digest == other.digest and self.order == other.order

    def __add__(self, other: Operand) -> IndexExpr:
        return _sum(self, as_index_expr(other), 1)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> IndexExpr:
        return _sum(self, as_index_expr(other), -1)

    def __rsub__(self, other: Operand) -> IndexExpr:
        return _sum(as_index_expr(other), self, -1)

    def __neg__(self) -> IndexExpr:
        return _scale(self, -1)

    def __mul__(self, other: Operand) -> IndexExpr:
        return _product(self, as_index_expr(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> IndexExpr:
        return _floor_div(self, as_index_expr(other))

    def __rfloordiv__(self, other: Operand) -> IndexExpr:
        return _floor_div(as_index_expr(other), self)

    def __mod__(self, other: Operand) -> IndexExpr:
        return _mod(self, as_index_expr(other))

    def __rmod__(self, other: Operand) -> IndexExpr:
        return _mod(as_index_expr(other), self)

    def evaluate(self, dims: Sequence[int], syms: Sequence[int] = ()) -> int:
        """The value at a point, in unbounded integers."""
        return _evaluate(self, dims, syms)

    def substitute(self, dims: Sequence[IndexExpr], syms: Sequence[IndexExpr] = ()) -> IndexExpr:
        """The formula with `DimRef(i)` replaced by `dims[i]` and `Sym(i)` by `syms[i]`."""
        return _substitute(self, dims, syms)

    def used_dims(self) -> frozenset[int]:
        """The positions of the dimensions that occur."""
        return _positions(self.dim_mask)

    def used_syms(self) -> frozenset[int]:
        """The positions of the symbols that occur."""
        return _positions(self.sym_mask)

    def linear(self) -> LinearForm | None:
        """The formula as a plain sum, or None when a division or a product remains."""
        terms, constant = split_terms(self)
        dims = tuple((unit.position, by) for unit, by in terms.items() if type(unit) is DimRef)
        syms = tuple((unit.position, by) for unit, by in terms.items() if type(unit) is Sym)
        is_sum = len(dims) + len(syms) == len(terms)
        return LinearForm(dims, syms, constant) if is_sum else None

    def coefficient(self, dim: int) -> int | None:
        """The change of the value when dimension `dim` grows by 1, or None where it varies."""
        result = 0
        for unit, coefficient in split_terms(self)[0].items():
            if type(unit) is DimRef:
                if unit.position == dim:
                    result = coefficient
            elif unit.dim_mask >> dim & 1:
                return None
        return result


Operand = IndexExpr | SupportsIndex


@record(eq=False)
class Const(IndexExpr):
    """An integer of at most 64 bits."""

    value: int

    def __post_init__(self) -> None:
        _set(self, "value", small_constant(self.value))
        _finish(self, (2, self.value), hash((2, self.value)), (0, 0))

    def __str__(self) -> str:
        return str(self.value)


@record(eq=False)
class DimRef(IndexExpr):
    """The coordinate along the map's dimension at a position."""

    position: int

    def __post_init__(self) -> None:
        _finish_leaf(self, 0)

    def __str__(self) -> str:
        return f"d{self.position}"


@record(eq=False)
class Sym(IndexExpr):
    """The run-time integer bound to the map's symbol at a position."""

    position: int

    def __post_init__(self) -> None:
        _finish_leaf(self, 1)

    def __str__(self) -> str:
        return f"s{self.position}"


@record(eq=False)
class Add(IndexExpr):
    """A sum of two or more ordered terms; a constant comes last."""

    operands: tuple[IndexExpr, ...]

    def __post_init__(self) -> None:
        operands = tuple_of(self.operands, IndexExpr, "the terms of a sum")
        if len(operands) < 2:
            raise ShapeError("a sum has less than two terms", remedy="join terms with +")
        _set(self, "operands", operands)
        dim_mask = sym_mask = depth = size = 0
        for operand in operands:
            dim_mask |= operand.dim_mask
            sym_mask |= operand.sym_mask
            depth = max(depth, operand.depth)
            size += operand.size
        order = (6, *[operand.order for operand in operands])
        _finish(self, order, hash((6, operands)), (dim_mask, sym_mask), (depth + 1, size + 1))

    def __str__(self) -> str:
        first, *rest = self.operands
        return str(first) + "".join(_signed_text(operand) for operand in rest)


class _Binary(IndexExpr):
    """What the nodes with two operands share."""

    __slots__ = ()

    def _finish_pair(self, rank: int, left: Any, right: Any) -> None:
        if not (isinstance(left, IndexExpr) and isinstance(right, IndexExpr)):
            tuple_of((left, right), IndexExpr, "the operands of a formula")
        digest = hash((rank, left.digest, right.digest))
        masks = left.dim_mask | right.dim_mask, left.sym_mask | right.sym_mask
        extent = max(left.depth, right.depth) + 1, left.size + right.size + 1
        _finish(self, (rank, left.order, right.order), digest, masks, extent)


@record(eq=False)
class Mul(_Binary):
    """A product of ordered factors, none a sum; a constant factor is the outermost `right`."""

    left: IndexExpr
    right: IndexExpr

    def __post_init__(self) -> None:
        self._finish_pair(5, self.left, self.right)

    def __str__(self) -> str:
        if type(self.right) is Const and self.right.value == -1:
            return f"-{_factor_text(self.left)}"
        left = str(self.left) if type(self.left) is Mul else _factor_text(self.left)
        return f"{left}*{_factor_text(self.right)}"


@record(eq=False)
class FloorDiv(_Binary):
    """A quotient rounded towards minus infinity; 0 when the divisor is 0."""

    dividend: IndexExpr
    divisor: IndexExpr

    def __post_init__(self) -> None:
        self._finish_pair(3, self.dividend, self.divisor)

    def __str__(self) -> str:
        return f"{_factor_text(self.dividend)}//{_factor_text(self.divisor)}"


@record(eq=False)
class Mod(_Binary):
    """A remainder with the sign of the divisor; 0 when the divisor is 0."""

    dividend: IndexExpr
    divisor: IndexExpr

    def __post_init__(self) -> None:
        self._finish_pair(4, self.dividend, self.divisor)

    def __str__(self) -> str:
        return f"{_factor_text(self.dividend)}%{_factor_text(self.divisor)}"


class BitExpr(_Binary):
    """The bitwise nodes of `index_bits`, with how two values join, and two expressions."""

    __slots__ = ()

    left: IndexExpr
    right: IndexExpr
    rank: ClassVar[int]
    sign: ClassVar[str]

    def value_of(self, left: int, right: int) -> int:
        raise NotImplementedError

    def joined(self, left: IndexExpr, right: IndexExpr) -> IndexExpr:
        raise NotImplementedError

    def __post_init__(self) -> None:
        self._finish_pair(self.rank, self.left, self.right)

    def __str__(self) -> str:
        return f"({_factor_text(self.left)} {self.sign} {_factor_text(self.right)})"


def as_index_expr(value: Operand) -> IndexExpr:
    """An expression as it is, an integer as a constant."""
    return value if isinstance(value, IndexExpr) else Const(small_constant(value))


def split_terms(expr: IndexExpr) -> tuple[dict[IndexExpr, int], int]:
    """A formula as its units (nodes without a coefficient) with coefficients, and a constant."""
    terms: dict[IndexExpr, int] = {}
    constant = _accumulate(terms, as_index_expr(expr), 1)
    return terms, constant


def join_terms(terms: dict[IndexExpr, int], constant: int) -> IndexExpr:
    """The canonical sum of units times coefficients, and a constant."""
    kept = sorted((pair for pair in terms.items() if pair[1]), key=lambda pair: pair[0].order)
    operands = [
        unit if coefficient == 1 else Mul(unit, Const(coefficient)) for unit, coefficient in kept
    ]
    if constant or not operands:
        operands.append(Const(constant))
    return operands[0] if len(operands) == 1 else Add(tuple(operands))


def _evaluate(expr: IndexExpr, dims: Sequence[int], syms: Sequence[int]) -> int:
    match expr:
        case DimRef(position):
            return dims[position]
        case Const(value):
            return value
        case Sym(position):
            return syms[position]
        case Add(operands):
            return sum(_evaluate(operand, dims, syms) for operand in operands)
        case Mul(left, right):
            return _evaluate(left, dims, syms) * _evaluate(right, dims, syms)
        case FloorDiv(dividend, divisor):
            by = _evaluate(divisor, dims, syms)
            return _evaluate(dividend, dims, syms) // by if by else 0
        case Mod(dividend, divisor):
            by = _evaluate(divisor, dims, syms)
            return _evaluate(dividend, dims, syms) % by if by else 0
        case BitExpr():
            left_value = _evaluate(expr.left, dims, syms)
            return expr.value_of(left_value, _evaluate(expr.right, dims, syms))
    raise AssertionError(f"unknown index expression {expr!r}")


def _substitute(expr: IndexExpr, dims: Sequence[IndexExpr], syms: Sequence[IndexExpr]) -> IndexExpr:
    match expr:
        case DimRef(position):
            return dims[position]
        case Const():
            return expr
        case Sym(position):
            return syms[position]
        case Add(operands):
            terms: dict[IndexExpr, int] = {}
            constant = 0
            for operand in operands:
                unit, coefficient = _unit_and_coefficient(operand)
                constant += _accumulate(terms, _substitute(unit, dims, syms), coefficient)
            return join_terms(terms, constant)
        case Mul(left, right):
            return _product(_substitute(left, dims, syms), _substitute(right, dims, syms))
        case FloorDiv(dividend, divisor):
            return _floor_div(_substitute(dividend, dims, syms), _substitute(divisor, dims, syms))
        case Mod(dividend, divisor):
            return _mod(_substitute(dividend, dims, syms), _substitute(divisor, dims, syms))
        case BitExpr():
            new_left = _substitute(expr.left, dims, syms)
            return expr.joined(new_left, _substitute(expr.right, dims, syms))
    raise AssertionError(f"unknown index expression {expr!r}")


def _finish(
    node: IndexExpr,
    order: tuple[object, ...],
    digest: int,
    masks: tuple[int, int],
    extent: tuple[int, int] = (1, 1),
) -> None:
    check_size(*extent)
    _set(node, "depth", extent[0])
    _set(node, "size", extent[1])
    _set(node, "order", order)
    _set(node, "digest", digest)
    _set(node, "dim_mask", masks[0])
    _set(node, "sym_mask", masks[1])


def _finish_leaf(node: DimRef | Sym, rank: int) -> None:
    place = small_position(node.position)
    _set(node, "position", place)
    masks = (0, 1 << place) if rank else (1 << place, 0)
    _finish(node, (rank, place), hash((rank, place)), masks)


def _positions(mask: int) -> frozenset[int]:
    return frozenset(place for place in range(mask.bit_length()) if mask >> place & 1)


def _unit_and_coefficient(term: IndexExpr) -> tuple[IndexExpr, int]:
    if type(term) is Mul and type(term.right) is Const:
        return term.left, term.right.value
    return term, 1


def _accumulate(terms: dict[IndexExpr, int], expr: IndexExpr, scale: int) -> int:
    """Add `expr * scale` to the terms; returns the constant part."""
    constant = 0
    for operand in expr.operands if type(expr) is Add else (expr,):
        if type(operand) is Const:
            constant += operand.value * scale
        else:
            unit, coefficient = _unit_and_coefficient(operand)
            terms[unit] = terms.get(unit, 0) + coefficient * scale
    return constant


def _sum(left: IndexExpr, right: IndexExpr, sign: int) -> IndexExpr:
    if type(right) is Const and right.value == 0:
        return left
    terms: dict[IndexExpr, int] = {}
    constant = _accumulate(terms, left, 1) + _accumulate(terms, right, sign)
    return join_terms(terms, constant)


def _scale(expr: IndexExpr, factor: int) -> IndexExpr:
    if factor == 1:
        return expr
    if factor and type(expr) is not Add and type(expr) is not Mul and type(expr) is not Const:
        return Mul(expr, Const(factor))
    terms: dict[IndexExpr, int] = {}
    constant = _accumulate(terms, expr, factor)
    return join_terms(terms, constant)


def _product(left: IndexExpr, right: IndexExpr) -> IndexExpr:
    if type(right) is Const:
        return _scale(left, right.value)
    if type(left) is Const:
        return _scale(right, left.value)
    left_terms, left_constant = split_terms(left)
    right_terms, right_constant = split_terms(right)
    check_size(1, len(left_terms) * len(right_terms))
    terms = {unit: value * left_constant for unit, value in right_terms.items()}
    for unit, value in left_terms.items():
        terms[unit] = terms.get(unit, 0) + value * right_constant
        for other, times in right_terms.items():
            product = _unit_product(unit, other)
            terms[product] = terms.get(product, 0) + value * times
    return join_terms(terms, left_constant * right_constant)


def _unit_product(left: IndexExpr, right: IndexExpr) -> IndexExpr:
    factors = _factors(left) + _factors(right)
    factors.sort(key=lambda factor: factor.order)
    return reduce(Mul, factors)


def _factors(unit: IndexExpr) -> list[IndexExpr]:
    factors: list[IndexExpr] = []
    while type(unit) is Mul:
        factors.append(unit.right)
        unit = unit.left
    factors.append(unit)
    return factors


def _floor_div(dividend: IndexExpr, divisor: IndexExpr) -> IndexExpr:
    if type(divisor) is not Const:
        return dividend if dividend == Const(0) else FloorDiv(dividend, divisor)
    by = divisor.value
    if by == 0:
        return divisor
    if by < 0:
        return _floor_div(_scale(dividend, -1), Const(-by))
    terms, constant = split_terms(dividend)
    whole, offset = divmod(constant, by)
    exact = {unit: value // by for unit, value in terms.items() if value % by == 0}
    rest = {unit: value for unit, value in terms.items() if value % by}
    if rest:
        quotient = _reduced_floor_div(rest, offset, by)
        exact[quotient] = exact.get(quotient, 0) + 1
    return join_terms(exact, whole)


def _reduced_floor_div(rest: dict[IndexExpr, int], offset: int, by: int) -> IndexExpr:
    """A quotient none of whose terms divides exactly, in lowest terms."""
    common = gcd(by, offset, *rest.values())
    by //= common
    inner = join_terms({unit: value // common for unit, value in rest.items()}, offset // common)
    if type(inner) is FloorDiv and type(inner.divisor) is Const:
        both = inner.divisor.value * by
        if both <= _INT64_MAX:
            return _floor_div(inner.dividend, Const(both))
    return FloorDiv(inner, Const(by))


def _mod(dividend: IndexExpr, divisor: IndexExpr) -> IndexExpr:
    if type(divisor) is not Const:
        return dividend if dividend == Const(0) else Mod(dividend, divisor)
    by = divisor.value
    if by == 0:
        return divisor
    if by < 0:
        return _scale(_mod(_scale(dividend, -1), Const(-by)), -1)
    terms, constant = split_terms(dividend)
    rest = {unit: value for unit, value in terms.items() if value % by}
    offset = constant % by
    if not rest:
        return Const(offset)
    common = gcd(by, offset, *rest.values())
    by //= common
    inner = join_terms({unit: value // common for unit, value in rest.items()}, offset // common)
    if type(inner) is Mod and type(inner.divisor) is Const and inner.divisor.value % by == 0:
        return _scale(_mod(inner.dividend, Const(by)), common)
    return _scale(Mod(inner, Const(by)), common)


def _factor_text(expr: IndexExpr) -> str:
    if isinstance(expr, Const | DimRef | Sym | BitExpr):
        return str(expr)
    return f"({expr})"


def _signed_text(term: IndexExpr) -> str:
    """A term after the first of a sum, with its sign as the operator before it."""
    coefficient = term.value if type(term) is Const else _unit_and_coefficient(term)[1]
    # The most negative constant has no positive counterpart to print.
    if coefficient >= 0 or coefficient == _INT64_MIN:
        return f" + {term}"
    return f" - {_scale(term, -1)}"
