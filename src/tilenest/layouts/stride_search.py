"""Whether two points of a box have one value, where results are sums of scaled coordinates.

In: a map of sums on a static box. Out: the pair of points, the proof that there is none, or neither
once the search gets wide. Two points meet where the steps times the differences of coordinates sum
to 0. Differences are chosen one coordinate after another, the longest step first: what is left over
has to stay within what the coordinates to come reach and divide by what they share, and choices
that leave the same are one. Digits of mixed radix leave nothing, so most searches are a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import gcd

from tilenest.layouts.affine_engine import SumMap
from tilenest.layouts.witnesses import Point
from tilenest.records import record

# How many remainders are kept after each coordinate, and differences tried for each of them.
_MOST_STATES = 256
_Vector = tuple[int, ...]


@record
class Search:
    """What was found: two points that meet, or none; `is_whole` if nothing was left out."""

    pair: tuple[Point, Point] | None
    is_whole: bool


@record
class _Digit:
    """A coordinate, its step in each result, and what the coordinates after it can make up for."""

    place: int
    extent: int
    steps: _Vector
    reach: _Vector
    shared: _Vector

    def differences(self, state: _Vector, is_first: bool) -> range:
        """The differences that leave what is within reach; the first that differs ascends."""
        low, high = (0 if is_first else 1 - self.extent), self.extent - 1
        for value, step, reach in zip(state, self.steps, self.reach, strict=True):
            if step:
                ends = (-reach - value, reach - value)
                least, most = ends if step > 0 else (-ends[1], -ends[0])
                low = max(low, -(-least // abs(step)))
                high = min(high, most // abs(step))
        if not any(self.steps):
            # Its difference changes nothing: 1 is as good as any.
            low, high = 0, min(high, 1 if is_first else 0)
        return range(low, high + 1)

    def after(self, state: _Vector, difference: int) -> _Vector | None:
        """What is left with a difference, None where nothing to come makes up for it."""
        left = tuple(v + step * difference for v, step in zip(state, self.steps, strict=True))
        for value, reach, shared in zip(left, self.reach, self.shared, strict=True):
            if abs(value) > reach or (shared and value % shared):
                return None
        return left


def meeting_points(sums: SumMap) -> Search:
    """Two points of the box with one value, as far as they were looked for."""
    zero = (0,) * len(sums.sums)
    # By what is left over: the differences chosen so far, of which some is not 0.
    states: dict[_Vector, _Vector] = {}
    digits, is_whole = _digits(sums), True
    for at, digit in enumerate(digits):
        found: dict[_Vector, _Vector] = {}
        starts = [(zero, (0,) * at, True), *((s, chosen, False) for s, chosen in states.items())]
        for state, chosen, is_first in starts:
            choices = digit.differences(state, is_first)
            is_whole = is_whole and len(choices) <= _MOST_STATES
            for difference in islice(_nearest(choices), _MOST_STATES):
                left = digit.after(state, difference)
                if left is not None and (difference or not is_first):
                    found.setdefault(left, (*chosen, difference))
            if len(found) > _MOST_STATES * 2:
                break
        is_whole = is_whole and len(found) <= _MOST_STATES
        states = dict(islice(found.items(), _MOST_STATES))
    pair = _pair(sums, digits, states[zero]) if zero in states else None
    return Search(pair, is_whole)


def _digits(sums: SumMap) -> list[_Digit]:
    """The coordinates that move, the longest step first."""
    columns = {place: tuple(total.steps[place] for total in sums.sums) for place in sums.moving}
    order = sorted(columns, key=lambda place: max(map(abs, columns[place]), default=0))
    reach = shared = (0,) * len(sums.sums)
    digits = []
    for place in order:
        steps, extent = columns[place], sums.extents[place]
        digits.append(_Digit(place, extent, steps, reach, shared))
        reach = tuple(r + abs(step) * (extent - 1) for r, step in zip(reach, steps, strict=True))
        shared = tuple(gcd(g, step) for g, step in zip(shared, steps, strict=True))
    return digits[::-1]


def _nearest(choices: range) -> Iterator[int]:
    """Numbers of a range, those around 0 first."""
    middle = min(max(0, choices.start), choices.stop)
    yield from range(middle, choices.stop)
    yield from range(middle - 1, choices.start - 1, -1)


def _pair(sums: SumMap, digits: list[_Digit], chosen: _Vector) -> tuple[Point, Point]:
    differences = dict(zip((digit.place for digit in digits), chosen, strict=True))
    moves = [differences.get(place, 0) for place in range(len(sums.extents))]
    return tuple(max(-move, 0) for move in moves), tuple(max(move, 0) for move in moves)
