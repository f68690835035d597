"""Counts what runs in the innermost loop of `tn.ops.matmul`.

Run `python tools/inspect_gemm.py M N K [--machine host|avx2|avx512]`. In: the extents of a product
of float32 matrices. Out: the loop's instructions and a summary. The loop over k is the block that
jumps back to its own label with the most fused multiply-adds; it is as it should be when there is
one of them, over full vectors, for every accumulator the plan chose, and nothing touches the stack.
Exits with 1 when it is not.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import tilenest as tn
from tilenest.backends.llvm import HostMachineInfo
from tilenest.driver import Compilation, Host, host, lower
from tilenest.machine import AVX2, AVX512

LABEL = re.compile(r"([.\w$\"]+):")
JUMP = re.compile(r"j[a-z]+\s+([.\w$\"]+)")
MULTIPLY_ADD = re.compile(r"vfn?m(add|sub)\w+\s.*%(?P<file>[xyz])mm(?P<number>\d+)$")
REGISTER_FILE = {16: "x", 32: "y", 64: "z"}
TRIPLE = "x86_64-unknown-linux-gnu"
LEVEL_3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"
LEVEL_4 = f"{LEVEL_3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"


@dataclass(frozen=True, slots=True)
class Loop:
    """A block that jumps back to its own label, as assembly text."""

    label: str
    instructions: tuple[str, ...]

    def multiply_adds(self) -> list[re.Match[str]]:
        return [found for line in self.instructions if (found := MULTIPLY_ADD.match(line))]

    def stack_references(self) -> list[str]:
        return [line for line in self.instructions if re.search(r"%[re]sp\b", line)]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in the loop, beside what the plan asked for."""

    loop: Loop
    planned: int
    full_width: int
    accumulators: int
    multiply_adds: int
    stack_references: int

    @property
    def holds(self) -> bool:
        counts = {self.planned, self.full_width, self.accumulators, self.multiply_adds}
        return len(counts) == 1 and self.stack_references == 0


def loops_of(assembly: str) -> Iterator[Loop]:
    """Every innermost loop that is one block."""
    label, block = None, list[str]()
    for line in map(str.strip, assembly.splitlines()):
        if not line or line.startswith(("#", ".p2align")):
            continue
        if found := LABEL.match(line):
            label, block = found[1], []
            continue
        block.append(line)
        found = JUMP.match(line)
        if found and found[1] == label:
            yield Loop(label, tuple(block))


def inspect(compilation: Compilation, vector_bytes: int) -> Inspection:
    """Find the loop over k and count."""
    loop = max(loops_of(compilation.assembly()), key=lambda one: len(one.multiply_adds()))
    found = loop.multiply_adds()
    return Inspection(
        loop=loop,
        planned=planned_accumulators(compilation, vector_bytes),
        full_width=sum(one["file"] == REGISTER_FILE[vector_bytes] for one in found),
        accumulators=len({one["number"] for one in found}),
        multiply_adds=len(found),
        stack_references=len(loop.stack_references()),
    )


def planned_accumulators(compilation: Compilation, vector_bytes: int) -> int:
    """Vectors in the register block that the plan decided on."""
    for decision in compilation.plan.decisions:
        if found := re.search(r"(\d+) x (\d+) accumulators", str(decision)):
            return int(found[1]) * int(found[2]) * np.dtype(np.float32).itemsize // vector_bytes
    raise ValueError("no product was planned")


def machines() -> dict[str, Host]:
    return {
        "host": host(),
        "avx2": Host(HostMachineInfo(TRIPLE, "x86-64-v3", LEVEL_3, ""), AVX2),
        "avx512": Host(HostMachineInfo(TRIPLE, "x86-64-v4", LEVEL_4, ""), AVX512),
    }


def product(m: int, n: int, k: int, machine: Host) -> Compilation:
    """`tn.ops.matmul` of these extents, compiled for a machine."""
    tn.ops.matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    # The package's attribute of this name is the function.
    operators = vars(importlib.import_module("tilenest.ops.matmul")).values()
    (kernel,) = [value for value in operators if isinstance(value, tn.Kernel)]
    return lower(kernel.variants[-1].captured, machine)


def main() -> int:
    known = machines()
    parser = argparse.ArgumentParser(prog="inspect_gemm", description=__doc__)
    parser.add_argument("extents", metavar="M N K", type=int, nargs=3)
    parser.add_argument("--machine", choices=known, default="host")
    given = parser.parse_args()
    machine = known[given.machine]
    m, n, k = given.extents
    found = inspect(product(m, n, k, machine), machine.machine.vector_bytes)
    print(f"{found.loop.label}:", *found.loop.instructions, sep="\n  ")
    print(f"planned accumulators: {found.planned}")
    print(f"accumulators in the loop: {found.accumulators}")
    print(f"fused multiply-adds: {found.multiply_adds}, over full vectors: {found.full_width}")
    print(f"stack references: {found.stack_references}")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
