"""Keep what the symbols of a map add so near that no coordinate wraps.

In: a remap or reindex, whose symbols may be any index. Out: the same coordinates inside of arrays,
over symbols that fit. One symbol of a sum is limited: what lay outside stays outside, whatever the
coordinates inside add. Where several may cancel, or a remainder folds them, each is split into
multiples of a step, which all divisors divide, and the rest. The multiples leave the quotients and
remainders; their sum is limited. Maps for which neither is proven are refused.

    (d0 + s0 - s1)      becomes      (d0 + s0 % M - s1 % M + (s0 // M - s1 // M, limited) * M)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import gcd, lcm, prod

from tilenest.analysis import ANY_INDEX, range_of
from tilenest.dialects import Partition, Reindex, Remap, base_of, chain_of, dims_of, view_type
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

_BITS = 64
FARTHEST = LARGEST_EXTENT << 10
"""Where no array has an element, and so near that sums of many such numbers fit 64 bits."""
_FARTHEST_IN_VIEWS = LARGEST_EXTENT << 2
"""Where no view has an element; nearer, as the maps of the views below add and scale."""
_MOST = 1 << _BITS - 2
"""The most that an origin adds to a coordinate, half of what 64 bits hold."""
_MOST_OF_SYMBOLS = _MOST // 2
"""The most that the symbols of one map add to it; they share the other half with constants."""
_STEP_BITS = _BITS // 2 + 1
"""How long a step is at least: the number of its multiples and the rest fit half of the bits."""
_SMALL_SIZE = 1 << 30
"""What is never larger keeps its own bound in a product."""
_PRODUCT_BITS = _BITS - 4
"""Sizes of run time that are multiplied are those of one space, which has fewer elements than two
to this power: a promise of whoever writes the map."""
_WIDEST_STEP = 1 << _BITS - 4
"""A longer step leaves no room for sums of several rests, each of which is below it."""


def limit_symbols(op: Reindex | Remap, rewriter: Rewriter) -> None:
    """Limit the symbols of an operation in place."""
    near = farthest_symbol(op)
    far = [place for place, value in enumerate(op.symbols) if not is_near(value, near)]
    limiter = _Limiter(op, far, rewriter.builder_before(op))
    if not far:
        limiter.expect_that_all_fits()
        return
    ends = {"map": _ends_below(op)}
    if isinstance(op, Remap) and op.conditions:
        # A condition holds from 0 on.
        ends["valid"] = [1] * len(op.conditions)
    found: list[list[IndexExpr]] = []
    for name, limits in ends.items():
        results: Sequence[IndexExpr] = op.attributes[name].results
        found.append(
            [limiter.limited(each, end) for each, end in zip(results, limits, strict=True)]
        )
    for name, results in zip(ends, found, strict=True):
        n_dims = op.attributes[name].n_dims
        near_map = AffineMap(n_dims, len(limiter.symbols), tuple(results))
        rewriter.set_attribute(op, name, near_map)
    rewriter.set_operands(op, "symbols", limiter.symbols)


def farthest(op: Operation) -> int:
    """How far from 0 the origin of an access or a part may be."""
    if op.ACTION:
        (touch,) = op.accesses()
        return farthest_in(touch.memory)
    return farthest_in(op.whole) if isinstance(op, Partition) else FARTHEST


def farthest_in(view: Value) -> int:
    """How far from 0 a coordinate of a view may be, so that no view below scales it out of 64
    bits."""
    chain = chain_of(view)
    return min(_FARTHEST_IN_VIEWS, _MOST // _scale_of(chain)) if chain else FARTHEST


def farthest_symbol(op: Reindex | Remap) -> int:
    """How far from 0 all symbols of a map may be at once."""
    linear = [result.linear() for result in op.map.results]
    steps = [sum(abs(step) for _, step in each.syms) for each in linear if each is not None]
    most = _most_of_symbols(op) // max([1, *steps])
    return min(_FARTHEST_IN_VIEWS if isinstance(op, Remap) else FARTHEST, most)


def _most_of_symbols(op: Reindex | Remap) -> int:
    """How much the symbols may add to a coordinate, so that no view below scales it too far."""
    return _MOST_OF_SYMBOLS // _scale_of(chain_of(op.view) if isinstance(op, Remap) else [])


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
        self._most = farthest_symbol(op)
        self._builder = builder
        self._limited: dict[tuple[Value, int], Value] = {}
        self._parts: dict[tuple[str, Value, int], Value] = {}

    def expect_that_all_fits(self) -> None:
        """Sums fit, as all in them is near; products may not."""
        for each in self._op.map.results:
            if each.linear() is None and not self._fits(each):
                raise self._refusal(each)

    def limited(self, expr: IndexExpr, end: int) -> IndexExpr:
        """A result over the new symbols; it is inside from 0 to below the end."""
        expr = self._reduced(expr)
        far = [place for place in sorted(expr.used_syms()) if self._far >> place & 1]
        if len(far) == 1 and expr.linear() is not None:
            (place,) = far
            step = split_terms(expr)[0][Sym(place)]
            most = self._limit(expr, expr - Sym(place) * step, self._given, abs(step), end)
            return self._over({place: self._near(self._given[place], most)}, expr)
        if self._fits(expr) or (not far and expr.linear() is not None):
            return self._over({}, expr)
        if not far:
            raise self._refusal(expr)
        try:
            return self._split(expr, far, end)
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

    def _near(self, value: Value, most: int) -> Value:
        key = value, most
        if key not in self._limited:
            self._limited[key] = limited(self._builder, value, most)
        return self._limited[key]

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

    def _split(self, expr: IndexExpr, far: Sequence[int], end: int) -> IndexExpr:
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
            multiples = {value: by // common for value, by in sums.items() if by}
            most = self._limit(expr, kept, values, common, end)
            kept += factor * Sym(len(values)) * common
            values.append(self._sum(multiples, most, expr))
        if not _stays(kept, _ranges(self._op, values)):
            raise self._refusal(expr)
        return self._placed(kept, values)

    def _part(self, function: str, value: Value, step: int) -> Value:
        key = function, value, step
        if key not in self._parts:
            number = index_number(self._builder, step)
            self._parts[key] = apply_scalar(self._builder, function, value, number)
        return self._parts[key]

    def _sum(self, multiples: dict[Value, int], most: int, expr: IndexExpr) -> Value:
        """The sum of multiples, limited."""
        ends = [
            max(map(abs, range_of(value) or ANY_INDEX)) * abs(by) for value, by in multiples.items()
        ]
        if sum(ends) > _MOST:
            raise self._refusal(expr)
        total: Value | None = None
        for value, by in multiples.items():
            scaled = apply_scalar(self._builder, "mul", value, index_number(self._builder, by))
            total = scaled if total is None else apply_scalar(self._builder, "add", total, scaled)
        assert total is not None, "there are multiples"
        return limited(self._builder, total, most)

    def _limit(
        self, expr: IndexExpr, rest: IndexExpr, values: Sequence[Value], step: int, end: int
    ) -> int:
        """The limit of a number that is added `step` times: at the limit the sum is outside, at
        whatever coordinates inside the rest is."""
        found = bounds(rest, _ranges(self._op, values))
        if found is None:
            raise self._refusal(expr)
        needed = -(-(max(map(abs, found)) + end) // step)
        if needed * step > _most_of_symbols(self._op):
            raise self._refusal(expr)
        return max(needed, self._most // step)

    def _fits(self, expr: IndexExpr) -> bool:
        """Whether nothing on the way to the result leaves 64 bits at a coordinate inside."""
        return _stays(expr, _shared(_ranges(self._op, self._given), expr))

    def _refusal(self, expr: IndexExpr) -> TargetError:
        return TargetError(
            f"the coordinate {expr} may leave 64 bits, as its symbols and the extents of the view "
            "may be large",
            remedy="limit what it takes, as in tn.minimum(tn.maximum(n, 0), 1 << 30)",
            location=self._op.location,
        )


def extents_of(op: Operation) -> list[int | None]:
    """The extents of a map's dims, None where they are known at run time only."""
    if isinstance(op, Remap):
        sizes = [op.extent(axis) for axis in range(op.map.n_dims)]
        return [size if isinstance(size, int) else None for size in sizes]
    return [dim.extent for dim in dims_of(op.results[0].type)]


