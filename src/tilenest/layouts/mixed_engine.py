"""Proofs about maps that mix strides, bits and run-time extents, part by part.

In: one formula. Out: answers, None where nothing tells. A result `M*a + b` whose rest b surely lies
in a window of length M tells a and b apart, where M is a number or the extent that bounds b: so
results split into digits, and each digit is judged by what suits it. Coordinates become known one
after another: one whose step outruns all that is unknown beside it, then those whose bits the
digits tell once the known ones are taken away. Sums of strides that stay are searched. A map that
hits no place twice and has as many points as places hits all.
"""

from __future__ import annotations

from math import prod

from tilenest.layouts.affine_engine import sum_map
from tilenest.layouts.answers import Answer, proven
from tilenest.layouts.bit_form import BitForm, Packing, bit_form
from tilenest.layouts.bit_matrix import Elimination
from tilenest.layouts.formula_algebra import Formulas, Scope
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Mul, Sym, join_terms, split_terms
from tilenest.layouts.index_range import Interval, Ranges, bounds, simplify
from tilenest.layouts.spaces import MOST_EXTENT, IndexSet, Space
from tilenest.layouts.stride_search import meeting_points
from tilenest.layouts.witnesses import INT64, at_rest, collision_at
from tilenest.records import record

ENGINE = "mixed"


def is_total(formulas: Formulas) -> Answer | None:
    """Whether every result fits signed 64 bits: the sum of what its digits reach."""
    found = _only(formulas)
    if found is None or formulas[0].domain.constraints:
        return None
    intervals = [found.interval(result) for result in formulas[0].results]
    if all(span is not None and span[0] in INT64 and span[1] in INT64 for span in intervals):
        return proven(ENGINE, "what the digits reach fits 64 bits")
    return None


def is_bounded(formulas: Formulas) -> Answer | None:
    """Whether every value lies in the codomain."""
    found = _only(formulas)
    if found is None:
        return None
    pairs = zip(formulas[0].results, formulas[0].codomain.extents, strict=True)
    if all(found.is_below(result, extent) for result, extent in pairs):
        return proven(ENGINE, "what the digits reach is in the codomain")
    return None


def is_injective(formulas: Formulas) -> Answer | None:
    """Whether the digits tell every coordinate, or sums of strides no two points."""
    found = _only(formulas)
    if found is None:
        return None
    digits = [digit for result in formulas[0].results for digit in found.digits(result)]
    unknown = {place for place, extent in enumerate(found.space.extents) if extent != 1}
    while unknown:
        told = found.told_by_steps(digits, unknown) or found.told_by_bits(digits, unknown)
        if not told:
            return _by_search(formulas)
        unknown -= told
    return proven(ENGINE, f"{len(digits)} digits tell every coordinate")


def _by_search(formulas: Formulas) -> Answer | None:
    """Whether two points of a map of sums meet, if a short search tells."""
    sums = sum_map(formulas[0])
    if sums is None:
        return None
    found = meeting_points(sums)
    if found.pair is not None:
        return collision_at(ENGINE, formulas, found.pair, at_rest(formulas), "two points that meet")
    return proven(ENGINE, "no two points meet") if found.is_whole else None


def is_surjective(formulas: Formulas) -> Answer | None:
    """Whether the map is total, bounded and injective between spaces of one size."""
    if not are_same_size(formulas[0].domain.space, formulas[0].codomain):
        return None
    facts = is_injective(formulas), is_bounded(formulas), is_total(formulas)
    if any(fact is None or not fact.is_proven for fact in facts):
        return None
    return proven(ENGINE, "no place is hit twice, and there are as many points as places")


def covers(formulas: Formulas, wanted: IndexSet) -> Answer | None:
    """Whether every place of a set is a value: of the whole codomain, if it can be shown."""
    return is_surjective(formulas) if wanted.space == formulas[0].codomain else None


