"""Which of two places is never behind the other, over numbers of which only ranges are known.

In: index formulas over leaves. Out: their intervals, and whether one is at most another, whatever
the leaves are. Most pairs are decided at a glance: the same formula, two that differ by a number,
intervals that do not meet. What is left takes a proof over the ends of nests; a function has a
budget of these, and beyond it the answer is that it is not known. Who asks says how much of the
budget may be spent by then, so that questions which come late find some left.
"""

from __future__ import annotations

from tilenest.analysis.index_values import KnownLeaves, Leaves
from tilenest.errors import ShapeError
from tilenest.layouts import IndexExpr, Interval, bounds, split_terms

MOST_PROOFS = 1024
"""of one function; later ones find nothing"""
MOST_PROOFS_TO_KEEP = 512
"""of these, before the rest is left to what is read"""
_ANYWHERE = (-(1 << 65), 1 << 65)
_Pair = tuple[IndexExpr, IndexExpr]
_Glance = tuple[int, int, int, int]
"""What a formula is at least and at most, its terms by their number, and what it adds to them."""


class PlaceOrder:
    """Compares formulas over leaves, of which there may be more from question to question."""

    def __init__(self, leaves: Leaves) -> None:
        self.proofs = 0
        self._leaves = leaves
        self._closed: KnownLeaves | None = None
        self._proved: dict[_Pair, bool] = {}
        self._glances: dict[IndexExpr, _Glance] = {}
        self._terms: dict[frozenset[tuple[IndexExpr, int]], int] = {}

    def known(self) -> KnownLeaves:
        """What is known of the leaves that there are by now."""
        if self._closed is None or len(self._closed.keys) != len(self._leaves):
            self._closed = self._leaves.close()
        return self._closed

    def interval(self, expr: IndexExpr) -> Interval:
        return self._glance(expr)[:2]

    def at_a_glance(self, one: IndexExpr, other: IndexExpr) -> bool | None:
        """Whether a formula is at most another; None where that takes a proof."""
        low, high, terms, number = self._glance(one)
        least, most, others, limit = self._glance(other)
        if terms == others:
            return number <= limit
        if high <= least:
            return True
        return False if low > most else None

    def is_at_most(self, one: IndexExpr, other: IndexExpr, *, budget: int) -> bool:
        """Whether a formula is surely at most another, where that takes no more than these proofs
        with all before it."""
        found = self.at_a_glance(one, other)
        if found is not None:
            return found
        found = self._proved.get((one, other))
        if found is None:
            if self.proofs >= budget:
                return False
            self.proofs += 1
            found = self._proved[one, other] = self._is_proved(one, other)
        return found

    def _is_proved(self, one: IndexExpr, other: IndexExpr) -> bool:
        known = self.known()
        try:
            return known.is_never_negative(other - one, known.ranges)
        except ShapeError:
            # A number on the way leaves 64 bits.
            return False

    def _glance(self, expr: IndexExpr) -> _Glance:
        found = self._glances.get(expr)
        if found is None:
            low, high = bounds(expr, self.known().ranges) or _ANYWHERE
            terms, number = split_terms(expr)
            place = self._terms.setdefault(frozenset(terms.items()), len(self._terms))
            found = self._glances[expr] = low, high, place, number
        return found
