"""Memory that does not fit its class is refused by name; workers' turns are reported."""

from __future__ import annotations

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
        list(step(module, AVX2, rewriter))
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


def test_capacity_is_what_can_be_addressed_where_nothing_else_ends_it() -> None:
    function, rewriter = scheduled()
    assert check_capacity(function, target_with(None), rewriter)


def test_capacity_reports_the_turns_of_workers() -> None:
    function, rewriter = scheduled()
    (decision,) = check_capacity(function, cpu_target(AVX2), rewriter)
    assert decision.subject == "parallel"
    assert decision.choice == "6 instances, 6 a chunk, on 1 of 4 workers"
    assert "ns" in decision.reason
