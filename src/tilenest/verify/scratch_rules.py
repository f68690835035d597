"""Rules TN11b and TN15b: where bufs lie, once that is decided.

In: functions whose bufs have bases. Out: faults at bufs of which a claim of their memory equation
fails (aligned, every version inside the class, elements with bytes of their own), and at pairs that
are held at one place of the program and share a byte. A buf whose base is left open is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tilenest.analysis import (
    Liveness,
    Storage,
    allocation_equation,
    bytes_of,
    frame_of,
    storage_of_buf,
)
from tilenest.dialects import Alloc
from tilenest.execution import MemoryEquation, check_allocation, check_apart, failures
from tilenest.ir import Fault, Function, Rule, Subject
from tilenest.machine import Target
from tilenest.verify.targets import target_of


def _bases(subject: Subject) -> Iterator[tuple[Alloc, int]]:
    """Bufs that lie somewhere in a class that the target has."""
    names = {resource.name for resource in target_of(subject).resources}
    for op in subject.of(Alloc):
        if type(op.base) is int and op.base >= 0 and op.resource in names:
            yield op, op.base


# TN11b ---------------------------------------------------------------------------------------


def _inside(subject: Subject) -> Iterator[Fault]:
    target = target_of(subject)
    placed = dict(_bases(subject))
    for op in subject.of(Alloc):
        if op.base is not None and op not in placed:
            yield Fault(
                op,
                f"starts at byte {op.base!r} of {op.resource!r} memory",
                "give it a byte from 0 in a class of memory that the target has, or leave it open",
            )
    for op, base in placed.items():
        claim = _failed_claim(storage_of_buf(op, base, target), target)
        if claim is not None:
            yield Fault(
                op,
                f"starts at byte {base} of {op.resource!r} memory, where this does not hold: "
                f"{claim}",
                "leave its base open, and let the compiler place it",
            )


@lru_cache(maxsize=512)
def _failed_claim(storage: Storage, target: Target) -> str | None:
    """The first claim about a storage that is not proven. It is a value: after each pass the same
    ones are asked about."""
    failed = failures(check_allocation(allocation_equation("it", storage, target)))
    return failed[0].text if failed else None


# TN15b ---------------------------------------------------------------------------------------


def _apart(subject: Subject) -> Iterator[Fault]:
    functions: dict[Function, list[tuple[Alloc, int]]] = {}
    for op, base in _bases(subject):
        function = op.parent_function
        assert function is not None, "bufs stand in functions"
        functions.setdefault(function, []).append((op, base))
    for function, placed in functions.items():
        for (one, first), (other, second) in _sharing(placed):
            if subject.analyses.get(Liveness, function).are_held_together(one.result, other.result):
                target = target_of(subject)
                claim = check_apart(_equation(one, first, target), _equation(other, second, target))
                yield Fault(
                    other,
                    f"is held together with %{one.result.name or '_'}, and {claim}",
                    "leave the bases open, and let the compiler place the bufs",
                )


def _equation(op: Alloc, base: int, target: Target) -> MemoryEquation:
    name = f"%{op.result.name or '_'}"
    return allocation_equation(name, storage_of_buf(op, base, target), target)


def _sharing(
    placed: Sequence[tuple[Alloc, int]],
) -> Iterator[tuple[tuple[Alloc, int], tuple[Alloc, int]]]:
    """Pairs whose bytes meet, in one frame and class."""
    regions: dict[object, list[tuple[Alloc, int]]] = {}
    for op, base in placed:
        regions.setdefault((frame_of(op), op.resource), []).append((op, base))
    for region in regions.values():
        region.sort(key=lambda pair: pair[1])
        for number, (one, first) in enumerate(region):
            end = first + bytes_of(one)
            for other, second in region[number + 1 :]:
                if second >= end:
                    break
                if bytes_of(other):
                    yield (one, first), (other, second)


SCRATCH_RULES = (
    Rule("TN11b", "memory lies inside its class", _inside),
    Rule("TN15b", "bufs that are held together lie apart", _apart),
)
