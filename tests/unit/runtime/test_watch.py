"""Free variables under watch: whatever changes is noticed, whatever only looks changed is not."""

import builtins
import gc
import weakref
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilenest.capture import FreeVariable
from tilenest.runtime.watch import Watch


def helper() -> None: ...


class Settings:
    """An object that is compared by identity."""


class Pair(NamedTuple):
    """A tuple of another class, which may be equal in a way of its own."""

    one: int
    two: int


def recorded(function: FunctionType, *names: str) -> tuple[FreeVariable, ...]:
    """What capture records: constants as they are, objects by a weak reference."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = []
    for name in names:
        place = cells.get(name, function.__globals__)
        value = cells[name].cell_contents if name in cells else function.__globals__[name]
        is_weak = not isinstance(value, int | float | complex | str | tuple | np.generic | None)
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
        (complex(0.0, 0.0), complex(0.0, -0.0), False),
        (complex(0.0, float("nan")), complex(0.0, float("nan")), True),
        (np.float32(0.0), np.float32(-0.0), False),
        (np.float32(2.0), np.float32(2.0), True),
        ("block", "".join(["bl", "ock"]), True),
        (None, 0, False),
        ((1.0, "a"), (float("1.0"), "a"), True),
        ((1.0, (2, None)), (1.0, (int("2"), None)), True),
        ((float("nan"),), (float("nan"),), True),
        ((1.0,), (1,), False),
        ((True,), (1,), False),
        ((0.0,), (-0.0,), False),
        ((1, (0.0,)), (1, (-0.0,)), False),
        ((1, 2), (1, 2, 3), False),
        ((1, 2), [1, 2], False),
        ((1, []), (1, []), False),
        ((1, helper), (1, helper), False),
        (Pair(1, 2), Pair(1, 2), False),
        (Pair(1, 2), (1, 2), False),
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
    first = weakref.ref(function.__globals__["name"])
    watch = Watch(recorded(function, "name"))
    assert watch.holds()
    function.__globals__["name"] = None
    gc.collect()
    assert first() is None
    for _ in range(100):
        # Freed and made anew, often at the same address.
        function.__globals__["name"] = None
        function.__globals__["name"] = Settings()
        assert not watch.holds()


def test_one_that_died_is_not_none() -> None:
    function = function_over(name=Settings(), other=1)
    watch = Watch(recorded(function, "name", "other"))
    function.__globals__["name"] = None
    gc.collect()
    for other in (1, 10**30, 1):
        function.__globals__["other"] = other
        assert not watch.holds()


def test_a_builtin_that_is_hidden_or_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    function = function_over(__builtins__=builtins)
    place = function.__globals__
    watch = Watch([FreeVariable("oct", place, oct, False), FreeVariable("hex", place, hex, False)])
    for _ in range(2):
        assert watch.holds()
        place["hex"] = oct
        assert not watch.holds()
        place["hex"] = hex
        assert watch.holds()
        del place["hex"]
        assert watch.holds()
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "oct", hex)
            assert not watch.holds()


def test_attributes_are_those_that_python_finds() -> None:
    values = {"late": 1.5}
    module = ModuleType("module")
    vars(module)["__getattr__"] = values.__getitem__
    vars(module)["len"] = len
    found = [FreeVariable("late", module, 1.5, False), FreeVariable("len", module, len, False)]
    watch = Watch(found)
    assert watch.holds()
    values["late"] = float("1.5")
    assert watch.holds()
    values["late"] = 2.5
    assert not watch.holds()
    vars(module)["late"] = 1.5
    assert watch.holds()
    # A builtin of the name is no attribute.
    del vars(module)["len"]
    values["len"] = 1.5
    assert not watch.holds()


def test_names_of_many_lengths_are_not_mistaken_for_the_check_s_own() -> None:
    names = ["_1", "__", "_", "__1", "___2", "a", "a" * 40, "match", "\u00e9"]
    function = function_over(**{name: place for place, name in enumerate(names)})
    watch = Watch(recorded(function, *names))
    assert watch.holds()
    for place, name in enumerate(names):
        function.__globals__[name] = -1
        assert not watch.holds(), name
        function.__globals__[name] = place
        assert watch.holds()


def test_an_equal_value_is_looked_at_once() -> None:
    looks = []
    values = {"late": 1.5}

    def computed(name: str) -> float:
        looks.append(name)
        return values[name]

    module = ModuleType("module")
    vars(module)["__getattr__"] = computed
    watch = Watch([FreeVariable("late", module, 1.5, False)])
    for value in (1.5, float("1.5")):
        values["late"] = value
        assert watch.holds()
        looks.clear()
        assert watch.holds()
        assert looks == ["late"]


def test_what_is_made_at_every_look_is_compared_by_value() -> None:
    value = 1000.5
    module = ModuleType("module")
    vars(module)["__getattr__"] = lambda _: value + 0.0
    watch = Watch([FreeVariable("late", module, 1000.5, False)])
    checks = watch._checks
    for _ in range(3):
        assert watch.holds()
    value = 2.5
    assert not watch.holds()
    value = 1000.5
    assert watch.holds()
    # No check was written anew.
    assert watch._checks is checks


def test_what_can_hold_again() -> None:
    function = function_over(name=Settings(), other=1)
    watch = Watch(recorded(function, "name", "other"))
    kept = function.__globals__.pop("name")
    assert not watch.holds()
    assert watch.can_hold()
    del kept
    gc.collect()
    assert not watch.can_hold()
    assert Watch(recorded(function, "other")).can_hold()


def test_nothing_to_watch_always_holds() -> None:
    assert Watch(()).holds()
