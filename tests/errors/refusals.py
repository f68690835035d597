"""What every refusal must be: the right class, a caret, a remedy, and no byte of an output written.

The line of a mistake ends with the comment `# wrong`; `refused` calls the kernel on both targets
and finds that line.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tilenest as tn
from tests.oracle.arrays import Placed


def refused(
    kernel: tn.Kernel,
    error: type[tn.TileError],
    caret: str | None,
    *arguments: Any,
    remedy: str,
) -> tn.TileError:
    """The error that both targets raise, which marks `caret` on the line marked `# wrong`."""
    outputs = [one for one in arguments if isinstance(one, Placed)]
    given = [one.array if isinstance(one, Placed) else one for one in arguments]
    found = []
    for target in ("interpret", "cpu", None):
        with pytest.raises(error) as caught:
            run(kernel, target, given)
        assert type(caught.value) is error
        assert all(output.is_unchanged for output in outputs)
        found.append(caught.value)
    message = str(found[0])
    assert {str(each) for each in found} == {message}
    assert remedy in (found[0].remedy or "")
    assert f"help: {found[0].remedy}" in message
    if caret is not None:
        assert_points_at(found[0], kernel, caret)
    return found[0]


def run(kernel: tn.Kernel, target: str | None, arguments: Sequence[Any]) -> None:
    """Call the kernel, or what it is compiled to for a target."""
    call = kernel if target is None else kernel.compile(*arguments, target=target)
    call(*arguments)


def assert_points_at(error: tn.TileError, kernel: tn.Kernel, caret: str) -> None:
    lines, first = inspect.getsourcelines(inspect.unwrap(kernel))
    (place,) = [place for place, line in enumerate(lines) if "# wrong" in line]
    location = error.location
    assert location is not None, "no place"
    assert Path(location.file) == Path(inspect.getfile(inspect.unwrap(kernel)))
    assert location.line == first + place
    text = lines[place].rstrip("\n")
    assert text[location.column - 1 : location.end_column - 1] == caret
    start = text.index(caret) + 1
    assert location.column == start
    shown = str(error).splitlines()
    row = next(i for i, line in enumerate(shown) if line.strip() == text.strip())
    marks = shown[row + 1]
    assert shown[row][marks.index("^") :].startswith(caret)
    assert marks.count("^") == len(caret)
