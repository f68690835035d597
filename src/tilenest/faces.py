"""Faces of rooms that load what is asked for: `from room import name` imports one module.

In: a package with a stub, `__init__.pyi`, that says in ordinary imports which names the face offers
and where they live. Out: its `__getattr__` and `__dir__`. Type checkers read the stub alone, so
nothing is listed twice. A program that only calls kernels never loads most of what large rooms
hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


def lazy_face(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package in `file`; a name found once stays."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {
        name.partition(" as ")[0].strip(): module
        for module, several, one in _IMPORT.findall(stub)
        for name in (several or one).split(",")
        if name.strip()
    }

    def load(name: str) -> object:
        module = homes.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # A room offers a module of its own by importing it from itself.
        is_module = module == package
        value: object = (
            import_module(f"{package}.{name}")
            if is_module
            else getattr(import_module(module), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(homes)

    return load, names
