"""The function callers see: native checks of every argument, then the kernel's main function.

In: the guards of one variant and its main function. Out: a TVM-FFI function
`i32(self, arguments, count, result)`. It hands back the integer 0 when the kernel ran, and 1 when
the arguments are not what the variant was made for: then nothing was written, and the caller finds
another variant or explains. A negative number says how many bytes the system did not give. The
bytes of a fault say which access was outside.
"""

from collections.abc import Sequence

from tilenest.backends.llvm.emit_launch import machine_symbol
from tilenest.backends.llvm.entry_checks import EntryChecks
from tilenest.backends.llvm.entry_description import ENTRY, MISSED, RAN, EntryDescription
from tilenest.backends.llvm.fault import OUTSIDE, hand_back_fault, new_record
from tilenest.backends.llvm.float_control import (
    default_float_control,
    restore_float_control,
)
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.pool_names import ACQUIRE, RELEASE
from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import I32, I64, POINTER, LlvmType, Value, constant, zero
from tilenest.dialects import Launch
from tilenest.ir import Function

_RUN = "run"
_INTEGER = 1
_PARAMETERS: tuple[tuple[LlvmType, str], ...] = (
    (POINTER, ""),
    (POINTER, "noalias"),
    (I32, ""),
    (POINTER, "noalias"),
)


def write_entry(
    text: ModuleText,
    entry: EntryDescription,
    main: Function,
    machine: HostMachineInfo,
    *,
    has_checks: bool,
) -> None:
    """Add the entry, which calls `main` of the same module."""
    f = text.function(ENTRY, I32, _PARAMETERS, attributes=machine.function_attributes)
    missed = f.block("missed")
    operands = EntryChecks(f, missed).operands(entry)
    record = new_record(f) if has_checks else None
    if record is not None:
        operands = [*operands, record]
    status = f.call(_RUN, I32, operands)
    if record is not None:
        outside, others = f.block("outside"), f.block("others")
        f.branch_if(f.icmp("eq", status, OUTSIDE), outside, others)
        f.begin(outside)
        f.ret(hand_back_fault(f, record))
        f.begin(others)
    needed = _most_bytes(main)
    if needed:
        ran, starved = f.block("ran"), f.block("starved")
        f.branch_if(f.icmp("eq", status, 0), ran, starved)
        f.begin(starved)
        _hand_back(f, -needed)
        f.begin(ran)
    _hand_back(f, RAN)
    f.begin(missed)
    _hand_back(f, MISSED)
    _write_run(text, main, [operand.type for operand in operands], machine, has_checks)


def _most_bytes(main: Function) -> int:
    """What it asks the system for at once; a kernel that does not is linked with nothing at all."""
    launches = (op.scratch_bytes for op in main.walk() if isinstance(op, Launch))
    return max((_scratch_bytes(main) or 0, *launches))


def _scratch_bytes(main: Function) -> int | None:
    """None when the function takes no scratch."""
    size: int | None = main.attributes.get("scratch_bytes")
    return size


def _hand_back(f: FunctionText, number: int) -> None:
    """Return, with `number` as the call's value."""
    result = f.parameters[3]
    f.store(constant(I32, _INTEGER), result, align=8)
    f.store(constant(I32, 0), f.getelementptr("i8", result, 4), align=4)
    f.store(constant(I64, number), f.getelementptr("i8", result, 8), align=8)
    f.ret(constant(I32, 0))


def _write_run(
    text: ModuleText,
    main: Function,
    kinds: Sequence[LlvmType],
    machine: HostMachineInfo,
    has_checks: bool,
) -> None:
    """The main function with scratch memory and the default floating-point control word."""
    f = text.function(
        _RUN,
        I32,
        [(kind, "") for kind in kinds],
        linkage="internal",
        attributes=machine.function_attributes,
    )
    size = _scratch_bytes(main)
    saved = default_float_control(f, machine)
    scratch: list[Value] = []
    if size:
        scratch = [f.call(ACQUIRE, POINTER, [constant(I64, size)])]
        starved, provided = f.block("starved"), f.block("provided")
        f.branch_if(f.icmp("eq", scratch[0], zero(POINTER)), starved, provided)
        f.begin(starved)
        restore_float_control(f, saved)
        f.ret(constant(I32, -1))
        f.begin(provided)
    elif size is not None:
        scratch = [zero(POINTER)]
    given = len(kinds) - has_checks
    operands = [*f.parameters[:given], *scratch, *f.parameters[given:]]
    status = f.call(machine_symbol(main.name), I32, operands)
    if size:
        f.call(RELEASE, None, scratch)
    restore_float_control(f, saved)
    f.ret(status)
