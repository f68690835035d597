"""What a reader finds at the top of a file, and what no reader should find anywhere."""

import ast
import re

from tests.structure.sources import PACKAGE, REPOSITORY, Source, sources

# Spelled in two parts so that this file passes its own rule.
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")


def test_every_module_opens_with_a_docstring() -> None:
    silent = [source.name for source in sources() if not ast.get_docstring(source.tree)]
    assert not silent, f"say what the module holds: {silent}"


def test_package_docstrings_fit_three_to_ten_lines() -> None:
    wrong = [
        source.name
        for source in sources("src")
        if source.path.name != "__init__.py" and not 3 <= docstring_lines(source) <= 10
    ]
    assert not wrong, f"3 to 10 lines: what it holds, what comes in, what goes out: {wrong}"


def docstring_lines(source: Source) -> int:
    return len((ast.get_docstring(source.tree) or "").splitlines())


def test_nothing_is_left_for_later() -> None:
    left = [
        f"{source.name}:{number}"
        for source in sources()
        for number, line in enumerate(source.text.splitlines(), start=1)
        if LATER.search(line)
    ]
    assert not left, f"fix it or file it: {left}"


def test_helpers_live_in_named_modules() -> None:
    vague = {"utils", "util", "helpers", "misc", "common"}
    found = [
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "src" / PACKAGE).rglob("*")
        if path.stem.rstrip("0123456789_") in vague
    ]
    assert not found, f"a helper lives with its one user or earns a named module: {found}"
