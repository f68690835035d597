"""What compiled code hands back, and the error behind a fault.

In: what a call returned and the captured kernel. Out: whether it ran, or `OutOfBounds` at the
user's line, or `OutOfMemory` at the largest memory that the kernel names. Accesses are numbered
when the kernel is captured, which every process does for itself, so the place is right for code
from the cache too.
"""

from __future__ import annotations

from tilenest.backends.llvm import RAN, Fault
from tilenest.dialects import MemoryAllocate
from tilenest.driver import Captured
from tilenest.errors import OutOfBounds, OutOfMemory


def has_run(outcome: int | bytes, captured: Captured) -> bool:
    """Whether the call ran; False when the arguments are not what the code was made for."""
    if isinstance(outcome, bytes):
        raise out_of_bounds(Fault.of(outcome), captured)
    if outcome < 0:
        raise out_of_memory(-outcome, captured)
    return outcome == RAN


def out_of_bounds(fault: Fault, captured: Captured) -> OutOfBounds:
    """The error of a fault in this kernel."""
    access = captured.checked[fault.site]
    return OutOfBounds(
        f"{access.texts[fault.depth]}: axis {fault.axis} has extent {fault.extent}, "
        f'the index is {fault.index} (bounds="check")',
        'keep the access inside, mask it, or use bounds="zero"',
        access.location,
    )


def out_of_memory(needed: int, captured: Captured) -> OutOfMemory:
    """The error of a kernel that the system did not give so many bytes."""
    memories = [op for op in captured.module.walk() if isinstance(op, MemoryAllocate)]
    largest = max(memories, key=lambda op: op.bytes, default=None)
    if largest is not None and 2 * largest.bytes >= needed:
        return OutOfMemory.of_memory(largest.bytes, largest.location)
    return OutOfMemory(
        f"{captured.name} needs {needed} bytes for temporary values, more than the system gives",
        "compute on smaller tiles, in a nest over parts of the arrays",
        captured.location,
    )
