"""Pipelines with stages: what crosses, what is carried, and where cuts are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, only, poisoned, run, tn
from tilenest.dialects import Pipeline
from tilenest.errors import CaptureError


def gemm(A: Any, B: Any, C: Any, *, bm: int = 8, bn: int = 8, bk: int = 8) -> None:
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)


def test_gemm_in_two_stages() -> None:
    a, b, c = numbers(9, 13), numbers(13, 11, seed=1), poisoned(9, 11)
    result = run(gemm, a, b, c, bk=4)
    np.testing.assert_array_equal(c, a @ b)
    pipeline = only(result, Pipeline)
    assert pipeline.stage_names == ("load", "compute")
    load, compute = (region.block for region in pipeline.regions)
    assert [argument.name for argument in load.arguments] == ["step", "acc"]
    assert len(load.terminator.values) == 2
    assert len(compute.arguments) == 4
    assert len(compute.terminator.values) == 1


def test_what_is_computed_before_the_first_stage_belongs_to_it() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for step in tn.pipeline(3):
            at = step.index() * 4
            step.stage("load")
            part = X[at, 4]
            step.stage("store")
            Y(at, 4).store(part)

    x, y = numbers(12), poisoned(12)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x)
    first, second = (region.block for region in only(result, Pipeline).regions)
    assert [value.type for value in first.terminator.values] == [
        argument.type for argument in second.arguments[1:]
    ]
    assert len(first.terminator.values) == 2


def test_values_cross_several_stages() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for step in tn.pipeline(3):
            step.stage()
            part = X[step.index() * 4, 4]
            step.stage()
            twice = part + part
            step.stage()
            total = total + twice * part
            Y(step.index() * 4, 4).store(total)

    x, y = numbers(12), poisoned(12)
    result = run(kernel, x, y)
    rows = x.reshape(3, 4)
    np.testing.assert_array_equal(y.reshape(3, 4), (2 * rows * rows).cumsum(0))
    pipeline = only(result, Pipeline)
    assert pipeline.stage_names == (None, None, None)
    counts = [len(region.block.arguments) for region in pipeline.regions]
    assert counts == [2, 3, 4]


def test_a_state_changed_in_an_early_stage_reaches_the_last_yield() -> None:
    def kernel(X: Any, Y: Any) -> None:
        before = tn.zeros(4, tn.float32)
        for step in tn.pipeline(3):
            step.stage("load")
            last = before
            before = X[step.index() * 4, 4]
            step.stage("store")
            Y(step.index() * 4, 4).store(last)
        Y(12, 4).store(before)

    x, y = numbers(12), poisoned(16)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([np.zeros(4), x]))


def test_nested_regions_in_stages_use_what_crosses() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.zeros(4, tn.float32)
        for step in tn.pipeline(2):
            step.stage("load")
            part = X[step.index() * 4, 4]
            step.stage("compute")
            for inner in step.serial(3):
                total = total + part * inner.index().cast(tn.float32)
        Y(0, 4).store(total)

    x, y = numbers(8), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, 3 * (x[:4] + x[4:]))


def test_an_empty_stage_is_kept() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for step in tn.pipeline(2):
            step.stage("wait")
            step.stage("copy")
            Y(step.index() * 4, 4).store(X[step.index() * 4, 4])

    x, y = numbers(8), poisoned(8)
    result = run(kernel, x, y)
    np.testing.assert_array_equal(y, x)
    assert len(only(result, Pipeline).regions) == 2


@pytest.mark.parametrize("place", ["loop", "if"])
def test_a_stage_inside_a_staged_construct_is_refused(place: str) -> None:
    def in_loop(n: Any) -> None:
        for step in tn.pipeline(3):
            for _ in step.serial(n):
                step.stage("load")

    def in_if(n: Any) -> None:
        for step in tn.pipeline(3):
            if n > 2:
                step.stage("load")

    with pytest.raises(CaptureError, match="inside a loop or a run-time `if`") as caught:
        captured({"loop": in_loop, "if": in_if}[place], np.int64(3))
    assert caught.value.remedy is not None
    assert caught.value.location is not None
    assert caught.value.location.source.strip() == 'step.stage("load")'


def test_memory_before_the_first_stage_is_refused() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for step in tn.pipeline(3):
            part = X[step.index() * 4, 4]
            step.stage("store")
            Y(step.index() * 4, 4).store(part)

    with pytest.raises(CaptureError, match="before its first stage"):
        captured(kernel, numbers(12), poisoned(12))


def test_a_stage_name_stands_once() -> None:
    def kernel() -> None:
        for step in tn.pipeline(3):
            step.stage("load")
            step.stage("load")

    with pytest.raises(CaptureError, match="two stages named 'load'"):
        captured(kernel)


def test_the_stage_of_another_nest_is_refused() -> None:
    def kernel() -> None:
        for step in tn.serial(3):
            step.stage("load")

    with pytest.raises(CaptureError, match="serial"):
        captured(kernel)
