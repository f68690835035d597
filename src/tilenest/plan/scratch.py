"""Where bufs lie: which of them share bytes of scratch memory, with the reason.

In: a function in Scheduled form, every buf in a class of memory; a target. Out: a base for every
buf without one, in what its frame has of its class, and a decision for every frame in which some
share bytes. Bufs may share them when they are never held at one place of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.analysis import Liveness, aligned, bufs_of_frames, bytes_of
from tilenest.decisions import Decision
from tilenest.dialects import Alloc
from tilenest.ir import Asker, Function, Operation
from tilenest.machine import Target
from tilenest.records import record


@record
class ScratchPlan:
    """The bases of bufs."""

    bases: tuple[tuple[Alloc, int], ...]
    decisions: tuple[Decision, ...]


def plan_scratch(function: Function, target: Target, ask: Asker) -> ScratchPlan:
    """Bases for the bufs of one function."""
    liveness = ask.get(Liveness, function)
    bases: dict[Alloc, int] = {}
    decisions: list[Decision] = []
    for frame, classes in bufs_of_frames(function).items():
        size = apart = 0
        for resource, allocs in classes.items():
            found = _pack(allocs, target.resource(resource).alignment, liveness)
            bases.update(found)
            size += _extent(found)
            apart += sum(map(bytes_of, allocs))
        if size < apart:
            decisions.append(_decision(frame, size, apart))
    return ScratchPlan(tuple(bases.items()), tuple(decisions))


def _decision(frame: Operation | None, size: int, apart: int) -> Decision:
    where = "a call" if frame is None else f"a worker of {frame.NAME}"
    return Decision(
        f"scratch memory of {where}",
        f"{size} bytes",
        f"{apart} bytes",
        "bufs that are never needed at once lie in the same place",
        None if frame is None else frame.location,
    )


@record
class _Placed:
    """Bytes that are taken between two places of the program."""

    start: int
    stop: int
    first: int
    last: int


def _pack(allocs: Sequence[Alloc], alignment: int, liveness: Liveness) -> dict[Alloc, int]:
    """Bases in one region: in the order of the program or the largest first, whichever needs
    less."""
    orders = allocs, sorted(allocs, key=bytes_of, reverse=True)
    return min((_placed(order, alignment, liveness) for order in orders), key=_extent)


def _placed(allocs: Sequence[Alloc], alignment: int, liveness: Liveness) -> dict[Alloc, int]:
    """Every buf as low as those before it allow; one with a base stays there."""
    bases: dict[Alloc, int] = {}
    placed: list[_Placed] = []
    for alloc in sorted(allocs, key=lambda op: op.base is None):
        first, last = liveness.used_range(alloc.result) or (0, -1)
        start, size = 0, bytes_of(alloc)
        if isinstance(alloc.base, int):
            start = alloc.base
        else:
            for other in sorted(placed, key=lambda part: part.start):
                is_held = other.first <= last and first <= other.last
                if is_held and other.start < start + size and start < other.stop:
                    start = aligned(other.stop, alignment)
        bases[alloc] = start
        placed.append(_Placed(start, start + size, first, last))
    return bases


def _extent(bases: Mapping[Alloc, int]) -> int:
    return max((start + bytes_of(op) for op, start in bases.items()), default=0)
