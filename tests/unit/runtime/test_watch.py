"""Free variables under watch: whatever changes is noticed, whatever only looks changed is not."""

import gc
import weakref
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tilenest.capture import FreeVariable
from tilenest.runtime.watch import Watch


def helper() -> None: ...


class Settings:
    """An object that is compared by identity."""


def recorded(function: FunctionType, *names: str) -> tuple[FreeVariable, ...]:
    """What capture records: constants as they are, objects by a weak reference."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = []
    for name in names:
        place = cells.get(name, function.__globals__)
        value = cells[name].cell_contents if name in cells else function.__globals__[name]
        is_weak = not isinstance(value, int | float | str | None)
        expected = weakref.ref(value) if is_weak else value
        found.append(FreeVariable(name, place, expected, is_weak))
    return tuple(found)


def function_over(**namespace: Any) -> FunctionType:
    return FunctionType((lambda: None).__code__, namespace)


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        (1, 1, True),
        (10**30, 10**30, True),
        (1, 2, False),
        (1, 1.0, False),
        (1, True, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ("block", "".join(["bl", "ock"]), True),
        (None, 0, False),
        (helper, lambda: None, False),
        (helper, helper, True),
        (Settings(), Settings(), False),
        (gc, ModuleType("gc"), False),
        (1, helper, False),
        (helper, 1, False),
    ],
)
def test_a_global_that_is_assigned(before: Any, after: Any, holds: bool) -> None:
    function = function_over(name=before, other=helper)
    watch = Watch(recorded(function, "name", "other"))
    assert watch.holds()
    function.__globals__["name"] = after
    for _ in range(2):
        assert watch.holds() is holds
    function.__globals__["name"] = before
    assert watch.holds()


def test_a_global_that_is_deleted() -> None:
    function = function_over(name=3, other=helper)
    watch = Watch(recorded(function, "name", "other"))
    for name in ("name", "other"):
        value = function.__globals__.pop(name)
        assert not watch.holds()
        function.__globals__[name] = value
        assert watch.holds()


def test_a_closure_that_is_assigned() -> None:
    value: Any = 4

    def function() -> Any:
        return value

    assert isinstance(function, FunctionType)
    watch = Watch(recorded(function, "value"))
    assert watch.holds()
    value = 5
    assert not watch.holds()
    value = 4
    assert watch.holds()


def test_objects_are_not_kept_alive_and_never_mistaken() -> None:
    function = function_over(name=Settings())
    watch = Watch(recorded(function, "name"))
    for _ in range(100):
        # Freed and made anew, often at the same address.
        function.__globals__["name"] = None
        function.__globals__["name"] = Settings()
        assert not watch.holds()


def test_nothing_to_watch_always_holds() -> None:
    assert Watch(()).holds()
