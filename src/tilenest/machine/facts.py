"""What a CPU is, as far as planning needs to know: vectors, registers, caches, cores.

In: numbers. Out: one frozen record that the plan reads and the report prints. The presets describe
typical machines, so that tests plan for a CPU other than the one they run on.
"""

from __future__ import annotations

from tilenest.records import record

VECTORS = "vectors"
"""The feature of registers with several lanes."""
_LANE_BYTES = 4
"""Narrower elements are widened in registers before anything is computed."""


def lanes_feature(lanes: int) -> str:
    """The feature of registers that hold so many lanes."""
    return f"lanes.{1 << (lanes - 1).bit_length()}"


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

    @property
    def features(self) -> frozenset[str]:
        """The names of what its vector registers can do; lanes are of four bytes."""
        widths = range(1, self.lanes(_LANE_BYTES).bit_length())
        names = frozenset(lanes_feature(1 << width) for width in widths)
        return names | {VECTORS} if names else names


AVX2 = Machine("avx2", 32, 16, 32 << 10, 512 << 10, 16 << 20, 4)
AVX512 = Machine("avx512", 64, 32, 48 << 10, 2 << 20, 32 << 20, 4)
