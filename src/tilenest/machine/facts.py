"""What a CPU is, as far as planning needs to know: vectors, registers, caches, cores.

In: numbers. Out: one frozen record that the plan reads and the report prints. The presets describe
typical machines, so that tests plan for a CPU other than the one they run on.
"""

from __future__ import annotations

from tilenest.records import record


@record
class Machine:
    """One CPU. Sizes are in bytes; cache sizes are those one core sees."""

    name: str
    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    cores: int

    def lanes(self, element_bytes: int) -> int:
        """How many elements of this size fill a vector register."""
        return max(1, self.vector_bytes // element_bytes)


AVX2 = Machine("avx2", 32, 16, 32 << 10, 512 << 10, 16 << 20, 4)
AVX512 = Machine("avx512", 64, 32, 48 << 10, 2 << 20, 32 << 20, 4)
