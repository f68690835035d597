"""Tile extents: every extent is covered, evenly, and the caches' limits are kept."""

import pytest

from tilenest.machine import AVX2, AVX512, Machine
from tilenest.ops.sizes import column_block, flat_block, product_blocks

_EXTENTS = [1, 17, 97, 129, 257, 512, 768, 1000, 4097]


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
@pytest.mark.parametrize("k", [1, 131, 5000])
def test_product_blocks_fit_the_caches(k: int, machine: Machine) -> None:
    for m in _EXTENTS:
        for n in _EXTENTS:
            blocks = product_blocks(m, n, k, machine)
            assert 1 <= blocks.m <= max(m, 1)
            assert 1 <= blocks.n <= max(n, 1)
            assert 1 <= blocks.k <= k
            assert 4 * blocks.m * blocks.n <= machine.l2_bytes // 2
            assert 2 * machine.vector_bytes * blocks.k <= machine.l1_bytes
            # Even: one block fewer would need larger blocks than the last one leaves unused.
            assert -(-m // blocks.m) * blocks.m - m < -(-m // blocks.m)


def test_large_products_have_a_block_for_every_core() -> None:
    blocks = product_blocks(1024, 1024, 1024, AVX512)
    assert -(-1024 // blocks.m) * -(-1024 // blocks.n) >= AVX512.cores


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=lambda machine: machine.name)
def test_flat_and_column_blocks(machine: Machine) -> None:
    assert machine.l1_bytes // 2 < 4 * flat_block(machine) <= machine.l1_bytes
    assert column_block(0, machine) == 1
    assert column_block(7, machine) == 7
    assert column_block(10**6, machine) % machine.lanes(4) == 0
