"""The CPU target: Machine form to LLVM text, to an object, to addresses in this process."""

from functools import cache
from types import ModuleType

from tilenest.backends.llvm.entry_description import (
    ENTRY,
    MISSED,
    RAN,
    Argument,
    ArrayArgument,
    EntryDescription,
    NoneArgument,
    ScalarArgument,
)
from tilenest.backends.llvm.fault_record import Fault
from tilenest.backends.llvm.native_pool import NativePool, compile_pool, load_pool
from tilenest.backends.llvm.object import (
    HostMachineInfo,
    LoadedObject,
    code_generator_version,
    compile_object,
    emit_assembly,
    host_machine,
    load_object,
    process_symbols,
    undefined_symbols,
)
from tilenest.ir import Module


def generate(module: Module, entry: EntryDescription, machine: HostMachineInfo) -> str:
    """LLVM text of a module in Machine form and of the entry that checks its arguments."""
    text: str = _import_kernel_text().kernel_text(module, entry, machine)
    return text


@cache
def _import_kernel_text() -> ModuleType:
    """The writers of LLVM text, which code from the cache does without."""
    from tilenest.backends.llvm import kernel_text

    return kernel_text


__all__ = [
    "ENTRY",
    "MISSED",
    "RAN",
    "Argument",
    "ArrayArgument",
    "EntryDescription",
    "Fault",
    "HostMachineInfo",
    "LoadedObject",
    "NativePool",
    "NoneArgument",
    "ScalarArgument",
    "code_generator_version",
    "compile_object",
    "compile_pool",
    "emit_assembly",
    "generate",
    "host_machine",
    "load_object",
    "load_pool",
    "process_symbols",
    "undefined_symbols",
]
