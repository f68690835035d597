"""What a run-time loop or `if` may change: variables, slots of lists, and what is made in it.

The judge is Python, which takes the branch that the condition says: a body that may run never or
often changes nothing once and for all.
"""

from __future__ import annotations

import heapq
from collections import Counter, UserList, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.capture.kernels import captured, numbers, poisoned, run
from tilenest.errors import CaptureError


def assigned(value: Any, _x: Any) -> None:
    value[0] = 5.0


def added(value: Any, _x: Any) -> None:
    value += [5.0]


def joined(value: Any, _x: Any) -> None:
    value |= {5.0: 5.0}


def united(value: Any, _x: Any) -> None:
    value |= {5.0}


def named(value: Any, _x: Any) -> None:
    value.x = 5.0


CHANGES: dict[str, tuple[Any, Any]] = {
    "an item of an array": (lambda: np.ones(2), assigned),
    "an item of a view": (lambda: np.ones(2)[1:], assigned),
    "a view made inside": (lambda: np.ones(2), lambda value, x: assigned(value[1:], x)),
    "an array": (lambda: np.ones(2), lambda value, _x: value.fill(5.0)),
    "an array in place": (lambda: np.ones(1), added),
    "a deque": (lambda: deque([1.0]), lambda value, _x: value.append(5.0)),
    "an item of a deque": (lambda: deque([1.0]), assigned),
    "an item of a dict": (lambda: {0: 1.0}, assigned),
    "a dict": (lambda: {1.0: 1.0}, lambda value, _x: value.clear()),
    "a dict in place": (lambda: {1.0: 1.0}, joined),
    "a set": (lambda: {1.0}, lambda value, _x: value.add(5.0)),
    "a set in place": (lambda: {1.0}, united),
    "a counter": (lambda: Counter(a=1), lambda value, _x: value.update(a=4)),
    "a list of another class": (lambda: UserList([1.0]), assigned),
    "the length of a list": (lambda: [1.0], lambda value, _x: value.append(5.0)),
    "the length of a list in place": (lambda: [1.0], added),
    "a list by its class": (lambda: [1.0], lambda value, _x: list.append(value, 5.0)),
    "a heap": (lambda: [1.0], lambda value, _x: heapq.heappush(value, 5.0)),
    "an iterator": (lambda: iter([1.0, 5.0]), lambda value, _x: next(value)),
    "an attribute": (lambda: SimpleNamespace(x=1.0), named),
    "setattr": (lambda: SimpleNamespace(x=1.0), lambda value, _x: setattr(value, "x", 5.0)),
    "a slot of a list that has no name": (
        lambda: SimpleNamespace(x=[1.0]),
        lambda value, x: assigned(value.x, x),
    ),
    "a container in a list": (lambda: [deque([1.0])], lambda value, _x: value[0].append(5.0)),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("construct", ["if", "else", "arm", "loop", "nest"])
def test_what_was_there_before_is_not_changed(name: str, construct: str) -> None:
    make, change = CHANGES[name]

    def kernel(X: Any, Y: Any, s: Any) -> None:
        value = make()
        x = X[0, 4]
        if construct == "if":
            if s > 0:
                change(value, x)
        elif construct == "else":
            if s > 0:
                pass
            else:
                change(value, x)
        elif construct == "arm":
            change(value, x) if s > 0 else None
        elif construct == "loop":
            for _ in range(s):
                change(value, x)
        else:
            for _ in tn.serial(3):
                change(value, x)
        Y(0, 4).store(x)

    with pytest.raises(CaptureError, match="from before it, is changed inside a run-time") as found:
        captured(kernel, numbers(4), poisoned(4), 1)
    assert found.value.remedy
    assert found.value.location is not None


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_is_made_inside_is_its_own(sign: int) -> None:
    def kernel(X: Any, Y: Any, s: Any) -> None:
        total = X[0, 4]
        slots = [1.0, 5.0]
        if s > 0:
            array = np.ones(2)
            array[0] = 3.0
            array[1:] += 4.0
            queue = deque([1.0])
            queue.append(2.0)
            table = {"a": 1.0}
            table["a"] = 6.0
            table |= {"b": 7.0}
            record = SimpleNamespace(x=1.0, items=[1.0])
            record.x = 8.0
            record.items.append(9.0)
            slots.reverse()
            inner = [record]
            inner[0].items[0] = 2.0
            factor = float(array.sum()) + sum(queue) + sum(table.values()) + record.x
            total = total * (factor + sum(record.items))
        Y(0, 4).store(total * slots[0])

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y, sign)
    factor = (3 + 5) + (1 + 2) + (6 + 7) + 8 + (2 + 9)
    np.testing.assert_array_equal(y, x * factor * 5 if sign > 0 else x)


def test_what_is_made_inside_and_kept_in_a_slot() -> None:
    def kernel(X: Any, Y: Any) -> None:
        slots: list[Any] = [X[0, 4]]
        for _ in tn.serial(3):
            slot = slots[0]
            slots[0] = deque([slot])
            slots[0].append(slot + 1.0)
            slots[0] = slots[0][1]
        Y(0, 4).store(slots[0])

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x + 3)


def test_what_an_outer_region_made_is_not_changed_in_an_inner_one() -> None:
    def kernel(X: Any, Y: Any, s: Any) -> None:
        for _ in tn.serial(3):
            made = deque([1.0])
            made.append(2.0)
            if s > 0:
                made.append(3.0)
        Y(0, 4).store(X[0, 4])

    with pytest.raises(CaptureError, match="'made', a deque from before it") as found:
        captured(kernel, numbers(4), poisoned(4), 1)
    assert "append(3.0)" in (found.value.location.source if found.value.location else "")


def test_what_a_function_of_the_kernel_s_own_encloses() -> None:
    def kernel(X: Any, Y: Any, s: Any) -> None:
        def with_items(x: Any) -> Any:
            items = deque([x])

            def change() -> None:
                items.append(x)

            return change

        change = with_items(X[0, 4])
        if s > 0:
            change()
        Y(0, 4).store(X[0, 4])

    with pytest.raises(CaptureError, match="'items', a deque from before it"):
        captured(kernel, numbers(4), poisoned(4), 1)
