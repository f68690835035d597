"""The project's Python files as the structure tests see them.

Every rule reads the same list of parsed files, so a rule is a loop and a message. A file belongs
to a room when it lies in the package: `src/tilenest/ir/core.py` is in `ir`, a module directly in
the package is its own room, and each folder of `backends` is a room. Tests of a room count as
inside it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "tilenest"
FOLDERS = ("src", "tests", "benchmarks", "demo", "tools")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def in_package(self) -> bool:
        return self.name.startswith(f"src/{PACKAGE}/")

    @property
    def room(self) -> str | None:
        """The room this file lives in or tests; None for the package's own face and the rest."""
        parts = self.path.relative_to(REPOSITORY).with_suffix("").parts
        skipped = 2 if self.in_package or parts[:2] == ("tests", "unit") else 1
        inside = parts[skipped:] if self.in_package or parts[0] == "tests" else ()
        if not inside or inside == ("__init__",):
            return None
        return room_of(inside)


def room_of(parts: tuple[str, ...]) -> str:
    """The room that a dotted path below the package begins with."""
    if parts[0] == "llvm":
        return "backends.llvm"
    return ".".join(parts[:2]) if parts[0] == "backends" else parts[0]


def sources(*folders: str) -> list[Source]:
    """Every Python file below the folders (all of the project's by default), in order."""
    return [
        read(path)
        for folder in folders or FOLDERS
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    ]


@cache
def read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path, text, ast.parse(text, filename=str(path)))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function below a node, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))
