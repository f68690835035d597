"""What a kernel sees of its surroundings, at every call.

The judge is Python, which looks everything up anew each time. Whatever changes does so between two
calls with the same arguments, and changes back before a third one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilenest as tn

Change = Callable[[pytest.MonkeyPatch], None]


def twice(x: Any) -> Any:
    return x * 2.0


def thrice(x: Any) -> Any:
    return x * 3.0


def added(x: Any, step: float = 1.0, *, more: float = 1.0) -> Any:
    return x + step + more


def outer(x: Any) -> Any:
    return helpers.change(x)


def computed(name: str) -> Any:
    """The attributes that a module has no name for."""
    try:
        return {"late": LATE, "fresh": [LATE]}[name]
    except KeyError:
        raise AttributeError(name) from None


LATE = 2.0
helpers: Any = ModuleType("helpers")
helpers.__getattr__ = computed
helpers.change = twice
helpers.pair = (2.0, 3.0)
helpers.dtype = tn.float32
helpers.part = ModuleType("helpers.part")
helpers.part.factor = 2.0
helpers.switch = None
other_part = ModuleType("other part")
vars(other_part)["factor"] = 7.0


@tn.kernel
def uses_a_builtin(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * float(len(oct(8))))


@tn.kernel
def uses_a_function_of_a_module(X: Any, Y: Any) -> None:
    Y(0, 1).store(helpers.change(X[0, 1]))


@tn.kernel
def uses_it_through_a_function(X: Any, Y: Any) -> None:
    Y(0, 1).store(outer(X[0, 1]))


@tn.kernel
def uses_a_tuple(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * helpers.pair[0])


@tn.kernel
def uses_a_dtype(X: Any, Y: Any) -> None:
    Y(0, 1).store(tn.cast(tn.cast(X[0, 1] * 2.5, helpers.dtype), tn.float32))


@tn.kernel
def uses_a_module_inside(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * helpers.part.factor)


@tn.kernel
def uses_what_is_none(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * (2.0 if helpers.switch is None else 3.0))


@tn.kernel
def asks_for_a_name(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * (3.0 if hasattr(helpers, "new") else 2.0))


@tn.kernel
def asks_for_no_identifier(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * (3.0 if hasattr(helpers, "a class") else 2.0))


@tn.kernel
def computes_a_name(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * getattr(helpers.part, "factor"))  # noqa: B009 - the form


@tn.kernel
def uses_what_a_module_computes(X: Any, Y: Any) -> None:
    Y(0, 1).store(X[0, 1] * helpers.late)


@tn.kernel
def calls_a_function(X: Any, Y: Any) -> None:
    Y(0, 1).store(twice(X[0, 1]))


@tn.kernel
def leaves_out_defaults(X: Any, Y: Any) -> None:
    Y(0, 1).store(added(X[0, 1]))


def set_to(place: Any, name: str, value: object) -> Change:
    return lambda patch: patch.setattr(place, name, value, raising=False)


def global_set_to(name: str, value: object) -> Change:
    return lambda patch: patch.setitem(globals(), name, value)


CHANGES: dict[str, tuple[tn.Kernel, float, Change, float]] = {
    "a global hides a builtin": (uses_a_builtin, 4.0, global_set_to("len", lambda _: 5), 5.0),
    "a builtin is patched": (uses_a_builtin, 4.0, set_to(builtins, "oct", lambda _: "6"), 1.0),
    "a function of a module": (
        uses_a_function_of_a_module,
        2.0,
        set_to(helpers, "change", thrice),
        3.0,
    ),
    "a function of a module, further in": (
        uses_it_through_a_function,
        2.0,
        set_to(helpers, "change", thrice),
        3.0,
    ),
    "a tuple of a module": (uses_a_tuple, 2.0, set_to(helpers, "pair", (5.0,)), 5.0),
    "a dtype of a module": (uses_a_dtype, 2.5, set_to(helpers, "dtype", tn.int32), 2.0),
    "a module of a module": (uses_a_module_inside, 2.0, set_to(helpers, "part", other_part), 7.0),
    "a number of such a module": (
        uses_a_module_inside,
        2.0,
        set_to(helpers.part, "factor", 4.0),
        4.0,
    ),
    "None": (uses_what_is_none, 2.0, set_to(helpers, "switch", object()), 3.0),
    "an attribute that was not there": (asks_for_a_name, 2.0, set_to(helpers, "new", 1), 3.0),
    "one that is no identifier": (asks_for_no_identifier, 2.0, set_to(helpers, "a class", 1), 3.0),
    "an attribute by a computed name": (
        computes_a_name,
        2.0,
        set_to(helpers.part, "factor", 4.0),
        4.0,
    ),
    "an attribute that is computed": (
        uses_what_a_module_computes,
        2.0,
        global_set_to("LATE", 6.0),
        6.0,
    ),
    "the code of a function": (
        calls_a_function,
        2.0,
        set_to(twice, "__code__", thrice.__code__),
        3.0,
    ),
    "defaults": (leaves_out_defaults, 3.0, set_to(added, "__defaults__", (5.0,)), 7.0),
    "defaults by keyword": (
        leaves_out_defaults,
        3.0,
        set_to(added, "__kwdefaults__", {"more": 9.0}),
        11.0,
    ),
    "the code of the kernel": (
        calls_a_function,
        2.0,
        set_to(calls_a_function.__wrapped__, "__code__", uses_a_builtin.__wrapped__.__code__),
        4.0,
    ),
}


def result_of(kernel: tn.Kernel) -> float:
    y = np.full(1, np.nan, np.float32)
    kernel(np.ones(1, np.float32), y)
    return float(y[0])


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_is_seen_by_the_next_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, before, change, after = CHANGES[name]
    counts = []
    for _ in range(2):
        assert result_of(kernel) == before
        with monkeypatch.context() as patch:
            change(patch)
            assert result_of(kernel) == after
            assert result_of(kernel) == after
        assert result_of(kernel) == before
        counts.append(len(kernel.variants))
    # What was there before is not compiled again.
    assert counts[0] == counts[1]


def test_what_a_module_makes_at_every_look_is_not_waited_for() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 1).store(X[0, 1] * helpers.fresh[0])

    for _ in range(3):
        assert result_of(kernel) == LATE
    assert len(kernel.variants) == 1


PAIR = (2.0, 3.0)
CHOSEN: Any = None


class Factor:
    """An object that holds a number."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def test_tuples_that_are_equal_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 1).store(X[0, 1] * PAIR[0])

    for factor in (2.0, 2.0, 3.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "PAIR", (factor, 3.0))
        assert result_of(kernel) == factor
    assert len(kernel.variants) == 2


def test_variants_for_what_has_died_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 1).store(X[0, 1] * CHOSEN.factor)

    monkeypatch.setitem(globals(), "CHOSEN", None)
    for factor in (2.0, 3.0, 4.0, 5.0):
        globals()["CHOSEN"] = Factor(factor)
        assert result_of(kernel) == factor
    assert len(kernel.variants) == 1


@pytest.mark.parametrize("error", [RuntimeError, ValueError, NameError, KeyError])
def test_what_a_module_raises_is_raised(error: type[Exception]) -> None:
    module: Any = ModuleType("module")
    switch: Any = ModuleType("switch")

    def raises(name: str) -> Any:
        raise error(name)

    module.__getattr__ = raises
    module.factor = 2.0
    switch.is_on = True

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 1).store(X[0, 1] * (module.factor if switch.is_on else 3.0))

    assert result_of(kernel) == 2.0
    del module.factor
    with pytest.raises(error, match="factor") as caught:
        result_of(kernel)
    assert "while capturing a kernel at" in caught.value.__notes__[0]
    # Python does not look there now.
    switch.is_on = False
    assert result_of(kernel) == 3.0
