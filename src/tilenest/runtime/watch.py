"""Whether what a kernel read outside itself still holds what it held, in a tenth of a microsecond.

In: the free variables that capture recorded. Out: a `Watch`. Its check is Python code, made for
these variables: a function with the globals they were read from, so that a name means what it means
to the kernel, a shadowed or patched built-in included. Everything is compared by identity, and only
where that differs by value. Functions, modules and constants are kept, other objects are not kept
alive: one that dies never equals what has its address now.
"""

from __future__ import annotations

import keyword
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType

from tilenest.capture import FreeVariable

_KEPT = (FunctionType, BuiltinFunctionType, ModuleType, CodeType)


class Watch:
    """The free variables of one variant."""

    __slots__ = ("_checks", "_variables")

    def __init__(self, variables: Iterable[FreeVariable]) -> None:
        self._variables = tuple(variables)
        self._checks = _checks(self._variables)

    def holds(self) -> bool:
        """Whether everything still holds what capture read."""
        try:
            for check in self._checks:
                if not check():
                    return self._holds_by_value()
        except Exception:  # noqa: BLE001 - a module's own code may raise any
            # A kernel that still reads it raises it again, at its line, when it is captured.
            return False
        return True

    def can_hold(self) -> bool:
        """Whether everything that it compares with is alive."""
        return all(
            isinstance(variable.expected, weakref.ref) and variable.expected() is not None
            for variable in self._variables
            if variable.is_weak
        )

    def _holds_by_value(self) -> bool:
        if not all(variable.holds() for variable in self._variables):
            return False
        # An equal value may be another object from now on.
        self._checks = _checks(self._variables)
        return True


def _checks(variables: Iterable[FreeVariable]) -> tuple[Callable[[], object], ...]:
    """One for the globals of each module; what is no global is asked along."""
    spaces: dict[int, tuple[dict[str, object], list[FreeVariable]]] = {}
    others: list[FreeVariable] = []
    for variable in variables:
        if isinstance(variable.place, dict):
            spaces.setdefault(id(variable.place), (variable.place, []))[1].append(variable)
        else:
            others.append(variable)
    if others:
        first = next(iter(spaces), 0)
        spaces.setdefault(first, ({}, []))[1].extend(others)
    return tuple(_check(space, found) for space, found in spaces.values())


def _check(space: dict[str, object], variables: Sequence[FreeVariable]) -> Callable[[], object]:
    # The check's own names are longer than those of the globals.
    prefix = "_" * max(len(variable.name) + 1 for variable in variables)
    held: list[object] = []

    def hold(value: object) -> str:
        held.append(value)
        return f"{prefix}{len(held)}"

    conditions = " and ".join([_condition(variable, hold) for variable in variables])
    parameters = ", ".join(f"{prefix}{number + 1}" for number in range(len(held)))
    code = _compiled(f"lambda {parameters}: {conditions}")
    return FunctionType(code, space, "check", tuple(held))


@lru_cache(maxsize=512)
def _compiled(text: str) -> CodeType:
    (code,) = (
        part for part in compile(text, "<watch>", "eval").co_consts if isinstance(part, CodeType)
    )
    return code


def _condition(variable: FreeVariable, hold: Callable[[object], str]) -> str:
    """That it is what it was, as Python text; `hold` names an object there."""
    now = _read(variable, hold)
    expected = variable.expected
    if variable.is_weak:
        assert isinstance(expected, weakref.ref)
        target = expected()
        if not isinstance(target, _KEPT):
            return f"{now} is {hold(expected)}() is not None"
        return f"{now} is {hold(target)}"
    current = variable.current()
    if variable.current() is not current:
        # A module makes it anew at every look.
        return f"{hold(variable.holds)}()"
    return f"{now} is {hold(current if variable.holds() else expected)}"


def _read(variable: FreeVariable, hold: Callable[[object], str]) -> str:
    if isinstance(variable.place, dict):
        return variable.name
    if isinstance(variable.place, CellType):
        return f"{hold(variable.place)}.cell_contents"
    if variable.is_absent or not variable.name.isidentifier() or keyword.iskeyword(variable.name):
        return f"{hold(variable.current)}()"
    return f"{hold(variable.place)}.{variable.name}"
