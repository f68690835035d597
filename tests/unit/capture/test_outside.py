"""What lies outside a kernel is not changed in it; what the kernel makes itself may be."""

# The calls stand in lambdas, whose text capture reads.
# ruff: noqa: PLW0108

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import captured, numbers, poisoned, run
from tilenest.errors import CaptureError


class Counter:
    """An object with a method that capture interprets."""

    __slots__ = ("count", "seen")
    names: tuple[list[int], ...] = ([1],)

    def __init__(self) -> None:
        self.count = 1
        self.seen = [1]

    def counted(self, x: Any) -> Any:
        self.count += 1
        return x

    def noted(self, x: Any) -> Any:
        self.seen.append(1)
        return x

    def scaled(self, x: Any) -> Any:
        return x * float(self.count)


class Table(dict[str, Any]):
    """A dict of a class of its own."""


def with_default(x: Any, seen: list[int] = [1]) -> Any:  # noqa: B006 - the mistake
    seen.append(1)
    return x


def with_keyword(x: Any, *, seen: list[int] = [1]) -> Any:  # noqa: B006 - the mistake
    seen.append(1)
    return x


def of_its_own(x: Any) -> Any:
    with_attribute: Any = of_its_own
    with_attribute.seen.append(1)
    return x


def appended(x: Any, items: Any) -> Any:
    items.append(x)
    return x


def over(items: list[int]) -> Any:
    def enclosed(x: Any) -> Any:
        items.append(1)
        return x

    return enclosed


ITEMS = [1]
TABLE: dict[str, Any] = {"items": [1], "number": 1}
DEEP = SimpleNamespace(part=SimpleNamespace(items=[1]))
COUNTER = Counter()
QUEUE = deque([1])
BYTES = bytearray(b"a")
NAMES = {1}
ORDERED = OrderedDict(a=1, b=2)
COUNTS: defaultdict[str, int] = defaultdict(int)
SUBCLASS = Table(a=1)
ARRAY = np.ones(2)
MODULE: Any = ModuleType("module")
MODULE.items = [1]
CLOSED = over([1])
PARTIAL = functools.partial(appended, items=[1])
ADD = ITEMS.append
of_its_own.seen = [1]  # type: ignore[attr-defined]  # a function may have any


def assigned(x: Any) -> None:
    ITEMS[0] = x


def assigned_under_another_name(x: Any) -> None:
    items = ITEMS
    items[0] = x


def assigned_an_attribute(x: Any) -> None:
    DEEP.part.items = x


def assigned_in_a_module(x: Any) -> None:
    MODULE.items = x


def assigned_in_an_array(x: Any) -> None:
    ARRAY[0] = float(x.dtype.bits)


def in_place(x: Any) -> None:
    items = ITEMS
    items += [x]


def in_place_in_an_attribute(x: Any) -> None:
    DEEP.part.items += [x]


def in_place_in_an_item(x: Any) -> None:
    TABLE["items"] += [x]


def in_place_of_an_array(_x: Any) -> None:
    array = ARRAY
    array *= 2.0


def through_a_view(_x: Any) -> None:
    view = ARRAY[1:][:1]
    view[0] = 2.0


def looped_over(x: Any) -> None:
    for items in (ITEMS, [2]):
        items.append(x)


REFUSED: dict[str, tuple[Any, str]] = {
    "an item": (assigned, "ITEMS[0] = x"),
    "an item of another name": (assigned_under_another_name, "items[0] = x"),
    "an attribute": (assigned_an_attribute, "DEEP.part.items = x"),
    "an attribute of a module": (assigned_in_a_module, "MODULE.items = x"),
    "an item of an array": (assigned_in_an_array, "ARRAY[0]"),
    "in place": (in_place, "items += [x]"),
    "in place, an attribute": (in_place_in_an_attribute, "DEEP.part.items += [x]"),
    "in place, an item": (in_place_in_an_item, 'TABLE["items"] += [x]'),
    "in place, an array": (in_place_of_an_array, "array *= 2.0"),
    "a view of an array": (through_a_view, "view[0] = 2.0"),
    "a list": (lambda x: ITEMS.append(x), "ITEMS.append(x)"),
    "a list in a dict": (lambda x: TABLE["items"].append(x), "append(x)"),
    "a list that is got": (lambda x: TABLE.get("items", [2]).append(x), "append(x)"),
    "a list among others": (looped_over, "items.append(x)"),
    "an attribute of an attribute": (lambda x: DEEP.part.items.append(x), "append(x)"),
    "a list of a module": (lambda x: MODULE.items.append(x), "append(x)"),
    "a list of a class": (lambda x: Counter.names[0].append(x), "append(x)"),
    "a list of an object's class": (lambda x: COUNTER.names[0].append(x), "append(x)"),
    "sorted": (lambda _x: ITEMS.sort(), "sort()"),
    "a dict": (lambda x: TABLE.update(a=x), "update(a=x)"),
    "a dict of another class": (lambda x: SUBCLASS.update(a=x), "update(a=x)"),
    "an ordered dict": (lambda _x: ORDERED.move_to_end("a"), "move_to_end"),
    "a default dict": (lambda _x: COUNTS.clear(), "clear()"),
    "a set": (lambda _x: NAMES.add(2), "add(2)"),
    "a deque": (lambda x: QUEUE.appendleft(x), "appendleft(x)"),
    "bytes": (lambda _x: BYTES.extend(b"b"), 'extend(b"b")'),
    "an array": (lambda _x: ARRAY.fill(2.0), "fill(2.0)"),
    "a method alone": (lambda x: ADD(x), "ADD(x)"),
    "a default": (lambda x: with_default(x), "seen.append(1)"),
    "a default by keyword": (lambda x: with_keyword(x), "seen.append(1)"),
    "an attribute of a function": (lambda x: of_its_own(x), "seen.append(1)"),
    "a closure": (lambda x: CLOSED(x), "items.append(1)"),
    "an argument": (lambda x: appended(x, ITEMS), "items.append(x)"),
    "a bound argument": (lambda x: PARTIAL(x), "items.append(x)"),
    "an object": (lambda x: COUNTER.counted(x), "self.count += 1"),
    "a slot of an object": (lambda x: COUNTER.noted(x), "self.seen.append(1)"),
}


