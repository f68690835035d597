"""The pages of the tutorial run as printed, and print what they show.

The Python blocks of a page are one program; its `text` blocks are what that prints, in order.
"""

import runpy
from pathlib import Path

import pytest

from tests.docs.test_readme import python_of

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorial").glob("*.md"))


def shown_in(page: str) -> str:
    """The text blocks of a page, one after the other."""
    return "".join(part.split("```")[0] for part in page.split("```text\n")[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.read_text(encoding="utf-8")
    program = tmp_path / f"{page.stem}.py"
    program.write_text(python_of(text), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILENEST_VERIFY", "1")
    runpy.run_path(str(program), run_name="page")
    assert capsys.readouterr().out == shown_in(text)


def test_tutorial_has_pages() -> None:
    assert {"memory-and-views", "remaps"} <= {page.stem for page in PAGES}
