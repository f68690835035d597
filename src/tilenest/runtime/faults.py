"""What compiled code hands back, and the error behind a fault.

In: what a call returned and the captured kernel. Out: whether it ran, or `OutOfBounds` at the
user's line. Accesses are numbered when the kernel is captured, which every process does for itself,
so the place is right for code from the cache too.
"""

from __future__ import annotations

from tilenest.backends.llvm import RAN, Fault
from tilenest.driver import Captured
from tilenest.errors import OutOfBounds


def has_run(outcome: int | bytes, captured: Captured) -> bool:
    """Whether the call ran; False when the arguments are not what the code was made for."""
    if isinstance(outcome, bytes):
        raise out_of_bounds(Fault.of(outcome), captured)
    return outcome == RAN


def out_of_bounds(fault: Fault, captured: Captured) -> OutOfBounds:
    """The error of a fault in this kernel."""
    access = captured.checked[fault.site]
    return OutOfBounds(
        f"{access.text}: axis {fault.axis} has extent {fault.extent}, the index is {fault.index} "
        '(bounds="check")',
        'keep the access inside, mask it, or use bounds="zero"',
        access.location,
    )
