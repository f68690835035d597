"""What a kernel's signature says: which parameters are arrays and scalars, which are configuration.

In: the decorated function. Out: a frozen `Declaration`, and for every call the complete keyword
configuration with its key. Values count as equal only with equal types: 1, 1.0 and True differ.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from tilenest.capture import known_location
from tilenest.errors import ArgumentTypeError, CaptureError
from tilenest.records import record

RESERVED = ("target", "out")
_REQUIRED = inspect.Parameter.empty
_NOT_PLAIN: tuple[tuple[Callable[[object], bool], str], ...] = (
    (inspect.iscoroutinefunction, "a coroutine"),
    (inspect.isgeneratorfunction, "a generator"),
    (inspect.isasyncgenfunction, "an asynchronous generator"),
)


@record
class Declaration:
    """A kernel's parameters, in order."""

    name: str
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]
    """of the last parameters"""
    configuration: Mapping[str, Any]
    """keyword-only names and their defaults"""

    @classmethod
    def of(cls, function: FunctionType) -> Declaration:
        """Read a function's signature."""
        name = function.__name__
        for is_kind, kind in _NOT_PLAIN:
            if is_kind(function):
                raise CaptureError(
                    f"the kernel {name} is {kind}",
                    "define it with plain def, without await and yield",
                    known_location(function),
                )
        parameters: list[str] = []
        defaults: list[Any] = []
        configuration: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise CaptureError(
                    f"the kernel {name} takes {parameter}, but a kernel's parameters are fixed",
                    f"name every array before a `*` in def {name}(...), and every option after it",
                    known_location(function),
                )
            if parameter.kind is parameter.KEYWORD_ONLY:
                configuration[parameter.name] = parameter.default
                continue
            parameters.append(parameter.name)
            if parameter.default is not _REQUIRED:
                defaults.append(parameter.default)
        for reserved in RESERVED:
            if reserved in configuration:
                raise CaptureError(
                    f"the kernel {name} has an option {reserved!r}, a name that calls reserve",
                    "give the option another name",
                    known_location(function),
                )
        return cls(name, tuple(parameters), tuple(defaults), configuration)

    def arguments(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a call, completed by the parameters' defaults."""
        missing = len(self.parameters) - len(given)
        if not 0 < missing <= len(self.defaults):
            return given
        return (*given, *self.defaults[-missing:])

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every option's value. Raises for unknown and for missing ones."""
        for name in given:
            if name not in self.configuration:
                self._refuse_option(name)
        values = {**self.configuration, **given}
        for name, value in values.items():
            if value is _REQUIRED:
                raise ArgumentTypeError(
                    f"{self.name} needs the option {name!r}", f"pass {name}=... to the call"
                )
        return values

    def key(self, values: Mapping[str, Any]) -> Hashable:
        """What tells one configuration from another."""
        try:
            key = tuple(_typed(value) for value in values.values())
            hash(key)
        except TypeError as error:
            names = ", ".join(values)
            raise ArgumentTypeError(
                f"an option of {self.name} ({names}) is not hashable: {error}",
                "pass numbers, strings, tuples or other values that never change",
            ) from error
        return key

    def _refuse_option(self, name: str) -> None:
        if name in self.parameters:
            remedy = f"pass {name!r} by position"
        elif close := _import_difflib().get_close_matches(name, self.configuration, 1):
            remedy = f"did you mean {close[0]!r}?"
        elif name == "out":
            remedy = "pass the arrays that a kernel writes by position"
        else:
            options = ", ".join(self.configuration)
            none = f"it has none: they are the parameters behind a `*` in def {self.name}(...)"
            remedy = f"its options are {options}" if options else none
        raise ArgumentTypeError(f"{self.name} has no option {name!r}", remedy)


@cache
def _import_difflib() -> ModuleType:
    """Which names are alike; only mistakes ask."""
    import difflib

    return difflib


def _typed(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return (type(value), *map(_typed, value))
    if type(value) is float:
        # Tells 0.0 from -0.0, and a NaN equals itself.
        return float, value.hex()
    return type(value), value
