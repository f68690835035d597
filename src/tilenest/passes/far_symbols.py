"""Keep what the symbols of a map add so near that no coordinate wraps.

In: a remap or reindex, whose symbols may be any index. Out: the same coordinates inside of arrays,
over symbols that fit. One symbol of a sum is limited: what lay outside stays outside. Where several
may cancel, or a remainder folds them, each is split into multiples of a step, which all divisors
divide, and the rest. The multiples leave the quotients and remainders; their sum is limited.

    (d0 + s0 - s1)      becomes      (d0 + s0 % M - s1 % M + (s0 // M - s1 // M, limited) * M)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from math import gcd, lcm

from tilenest.analysis import range_of
from tilenest.dialects import Partition, Reindex, Remap, chain_of, dims_of
from tilenest.errors import ShapeError, TargetError
from tilenest.ir import LARGEST_EXTENT, Builder, Operation, Rewriter, Value
from tilenest.layouts import (
    Add,
    AffineMap,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Ranges,
    Sym,
    as_index_expr,
    bounds,
    split_terms,
)
from tilenest.passes.index_ops import apply_scalar, index_number

FARTHEST = 1 << 58
_FARTHEST_IN_VIEWS = 1 << 50
_MOST = 1 << 62
_ANY: Interval = (-(1 << 63), (1 << 63) - 1)
_STEP_BITS = 33
_WIDEST_STEP = 1 << 60
_LARGEST_SUM = 1 << 49


def limit_symbols(op: Reindex | Remap, rewriter: Rewriter) -> None:
    """Limit the symbols of an operation in place."""
    near = farthest(op)
    far = [place for place, value in enumerate(op.symbols) if not is_near(value, near)]
    if not far:
        return
    limiter = _Limiter(op, far, rewriter.builder_before(op))
    names = ["map", "valid"] if isinstance(op, Remap) and op.conditions else ["map"]
    found: list[list[IndexExpr]] = []
    for name in names:
        map_: AffineMap = op.attributes[name]
        found.append([limiter.limited(result) for result in map_.results])
    for name, results in zip(names, found, strict=True):
        n_dims = op.attributes[name].n_dims
        near_map = AffineMap(n_dims, len(limiter.symbols), tuple(results))
        rewriter.set_attribute(op, name, near_map)
    rewriter.set_operands(op, "symbols", limiter.symbols)


def farthest(op: Operation) -> int:
    """How far from 0 an origin or symbol may be, so that no view below scales it out of 64 bits."""
    scale = 1
    if op.ACTION:
        (touch,) = op.accesses()
        chain = chain_of(touch.memory)
    elif isinstance(op, Partition):
        chain = chain_of(op.whole)
    elif isinstance(op, Reindex | Remap):
        chain = chain_of(op.view) if isinstance(op, Remap) else []
        free = [d for d, size in enumerate(extents_of(op)) if size is None]
        # An origin takes up to half of the range, and the symbols a quarter.
        scale = 2 * max([1, *(_scale(result, free, has_symbols=True) for result in op.map.results)])
    else:
        return FARTHEST
    for remap in chain:
        dims = range(remap.map.n_dims)
        scale *= max([1, *(_scale(result, dims) for result in remap.map.results)])
    is_of_view = bool(chain) or isinstance(op, Remap)
    return min(_FARTHEST_IN_VIEWS if is_of_view else FARTHEST, _MOST // scale)


def is_near(value: Value, most: int) -> bool:
    found = range_of(value)
    return found is not None and found[0] >= -most and found[1] <= most


def limited(builder: Builder, value: Value, most: int) -> Value:
    """The value, or what is nearest to it in the range."""
    for function, limit in (("maximum", -most), ("minimum", most)):
        value = apply_scalar(builder, function, value, index_number(builder, limit))
    return value


class _Limiter:
    """Makes the symbols of one operation anew."""

    def __init__(self, op: Reindex | Remap, far: Sequence[int], builder: Builder) -> None:
        self.symbols: list[Value] = []
        self._op = op
        self._given: list[Value] = list(op.symbols)
        self._far = sum(1 << place for place in far)
        self._most = farthest(op)
        self._builder = builder
        self._limited: dict[Value, Value] = {}
        self._parts: dict[tuple[str, Value, int], Value] = {}

    def limited(self, expr: IndexExpr) -> IndexExpr:
        """A result over the new symbols."""
        expr = self._reduced(expr)
        far = [place for place in sorted(expr.used_syms()) if self._far >> place & 1]
        if expr.linear() is not None and len(far) <= 1:
            if not all(self._stays_outside(expr, place) for place in far):
                raise self._refusal(expr)
            return self._over({place: self._near(self._given[place]) for place in far}, expr)
        if not far or self._fits(expr, self._given):
            return self._over({}, expr)
        try:
            return self._split(expr, far)
        except ShapeError:
            # A multiple of the step leaves 64 bits.
            raise self._refusal(expr) from None

    def _reduced(self, expr: IndexExpr) -> IndexExpr:
        """The formula with what remainders by run-time divisors add reduced in front of them."""
        match expr:
            case Mod(Add(terms), Sym(place) as divisor) if self._is_divisor(place):
                reduced = [self._remainder(term, place) for term in terms]
                return sum(reduced, as_index_expr(0)) % divisor
            case Add(terms):
                return sum(map(self._reduced, terms), as_index_expr(0))
        return expr

    def _is_divisor(self, place: int) -> bool:
        found = range_of(self._given[place])
        return found is not None and found[0] >= 0 and found[1] <= FARTHEST

    def _remainder(self, term: IndexExpr, divisor: int) -> IndexExpr:
        if not isinstance(term, Sym) or not self._far >> term.position & 1:
            return term
        # Where the divisor is 0, nothing is in the domain, but this is computed nevertheless.
        by = apply_scalar(
            self._builder, "maximum", self._given[divisor], index_number(self._builder, 1)
        )
        self._given.append(apply_scalar(self._builder, "mod", self._given[term.position], by))
        return Sym(len(self._given) - 1)

    def _near(self, value: Value) -> Value:
        if value not in self._limited:
            self._limited[value] = limited(self._builder, value, self._most)
        return self._limited[value]

    def _over(self, replaced: dict[int, Value], expr: IndexExpr) -> IndexExpr:
        """The same formula, with some symbols replaced by values."""
        values = [replaced.get(place, value) for place, value in enumerate(self._given)]
        return self._placed(expr, values)

    def _placed(self, expr: IndexExpr, values: Sequence[Value]) -> IndexExpr:
        """A formula over these values, as one over the new symbols."""
        used = expr.used_syms()
        places = [
            self._symbol(value) if place in used else Sym(0) for place, value in enumerate(values)
        ]
        return expr.substitute([DimRef(d) for d in range(self._op.map.n_dims)], places)

    def _symbol(self, value: Value) -> Sym:
        if value not in self.symbols:
            self.symbols.append(value)
        return Sym(self.symbols.index(value))

    def _split(self, expr: IndexExpr, far: Sequence[int]) -> IndexExpr:
        """The far symbols as multiples of a step and what remains: the multiples leave every
        quotient and remainder, and together they are one symbol that is limited."""
        period = _period(expr, self._far)
        if period is None or period > _WIDEST_STEP:
            raise self._refusal(expr)
        step = period << max(0, _STEP_BITS - period.bit_length())
        values = list(self._given)
        places: list[IndexExpr] = [Sym(place) for place in range(len(values))]
        mask = 0
        for place in far:
            mask |= 1 << len(values) + 1
            places[place] = Sym(len(values) + 1) * step + Sym(len(values))
            rest = self._part("mod", self._given[place], step)
            values += [rest, self._part("floordiv", self._given[place], step)]
        dims = [DimRef(d) for d in range(self._op.map.n_dims)]
        terms, constant = split_terms(expr.substitute(dims, places))
        kept: IndexExpr = Const(constant)
        moved: dict[IndexExpr, Counter[Value]] = {}
        for unit, by in terms.items():
            if not unit.sym_mask & mask:
                kept += unit * by
                continue
            factor, found = _without(unit, mask)
            if found is None:
                raise self._refusal(expr)
            # One value may be several symbols.
            sums = moved.setdefault(factor, Counter())
            sums[values[found.position]] += by
        moved = {factor: sums for factor, sums in moved.items() if any(sums.values())}
        if len(moved) > 1:
            raise self._refusal(expr)
        for factor, sums in moved.items():
            common = gcd(*sums.values())
            kept += factor * Sym(len(values)) * common
            multiples = {value: by // common for value, by in sums.items() if by}
            values.append(self._sum(multiples, common, expr))
        if not self._fits(kept, values):
            raise self._refusal(expr)
        return self._placed(kept, values)

    def _part(self, function: str, value: Value, step: int) -> Value:
        key = function, value, step
        if key not in self._parts:
            number = index_number(self._builder, step)
            self._parts[key] = apply_scalar(self._builder, function, value, number)
        return self._parts[key]

    def _sum(self, multiples: dict[Value, int], common: int, expr: IndexExpr) -> Value:
        """The sum of multiples, limited so that what is outside of every array stays there."""
        ends = [max(map(abs, range_of(value) or _ANY)) * abs(by) for value, by in multiples.items()]
        most = self._most // common
        if sum(ends) > _MOST or most * common < _LARGEST_SUM:
            raise self._refusal(expr)
        total: Value | None = None
        for value, by in multiples.items():
            scaled = apply_scalar(self._builder, "mul", value, index_number(self._builder, by))
            total = scaled if total is None else apply_scalar(self._builder, "add", total, scaled)
        assert total is not None, "there are multiples"
        return limited(self._builder, total, most)

    def _stays_outside(self, expr: IndexExpr, place: int) -> bool:
        """Whether no coordinate inside, of an extent that is known, makes up for a symbol at its
        limit."""
        step = split_terms(expr)[0][Sym(place)]
        found = bounds(expr - Sym(place) * step, self._ranges(self._given, largest=0))
        return found is not None and 2 * max(map(abs, found)) <= abs(step) * self._most

    def _fits(self, expr: IndexExpr, values: Sequence[Value]) -> bool:
        """Whether nothing on the way to the result leaves 64 bits at a coordinate inside."""
        return _stays(expr, self._ranges(values, largest=LARGEST_EXTENT))

    def _ranges(self, values: Sequence[Value], *, largest: int) -> Ranges:
        """Where coordinates inside and symbols lie, with the largest that is unknown."""
        ranges: dict[DimRef | Sym, Interval] = {
            DimRef(d): (0, largest if size is None else max(size - 1, 0))
            for d, size in enumerate(extents_of(self._op))
        }
        return ranges | {Sym(p): range_of(value) or _ANY for p, value in enumerate(values)}

    def _refusal(self, expr: IndexExpr) -> TargetError:
        return TargetError(
            f"the coordinate {expr} may leave 64 bits, as its symbols can be any number",
            remedy="limit what the map adds, as in tn.minimum(tn.maximum(n, 0), 1 << 40)",
            location=self._op.location,
        )


def extents_of(op: Operation) -> list[int | None]:
    """The extents of a map's dims, None where they are known at run time only."""
    if isinstance(op, Remap):
        sizes = [op.extent(axis) for axis in range(op.map.n_dims)]
        return [size if isinstance(size, int) else None for size in sizes]
    return [dim.extent for dim in dims_of(op.results[0].type)]