def equal(f: Formulas, g: Formulas) -> Answer | None:
    """Whether two maps of one space have the same results, once simplified."""
    left, right = _only(f), _only(g)
    if left is None or right is None or f[0].domain != g[0].domain or f[0].symbols != g[0].symbols:
        return None
    pairs = zip(f[0].results, g[0].results, strict=True)
    if all(simplify(a, left.ranges) == simplify(b, right.ranges) for a, b in pairs):
        return proven(ENGINE, "the same formulas")
    return None


def are_disjoint(f: Formulas, g: Formulas) -> Answer | None:
    """Whether some digit that two results share has no value in common."""
    left, right = _only(f), _only(g)
    if left is None or right is None:
        return None
    pairs = zip(f[0].results, g[0].results, strict=True)
    if any(_are_apart(left, a, right, b) for a, b in pairs):
        return proven(ENGINE, "a digit without a common value")
    return None


def _are_apart(left: Digits, a: IndexExpr, right: Digits, b: IndexExpr) -> bool:
    """Whether two results never meet: by what they reach, or by one of their digits."""
    match left.interval(a), right.interval(b):
        case (low, high), (other_low, other_high) if high < other_low or other_high < low:
            return True
    parts, others = left.split_at_number(a), right.split_at_number(b)
    if parts is None or others is None or parts[0] != others[0]:
        return False
    by = parts[0]
    rests = left.interval(parts[2]), right.interval(others[2])
    # Only rests in one window make equal results have equal digits.
    if any(span is None or span[0] < 0 or span[1] >= by for span in rests):
        return False
    digits = zip(parts[1:], others[1:], strict=True)
    return any(_are_apart(left, x, right, y) for x, y in digits)


