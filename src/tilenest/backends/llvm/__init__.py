"""The CPU target: Machine form to LLVM text, to an object, to addresses in this process."""

from tilenest.backends.llvm.emit import emit_module, main_function
from tilenest.backends.llvm.entry import ENTRY, MISSED, RAN, write_entry
from tilenest.backends.llvm.entry_description import (
    Argument,
    ArrayArgument,
    EntryDescription,
    NoneArgument,
    ScalarArgument,
)
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
from tilenest.backends.llvm.pool import RUN, pool_text
from tilenest.backends.llvm.pool_arenas import ACQUIRE, RELEASE
from tilenest.backends.llvm.text import ModuleText
from tilenest.ir import Module

POOL_SYMBOLS = frozenset((RUN, ACQUIRE, RELEASE))
"""What the code of a kernel may want of the pool; `NativePool.symbols` has the addresses."""


def generate(module: Module, entry: EntryDescription, machine: HostMachineInfo) -> str:
    """LLVM text of a module in Machine form and of the entry that checks its arguments.

    The text refers to the functions of the pool, which are an object of their own.
    """
    text = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    emit_module(module, text, machine)
    write_entry(text, entry, main_function(module), machine)
    return text.render()


__all__ = [
    "ENTRY",
    "MISSED",
    "POOL_SYMBOLS",
    "RAN",
    "Argument",
    "ArrayArgument",
    "EntryDescription",
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
    "pool_text",
    "process_symbols",
    "undefined_symbols",
]
