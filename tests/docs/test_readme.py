"""The README's Python runs as printed.

All its blocks are one program, in order, written to a real file because a kernel's source is read
back from where it was defined. Lines outside the blocks become blank, so a failure shows the line
of the README. The error message that the page shows has to be the one that is raised.
"""

import runpy
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def python_of(page: str) -> str:
    """The Python blocks of a page, each line at its own line number."""
    inside = False
    lines = []
    for line in page.splitlines():
        is_fence = line.startswith("```")
        lines.append(line if inside and not is_fence else "")
        if is_fence:
            inside = line.strip() == "```python"
    return "\n".join(lines) + "\n"


def test_blocks_keep_their_line_numbers() -> None:
    page = "text\n```python\na = 1\n```\n```console\n$ make\n```\n```python\nb = a\n```"
    assert python_of(page).split("\n") == ["", "", "a = 1", "", "", "", "", "", "b = a", "", ""]


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = python_of(README.read_text(encoding="utf-8"))
    assert "tn.kernel" in code
    program = tmp_path / "readme.py"
    program.write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(program), run_name="readme")
    shown = README.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert names["message"].replace(f"{tmp_path}/", "") == shown.rstrip("\n")