@record
class Digits:
    """A formula's box and symbols, and the ranges of both."""

    space: Space
    symbols: tuple[str, ...]
    ranges: Ranges

    @property
    def packing(self) -> Packing:
        """An extent known at run time has as many bits as any."""
        ends = (MOST_EXTENT if isinstance(n, str) else n for n in self.space.extents)
        return Packing(tuple(max(end - 1, 0).bit_length() for end in ends))

    def digits(self, result: IndexExpr) -> list[IndexExpr]:
        """Formulas that are known exactly when the result is."""
        waiting, found = [simplify(result, self.ranges)], []
        while waiting:
            expr = waiting.pop()
            parts = self.split_at_number(expr) or self._split_at_extent(expr)
            if parts is None:
                found.append(expr)
            else:
                waiting += parts[1:]
        return found

    def interval(self, result: IndexExpr) -> Interval | None:
        """What a result may reach: of its parts where it splits, of its bits where it has some."""
        parts = self.split_at_number(result)
        if parts is None:
            return self._span(simplify(result, self.ranges))
        by, above, rest = parts
        high, low = self.interval(above), self.interval(rest)
        if high is None or low is None:
            return None
        return by * high[0] + low[0], by * high[1] + low[1]

    def is_below(self, result: IndexExpr, extent: int | str) -> bool:
        """Whether a result surely lies in [0, extent)."""
        if isinstance(extent, int):
            span = self.interval(result)
            return span is not None and span[0] >= 0 and span[1] < extent
        expr = simplify(result, self.ranges)
        return isinstance(expr, DimRef) and self.space.extents[expr.position] == extent

    def told_by_steps(self, digits: list[IndexExpr], unknown: set[int]) -> set[int]:
        """The unknown coordinates whose step outruns everything unknown beside them."""
        mask = sum(1 << place for place in unknown)
        told = set()
        for digit in digits:
            terms, _ = split_terms(digit)
            moving = {unit: step for unit, step in terms.items() if unit.dim_mask & mask}
            for unit, step in moving.items():
                others = [self._spread(u, s) for u, s in moving.items() if u != unit]
                reach = sum(spread for spread in others if spread is not None)
                if isinstance(unit, DimRef) and None not in others and abs(step) > reach:
                    told.add(unit.position)
        return told

    def told_by_bits(self, digits: list[IndexExpr], unknown: set[int]) -> set[int]:
        """The unknown coordinates that no sum of columns hides, the known ones taken away."""
        packing = self.packing
        forms = [bit_form(digit, packing) for digit in digits]
        columns = _stacked([form for form in forms if form is not None], packing.size)
        places = [
            (place, packing.starts[place] + bit)
            for place in sorted(unknown)
            for bit in range(packing.widths[place])
        ]
        hidden = 0
        for combination in Elimination(columns[at] for _, at in places).kernel:
            hidden |= combination
        return unknown - {place for at, (place, _) in enumerate(places) if hidden >> at & 1}

    def _span(self, expr: IndexExpr) -> Interval | None:
        """What an expression reaches, by its bits and by its bounds: each may be the tighter."""
        span, form = bounds(expr, self.ranges), bit_form(expr, self.packing)
        if form is None:
            return span
        low, high = form.interval()
        return (low, high) if span is None else (max(low, span[0]), min(high, span[1]))

    def _spread(self, unit: IndexExpr, step: int) -> int | None:
        span = bounds(unit, self.ranges)
        return None if span is None else abs(step) * (span[1] - span[0])

    def split_at_number(self, expr: IndexExpr) -> tuple[int, IndexExpr, IndexExpr] | None:
        """(M, a, b) with `expr == M*a + b` and b in a window of length M that starts anywhere."""
        terms, constant = split_terms(simplify(expr, self.ranges))
        for by in sorted({abs(step) for step in terms.values()} - {1}, reverse=True):
            above = {unit: step // by for unit, step in terms.items() if step % by == 0}
            rest = {unit: step for unit, step in terms.items() if step % by}
            if not rest:
                continue
            below = join_terms(rest, constant)
            span = self._span(below)
            if span is not None and span[1] - span[0] < by:
                return by, join_terms(above, 0), below
        return None

    def _split_at_extent(self, expr: IndexExpr) -> tuple[Sym, IndexExpr, IndexExpr] | None:
        """(n, a, b) with `expr == n*a + b` and b the coordinate with the run-time extent n."""
        terms, constant = split_terms(expr)
        for place, name in enumerate(self.symbols):
            factors = {unit: _without(unit, Sym(place)) for unit in terms}
            rest = {unit: terms[unit] for unit, left in factors.items() if left is None}
            coordinates = [unit for unit in rest if isinstance(unit, DimRef)]
            is_alone = len(rest) == 1 < len(terms) and not constant
            if not is_alone or not coordinates or rest[coordinates[0]] != 1:
                continue
            if self.space.extents[coordinates[0].position] == name:
                above = (left * terms[unit] for unit, left in factors.items() if left is not None)
                return Sym(place), sum(above, Const(0)), coordinates[0]
        return None


def are_same_size(left: Space, right: Space) -> bool:
    """Whether two spaces surely have equally many points, whatever the run-time extents."""
    return _factors(left) == _factors(right)


def _only(formulas: Formulas) -> Digits | None:
    if len(formulas) != 1:
        return None
    space, symbols = formulas[0].domain.space, formulas[0].symbols
    return Digits(space, symbols, Scope(space, symbols).ranges)


def _without(unit: IndexExpr, factor: IndexExpr) -> IndexExpr | None:
    """A product with one of its factors taken out, None where it is none of them."""
    if unit == factor:
        return Const(1)
    if not isinstance(unit, Mul):
        return None
    left, right = _without(unit.left, factor), _without(unit.right, factor)
    if right is not None:
        return unit.left * right
    return None if left is None else left * unit.right


def _stacked(forms: list[BitForm], size: int) -> list[int]:
    """The columns of several forms, one above another, wide enough for each."""
    columns, height = [0] * size, 0
    for form in forms:
        widest = max((column.bit_length() for column in form.columns), default=0) + 1
        mask = (1 << widest) - 1
        columns = [
            column | (more & mask) << height
            for column, more in zip(columns, form.columns, strict=True)
        ]
        height += widest
    return columns


def _factors(space: Space) -> tuple[int, list[str]]:
    known = [extent for extent in space.extents if isinstance(extent, int)]
    return prod(known), sorted(extent for extent in space.extents if isinstance(extent, str))
