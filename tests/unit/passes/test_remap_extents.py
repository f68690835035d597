"""How many instances a fused level has: the product, or more than any run gets through.

The judge is the product in unbounded numbers. What the program computes is evaluated operation by
operation, at 64 bits as it runs.
"""

import operator
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.passes.remapped import CASES, captured
from tilenest.dialects import Apply, Constant, Extent, Parallel
from tilenest.ir import OpResult, Value

EXTENTS = (0, 1, 2, 3, 1000, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 48) - 1, 1 << 48)
FUNCTIONS: dict[str, Any] = {
    "mul": operator.mul,
    "add": operator.add,
    "minimum": min,
    "floordiv": lambda a, b: a // b if b else 0,
}
MOST = 1 << 62


def value_of(value: Value, extents: tuple[int, ...]) -> int:
    assert isinstance(value, OpResult)
    op = value.owner
    if isinstance(op, Constant):
        assert isinstance(op.value, int)
        return op.value
    if isinstance(op, Extent):
        return extents[int(op.axis)]
    assert isinstance(op, Apply)
    found = FUNCTIONS[op.function](*(value_of(one, extents) for one in op.arguments))
    return int(np.array(found & ((1 << 64) - 1), np.uint64).astype(np.int64))


@tn.kernel
def of_two(A, C):
    for block in tn.parallel(A.extent(0), A.extent(1)):
        i, j = block.index()
        C.at(i, j).store(A.at(i, j).load())


@tn.kernel
def of_three(A, C):
    for block in tn.parallel(A.extent(0), A.extent(1), A.extent(2)):
        i, j, k = block.index()
        C.at(i, j, k).store(A.at(i, j, k).load())


@tn.kernel
def of_a_number(A, C):
    for block in tn.parallel(A.extent(0), 12):
        i, j = block.index()
        C.at(i, j).store(A.at(i, j).load())


@pytest.mark.parametrize(("kernel", "rank"), [(of_two, 2), (of_three, 3), (of_a_number, 2)])
def test_a_fused_level_has_the_instances_of_all(kernel: Any, rank: int) -> None:
    spec = tn.spec((None,) * rank, tn.int32)
    module = kernel.capture(spec, spec)
    tn.remap(module).coalesce().apply()
    (nest,) = [op for op in module.walk() if isinstance(op, Parallel)]
    (upper,) = nest.upper
    has_number = kernel is of_a_number
    for extents in product(EXTENTS, repeat=rank):
        factors = (extents[0], 12) if has_number else extents
        wanted, found = int(np.prod(factors, dtype=object)), value_of(upper, extents)
        if wanted <= MOST:
            assert found == wanted, extents
        else:
            assert MOST // 2 < found <= MOST, extents
            assert found % factors[-1] == 0


def test_a_product_that_fits_is_only_multiplied() -> None:
    spec = tn.spec((None, 12), tn.int32)
    module = of_a_number.capture(spec, spec)
    tn.remap(module).coalesce().apply()
    assert "minimum" not in str(module)


def test_blocks_of_a_fused_level_fit_an_index() -> None:
    spec = tn.spec((None, None), tn.int32)
    module = of_two.capture(spec, spec)
    plan = tn.remap(module).coalesce()
    (level,) = plan.levels.levels
    plan.split(level.identity, 7).apply()
    (nest,) = [op for op in module.walk() if isinstance(op, Parallel)]
    for extents in product(EXTENTS, repeat=2):
        wanted, found = -(-extents[0] * extents[1] // 7), value_of(nest.upper[0], extents)
        assert found == wanted or (wanted > MOST // 7 and MOST // 14 < found <= MOST // 7 + 1)


@tn.kernel
def square(A, C):
    for a in tn.parallel(A.extent(0)):
        for b in a.parallel(A.extent(1)):
            C.at(a.index(), b.index()).store(A.at(a.index(), b.index()).load() * 2.0)


def test_what_nobody_knows_may_be_proven_in_two_remaps() -> None:
    module = square.capture(*[tn.spec((None, None), tn.float32)] * 2)
    tiles = tn.remap(module).split("a", 4).split("b", 4).permute("a.0", "b.0", "a.1", "b.1")
    with pytest.raises(tn.RemapError, match="'all' of the levels: unknown") as refused:
        tiles.fuse("a.0", "b.0").fuse("a.1", "b.1").apply()
    assert "apply the first steps by themselves" in str(refused.value.remedy)
    tiles.fuse("a.1", "b.1").apply()
    tn.remap(module).fuse("a_outer", "b_outer").apply()
    ordered = tn.remap(captured(CASES["ordered"]), "column").split("column", 2)
    with pytest.raises(tn.RemapError, match="disproven") as refused:
        ordered.permute("column.0", "column.1", "step").apply()
    assert "by themselves" not in str(refused.value.remedy)
