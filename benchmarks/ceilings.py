"""The machine's limits, measured in the same run: fused multiply-adds and copied bytes.

The multiply-add loop is written as LLVM IR at the host's full vector width, with enough independent
accumulators to fill two pipes; nothing of the package is used, so it is no judge of its own speed.
"""

import ctypes

import llvmlite.binding as llvm
import numpy as np

from benchmarks.harness import Ceiling

ACCUMULATORS = 12
ITERATIONS = 4096
COPIED_BYTES = 256 << 20


def ceilings() -> tuple[Ceiling, Ceiling]:
    return multiply_add_ceiling(), copy_ceiling()


def copy_ceiling() -> Ceiling:
    """Bytes read and written by a copy larger than the caches of most machines."""
    source = np.ones(COPIED_BYTES // 4, np.float32)
    target = np.zeros_like(source)
    return Ceiling("copy", "GB/s", lambda: np.copyto(target, source), 2.0 * COPIED_BYTES)


def multiply_add_ceiling() -> Ceiling:
    """One thread's fused multiply-adds on float32."""
    lanes = host_lanes()
    flops = 2.0 * ACCUMULATORS * lanes * ITERATIONS
    loop = MultiplyAdds(compiled(multiply_add_text(lanes)))
    return Ceiling(f"fma ({lanes} lanes)", "GFLOP/s", loop, flops)


class MultiplyAdds:
    """The loop as a callable; it holds the engine, which owns the code."""

    def __init__(self, engine: llvm.ExecutionEngine) -> None:
        self.engine = engine
        signature = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_float, ctypes.c_float)
        self.loop = signature(engine.get_function_address("multiply_adds"))

    def __call__(self) -> float:
        return float(self.loop(ITERATIONS, 0.5, 1.0))


def host_lanes() -> int:
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def compiled(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def multiply_add_text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    numbers = range(ACCUMULATORS)
    states = [f"%a{n} = phi {vector} [zeroinitializer, %entry], [%b{n}, %loop]" for n in numbers]
    steps = [
        f"%b{n} = call {vector} @llvm.fma.v{lanes}f32"
        f"({vector} %a{n}, {vector} %factor, {vector} %term)"
        for n in numbers
    ]
    folds = [f"%s{n} = fadd {vector} %{f's{n - 1}' if n > 1 else 'b0'}, %b{n}" for n in numbers[1:]]
    lines = "\n  ".join
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})

define float @multiply_adds(i64 %count, float %x, float %y) {{
entry:
  %x0 = insertelement {vector} poison, float %x, i32 0
  %y0 = insertelement {vector} poison, float %y, i32 0
  %factor = shufflevector {vector} %x0, {vector} poison, <{lanes} x i32> zeroinitializer
  %term = shufflevector {vector} %y0, {vector} poison, <{lanes} x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  {lines(states)}
  {lines(steps)}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  {lines(folds)}
  %first = extractelement {vector} %s{ACCUMULATORS - 1}, i32 0
  ret float %first
}}
"""