def _ranges(op: Reindex | Remap, symbols: Sequence[Value]) -> Ranges:
    """Where the coordinates inside of what a map gives, and its symbols, lie."""
    if isinstance(op, Remap):
        ends = _extents(op.result)
    else:
        ends = [dim.extent for dim in dims_of(op.result.type)]
    ranges: dict[DimRef | Sym, Interval] = {
        DimRef(d): (0, max(end - 1, 0)) for d, end in enumerate(ends)
    }
    return ranges | {
        Sym(place): range_of(value) or ANY_INDEX for place, value in enumerate(symbols)
    }


def _shared(ranges: Ranges, expr: IndexExpr) -> Ranges:
    """The ranges, where sizes that a formula multiplies share the bits of their product."""
    sizes = {unit for unit, (low, high) in ranges.items() if low >= 0 and high > _SMALL_SIZE}
    most = 1 << _PRODUCT_BITS // max(1, _degree(expr, sizes))
    return {
        unit: (low, min(high, most) if unit in sizes else high)
        for unit, (low, high) in ranges.items()
    }


def _degree(expr: IndexExpr, sizes: Collection[DimRef | Sym]) -> int:
    """How many sizes are multiplied at most."""
    match expr:
        case DimRef() | Sym():
            return int(expr in sizes)
        case Add(operands):
            return max(_degree(operand, sizes) for operand in operands)
        case Mul(left, right):
            return _degree(left, sizes) + _degree(right, sizes)
        case FloorDiv(left, right) | Mod(left, right):
            return max(_degree(left, sizes), _degree(right, sizes))
        case BitExpr():
            return max(_degree(expr.left, sizes), _degree(expr.right, sizes))
    return 0


