"""Kernels whose programs are rearranged before they are compiled: the bits of NumPy, once each."""

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import poisoned
from tilenest.analysis import remaps_of
from tilenest.ir import Module


@tn.kernel
def placed(A, C, *, factor: int = 3):
    for block in tn.parallel(A.extent(0), A.extent(1)):
        i, j = block.index()
        C.at(i, j).store(A.at(i, j).load() * factor + tn.cast(i * 100 + j, tn.int32))


def tiled(module: Module) -> object:
    plan = tn.remap(module).split("block_0", 2).split("block_1", 4)
    return plan.permute("block_1.0", "block_0.1").apply()


def expected(source: Any, factor: int = 3) -> Any:
    rows, columns = np.indices(source.shape)
    return (source * factor + rows * 100 + columns).astype(np.int32)


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_a_rearranged_kernel_means_what_it_meant(target: str) -> None:
    kernel = placed.rearranged(tiled)
    for shape in ((3, 7), (0, 5), (1, 1), (13, 4)):
        source = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        result = poisoned(shape, np.int32)
        kernel(source, result.array, target=target)
        np.testing.assert_array_equal(result.array, expected(source))
        assert result.has_intact_guards


def test_programs_are_rearranged_once_a_specialisation() -> None:
    seen: list[Module] = []

    def noted(module: Module) -> None:
        seen.append(module)
        tiled(module)

    kernel = placed.rearranged(noted)
    source, result = np.ones((4, 4), np.int32), np.zeros((4, 4), np.int32)
    for factor in (3, 3, 5, 3):
        kernel(source, result, factor=factor)
        np.testing.assert_array_equal(result, expected(source, factor))
    assert len(seen) == 2
    assert len(kernel.variants) == 2
    compiled = kernel.compile(source, result)
    assert len(seen) == 2, "the default is the variant of factor 3"
    (function,) = tn.parse(compiled.ir()).functions
    assert len(remaps_of(function)) == 1
    (function,) = placed.capture(source, result).functions
    assert not remaps_of(function)


def test_rearrangements_follow_each_other() -> None:
    def split_again(module: Module) -> object:
        return tn.remap(module).split("block_1_inner", 2).apply()

    source = np.arange(64, dtype=np.int32).reshape(8, 8)
    kernel = placed.rearranged(
        lambda module: tn.remap(module).split("block_1", 4).apply()
    ).rearranged(split_again)
    (function,) = kernel.capture(tn.spec((8, 8), tn.int32), tn.spec((8, 8), tn.int32)).functions
    assert len(remaps_of(function)) == 2
    result = np.zeros_like(source)
    kernel(source, result)
    np.testing.assert_array_equal(result, expected(source))


@pytest.mark.parametrize(
    ("function", "message", "remedy"),
    [
        (lambda module: tn.remap(module).split("block_0", 2), "a remap that is not", ".apply()"),
        (lambda module: tn.parse(str(module)), "another module", "in place"),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_results_that_would_be_lost_are_refused(
    function: Any, message: str, remedy: str, target: str
) -> None:
    result = poisoned((4, 4), np.int32)
    with pytest.raises(tn.ArgumentTypeError, match=f"rearranges placed returns {message}") as lost:
        placed.rearranged(function)(np.ones((4, 4), np.int32), result.array, target=target)
    assert remedy in str(lost.value.remedy)
    assert lost.value.location is not None and lost.value.location.file.endswith(__file__)
    assert result.is_unchanged


def test_results_that_say_nothing_pass() -> None:
    def same(module: Module) -> Module:
        tiled(module)
        return module

    def silent(module: Module) -> None:
        tiled(module)

    source = np.arange(12, dtype=np.int32).reshape(3, 4)
    for function in (tiled, same, silent, lambda module: str(tiled(module))):
        result = np.zeros_like(source)
        placed.rearranged(function)(source, result)
        np.testing.assert_array_equal(result, expected(source))


def test_what_a_rearrangement_refuses_ends_the_call() -> None:
    kernel = placed.rearranged(lambda module: tn.remap(module, "row").split("row", 2).apply())
    result = poisoned((4, 4), np.int32)
    for _ in range(2):
        with pytest.raises(tn.RemapError, match="no runs of nests with a level 'row'") as refused:
            kernel(np.ones((4, 4), np.int32), result.array)
        assert "block_0, block_1" in (refused.value.remedy or "")
        assert result.is_unchanged
    with pytest.raises(tn.ArgumentTypeError, match="placed is rearranged by 3"):
        placed.rearranged(3)  # type: ignore[arg-type]  # the mistake
