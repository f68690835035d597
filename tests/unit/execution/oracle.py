"""What the execution tests judge by: events listed one by one, and rearranged as plain tuples.

A structure is a list of (identity, kind, extent). `Events` maps each new coordinate to the old one
that runs there; a step moves the keys and never asks the package. The laws are definitions over all
events and all pairs of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from tilenest.execution import ExecLevel, ExecStructure

Point = tuple[int, ...]
Events = dict[Point, Point]


def structure_of(*levels: tuple[str, str, int | str], nest: str = "") -> ExecStructure:
    """Levels by name, kind (`reduce:policy` for a reduce) and extent; a nest a run of one kind."""
    made = []
    for name, kind, extent in levels:
        head, _, policy = kind.partition(":")
        made.append(
            ExecLevel(name, name, head, extent, nest=nest or f"{kind} nest", policy=policy)  # type: ignore[arg-type]  # the kinds are spelled out in each test
        )
    return ExecStructure(tuple(made))


def every_event(extents: Sequence[int]) -> Events:
    return {point: point for point in product(*map(range, extents))}


def moved(events: Events, place: Callable[[Point], Point]) -> Events:
    return {place(new): old for new, old in events.items()}


def split(events: Events, at: int, factor: int) -> Events:
    return moved(events, lambda p: (*p[:at], *divmod(p[at], factor), *p[at + 1 :]))


def fuse(events: Events, at: int, extents: Sequence[int]) -> Events:
    last = at + len(extents)

    def place(point: Point) -> Point:
        number = 0
        for x, extent in zip(point[at:last], extents, strict=True):
            number = number * extent + x
        return (*point[:at], number, *point[last:])

    return moved(events, place)


def permute(events: Events, order: Sequence[int]) -> Events:
    return moved(events, lambda p: tuple(p[at] for at in order))


def reshape(events: Events, at: int, old: Sequence[int], new: Sequence[int]) -> Events:
    def place(point: Point) -> Point:
        (number,) = (key[at] for key in fuse({point: point}, at, old))
        digits: list[int] = []
        for extent in reversed(new):
            digits.insert(0, number % extent)
            number //= extent
        return (*point[:at], *digits, *point[at + len(old) :])

    return moved(events, place)


def runs_before(levels: Sequence[ExecLevel], one: Point, other: Point) -> bool:
    """Whether the levels put one event before another."""
    for level, x, y in zip(levels, one, other, strict=True):
        if x != y:
            is_ordered = level.kind in ("serial", "pipeline") or (
                level.kind == "reduce" and level.policy != "unordered_tree"
            )
            return is_ordered and x < y
    return False


def spatial(levels: Sequence[ExecLevel], point: Point, depth: int) -> Point:
    """The owner an event belongs to."""
    return tuple(
        x for level, x in zip(levels[:depth], point, strict=False) if level.kind == "parallel"
    )


def keeps_order(
    old: Sequence[ExecLevel], new: Sequence[ExecLevel], events: Events, owner: int
) -> bool:
    """Whether every owner sees its events in the old order."""
    return all(
        runs_before(new, one, other)
        for one, old_one in events.items()
        for other, old_other in events.items()
        if spatial(old, old_one, owner) == spatial(old, old_other, owner)
        and runs_before(old, old_one, old_other)
    )


def is_permutation(old_extents: Sequence[int], events: Events) -> bool:
    return len(events) == prod(old_extents) and set(events.values()) == set(
        product(*map(range, old_extents))
    )


def deciding_cuts(events: Events, depth: int, n_new: int, is_one_to_one: bool) -> Iterator[int]:
    """The new cuts whose prefix decides the old prefix, one to one where that is asked."""
    for cut in range(n_new + 1):
        there: dict[Point, set[Point]] = {}
        back: dict[Point, set[Point]] = {}
        for new, old in events.items():
            there.setdefault(new[:cut], set()).add(old[:depth])
            back.setdefault(old[:depth], set()).add(new[:cut])
        if all(len(seen) == 1 for seen in there.values()) and (
            not is_one_to_one or all(len(seen) == 1 for seen in back.values())
        ):
            yield cut
