"""What lies outside a kernel is not changed in it; what the kernel makes itself may be."""

# The calls stand in lambdas, whose text capture reads.
# ruff: noqa: PLW0108

from __future__ import annotations

import array
import bisect
import functools
import gc
import heapq
import itertools
import operator
import random
import weakref
from collections import Counter as Counts
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.capture.kernels import captured, numbers, poisoned, run
from tilenest.capture import reach
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
VIEW = np.ones(4)[1:]
PAIR = (1, 2)
OBJECTS = np.array([[1], None], dtype=object)
ITERATOR = itertools.count()
NUMBERS = array.array("i", [1])
COUNTED = Counts(a=1)
WRAPPED = UserList([1])
WRAPPED_DICT: UserDict[str, int] = UserDict(a=1)
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


def divided_in_place(_x: Any) -> None:
    array = ARRAY
    array /= 2.0


def in_place_of_a_counter(_x: Any) -> None:
    counted = COUNTED
    counted += COUNTED


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
    "a method of the class": (lambda x: list.append(ITEMS, x), "list.append(ITEMS, x)"),
    "a special method": (lambda x: ITEMS.__setitem__(0, x), "__setitem__"),
    "a special method of the class": (lambda x: list.__setitem__(ITEMS, 0, x), "__setitem__"),
    "a special method, in place": (lambda x: ITEMS.__iadd__([x]), "__iadd__"),
    "object's method": (lambda x: object.__setattr__(DEEP, "part", x), "__setattr__"),
    "an operator's function": (lambda x: operator.setitem(ITEMS, 0, x), "setitem"),
    "an operator's function, in place": (
        lambda x: operator.iconcat(ITEMS, [x]),  # type: ignore[no-untyped-call]  # has no types
        "iconcat",
    ),
    "setattr": (lambda x: setattr(DEEP, "part", x), "setattr"),
    "delattr": (lambda _x: delattr(DEEP, "part"), "delattr"),
    "a bound method": (lambda x: functools.partial(ITEMS.append, x)(), "functools.partial"),
    "a bound method of the class": (
        lambda x: functools.partial(list.append, ITEMS)(x),
        "functools.partial",
    ),
    "a heap": (lambda x: heapq.heappush(ITEMS, x), "heappush"),
    "a sorted list": (lambda _x: bisect.insort(ITEMS, 1), "insort"),
    "shuffled": (lambda _x: random.shuffle(ITEMS), "shuffle"),
    "copied to": (lambda _x: np.copyto(ARRAY, 3.0), "copyto"),
    "an iterator": (lambda _x: next(ITERATOR), "next(ITERATOR)"),
    "numbers": (lambda _x: NUMBERS.append(2), "append(2)"),
    "a counter": (lambda _x: COUNTED.subtract("a"), "subtract"),
    "a counter, in place": (in_place_of_a_counter, "counted += COUNTED"),
    "a list of another class": (lambda _x: WRAPPED.append(2), "append(2)"),
    "a dict that is wrapped": (lambda _x: WRAPPED_DICT.pop("a"), "pop"),
    "a view": (lambda _x: VIEW.fill(2.0), "fill(2.0)"),
    "the array of a view": (lambda _x: np.asarray(VIEW.base).fill(2.0), "fill(2.0)"),
    "a list in an array": (lambda _x: OBJECTS[0].append(2), "append(2)"),
    "in place by another operator": (divided_in_place, "array /= 2.0"),
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
    parts += [VIEW, OBJECTS, ITERATOR, NUMBERS, COUNTED, WRAPPED, WRAPPED_DICT]
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
        array.fill(4.0)
        same = array
        pairs = operator.iadd(PAIR, PAIR)  # type: ignore[no-untyped-call]  # has no types
        same /= 2.0

        def remembered(value: Any, known: list[Any] = []) -> Any:  # noqa: B006 - made by the kernel
            known.append(value)
            return known[-1]

        factor = len(pairs) - 4 + sum(items) + table["number"] + len(counter.seen) + array[0]
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


class Node:
    """An object that its class remembers."""

    made: list[Any] = []  # noqa: RUF012 - what host code changes

    def __init__(self, value: Any) -> None:
        self.value = value
        self.parts: list[Any] = []
        Node.made.append(self)


def test_what_a_class_remembers_of_the_kernel_s_own() -> None:
    def kernel(X: Any, Y: Any, n: Any) -> None:
        node = Node(X[0, 4])
        node.parts.append(node.value)
        for _ in tn.serial(n):
            inner = Node(node.parts[0])
            inner.parts.append(1)
            inner.value = 2
        Y(0, 4).store(node.parts[0] * float(len(node.parts)))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y, 2)
    np.testing.assert_array_equal(y, x)


class Rows:
    """An object that holds much, and its own list behind that."""

    def __init__(self) -> None:
        self.rows = [(row, [row]) for row in range(60_000)]
        self.near = [1]


ROWS = Rows()


def test_of_much_what_lies_near_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    def counted(item: object) -> Any:
        nonlocal looked_at
        looked_at += 1
        return held_by(item)

    held_by = reach._held_by
    monkeypatch.setattr(reach, "_held_by", counted)

    def refused(X: Any) -> None:
        ROWS.near.append(X[0, 4])

    def runs(X: Any, Y: Any) -> None:
        items = [X[0, 4]]
        items.append(float(ROWS.near[0]))
        Y(0, 4).store(items[0] * items[1])

    with pytest.raises(CaptureError, match=r"'ROWS\.near', a list from outside"):
        captured(refused, numbers(4))
    x, y = numbers(4), poisoned(4)
    looked_at = 0
    run(runs, x, y)
    np.testing.assert_array_equal(y, x)
    assert looked_at < 55_000


def test_a_capture_holds_nothing_of_it_any_more() -> None:
    held = SimpleNamespace(follower=Node(1))
    Node.made.clear()
    follower = weakref.ref(held.follower)

    def kernel(X: Any, Y: Any) -> None:
        items = [X[0, 4]]
        items.append(float(held.follower.value))
        Y(0, 4).store(items[0] * items[1])

    gc.disable()
    try:
        run(kernel, numbers(4), poisoned(4))
        del held.follower
        assert follower() is None
    finally:
        gc.enable()
