"""A memory that is assigned to: the refusal says how a part is stored, and that runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn

TARGETS = ("interpret", "cpu")


@tn.kernel
def assigned(X: Any, _: Any) -> None:
    memory = tn.memory(tn.float32, (4, 16))
    memory.store(0.0)
    memory[0, 4] = X[(0, 0), (1, 1)]


@tn.kernel
def stored(X: Any, Y: Any) -> None:
    for _ in tn.parallel(1):
        memory = tn.memory(tn.float32, (4, 16))
        memory.store(0.0)
        memory((0, 4), (1, 1)).store(X[(0, 0), (1, 1)])
        Y((0, 0), (4, 16)).store(memory.load())


@pytest.mark.parametrize("target", TARGETS)
def test_a_part_of_a_memory_is_not_assigned_but_stored(target: str) -> None:
    source, found = np.full((1, 1), 7, np.float32), np.full((4, 16), np.nan, np.float32)
    with pytest.raises(tn.CaptureError, match=r"assigned through \[\]") as caught:
        assigned.compile(source, found, target=target)
    assert caught.value.location is not None
    assert "memory(origin, shape).store(x)" in (caught.value.remedy or "")
    stored.compile(source, found, target=target)(source, found)
    expected = np.zeros((4, 16), np.float32)
    expected[0, 4] = 7
    np.testing.assert_array_equal(found, expected)
