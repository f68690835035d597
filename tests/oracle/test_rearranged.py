"""Programs whose levels the compiler rearranges by itself: what the Scheduled text says, and the
bits of the interpreter, on one thread and on two.

Every pass is verified on the way, so the remaps are proven anew from what is left of the nests.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle.compare import Out, check, tn
from tilenest.analysis import remaps_of
from tilenest.dialects import Load, MapReducePost, Parallel
from tilenest.records import record


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    count = tn.get_num_threads()
    tn.set_num_threads(request.param)
    yield
    tn.set_num_threads(count)


@tn.kernel
def grid_in_grid(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 16)
    for i in tn.parallel(A.extent(0)):
        for j in i.parallel(tn.cdiv(A.extent(1), 16)):
            at = (i.index(), j.index() * 16)
            C(at, (u, n)).store(A[at, (u, n)] * 3.0 - 1.0)


@tn.kernel
def one_around_all(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 16)
    for one in tn.parallel(1):
        for i in one.parallel(5):
            C((i.index(), 0), (u, n)).store(A[(i.index(), 0), (u, n)])
        for i in one.parallel(5):
            for j in i.parallel(range(1, 3)):
                at = (i.index(), j.index() * 16)
                C(at, (u, n)).store(C[(0, 0), (u, n)] + A[at, (u, n)])


@tn.kernel
def grid_of_scalars(A: Any, C: Any) -> None:
    for i in tn.parallel(5):
        factor = A.at(i.index(), 7).load()
        for j in i.parallel(40):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * factor)


@tn.kernel
def units_at_the_ends(A: Any, C: Any) -> None:
    for block in tn.parallel(1, 5, 40, 1):
        zero, i, j, none = block.index()
        C.at(i + zero, j + none).store(A.at(i, j).load() + 1.0)


@tn.kernel
def three_axes(A: Any, C: Any) -> None:
    """No remap; every instance is found from its place in the whole range."""
    for block in tn.parallel(range(0, 5, 2), range(1, 3), 20):
        i, half, j = block.index()
        C.at(i, half * 20 - 20 + j).store(A.at(i, j).load() + 0.5)


@tn.kernel
def around_a_pipeline(A: Any, C: Any) -> None:
    for i in tn.parallel(5):
        for j in i.parallel(40):
            for step in j.pipeline(3, window=2):
                step.stage("load")
                x = A.at(i.index(), step.index()).load()
                step.stage("add")
                old = C.at(i.index(), j.index()).load()
                C.at(i.index(), j.index()).store(old * 0.0 + x)


@tn.kernel
def folds_in_a_loop(A: Any, C: Any) -> None:
    u, n, p = tn.axis("u", 1), tn.axis("n", 40), tn.axis("p", 10)
    for i in tn.parallel(5):
        for step in i.serial(4):
            most = tn.reduce(A[(i.index(), 0), (u, n)], n, tn.maximum)
            at = (i.index(), step.index() * 10)
            C(at, (u, p)).store(A[at, (u, p)] * most)


@record
class Case:
    """How many axes each parallel has when it is scheduled, and how many remaps, reads that run
    more often than they have instances, and works in front of their loop there are."""

    ranks: tuple[int, ...]
    remaps: int = 0
    placed: int = 0
    moved: int = 0


CASES = {
    grid_in_grid: Case((2,), remaps=1),
    one_around_all: Case((1, 2), remaps=2),
    grid_of_scalars: Case((2,), remaps=1, placed=1),
    units_at_the_ends: Case((2,), remaps=1),
    three_axes: Case((3,)),
    around_a_pipeline: Case((2,), remaps=1, placed=0),
    folds_in_a_loop: Case((1,), moved=1),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_rearranged_programs(kernel: Any) -> None:
    case = CASES[kernel]
    source = np.random.default_rng(3).integers(-9, 9, (5, 40)).astype(np.float32)
    if kernel is not around_a_pipeline:
        check(kernel, source, Out((5, 40)))
    target = np.zeros_like(source)
    compiled = kernel.compile(source, target)
    text = compiled.ir("scheduled")
    module = tn.parse(text)
    (function,) = module.functions
    nests = [op for op in module.walk() if isinstance(op, Parallel)]
    assert tuple(nest.rank for nest in nests) == case.ranks
    assert len(remaps_of(function)) == case.remaps
    stated = [op.place for op in module.walk() if isinstance(op, Load | MapReducePost)]
    assert sum(place is not None for place in stated) == case.placed == text.count("#placement<")
    assert compiled.report().count("once in front of the loop") == case.moved


@tn.kernel
def softmax_of_rows(A: Any, C: Any) -> None:
    u, n = tn.axis("u", 1), tn.axis("n", 40)
    for i in tn.parallel(A.extent(0)):
        C((i.index(), 0), (u, n)).store(tn.softmax(A[(i.index(), 0), (u, n)], n))


def test_a_softmax_is_not_rearranged() -> None:
    """Its rows are one nest of one axis: nothing to prove, and no place to state."""
    source = np.random.default_rng(3).standard_normal((5, 40)).astype(np.float32)
    target = np.full_like(source, np.nan)
    compiled = softmax_of_rows.compile(source, target)
    text = compiled.ir("scheduled")
    assert "remaps" not in text and "#placement" not in text
    compiled(source, target)
    np.testing.assert_allclose(target.sum(1), 1, rtol=1e-5)


def test_a_pipeline_inside_gives_the_same_bits() -> None:
    source = np.arange(200, dtype=np.float32).reshape(5, 40)
    found = []
    for target in ("interpret", "cpu"):
        result = np.zeros_like(source)
        around_a_pipeline.compile(source, result, target=target)(source, result)
        found.append(result)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], np.repeat(source[:, 2:3], 40, axis=1))