def state() -> str:
    """Everything outside, as text."""
    parts: list[object] = [
        ITEMS,
        TABLE,
        DEEP,
        QUEUE,
        BYTES,
        NAMES,
        ORDERED,
        dict(COUNTS),
        SUBCLASS,
        ARRAY,
    ]
    parts += [MODULE.items, COUNTER.count, COUNTER.seen, Counter.names, PARTIAL.keywords]
    parts += [with_default.__defaults__, with_keyword.__kwdefaults__, vars(of_its_own)]
    parts += [cell.cell_contents for cell in CLOSED.__closure__]
    return repr(parts)


@pytest.mark.parametrize("name", REFUSED)
def test_what_lies_outside_is_not_changed(name: str) -> None:
    function, text = REFUSED[name]

    def kernel(X: Any, Y: Any) -> None:
        x = X[0, 4]
        function(x)
        Y(0, 4).store(x)

    before = state()
    with pytest.raises(CaptureError, match="from outside the kernel, is changed in it") as caught:
        captured(kernel, numbers(4), poisoned(4))
    assert state() == before
    assert "its own variables" in (caught.value.remedy or "")
    place = caught.value.location
    assert place is not None
    assert text in place.source


def test_an_option_is_not_changed() -> None:
    def kernel(X: Any, Y: Any, *, options: dict[str, int]) -> None:
        Y(0, 4).store(X[0, 4] * float(options.pop("factor")))

    options = {"factor": 2}
    with pytest.raises(CaptureError, match="'options', a dict from outside"):
        captured(kernel, numbers(4), poisoned(4), options=options)
    assert options == {"factor": 2}


def test_what_the_kernel_makes_is_its_own() -> None:
    def summed(x: Any, seen: list[Any] | None = None) -> Any:
        seen = [] if seen is None else seen
        seen.append(x)
        seen += [x]
        return seen[0] + seen[1]

    def kernel(X: Any, Y: Any) -> None:
        x = X[0, 4]
        items = list(ITEMS)
        items.append(2)
        items[0] = 3
        items += TABLE["items"]
        table = dict(TABLE)
        table.update(number=5)
        counter = Counter()
        counter.seen.append(7)
        counter.count = 4
        y = counter.scaled(counter.noted(counter.counted(x)))
        array = np.array(ARRAY)
        array[0] = 0.0
        array[1:][0] = 3.0
        array.fill(2.0)

        def remembered(value: Any, known: list[Any] = []) -> Any:  # noqa: B006 - made by the kernel
            known.append(value)
            return known[-1]

        factor = sum(items) + table["number"] + len(counter.seen) + array[0]
        Y(0, 4).store(remembered(y) + summed(x) + x * float(factor))

    x, y = numbers(4), poisoned(4)
    before = state()
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x * (5 + 2 + (3 + 2 + 1) + 5 + 3 + 2))
    assert state() == before


KEPT: list[list[int]] = []
MODULE.kept = []


def made_and_kept() -> list[int]:
    items = [1]
    KEPT.append(items)
    MODULE.kept.append(items)
    return items


def test_what_host_code_keeps_of_the_kernel_s_own() -> None:
    """The kernel reads neither list that holds it, only what stands beside them."""

    def kernel(X: Any, Y: Any) -> None:
        items = made_and_kept()
        items.append(MODULE.items[0])
        Y(0, 4).store(X[0, 4] * float(len(items)))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert KEPT == MODULE.kept == [[1, 1]]


def test_a_list_inside_that_holds_one_from_outside() -> None:
    def kernel(X: Any, Y: Any) -> None:
        items: list[Any] = [ITEMS]
        items.append(X[0, 4])
        Y(0, 4).store(items[1] * float(items[0][0]))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x)
