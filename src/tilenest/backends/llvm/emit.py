"""Machine form to LLVM text: one table from operation class to the function that writes it.

In: a module in Machine form and the processor. Out: its functions, internal, in a module of LLVM
text. A function returns 0, or what a failure in it returned; in a module that checks bounds it
takes one thing more, the place where a fault is recorded. Its attribute "noalias" tells for every
argument whether it is an address through which alone its bytes are touched; without the attribute
nothing is promised.
"""

from collections.abc import Mapping

from tilenest.backends.llvm.emit_atomics import emit_atomic
from tilenest.backends.llvm.emit_atoms import ATOM_EMITTERS, emit_atom
from tilenest.backends.llvm.emit_check import emit_check
from tilenest.backends.llvm.emit_control import emit_branch, emit_for
from tilenest.backends.llvm.emit_frame import Emit, Frame
from tilenest.backends.llvm.emit_launch import emit_launch, machine_symbol
from tilenest.backends.llvm.emit_memory import (
    emit_gather,
    emit_load,
    emit_offset,
    emit_scatter,
    emit_store,
)
from tilenest.backends.llvm.emit_scalar import (
    emit_apply,
    emit_bitcast,
    emit_cast,
    emit_constant,
)
from tilenest.backends.llvm.emit_vector import (
    emit_lane_mask,
    emit_lanes,
    emit_splat,
)
from tilenest.backends.llvm.fault import checks_bounds, write_report
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.registers import register_type
from tilenest.backends.llvm.text import ModuleText
from tilenest.backends.llvm.values import I32, POINTER, LlvmType, constant
from tilenest.dialects import (
    AddressAtomic,
    AddressLoad,
    AddressStore,
    Apply,
    AtomCall,
    Bitcast,
    Cast,
    Check,
    Constant,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopIf,
    Offset,
    Scatter,
    Splat,
)
from tilenest.errors import TargetError
from tilenest.ir import Function, Module, Operation

EMITTERS: Mapping[type[Operation], Emit] = {
    Constant: emit_constant,
    Apply: emit_apply,
    Cast: emit_cast,
    Bitcast: emit_bitcast,
    For: emit_for,
    LoopIf: emit_branch,
    Launch: emit_launch,
    Offset: emit_offset,
    Check: emit_check,
    AddressLoad: emit_load,
    AddressStore: emit_store,
    AddressAtomic: emit_atomic,
    Gather: emit_gather,
    Scatter: emit_scatter,
    Splat: emit_splat,
    Lanes: emit_lanes,
    LaneMask: emit_lane_mask,
    AtomCall: emit_atom,
}
"""Every operation of Machine form that is no terminator, but for those that are refused."""
FACILITIES = frozenset({"addresses", "atomics", "atoms", "faults", "lanes", "pool"})
"""What an operation may need of this target."""


def emit_module(module: Module, text: ModuleText, machine: HostMachineInfo) -> None:
    """Write every function of `module`."""
    assert module.form == "machine", f"a module in {module.form} form reached the code generator"
    refuse_foreign(module)
    has_checks = checks_bounds(module)
    if has_checks:
        write_report(text, machine)
    for function in module.functions:
        _emit_function(function, text, machine, has_checks)


def refuse_foreign(module: Module) -> None:
    """Refuse an operation that needs what the target does not have."""
    for op in module.walk():
        lacking = [need for need in op.NEEDS if need not in FACILITIES]
        if isinstance(op, AtomCall) and op.atom not in ATOM_EMITTERS:
            lacking.append(f"the atom {op.atom!r}")
        if lacking:
            raise TargetError(
                f"{op.NAME} needs {' and '.join(lacking)}, which the CPU target does not have",
                "lower it to operations of the target first, or run with target='interpret'",
                op.location,
            )


def main_function(module: Module) -> Function:
    """The first function that no launch runs in chunks."""
    bodies = {op.callee for op in module.walk() if isinstance(op, Launch)}
    return next(function for function in module.functions if function.name not in bodies)


def _emit_function(
    function: Function, text: ModuleText, machine: HostMachineInfo, has_checks: bool
) -> None:
    parameters = _parameters(function)
    if has_checks:
        parameters.append((POINTER, ""))
    f = text.function(
        machine_symbol(function.name),
        I32,
        parameters,
        linkage="internal",
        attributes=machine.function_attributes,
    )
    frame = Frame(f, machine, EMITTERS, f.parameters[-1] if has_checks else None)
    frame.bind(function.arguments, f.parameters[: len(function.arguments)])
    returned = frame.emit_block(function.body)
    assert not returned, "a Machine function returns nothing"
    f.ret(constant(I32, 0))
    frame.close()


def _parameters(function: Function) -> list[tuple[LlvmType, str]]:
    promised = function.attributes.get("noalias", (False,) * len(function.arguments))
    kinds = [register_type(argument.type) for argument in function.arguments]
    return [
        (kind, "noalias" if is_alone and kind == POINTER else "")
        for kind, is_alone in zip(kinds, promised, strict=True)
    ]
