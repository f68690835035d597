"""The examples of the invariants, read from their files.

In: the folders beside this file. Out: one record an example, in the order of their names.
"""

from __future__ import annotations

from pathlib import Path

from tilenest.records import record

FOLDER = Path(__file__).parent
_HEADER = ("meaning", "refused", "at")


@record
class Example:
    """A module that keeps or breaks an invariant."""

    invariant: str
    name: str
    text: str
    meaning: str
    rule: str | None
    """the rule that refuses it, None where it is accepted"""
    message: str
    blamed: str | None

    @property
    def id(self) -> str:
        return f"{self.invariant}-{self.name}"


def examples() -> list[Example]:
    return [read_example(path) for path in sorted(FOLDER.glob("TN[0-9][0-9]/*.tileir"))]


def read_example(path: Path) -> Example:
    text = path.read_text(encoding="utf-8")
    header: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("; "):
            break
        key, _, value = line.removeprefix("; ").partition(": ")
        assert key in _HEADER, f"{path.name}: no header line is called {key!r}"
        header[key] = value
    rule, _, message = header.get("refused", "").partition(": ")
    is_refused = path.name.startswith("refused-")
    assert is_refused == bool(rule), f"{path.name}: the name and the header disagree"
    return Example(
        path.parent.name,
        path.stem,
        text,
        header["meaning"],
        rule or None,
        message,
        header.get("at"),
    )
