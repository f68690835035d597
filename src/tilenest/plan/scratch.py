"""Which bufs share bytes of scratch memory: what lowering does, with the reason.

In: a function in Scheduled form. Out: a decision for every frame in which some share. Offsets are
no part of the program: they follow from when bufs are used, and change with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import ScratchLayout
from tilenest.decisions import Decision
from tilenest.ir import Asker, Function


def plan_scratch(function: Function, ask: Asker) -> Iterator[Decision]:
    """What sharing saves, frame by frame."""
    layout = ask.get(ScratchLayout, function)
    for frame, size in layout.sizes.items():
        apart = layout.apart[frame]
        if size < apart:
            where = "a call" if frame is None else f"a worker of {frame.NAME}"
            yield Decision(
                f"scratch memory of {where}",
                f"{size} bytes",
                f"{apart} bytes",
                "bufs that are never needed at once lie in the same place",
                None if frame is None else frame.location,
            )
