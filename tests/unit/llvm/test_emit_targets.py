"""Machine code for other processors: it assembles, and has the shape it should have."""

import re

import llvmlite.binding
import numpy as np
import pytest

from tests.unit.llvm.programs import Program, described, numpy_dtype
from tilenest.backends.llvm import (
    ArrayArgument,
    EntryDescription,
    HostMachineInfo,
    emit_assembly,
    generate,
)
from tilenest.dialects import SCALAR_FUNCTIONS
from tilenest.ir import (
    DTYPES,
    DType,
    Module,
    Value,
    VectorType,
    bool_,
    float16,
    float32,
    index,
    int8,
    int32,
)

_V3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"
_V4 = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
_X86 = "x86_64-unknown-linux-gnu"
TARGETS = {
    "x86-64-v3": HostMachineInfo(_X86, "x86-64-v3", _V3, ""),
    "x86-64-v4": HostMachineInfo(_X86, "x86-64-v4", _V4, ""),
    "aarch64": HostMachineInfo("aarch64-unknown-linux-gnu", "generic", "+neon", ""),
}


@pytest.fixture(scope="module", autouse=True)
def _other_processors() -> None:
    """The package itself asks LLVM for the processor at hand only."""
    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()


def everything(dtype: DType, lanes: int) -> Module:
    """All functions, masks, gathers, scatters and reductions of one dtype."""
    program = Program([1, 1])
    (source, (extent,), _), (target, _, _) = program.view(0), program.view(1)
    kind = VectorType(dtype, lanes)
    mask = program.lane_mask(extent, lanes)
    x = program.load(source, kind, mask, program.number(1, kind))
    for function in SCALAR_FUNCTIONS.values():
        if dtype.kind not in function.domain:
            continue
        first = [mask] if function.name == "where" else [x]
        operands = [*first, x, x][: function.arity]
        result = VectorType(bool_, lanes) if function.result == "bool" else kind
        value = program.apply(function.name, *operands, type_=result)
        program.store(value, target, mask)
    offsets = program.lanes(index, lanes)
    y = program.gather(source, offsets, kind, mask=mask, otherwise=x)
    program.scatter(y, target, offsets, mask)
    total = program.reduce("maximum", y)
    with program.launch(extent, [target, total], scratch_bytes=64, cost_ns=10.0) as body:
        program.store(body[4], body[3])
    return program.finish()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype is not index], ids=str)
def test_everything_assembles(dtype: DType, target: HostMachineInfo) -> None:
    arrays = [np.zeros(1, numpy_dtype(dtype))] * 2
    for lanes in (4, 16):
        text = generate(everything(dtype, lanes), described(arrays), target)
        assert "__tvm_ffi_main" in emit_assembly(text, machine=target)


def copy_loop(dtype: DType, lanes: int) -> Module:
    """A masked copy of rows."""
    program = Program([1, 1])
    (source, (extent,), _), (target, _, _) = program.view(0), program.view(1)

    def body(place: Value) -> list[Value]:
        mask = program.lane_mask(program.apply("sub", extent, place), lanes)
        kind = VectorType(dtype, lanes)
        x = program.load(program.at(source, place, dtype.bytes), kind, mask)
        program.store(x, program.at(target, place, dtype.bytes), mask)
        return []

    program.loop(program.number(0), extent, program.number(lanes), body)
    return program.finish()


def main_assembly(module: Module, target: HostMachineInfo) -> str:
    """The instructions of the main function."""
    empty = EntryDescription(
        tuple(
            ArrayArgument(float32, (None,), (None,), is_written=False, group=place)
            for place in range(2)
        )
    )
    text = emit_assembly(generate(module, empty, target), machine=target)
    found = re.search(r"^machine\.main:(.*?)^\.Lfunc_end", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("dtype", [int8, float16, bool_], ids=str)
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_narrow_masks_do_not_become_a_branch_a_lane(dtype: DType, target: str) -> None:
    code = main_assembly(copy_loop(dtype, 32), TARGETS[target])
    assert len(re.findall(r"^\s+j[a-z]+\s", code, re.MULTILINE)) <= 12


@pytest.mark.parametrize(("target", "register"), [("x86-64-v3", "ymm"), ("x86-64-v4", "zmm")])
def test_loops_use_whole_registers_and_no_stack(target: str, register: str) -> None:
    """A fused multiply-add of one full register a step, its accumulator never in memory."""
    machine = TARGETS[target]
    lanes = 16 if register == "zmm" else 8
    program = Program([1, 1])
    (source, (extent,), _), (target_pointer, _, _) = program.view(0), program.view(1)
    kind = VectorType(float32, lanes)

    def body(place: Value, *totals: Value) -> list[Value]:
        start = program.at(source, place, 4)
        factors = [program.load(start, kind), program.load(program.at(start, place, 0, 256), kind)]
        return [program.apply("fma", *factors, total) for total in totals]

    initial = [program.number(float(place), kind) for place in range(4)]
    limits = program.number(0), extent, program.number(lanes)
    for place, total in enumerate(program.loop(*limits, body, initial)):
        program.store(total, program.at(target_pointer, program.number(place * lanes), 4))
    code = main_assembly(program.finish(), machine)
    assert len(re.findall(rf"vfmadd\S+\s.*%{register}", code)) == 4
    assert "rsp" not in code


def test_masks_of_words_are_compared_in_words() -> None:
    code = main_assembly(copy_loop(int32, 8), TARGETS["x86-64-v3"])
    assert "vpcmpgtd" in code
    assert "vpcmpgtq" not in code
