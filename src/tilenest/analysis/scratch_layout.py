"""Where each buf lies in the scratch memory of the code that runs it.

In: a function in Scheduled form. Out: a frozen layout: an offset in bytes for every `buf.alloc`,
and how many bytes each frame needs. The function has one frame a call, and every parallel outside
of all others has one for each worker that runs it. Bufs of a frame share bytes when they are never
held at one place of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import ClassVar

from tilenest.analysis.liveness import Liveness
from tilenest.analysis.structure import enclosing_parallels
from tilenest.dialects import Alloc, Parallel
from tilenest.ir import Analysis, Asker, BufType, Edit, EditKind, Function, Operation
from tilenest.records import record

SCRATCH_ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


@record
class ScratchLayout(Analysis[Function, "ScratchLayout"]):
    """Offsets of the bufs of one function, and the sizes of its frames."""

    NAME: ClassVar[str] = "scratch layout"
    DEPENDS_ON: ClassVar = (Liveness,)

    offsets: Mapping[Operation, int]
    sizes: Mapping[Operation | None, int]
    """by the parallel that a frame belongs to; None is the function's own"""
    apart: Mapping[Operation | None, int]
    """what the frames would need if no two bufs shared a byte"""

    @classmethod
    def compute(cls, subject: Function, ask: Asker, /) -> ScratchLayout:
        frames = _bufs_of_frames(subject)
        liveness = ask.get(Liveness, subject)
        offsets: dict[Operation, int] = {}
        sizes: dict[Operation | None, int] = {}
        for frame, allocs in frames.items():
            found = _pack(allocs, liveness)
            offsets.update(found)
            sizes[frame] = _extent(found)
        apart = {frame: sum(map(bytes_of, allocs)) for frame, allocs in frames.items()}
        return cls(MappingProxyType(offsets), MappingProxyType(sizes), MappingProxyType(apart))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        # Whatever changes bufs or where they stand changes what is live; versions change sizes.
        return edit.kind is EditKind.ATTRIBUTE and isinstance(edit.operation, Alloc)


def frame_of(operation: Operation) -> Parallel | None:
    """The outermost parallel around an operation: its instances have frames of their own."""
    around = list(enclosing_parallels(operation))
    return around[-1] if around else None


def padded_bytes(type_: BufType) -> int:
    """What a buf takes of its frame."""
    size = type_.dtype.bytes * prod(type_.shape)
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


def bytes_of(alloc: Alloc) -> int:
    """The same for what an operation allocates, in all its versions."""
    type_ = alloc.result.type
    assert isinstance(type_, BufType)
    return padded_bytes(type_) * alloc.versions


def _bufs_of_frames(function: Function) -> dict[Operation | None, list[Alloc]]:
    frames: dict[Operation | None, list[Alloc]] = {None: []}
    for op in function.walk():
        if isinstance(op, Parallel) and frame_of(op) is None:
            frames[op] = []
        elif isinstance(op, Alloc):
            frames[frame_of(op)].append(op)
    return frames


@record
class _Placed:
    """Bytes that are taken between two places of the program."""

    start: int
    stop: int
    first: int
    last: int


def _pack(allocs: list[Alloc], liveness: Liveness) -> dict[Operation, int]:
    """Offsets for the bufs of one frame: in the order of the program or the largest first,
    whichever needs less."""
    orders = allocs, sorted(allocs, key=bytes_of, reverse=True)
    return min((_placed(order, liveness) for order in orders), key=_extent)


def _placed(allocs: Sequence[Alloc], liveness: Liveness) -> dict[Operation, int]:
    """Every buf as low as those before it allow."""
    offsets: dict[Operation, int] = {}
    placed: list[_Placed] = []
    for alloc in allocs:
        first, last = liveness.used_range(alloc.result) or (0, -1)
        start, size = 0, bytes_of(alloc)
        for other in sorted(placed, key=lambda part: part.start):
            is_held = other.first <= last and first <= other.last
            if is_held and other.start < start + size and start < other.stop:
                start = other.stop
        offsets[alloc] = start
        placed.append(_Placed(start, start + size, first, last))
    return offsets


def _extent(offsets: Mapping[Operation, int]) -> int:
    ends = (start + bytes_of(op) for op, start in offsets.items() if isinstance(op, Alloc))
    return max(ends, default=0)
