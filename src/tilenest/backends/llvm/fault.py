"""Recording the first access that is outside, as LLVM text.

In: a module that checks bounds. Out: a record on the entry's stack, which every function and every
chunk is handed; an internal function that fills it and gives the status OUTSIDE; and the code that
hands its bytes to the caller. Many threads may find faults at once: the first to claim the record
fills it, and it is read once all chunks are done.
"""

from tilenest.backends.llvm.fault_record import FAULT_BYTES
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import I8, I32, I64, POINTER, Value, constant
from tilenest.dialects import Check
from tilenest.ir import Module

OUTSIDE = 2
"""The status of a function in which an access was outside, beside 0 and -1."""
REPORT = "report.outside"
_BYTES_FROM = "TVMFFIBytesFromByteArray"
_CLAIM_BYTES = 8


def checks_bounds(module: Module) -> bool:
    """Whether anything in a module in Machine form checks bounds."""
    return any(isinstance(op, Check) for op in module.walk())


def new_record(f: FunctionText) -> Value:
    """A record that nobody has claimed."""
    record = f.alloca(I8, _CLAIM_BYTES + FAULT_BYTES, 8)
    f.store(constant(I32, 0), record, align=8)
    return record


def write_report(text: ModuleText, machine: HostMachineInfo) -> None:
    """i32(record, site, axis, first, extent, depth): the coordinates from `first` on leave
    [0, extent)."""
    kinds = (POINTER, I64, I64, I64, I64, I64)
    f = text.function(
        REPORT,
        I32,
        [(kind, "") for kind in kinds],
        linkage="internal",
        attributes=(*machine.function_attributes, "cold", "noinline"),
    )
    record, site, axis, first, extent, depth = f.parameters
    claimed, done = f.block("claimed"), f.block("done")
    _, is_ours = f.cmpxchg(record, constant(I32, 0), 1, "monotonic", "monotonic")
    f.branch_if(is_ours, claimed, done)
    f.begin(claimed)
    index = f.select(f.icmp("slt", first, 0), first, f.smax(first, extent))
    for place, number in enumerate((site, axis, index, extent, depth)):
        f.store(number, f.getelementptr("i8", record, _CLAIM_BYTES + 8 * place), align=8)
    f.branch(done)
    f.begin(done)
    f.ret(constant(I32, OUTSIDE))


def hand_back_fault(f: FunctionText, record: Value) -> Value:
    """Make the record's bytes the call's value; the status to return."""
    array = f.alloca(I64, 2, 8)
    f.store(f.getelementptr("i8", record, _CLAIM_BYTES), array, align=8)
    f.store(constant(I64, FAULT_BYTES), f.getelementptr("i8", array, 8), align=8)
    return f.call(_BYTES_FROM, I32, [array, f.parameters[3]])