def _scale(expr: IndexExpr, dims: Container[int], *, has_symbols: bool = False) -> int:
    """How much a result grows when one of these coordinates, or a symbol, does."""
    linear = expr.linear()
    if linear is None:
        steps = [expr.coefficient(dim) or 1 for dim in expr.used_dims() if dim in dims]
    else:
        steps = [step for dim, step in linear.dims if dim in dims]
        steps += [step for _, step in (linear.syms if has_symbols else ())]
    return sum(abs(step) for step in steps)


def _period(expr: IndexExpr, symbols: int) -> int | None:
    """A number whose multiples leave all quotients and remainders that hold some symbols; None
    where they cannot."""
    if not expr.sym_mask & symbols:
        return 1
    match expr:
        case Sym():
            return 1
        case Add(operands):
            parts = [_period(operand, symbols) for operand in operands]
        case Mul(left, right):
            parts = [_period(left, symbols), _period(right, symbols)]
        case FloorDiv(dividend, Const(by)) | Mod(dividend, Const(by)):
            parts = [_period(dividend, symbols), by]
            return None if parts[0] is None else parts[0] * abs(by)
        case _:
            return None
    known = [part for part in parts if part is not None]
    return lcm(*known) if len(known) == len(parts) else None


def _without(unit: IndexExpr, symbols: int) -> tuple[IndexExpr, Sym | None]:
    """A term as a symbol times what holds none of them."""
    if isinstance(unit, Sym):
        return Const(1), unit
    if isinstance(unit, Mul):
        for one, other in ((unit.left, unit.right), (unit.right, unit.left)):
            if not other.sym_mask & symbols:
                factor, found = _without(one, symbols)
                return factor * other, found
    return Const(1), None


def _stays(expr: IndexExpr, ranges: Ranges) -> bool:
    match expr:
        case Add(operands):
            parts: tuple[IndexExpr, ...] = operands
        case FloorDiv(left, right) | Mod(left, right) | Mul(left, right):
            parts = left, right
        case BitExpr():
            parts = expr.left, expr.right
        case _:
            parts = ()
    found = bounds(expr, ranges)
    is_inside = found is not None and _ANY[0] <= found[0] and found[1] <= _ANY[1]
    return is_inside and all(_stays(part, ranges) for part in parts)
