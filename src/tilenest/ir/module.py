"""Modules: what capture makes, passes edit and a target lowers; the unit of text.

In: a form, functions, attributes. Out: a `Module`, which is its contents with their text: `str`
gives what `parse_module` reads back. It stands above the printer, which knows contents only.
"""

from __future__ import annotations

from tilenest.ir.core import ModuleContents
from tilenest.ir.printer import print_module


class Module(ModuleContents):
    """Functions in order, and the form ('candidate', 'scheduled', 'machine') they are in."""

    __slots__ = ()

    def __str__(self) -> str:
        return print_module(self)

    def __repr__(self) -> str:
        names = ", ".join(function.name for function in self.functions)
        return f"<{self.form} module of {names or 'no functions'}>"
