"""Memory that does not fit its class is refused by name; workers' turns are reported."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.analysis import ResourcePressure
from tilenest.capture import capture
from tilenest.errors import TargetError
from tilenest.ir import Function, Rewriter, float32, fresh
from tilenest.machine import AVX2, Target, cpu_target
from tilenest.passes import SCHEDULE_PASSES, check_capacity
from tilenest.records import replace

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language


def buffered(X: Any, Y: Any) -> None:
    rows, columns = tn.axis("r", 4), tn.axis("c", 40)
    for block in tn.parallel(6):
        cells = tn.memory(float32, (rows, columns))
        cells.store(X[(block.index() * 4, 0), (rows, columns)])
        x = tn.exp(cells.load())
        total = tn.reduce(x * x, 1, tn.add)
        Y((block.index() * 4, 0), (rows, columns)).store(x / total)


def scheduled(kernel: Any = buffered) -> tuple[Function, Rewriter]:
    arrays: list[Array] = [np.zeros((24, 40), np.float32) for _ in range(2)]
    module = capture(kernel, specs_of(arrays), {}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, cpu_target(AVX2), rewriter))
    (function,) = module.functions
    return function, rewriter


def target_with(capacity: int | None) -> Target:
    target = cpu_target(AVX2)
    limited = tuple(replace(resource, capacity=capacity) for resource in target.resources)
    return replace(target, resources=limited)


def test_capacity_counts_explicit_memory_and_temporaries_together() -> None:
    function, rewriter = scheduled()
    footprints = fresh(ResourcePressure, function).footprints
    (found,) = footprints
    assert len(found.users) >= 2, "the program's memory, and what the compiler keeps"
    assert check_capacity(function, target_with(found.bytes), rewriter)
    with pytest.raises(TargetError) as caught:
        check_capacity(function, target_with(found.bytes - 1), rewriter)
    message = str(caught.value)
    largest, size = found.users[0]
    assert f"%{largest.result.name} (" in message
    assert f"with {size}" in message
    assert f"{found.bytes} bytes of {found.resource} memory, which has {found.bytes - 1}" in message


def huge(X: Any, Y: Any, *, stride: int) -> None:
    """Two memories whose rows lie far apart, both needed in the end."""
    rows, columns = tn.axis("r", 4), tn.axis("c", 40)
    for block in tn.parallel(6):
        cells = tn.memory(float32, tn.layout((rows, columns), stride=(stride, 1)))
        others = tn.memory(float32, tn.layout((rows, columns), stride=(stride, 1)))
        cells.store(X[(block.index() * 4, 0), (rows, columns)])
        others.store(cells.load() * 2.0)
        Y((block.index() * 4, 0), (rows, columns)).store(cells.load() + others.load())


def compiled(stride: int) -> None:
    arrays: list[Array] = [np.zeros((24, 40), np.float32) for _ in range(2)]
    assert isinstance(huge, FunctionType)
    module = capture(huge, specs_of(arrays), {"stride": stride}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, cpu_target(AVX2), rewriter))


def test_capacity_of_the_cpu_ends_with_the_addresses_of_a_process() -> None:
    most = 1 << 47
    each = most // 2 // 4
    compiled((each - 64) // 3)
    with pytest.raises(TargetError, match=f"bytes of private memory, which has {most}") as caught:
        compiled((each + 64) // 3)
    assert "%cells (" in caught.value.message
    assert "%others (" in caught.value.message
    with pytest.raises(TargetError, match=f"'private' has {most}") as caught:
        compiled((2 * each + 64) // 3)
    assert caught.value.location is not None


def test_capacity_is_what_can_be_addressed_where_nothing_else_ends_it() -> None:
    function, rewriter = scheduled()
    assert check_capacity(function, target_with(None), rewriter)


def test_capacity_reports_the_turns_of_workers() -> None:
    function, rewriter = scheduled()
    (decision,) = check_capacity(function, cpu_target(AVX2), rewriter)
    assert decision.subject == "parallel"
    assert decision.choice == "6 instances, 6 a chunk, on 1 of 4 workers"
    assert "ns" in decision.reason
