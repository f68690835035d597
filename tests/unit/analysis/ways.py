"""Every way through a function as a graph of points, for judging by search.

In: a function. Out: the points at which its blocks and operations start and end, and where control
may go on from each. Regions run as their operation says: a loop may be passed by or run again, one
of several alternatives is taken, stages come in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from tilenest.ir import Block, Function, Operation, OpResult, Region, RegionUse, Value

Point: TypeAlias = tuple[Function | Operation | Block, str]


class Ways:
    """The graph of one function."""

    def __init__(self, function: Function) -> None:
        self.start, self.end = (function, "start"), (function, "end")
        self.following: dict[Point, list[Point]] = {}
        self.places: list[Operation | Block] = []
        self._region(function.region, [self.end])
        self.following[self.start] = [(function.body, "start")]
        self.reached = self.search([self.start])

    def _region(self, region: Region, after: list[Point]) -> None:
        for block in region.blocks:
            self.places.append(block)
            here: Point = (block, "start")
            for op in block.operations:
                self._go(here, (op, "start"))
                self._operation(op)
                here = (op, "end")
            self._go(here, (block, "end"))
            last = block.operations.last
            assert last is not None
            targets: list[Point] = [(target, "start") for target in last.successors]
            self._go((block, "end"), *(targets or after))

    def _operation(self, op: Operation) -> None:
        self.places.append(op)
        entries: list[Point] = [(_entry(region), "start") for region in op.regions]
        end: Point = (op, "end")
        if op.REGION_USE is RegionUse.ALTERNATIVE and entries:
            self._go((op, "start"), *entries)
            for region in op.regions:
                self._region(region, [end])
            return
        is_repeated = op.REGION_USE in (RegionUse.REPEATED, RegionUse.ELEMENTWISE)
        self._go((op, "start"), *entries[:1])
        if is_repeated or not entries:
            self._go((op, "start"), end)
        for place, region in enumerate(op.regions):
            is_last = place == len(op.regions) - 1
            after = (
                [end, *(entries[:1] if is_repeated else [])] if is_last else [entries[place + 1]]
            )
            self._region(region, after)

    def _go(self, point: Point, *targets: Point) -> None:
        self.following.setdefault(point, []).extend(targets)

    def search(self, points: Iterable[Point], without: Collection[Point] = ()) -> set[Point]:
        """What is reached from some points, never passing some others."""
        seen: set[Point] = set()
        waiting = [point for point in points if point not in without]
        while waiting:
            point = waiting.pop()
            if point not in seen:
                seen.add(point)
                waiting += [p for p in self.following.get(point, ()) if p not in without]
        return seen

    def is_live(self, value: Value, point: Point) -> bool:
        """Whether a use of a value is reached from behind a point before it is made anew."""
        made: Point
        if isinstance(value, OpResult):
            made = (value.owner, "end")
        else:
            block = value.defining_block
            assert block is not None
            made = (block, "start")
        found = self.search(self.following[point], [made])
        return any((user, "start") in found for user in value.users)


def _entry(region: Region) -> Block:
    block = region.blocks.first
    assert block is not None
    return block
