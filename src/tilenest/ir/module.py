"""Modules: what capture makes, passes edit and a target lowers; the unit of text.

In: a form, functions, attributes. Out: a `Module`, which is its contents with their text: `str`
gives what `parse_module` reads back, `show` prints it, `svg` draws it. It stands above the printer,
which knows contents only.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TextIO

from tilenest.errors import ArgumentTypeError
from tilenest.ir.contents import ModuleContents
from tilenest.ir.printer import print_module


class Module(ModuleContents):
    """Functions in order, and the form ('candidate', 'scheduled', 'machine') they are in."""

    __slots__ = ()

    def show(self, stream: TextIO | None = None) -> None:
        """Print the text, in colour where it is read on a terminal and NO_COLOR is not set."""
        stream = sys.stdout if stream is None else stream
        colour = _import_look("colour")
        text = print_module(self)
        try:
            stream.write(colour.coloured(text) if colour.wants_colour(stream) else text)
        except (AttributeError, TypeError) as error:
            raise ArgumentTypeError(
                f"a module is shown on a {type(stream).__name__}",
                "pass a stream of text, or nothing for the standard output",
            ) from error

    def svg(self) -> str:
        """The regions and the levels of nests as an SVG drawing."""
        drawing: str = _import_look("drawing").as_svg(self)
        return drawing

    def __str__(self) -> str:
        return print_module(self)

    def __repr__(self) -> str:
        names = ", ".join(function.name for function in self.functions)
        return f"<{self.form} module of {names or 'no functions'}>"


@cache
def _import_look(name: str) -> ModuleType:
    """What looking at a module needs, which compiling it does without."""
    return import_module(f"tilenest.ir.{name}")
