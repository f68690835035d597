"""Objects: what LLVM is told, what it refuses, what is linked, what is kept."""

import ctypes
import gc
import os
import subprocess
import sys

import pytest

from tests.unit.llvm.loops import loop_text, machines
from tilenest.backends.llvm import math_erf, math_exp, math_log
from tilenest.backends.llvm.object import (
    HostMachineInfo,
    compile_object,
    emit_assembly,
    host_machine,
    load_object,
    process_symbols,
    undefined_symbols,
)
from tilenest.backends.llvm.text import ModuleText
from tilenest.backends.llvm.values import I64, Value, constant
from tilenest.errors import InternalError


def calling(name: str) -> bytes:
    module = ModuleText()
    f = module.function("f", I64, [(I64, "")])
    f.ret(f.call(name, I64, [f.parameters[0]]))
    return compile_object(module.render())


def test_the_machine_is_described() -> None:
    machine = host_machine()
    assert machine.triple and machine.cpu and machine.data_layout
    assert not machine.has("no such feature")
    assert HostMachineInfo("", "", "+avx,-avx2", "").has("avx")
    assert not HostMachineInfo("", "", "+avx,-avx2", "").has("avx2")


def test_code_runs() -> None:
    module = ModuleText()
    f = module.function("f", I64, [(I64, "")])
    f.ret(f.mul(f.parameters[0], 3))
    loaded = load_object(compile_object(module.render()), {})
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("f"))(14) == 42


def test_outside_functions_are_linked_by_address() -> None:
    data = calling("labs")
    assert undefined_symbols(data) == {"labs"}
    loaded = load_object(data, process_symbols(["labs"]))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("f"))(-5) == 5


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(InternalError, match="no_such_function"):
        load_object(calling("no_such_function"), {"other": 1})
    with pytest.raises(InternalError, match="no_such_function"):
        process_symbols(["no_such_function"])


def test_a_name_that_is_not_exported() -> None:
    module = ModuleText()
    module.function("f", None, []).ret()
    loaded = load_object(compile_object(module.render()), {})
    with pytest.raises(InternalError, match="'g'"):
        loaded.address("g")


def test_text_that_llvm_cannot_read_is_shown() -> None:
    module = ModuleText()
    f = module.function("f", I64, [])
    f.ret(Value(I64, "%nothing"))
    with pytest.raises(InternalError, match="ret i64 %nothing"):
        compile_object(module.render())


def test_text_that_llvm_finds_wrong_is_refused() -> None:
    module = ModuleText()
    f = module.function("f", I64, [])
    later = f.block("later")
    f.branch(later)
    f.begin(later)
    phi = f.phi(I64, (1, later))
    f.ret(phi.value)
    with pytest.raises(InternalError, match="PHI"):
        compile_object(module.render())


def test_a_damaged_object_is_refused() -> None:
    data = calling("labs")
    with pytest.raises(InternalError):
        load_object(data[:100], process_symbols(["labs"]))


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("expansion", [math_exp.exp, math_exp.tanh, math_log.log, math_erf.erf])
def test_expansions_stay_in_whole_vectors(expansion: object, machine: str) -> None:
    """No call, no scalar arithmetic, and the widest registers there are."""
    facts = machines()[machine]
    assert callable(expansion)
    text = emit_assembly(loop_text(expansion, ["float", "float"], 16, facts), machine=facts)
    assert "call" not in text
    assert "mulss" not in text and "213ss" not in text
    assert ("zmm" in text) == facts.has("avx512f")


def test_far_constants_need_no_absolute_moves() -> None:
    text = emit_assembly(loop_text(math_exp.exp, ["double", "double"], 4, host_machine()))
    assert "movabs" not in text


def test_unloading_gives_memory_back() -> None:
    module = ModuleText()
    f = module.function("f", I64, [])
    f.ret(constant(I64, 1))
    data = compile_object(module.render())

    def resident_pages() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1])

    for _ in range(20):
        load_object(data, {}).address("f")
    gc.collect()
    before = resident_pages()
    for _ in range(300):
        load_object(data, {}).address("f")
    gc.collect()
    assert resident_pages() - before < 300


def test_llvmlite_is_not_imported_with_the_room() -> None:
    code = "import sys, tilenest.backends.llvm.object; sys.exit('llvmlite' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run([sys.executable, "-c", code], check=False, env=environment)
    assert finished.returncode == 0
