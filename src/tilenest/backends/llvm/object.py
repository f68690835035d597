"""Text to machine code to addresses; the package's only use of llvmlite.

In: LLVM text from `text`. Out: the bytes of a relocatable object (`compile_object`), its assembly
(`emit_assembly`), or callable addresses (`load_object`). The code is generated for the processor
at hand, small code model and position independent (constants folded into instructions, far calls
through stubs); no optimising pipeline runs, since the text is already in the shape we want. Every
loaded object has a just-in-time linker of its own, so unloading it gives all memory back.
"""

import ctypes
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from tilenest.errors import InternalError
from tilenest.records import record

_ELF_SECTION = struct.Struct("<IIQQQQIIQQ")
_ELF_SYMBOL = struct.Struct("<IBBHQQ")
_ELF_SYMBOL_TABLE = 2


@record
class HostMachineInfo:
    """What the code generator is told about a processor."""

    triple: str
    cpu: str
    features: str
    data_layout: str

    @property
    def enabled(self) -> frozenset[str]:
        """The names in `features` (LLVM's "+avx2,-sse4a" list) that the processor has."""
        listed = self.features.split(",")
        return frozenset(name.removeprefix("+") for name in listed if name.startswith("+"))

    def has(self, feature: str) -> bool:
        """Whether the processor has this one."""
        return feature in self.enabled

    @property
    def function_attributes(self) -> tuple[str, ...]:
        """For every generated function: LLVM prefers half-width vectors on many processors."""
        if self.has("avx512f"):
            return ("nounwind", '"prefer-vector-width"="512"')
        return ("nounwind",)


@cache
def _import_llvmlite() -> Any:
    """The binding layer, loaded on first use (a library of 180 MB) and initialised."""
    import llvmlite.binding

    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    return llvmlite.binding


@cache
def host_machine() -> HostMachineInfo:
    """The processor this process runs on."""
    llvm = _import_llvmlite()
    cpu = llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, codemodel="small", reloc="pic"
    )
    return HostMachineInfo(machine.triple, cpu, features, str(machine.target_data))


def code_generator_version() -> str:
    """What besides the text and the processor decides the code."""
    return f"LLVM {'.'.join(map(str, _import_llvmlite().llvm_version_info))}"


def compile_object(
    text: str, *, opt_level: int = 2, machine: HostMachineInfo | None = None
) -> bytes:
    """The relocatable object of a module, for `machine` (default: this one)."""
    module = _parsed(text)
    return bytes(_target_machine(machine or host_machine(), opt_level).emit_object(module))


def emit_assembly(text: str, *, opt_level: int = 2, machine: HostMachineInfo | None = None) -> str:
    """The same code as `compile_object` makes, as assembly text."""
    module = _parsed(text)
    return str(_target_machine(machine or host_machine(), opt_level).emit_assembly(module))


class LoadedObject:
    """Machine code in memory; its addresses are good while this object lives."""

    __slots__ = ("_compiler", "_library", "_trackers")

    def __init__(self, compiler: Any, library: str, tracker: Any) -> None:
        self._compiler = compiler
        self._library = library
        self._trackers = {"": tracker}

    def address(self, name: str) -> int:
        """Address of a function or variable the object exports."""
        if name not in self._trackers:
            try:
                self._trackers[name] = self._compiler.lookup(self._library, name)
            except RuntimeError as error:
                raise InternalError(f"the loaded object does not export '{name}'") from error
        return int(self._trackers[name][name])


def load_object(data: bytes, symbols: Mapping[str, int]) -> LoadedObject:
    """Link `data` into the process; `symbols` gives the address of every outside name it uses."""
    wanted = undefined_symbols(data)
    missing = sorted(wanted - symbols.keys())
    if missing:
        raise InternalError(f"no address for the symbols {', '.join(missing)}")
    llvm = _import_llvmlite()
    builder = llvm.JITLibraryBuilder().add_object_img(data)
    for name in sorted(wanted):
        builder.import_symbol(name, symbols[name])
    compiler = llvm.create_lljit_compiler(_target_machine(host_machine(), 2))
    try:
        tracker = builder.link(compiler, "object")
    except RuntimeError as error:
        raise InternalError(f"cannot link the object: {error}") from error
    return LoadedObject(compiler, "object", tracker)


def undefined_symbols(data: bytes) -> frozenset[str]:
    """The outside names an ELF object uses; the linker itself would fail without naming them.

    Read here, since LLVM's reader does not survive a damaged file.
    """
    if data[:4] != b"\x7fELF":
        return frozenset()
    try:
        return frozenset(_read_undefined_symbols(data))
    except (struct.error, IndexError, ValueError) as error:
        raise InternalError("the object file is damaged") from error


def _read_undefined_symbols(data: bytes) -> Iterator[str]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_ELF_SECTION.unpack_from(data, table + size * place) for place in range(count)]
    for _, kind, _, _, start, length, link, _, _, _ in sections:
        if kind != _ELF_SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for place in range(start, start + length, _ELF_SYMBOL.size):
            name, _, _, section, _, _ = _ELF_SYMBOL.unpack_from(data, place)
            if section == 0 and name:
                begin = names + name
                yield data[begin : data.index(b"\0", begin)].decode()


def process_symbols(names: Iterable[str]) -> dict[str, int]:
    """Addresses of C functions the process already has (libc and what is loaded globally)."""
    process = ctypes.CDLL(None)
    found: dict[str, int] = {}
    for name in names:
        try:
            address = ctypes.cast(getattr(process, name), ctypes.c_void_p).value
        except AttributeError as error:
            raise InternalError(f"this process has no function '{name}'") from error
        assert address is not None
        found[name] = address
    return found


def _target_machine(machine: HostMachineInfo, opt_level: int) -> Any:
    return (
        _import_llvmlite()
        .Target.from_triple(machine.triple)
        .create_target_machine(
            cpu=machine.cpu,
            features=machine.features,
            opt=opt_level,
            codemodel="small",
            reloc="pic",
        )
    )


def _parsed(text: str) -> Any:
    llvm = _import_llvmlite()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(_explain(str(error), text)) from error
    return module


def _explain(message: str, text: str) -> str:
    """LLVM's complaint and the lines around the place it names."""
    place = re.search(r"<string>:(\d+)", message)
    if place is None:
        return f"LLVM refused the generated module:\n{message}"
    line = int(place.group(1))
    lines = text.splitlines()[max(line - 3, 0) : line + 1]
    context = "\n".join(lines)
    return f"LLVM refused the generated module:\n{message}\naround line {line}:\n{context}"
