"""The items of a launch: a part of a linear range, walked as instances of a nest.

In: the first item and the one behind the last, how many instances the nest has along each axis, how
the number of an instance becomes an index, and what happens with the indices. Out: loops, through
the emitter. Items go run by run of the last axis, so that none of them divides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.ir import Value
from tilenest.nests import Emitter, Index
from tilenest.records import record


@record
class LaunchItems:
    """Emits the items of a nest of one or more axes."""

    emitter: Emitter
    trips: Sequence[Index]
    index: Callable[[int, Index], Value]
    """from an axis and the number of an instance along it"""

    body: Callable[[Sequence[Value]], object]
    """emits what happens at the indices"""

    def emit(self, begin: Value, end: Value) -> None:
        emitter = self.emitter
        if len(self.trips) == 1:
            self._run([], begin, end)
            return
        length = self.trips[-1]
        last = emitter.floor_divide(emitter.subtract(end, 1), length)
        first = emitter.floor_divide(begin, length)
        runs = emitter.open_for(first, emitter.add(last, 1), 1, [])
        with emitter.inside(runs):
            run = runs.body.arguments[0]
            start = emitter.multiply(run, length)
            bounds = (
                emitter.maximum(emitter.subtract(begin, start), 0),
                emitter.minimum(emitter.subtract(end, start), length),
            )
            self._run(self._outer(run), *bounds)
            emitter.finish([])

    def _outer(self, run: Value) -> list[Value]:
        """The indices of all axes but the last in one run."""
        rest: Index = run
        outer: list[Value] = []
        for axis in reversed(range(1, len(self.trips) - 1)):
            digit = self.emitter.remainder(rest, self.trips[axis])
            rest = self.emitter.floor_divide(rest, self.trips[axis])
            outer.insert(0, self.index(axis, digit))
        return [self.index(0, rest), *outer]

    def _run(self, outer: Sequence[Value], begin: Index, end: Index) -> None:
        """Instances that differ in the last axis only."""
        loop = self.emitter.open_for(begin, end, 1, [])
        with self.emitter.inside(loop):
            last = self.index(len(self.trips) - 1, loop.body.arguments[0])
            self.body([*outer, last])
            self.emitter.finish([])
