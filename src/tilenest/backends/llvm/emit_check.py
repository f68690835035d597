"""Checks of bounds: one comparison, and a way out of the function.

In: `address.check`. Out: a branch that is never taken in a right program; the other way records the
fault and returns, which ends the chunk.
"""

from tilenest.backends.llvm.emit_frame import Frame
from tilenest.backends.llvm.fault import REPORT
from tilenest.backends.llvm.values import I32, I64, constant
from tilenest.dialects import Check


def emit_check(frame: Frame, op: Check) -> None:
    f = frame.text
    assert frame.fault is not None, "a check in a module without checks"
    first, extent = frame.value(op.first), frame.value(op.extent)
    # An extent is no number near the least one, so the difference can't wrap.
    is_low_enough = f.icmp("sle", first, f.sub(extent, op.count))
    inside = f.and_(f.icmp("sge", first, 0), is_low_enough)
    condition = frame.optional(op.condition)
    if condition is not None:
        inside = f.or_(inside, f.not_(condition))
    following, outside = f.block("inside"), f.block("outside")
    f.branch_if(inside, following, outside)
    f.begin(outside)
    site, axis, depth = (constant(I64, number) for number in (op.site, op.axis, op.depth))
    f.ret(f.call(REPORT, I32, (frame.fault, site, axis, first, extent, depth)))
    f.begin(following)
