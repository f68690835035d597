"""Where each buf lies in the scratch memory of the code that runs it.

In: a function in Scheduled form. Out: a frozen layout: an offset in bytes for every `buf.alloc`,
and how many bytes each frame needs. The function has one frame a call, and every parallel outside
of all others has one for each worker that runs it. A frame has a region for each class of memory,
where bufs lie at the bases that were decided; the others follow, none sharing a byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar

from tilenest.analysis.structure import enclosing_parallels
from tilenest.dialects import Alloc, Parallel
from tilenest.ir import Analysis, Asker, BufType, Edit, EditKind, Function, Operation
from tilenest.records import record

SCRATCH_ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""
_CONCERNING = frozenset({EditKind.INSERTED, EditKind.ERASED, EditKind.MOVED, EditKind.DEFINITIONS})


@record
class ClassRegion:
    """What the bufs of one class of memory have in one frame."""

    start: int
    size: int


@record
class ScratchLayout(Analysis[Function, "ScratchLayout"]):
    """Bases of the bufs of one function, and the regions of its frames."""

    NAME: ClassVar[str] = "scratch layout"

    bases: Mapping[Operation, int]
    """from the start of the region"""
    regions: Mapping[tuple[Operation | None, str], ClassRegion]
    """by frame and class; a frame is known by its parallel, None is the function's own"""
    sizes: Mapping[Operation | None, int]
    """by frame"""

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> ScratchLayout:
        bases: dict[Operation, int] = {}
        regions: dict[tuple[Operation | None, str], ClassRegion] = {}
        frames = bufs_of_frames(subject)
        sizes: dict[Operation | None, int] = dict.fromkeys(frames, 0)
        for frame, classes in frames.items():
            for resource, allocs in classes.items():
                found = _laid(allocs)
                bases.update(found)
                size = aligned(max(found[op] + bytes_of(op) for op in allocs))
                regions[frame, resource] = ClassRegion(sizes[frame], size)
                sizes[frame] += size
        return cls(MappingProxyType(bases), MappingProxyType(regions), MappingProxyType(sizes))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            return isinstance(edit.operation, Alloc)
        return edit.kind in _CONCERNING

    def offset(self, alloc: Alloc) -> int:
        """Where a buf starts in its frame."""
        return self.regions[frame_of(alloc), alloc.resource].start + self.bases[alloc]


def frame_of(operation: Operation) -> Parallel | None:
    """The outermost parallel around an operation: its instances have frames of their own."""
    around = list(enclosing_parallels(operation))
    return around[-1] if around else None


def aligned(size: int, alignment: int = SCRATCH_ALIGNMENT) -> int:
    """The next multiple."""
    return -(-size // alignment) * alignment


def padded_bytes(type_: BufType) -> int:
    """What one version of a buf takes."""
    return aligned(type_.dtype.bytes * prod(type_.shape))


def bytes_of(alloc: Alloc) -> int:
    """What an operation allocates, in all its versions."""
    type_ = alloc.result.type
    assert isinstance(type_, BufType)
    return padded_bytes(type_) * alloc.versions


def bufs_of_frames(
    function: Function,
) -> Mapping[Parallel | None, Mapping[str, list[Alloc]]]:
    """The bufs of every frame, by class of memory, in the order of the program."""
    frames: dict[Parallel | None, dict[str, list[Alloc]]] = {None: {}}
    for op in function.walk():
        if isinstance(op, Parallel) and frame_of(op) is None:
            frames[op] = {}
        elif isinstance(op, Alloc):
            frames[frame_of(op)].setdefault(op.resource, []).append(op)
    return frames


def _laid(allocs: list[Alloc]) -> dict[Operation, int]:
    """The bases of the bufs of one region."""
    found: dict[Operation, int] = {op: op.base for op in allocs if isinstance(op.base, int)}
    end = max((found[op] + bytes_of(op) for op in allocs if op in found), default=0)
    for op in allocs:
        if op not in found:
            found[op] = aligned(end)
            end = found[op] + bytes_of(op)
    return found
