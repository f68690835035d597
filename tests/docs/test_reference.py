"""The reference pages' Python runs and prints what they show.

The `python` blocks of a page are one program, in order; its `text` blocks, in order, are what that
program prints.
"""

import re
import runpy
from pathlib import Path

import pytest

from tests.docs.test_readme import python_of

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "reference").glob("*.md"))


def printed_by(page: str) -> str:
    return "".join(re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))


def test_text_blocks_are_read_in_order() -> None:
    assert printed_by("a\n```text\nx\n```\n```python\ny\n```\n```text\nz\n```\n") == "x\nz\n"


@pytest.mark.parametrize(
    "path", [path for path in PAGES if "```python" in path.read_text("utf-8")], ids=lambda p: p.stem
)
def test_page_prints_what_it_shows(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = path.read_text(encoding="utf-8")
    program = tmp_path / f"{path.stem}.py"
    program.write_text(python_of(page), encoding="utf-8")
    runpy.run_path(str(program))
    assert capsys.readouterr().out == printed_by(page)
