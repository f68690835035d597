"""The whole of LLVM text for one kernel: its functions and the entry that callers see.

In: a module in Machine form, what its entry checks, the processor. Out: the text. It refers to the
functions of the pool, which are an object of their own.
"""

from tilenest.backends.llvm.emit import emit_module, main_function
from tilenest.backends.llvm.entry import write_entry
from tilenest.backends.llvm.entry_description import EntryDescription
from tilenest.backends.llvm.fault import checks_bounds
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.text import ModuleText
from tilenest.ir import Module


def kernel_text(module: Module, entry: EntryDescription, machine: HostMachineInfo) -> str:
    """Every function of the module, then the entry."""
    text = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    emit_module(module, text, machine)
    write_entry(text, entry, main_function(module), machine, has_checks=checks_bounds(module))
    return text.render()
