"""Rule TN02: nests reach every child, give it one parent, and keep what is theirs.

In: nests, loops, and what regions hand out. Out: faults at nests that never advance and at loops
that may not, where no child after the first has coordinates; and at handles of a nest (views,
memories, bufs, borrowed arrays) that leave it: outside, nobody could say of which instance they
are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tilenest.analysis import range_of
from tilenest.dialects import For, Launch, Nest
from tilenest.ir import (
    ArrayType,
    BlockArgument,
    BufType,
    Fault,
    Function,
    MemoryType,
    Operation,
    Rule,
    Subject,
    Type,
    Value,
    ViewType,
    describe_type,
)
from tilenest.layouts import Interval

_BEFORE_CAPTURED = 3
"""A launched body takes where it begins and ends, and its scratch, before what is captured."""


def _children(subject: Subject) -> Iterator[Fault]:
    for nest in subject.of(Nest):
        for axis, step in enumerate(nest.step):
            if range_of(step) == (0, 0):
                yield Fault(
                    nest,
                    f"its step along axis {axis} is 0: it reaches no child after the first",
                    "step by at least 1, or by at most -1 towards a lower end",
                )
    launches: dict[str, list[Launch]] = defaultdict(list)
    for launch in subject.of(Launch):
        launches[launch.callee].append(launch)
    for loop in subject.of(For):
        found = _range_of(loop.step, launches)
        if found is None or found[0] <= 0:
            steps = "is not known" if found is None else f"lies in {found[0]}..{found[1]}"
            yield Fault(
                loop,
                f"its step {steps}: it may reach no child after the first",
                "count iterations, and compute the index from their number",
            )


def _range_of(step: Value, launches: Mapping[str, Sequence[Launch]]) -> Interval | None:
    """What is known of a step; one that a launch hands in is what was captured there."""
    region = step.block.parent if isinstance(step, BlockArgument) else None
    function = None if region is None else region.parent
    if not isinstance(step, BlockArgument) or not isinstance(function, Function):
        return range_of(step)
    handed = [
        range_of(launch.captured[step.index - _BEFORE_CAPTURED])
        for launch in launches.get(function.name, ())
        if step.index >= _BEFORE_CAPTURED
    ]
    known = [found for found in handed if found is not None]
    if not known or len(known) != len(handed):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _handles(subject: Subject) -> Iterator[Fault]:
    for op in subject.operations:
        for result in op.results if op.regions else ():
            if _is_handle(result.type):
                yield _escape(op, f"hands out a {describe_type(result.type)}")


def _escape(op: Operation, fact: str) -> Fault:
    return Fault(
        op,
        f"{fact}, which belongs to an instance inside",
        "hand out what is in it, a tile or state",
    )


def _is_handle(type_: Type) -> bool:
    if isinstance(type_, ArrayType):
        return not type_.filled
    return isinstance(type_, ViewType | MemoryType | BufType)


NEST_RULES = (
    Rule("TN02", "nests and loops reach every child", _children),
    Rule("TN02b", "handles stay in their nest", _handles),
)