def _extents(view: Value) -> list[int]:
    """The largest that extents may be; what only run time knows counts as an array's."""
    chain = chain_of(view)
    found: list[int] = []
    for axis, known in enumerate(view_type(view).shape):
        size = chain[0].extent(axis) if chain else known
        if not isinstance(size, int):
            interval = None if size is None else range_of(size)
            size = LARGEST_EXTENT if interval is None else min(interval[1], LARGEST_EXTENT)
        found.append(size)
    return found


def _ends_below(op: Reindex | Remap) -> list[int]:
    """From where on, along each axis that a map reads, there is nothing to read."""
    if not isinstance(op, Remap):
        return [dim.extent for dim in dims_of(op.value.type)]
    chain = chain_of(op.view)
    if any(remap.fill is not None for remap in (op, *chain)):
        # What is read depends on which view is left.
        return _extents(op.view)
    ends = _extents(base_of(op.view))
    for remap in reversed(chain):
        ends = _ends_of_content(remap, ends)
    return ends


def _ends_of_content(remap: Remap, below: Sequence[int]) -> list[int]:
    """From where on, to either side, a view shows nothing: at its extents, or where its map leads
    beyond these ends of the view below."""
    ends = _extents(remap.result)
    ranges = _ranges(remap, remap.symbols)
    for result, beyond in zip(remap.map.results, below, strict=True):
        for axis, end in enumerate(ends):
            step = result.coefficient(axis)
            rest = bounds(result - DimRef(axis) * step, ranges) if step else None
            if step and rest is not None:
                ends[axis] = min(end, -(-(max(map(abs, rest)) + beyond) // abs(step)))
    return ends


def _scale_of(chain: Sequence[Remap]) -> int:
    """How much the coordinate of a view grows on the way down its chain."""
    return prod(max([1, *map(_scale, remap.map.results)]) for remap in chain)


def _scale(expr: IndexExpr) -> int:
    """How much a result grows when the coordinates do."""
    return sum(abs(expr.coefficient(dim) or 1) for dim in expr.used_dims())


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
    is_inside = found is not None and ANY_INDEX[0] <= found[0] and found[1] <= ANY_INDEX[1]
    return is_inside and all(_stays(part, ranges) for part in parts)
