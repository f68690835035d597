"""The processor's floating-point control word around code of ours.

In: a function under construction. Out: the caller's word, kept on the stack, and the default one
(round to nearest even, subnormal numbers kept) in force. A caller may have asked for subnormals to
be flushed, and a thread keeps what was in force when it began: results must not depend on either.
"""

from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import I32, Value, constant

_X86_DEFAULT = 0x1F80


def default_float_control(f: FunctionText, machine: HostMachineInfo) -> Value | None:
    """Put the default in force; where the old word is, for `restore_float_control`. To be called
    in a function's first block."""
    if not machine.triple.startswith("x86_64"):
        return None
    saved, default = f.alloca(I32), f.alloca(I32)
    f.intrinsic("llvm.x86.sse.stmxcsr", None, [saved])
    f.store(constant(I32, _X86_DEFAULT), default)
    f.intrinsic("llvm.x86.sse.ldmxcsr", None, [default])
    return saved


def restore_float_control(f: FunctionText, saved: Value | None) -> None:
    if saved is not None:
        f.intrinsic("llvm.x86.sse.ldmxcsr", None, [saved])
