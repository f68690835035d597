"""maximum and minimum of float vectors in the fewest x86 instructions.

In: two vectors of float or double. Out: the larger or smaller lanes; NaN if either is, -0 below +0.
The processor's own instruction gives its second operand for NaN and for equal zeros, so both orders
of the operands differ in those lanes only: there, or-ing the bits keeps NaN and gives -0, and-ing
gives +0. A minimum is the or; a maximum takes the sign from the and, all else from the or. LLVM's
expansion has two more steps, all on the critical path of a reduction.
"""

from tilenest.backends.llvm.float_bits import from_bits, to_bits
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import I32, Value, constant

_MAJORITY = 0xE8
_REGISTER_BITS = (128, 256, 512)


def minimum(f: FunctionText, machine: HostMachineInfo, x: Value, y: Value) -> Value:
    """The smaller lanes."""
    if not machine.has("avx2") or not _gains(x, y):
        return f.minimum(x, y)
    one, other = _both_orders(f, "olt", x, y)
    return from_bits(f, f.or_(one, other), x.type)


def maximum(f: FunctionText, machine: HostMachineInfo, x: Value, y: Value) -> Value:
    """The larger lanes."""
    bits = x.type.bits * x.type.lanes
    if not machine.has("avx512vl") or bits not in _REGISTER_BITS or not _gains(x, y):
        return f.maximum(x, y)
    one, other = _both_orders(f, "ogt", x, y)
    # Majority with a clear sign bit is the and there, with all other bits set the or.
    all_but_sign = constant(one.type, (1 << (x.type.bits - 1)) - 1)
    letter = "d" if x.type.bits == 32 else "q"
    name = f"llvm.x86.avx512.pternlog.{letter}.{bits}"
    chosen = f.intrinsic(name, one.type, (one, other, all_but_sign, constant(I32, _MAJORITY)))
    return from_bits(f, chosen, x.type)


def _gains(x: Value, y: Value) -> bool:
    """Of a constant LLVM knows that it is no NaN, and which zero."""
    return x.type.lanes > 1 and all(value.text.startswith("%") for value in (x, y))


def _both_orders(f: FunctionText, predicate: str, x: Value, y: Value) -> tuple[Value, Value]:
    one = f.select(f.fcmp(predicate, x, y), x, y)
    other = f.select(f.fcmp(predicate, y, x), y, x)
    return to_bits(f, one), to_bits(f, other)
