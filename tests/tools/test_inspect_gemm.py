"""The loop over k of `tn.ops.matmul` is what a person would write by hand, on any vector width."""

import pytest

from tools.inspect_gemm import inspect, loops_of, machines, product

ASSEMBLY = """
    .text
main:
    movq    %rdi, %rax
.LBB0_1:
    vbroadcastss    (%rsi,%rax,4), %ymm0
    vfmadd231ps     (%rdx), %ymm0, %ymm1
    vfmadd231ps     -32(%rdx), %ymm0, %ymm12
    jl      .LBB0_1
.LBB0_2:
    vmovups 64(%rsp), %ymm0
    vfmadd231ps     %ymm0, %ymm0, %ymm1
    jl      .LBB0_2
    jl      .LBB0_1
"""


def test_a_loop_is_a_block_that_jumps_to_itself() -> None:
    first, second = loops_of(ASSEMBLY)
    assert (first.label, second.label) == (".LBB0_1", ".LBB0_2")
    assert [found["number"] for found in first.multiply_adds()] == ["1", "12"]
    assert first.stack_references() == []


def test_a_spill_is_seen() -> None:
    _, spilling = loops_of(ASSEMBLY)
    assert spilling.stack_references() == ["vmovups 64(%rsp), %ymm0"]


@pytest.mark.parametrize("extents", [(512, 512, 512), (97, 61, 131)], ids=str)
@pytest.mark.parametrize("name", ["host", "avx2", "avx512"])
def test_one_full_multiply_add_an_accumulator_and_no_stack(
    name: str, extents: tuple[int, int, int]
) -> None:
    machine = machines()[name]
    found = inspect(product(*extents, machine), machine.machine.vector_bytes)
    assert found.stack_references == 0
    assert found.full_width == found.multiply_adds == found.accumulators == found.planned
    assert found.planned >= 8
    assert found.holds
