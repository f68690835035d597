"""What of the world outside a kernel later calls see: names bound anew, not changes inside objects.

The README says so; what is right is what the name is bound to when the kernel is called.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilenest as tn

FACTOR: float = 2.0
HELD: Any = SimpleNamespace(factor=2.0)
LISTED: list[float] = [2.0]
MODULE: Any = ModuleType("settings")
MODULE.factor = 2.0


def result_of(kernel: Any) -> float:
    y = np.full(1, np.nan, np.float32)
    kernel(y)
    return float(y[0])


@tn.kernel
def by_name(Y):
    Y.at(0).store(FACTOR)


@tn.kernel
def by_module(Y):
    Y.at(0).store(MODULE.factor)


@tn.kernel
def by_attribute(Y):
    Y.at(0).store(HELD.factor)


@tn.kernel
def by_item(Y):
    Y.at(0).store(LISTED[0])


def test_names_bound_anew_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 2.0

    @tn.kernel
    def by_closure(Y):
        Y.at(0).store(factor)

    assert [result_of(one) for one in (by_name, by_module, by_closure)] == [2.0] * 3
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    monkeypatch.setattr(MODULE, "factor", 3.0)
    factor = 3.0
    assert [result_of(one) for one in (by_name, by_module, by_closure)] == [3.0] * 3


def test_changes_inside_objects_need_a_name_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [result_of(one) for one in (by_attribute, by_item)] == [2.0] * 2
    monkeypatch.setattr(HELD, "factor", 3.0)
    LISTED[0] = 3.0
    assert [result_of(one) for one in (by_attribute, by_item)] == [2.0] * 2
    monkeypatch.setitem(globals(), "HELD", SimpleNamespace(factor=3.0))
    monkeypatch.setitem(globals(), "LISTED", [3.0])
    assert [result_of(one) for one in (by_attribute, by_item)] == [3.0] * 2
