"""What a module holds, below its text: functions in order, their form, attributes.

In: functions. Out: `ModuleContents`, which the printer reads and `module.Module` gives a text to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilenest.errors import SourceLocation
from tilenest.ir.core import Function, Operation
from tilenest.ir.lists import LinkedList


class ModuleContents:
    """Functions in order, and the form they are in."""

    __slots__ = ("attributes", "form", "functions", "location")

    def __init__(self, form: str = "candidate", attributes: dict[str, Any] | None = None) -> None:
        self.form = form
        self.functions: LinkedList[Function] = LinkedList(self)
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.location: SourceLocation | None = None
        """where it stands in the text that it was read from"""

    def add(self, function: Function) -> Function:
        self.functions.append(function)
        return function

    def function(self, name: str) -> Function:
        for candidate in self.functions:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    def walk(self) -> Iterator[Operation]:
        for function in self.functions:
            yield from function.walk()


def module_of(function: Function) -> ModuleContents | None:
    """The module that a function is in."""
    functions = function.siblings
    return None if functions is None else functions.owner
