"""Tile extents of the operators: one function of extents and machine facts each.

In: extents and a `Machine`. Out: extents of one root instance's tiles. A flat block fills the first
cache, the panels of a product's step the second; nothing depends on the number of threads.
"""

from __future__ import annotations

import math
from functools import cache

from tilenest.driver import host
from tilenest.machine import Machine
from tilenest.records import record

_FLOAT = 4
_PANEL_VECTORS = 2
"""Vectors side by side in a register block of a product."""
_LEAST_SIDE = 160
"""A shorter side of a product's block spends more on copying panels than another core saves."""
_PARALLEL_WORK = 1 << 22
"""Multiply-adds from which on every core should have a block: some 30 microseconds of work."""


@record
class Blocks:
    """Tile extents of one root instance of a product."""

    m: int
    n: int
    k: int


def flat_block(machine: Machine) -> int:
    """Elements of one instance of contiguous elementwise or whole-array work: most of the first
    cache in float32."""
    return _power_of_two(machine.l1_bytes // _FLOAT)


def column_block(inner: int, machine: Machine) -> int:
    """Elements side by side in one instance where another axis than the last is reduced: the
    accumulators are eight vectors, several lines of memory at a time."""
    return min(max(inner, 1), 32 * machine.lanes(_FLOAT))


def product_blocks(m: int, n: int, k: int, machine: Machine) -> Blocks:
    """Tile extents of an m x k times k x n product.

    A panel of one register block's columns fills the first cache, and a square accumulator half of
    the second. Blocks divide the extents evenly, an extent that fits is one block; the longer side
    is cut until there is a block for every core.
    """
    depth = machine.l1_bytes // (_PANEL_VECTORS * machine.vector_bytes)
    side = _power_of_two(math.isqrt(machine.l2_bytes // 2 // _FLOAT))
    rows, columns = _even(m, side), _even(n, side)
    while m * n * k >= _PARALLEL_WORK and -(-m // rows) * -(-n // columns) < machine.cores:
        if max(rows, columns) < 2 * _LEAST_SIDE:
            break
        if rows > columns:
            rows = -(-rows // 2)
        else:
            columns = -(-columns // 2)
    return Blocks(rows, columns, _even(k, depth))


@cache
def flat_block_here() -> int:
    """`flat_block` of this machine."""
    return flat_block(host().machine)


@cache
def column_block_here(inner: int) -> int:
    """`column_block` on this machine."""
    return column_block(inner, host().machine)


@cache
def product_blocks_here(m: int, n: int, k: int) -> Blocks:
    """`product_blocks` on this machine."""
    return product_blocks(m, n, k, host().machine)


def _power_of_two(limit: int) -> int:
    """The largest power of two of at most `limit`."""
    return 1 << (max(limit, 1).bit_length() - 1)


def _even(extent: int, limit: int) -> int:
    """The block that covers `extent` in the fewest blocks of at most `limit`, evenly."""
    if extent <= limit:
        return max(1, extent)
    blocks = -(-extent // limit)
    return -(-extent // blocks)
