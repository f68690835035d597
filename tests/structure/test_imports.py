"""Imports: at the top of a file, and through the face of a room.

The order of the rooms is judged by import-linter. Here: nothing is imported inside a function but
by a room's lazy-import function, and no file reaches past the `__init__` of a room it is not part
of, nor into a private member of another room's classes.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.structure.sources import PACKAGE, REPOSITORY, Source, functions, room_of, sources

Import = ast.Import | ast.ImportFrom


def test_functions_import_nothing() -> None:
    hidden = [
        f"{source.name}:{node.lineno}"
        for source in sources()
        for function in functions(source.tree)
        if not function.name.startswith("_import_")
        for node in ast.walk(function)
        if isinstance(node, Import)
    ]
    assert not hidden, f"import at the top, or in one `_import_*` function: {hidden}"


def test_a_room_has_one_lazy_import_function_a_library() -> None:
    names = [
        (source.room, function.name)
        for source in sources("src")
        for function in functions(source.tree)
        if function.name.startswith("_import_")
    ]
    assert len(names) == len(set(names)), f"declared twice in a room: {sorted(names, key=str)}"


def test_rooms_are_entered_by_their_face() -> None:
    reached = [
        f"{source.name}:{line} {target}"
        for source in sources()
        for line, target in imported_modules(source)
        if reaches_inside(source, target)
    ]
    assert not reached, f"import the room, not its modules: {reached}"


def test_private_members_stay_in_their_room() -> None:
    declared: dict[str | None, set[str]] = defaultdict(set)
    for source in sources("src"):
        declared[source.room].update(private_names_declared(source.tree))
    foreign = [
        f"{source.name}:{node.lineno} {node.attr}"
        for source in sources("src")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute)
        if is_private(node.attr) and node.attr not in declared[source.room]
    ]
    assert not foreign, f"ask the other room for a public name: {foreign}"


@pytest.mark.parametrize("folder", ["benchmarks", "demo"])
def test_users_of_the_package_import_only_its_public_face(folder: str) -> None:
    private = [
        f"{source.name}:{line} {target}"
        for source in sources(folder)
        for line, target in imported_modules(source)
        if target.startswith(f"{PACKAGE}.") and target != f"{PACKAGE}.ops"
    ]
    assert not private, f"what a user may not import, neither may we: {private}"


def imported_modules(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every module of the package that a file imports."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from tilenest.ir import core` names a module too, unless the face offers the name.
            offered = names_offered(node.module)
            deeper = [f"{node.module}.{a.name}" for a in node.names if a.name not in offered]
            names = [node.module, *filter(is_module, deeper)]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == PACKAGE)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_names_declared(tree: ast.Module) -> Iterator[str]:
    """Private names a file gives a meaning to: definitions, fields and assignments to `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            name = node.attr
        else:
            continue
        if is_private(name):
            yield name


@cache
def names_offered(dotted: str) -> frozenset[str]:
    """The `__all__` of a package, or of its stub where it loads what is asked for."""
    package = (REPOSITORY / "src").joinpath(*dotted.split("."))
    faces = [package / name for name in ("__init__.pyi", "__init__.py")]
    face = next((path for path in faces if path.is_file()), None)
    if face is None:
        return frozenset()
    for node in ast.parse(face.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def is_module(dotted: str) -> bool:
    path = (REPOSITORY / "src").joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def reaches_inside(source: Source, target: str) -> bool:
    parts = tuple(target.split(".")[1:])
    if not parts:
        return False
    room = room_of(parts)
    return len(parts) > len(room.split(".")) and room != source.room


@pytest.mark.parametrize("stub", sorted((REPOSITORY / "src").rglob("__init__.pyi")), ids=str)
def test_no_name_of_a_lazy_face_is_a_module_of_the_room(stub: Path) -> None:
    names = {
        alias.asname or alias.name
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module != f"{PACKAGE}.{stub.parent.name}"
        for alias in node.names
    }
    modules = {path.stem for path in stub.parent.glob("*.py")}
    assert not names & modules, "importing the module would hide what the face offers"
