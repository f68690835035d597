"""The input and the output that most mistakes are made with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.arrays import Array, Placed, normal, poisoned


@pytest.fixture
def x() -> Array:
    return normal((4, 16))


@pytest.fixture
def y() -> Placed:
    return poisoned((4, 16), np.float32)
