"""How large numbers get that count the instances of rearranged levels.

In: levels with their definitions, and the values that names of extents stand for. Out: an interval
of a formula over counters and names. Arrays say how many elements they have at most, definitions
multiply and divide that, and no level has more instances than a remap lets a product have. The
quotient of a fused counter by one of its factors is less than the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilenest.analysis.index_ranges import range_of
from tilenest.execution import MOST_INSTANCES, ExecStructure
from tilenest.ir import Value
from tilenest.layouts import (
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Sym,
    bounds,
)

_MOST_FACTORS = 64
"""of an extent; a text may define one as a power of a power"""


class InstanceLimits:
    """Intervals of formulas in which `DimRef(i)` counts level `i`, and `Sym(i)` is the extent
    `symbols[i]`."""

    def __init__(
        self,
        structure: ExecStructure,
        symbols: Sequence[str],
        values: Mapping[str, Value],
        settled: Sequence[IndexExpr],
    ) -> None:
        """`values` are those of names, where they are known; `settled` is how each is written."""
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._meanings: dict[IndexExpr, IndexExpr] = {}
        places = {name: Sym(place) for place, name in enumerate(symbols)}
        for name, symbol in places.items():
            known = range_of(values[name]) if name in values else None
            most = MOST_INSTANCES if known is None else min(max(known[1], 0), MOST_INSTANCES)
            self._ranges[symbol] = (0, most)
        for entry in structure.definitions:
            arguments = [places[argument] for argument in entry.arguments]
            meaning = entry.expression.substitute((), arguments)
            symbol = places[entry.name]
            self._ranges[symbol] = (0, min(self._most([meaning]), self._ranges[symbol][1]))
            self._meanings[settled[symbol.position]] = meaning.substitute((), settled)
        extents = [level.extent for level in structure.levels]
        self._extents = [
            settled[places[extent].position] if isinstance(extent, str) else Const(extent)
            for extent in extents
        ]
        for place, extent in enumerate(self._extents):
            self._ranges[DimRef(place)] = _below(self._most([extent]))

    def interval(self, expression: IndexExpr) -> Interval | None:
        """Holds the value of a formula in every instance; None where nothing is known."""
        factors = self._size(expression)
        found = bounds(expression, self._ranges)
        return found if factors is None else meeting(found, _below(self._most(factors)))

    def _most(self, factors: Iterable[IndexExpr]) -> int:
        """The most that a product of extents is."""
        product = 1
        for factor in factors:
            found = bounds(factor, self._ranges)
            product *= MOST_INSTANCES if found is None else max(found[1], 0)
        return min(product, MOST_INSTANCES)

    def _size(self, counter: IndexExpr) -> list[IndexExpr] | None:
        """The factors of a number that a formula is below, and not below 0."""
        match counter:
            case DimRef(place):
                return self._factors(self._extents[place])
            case Mod(_, Sym() as divisor):
                return self._factors(divisor)
            case FloorDiv(dividend, divisor):
                found = self._size(dividend)
                for factor in self._factors(divisor):
                    if found is None or factor not in found:
                        return None
                    found.remove(factor)
                return found
        return None

    def _factors(self, extent: IndexExpr) -> list[IndexExpr]:
        found: list[IndexExpr] = []
        waiting = [extent]
        while waiting:
            part = waiting.pop()
            meaning = self._meanings.get(part, part)
            if isinstance(meaning, Mul) and len(found) + len(waiting) < _MOST_FACTORS:
                waiting += [meaning.left, meaning.right]
            else:
                found.append(part)
        return found


def meeting(one: Interval | None, other: Interval | None) -> Interval | None:
    """What lies in both intervals, of which None holds anything."""
    if one is None or other is None:
        return other if one is None else one
    return max(one[0], other[0]), min(one[1], other[1])


def _below(size: int) -> Interval:
    return 0, max(size - 1, 0)
