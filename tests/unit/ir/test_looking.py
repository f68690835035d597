"""Modules looked at: in colour where that can be seen, and drawn."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.unit.ir.samples import any_module
from tilenest.dialects import OPERATIONS, registry
from tilenest.errors import ArgumentTypeError
from tilenest.ir import Module, Operation, parse_module
from tilenest.ir.colour import coloured
from tilenest.ir.drawing import MOST_OPERATIONS

SVG = "{http://www.w3.org/2000/svg}"
NESTED = """\
module "candidate"

func @f(%n: index, %p: bool) {
  exec.serial(lower = [%n], upper = [%n], step = [%n]) { |%i: index|
    exec.parallel(lower = [%n], upper = [%n], step = [%n]) { |%j: index|
      exec.yield
    }
    exec.yield
  }
  exec.if(%p) {
    exec.yield
  } {
    exec.yield
  }
  func.return
}
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def nested() -> Module:
    return parse_module(NESTED, registry())


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.NAME)
def test_colour_changes_no_character(cls: type[Operation]) -> None:
    text = str(any_module(cls, 1))
    assert plain(coloured(text)) == text


def test_each_kind_of_word_has_its_colour() -> None:
    shown = coloured(NESTED)
    for word in ("module", '"candidate"', "%n", "index", "exec.serial", "@f"):
        assert re.search(rf"\x1b\[[0-9;]+m{re.escape(word)}\x1b\[0m", shown), word


def test_terminals_get_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    nested().show(terminal)
    nested().show(file)
    assert terminal.getvalue() == coloured(NESTED)
    assert file.getvalue() == NESTED


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_environments_without_colour(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    terminal = Terminal()
    nested().show(terminal)
    assert terminal.getvalue() == NESTED


def test_show_prints(capsys: pytest.CaptureFixture[str]) -> None:
    nested().show()
    assert capsys.readouterr().out == NESTED


@pytest.mark.parametrize("stream", [io.BytesIO(), 3, "file"])
def test_what_takes_no_text_is_refused(stream: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=type(stream).__name__) as caught:
        nested().show(stream)
    assert "stream of text" in (caught.value.remedy or "")


def places(svg: str, tag: str) -> list[dict[str, float]]:
    keys = ("x", "y", "width", "height")
    return [
        {key: float(element.attrib[key]) for key in keys if key in element.attrib}
        for element in ET.fromstring(svg).iter(SVG + tag)
    ]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_regions_are_boxes_and_nests_have_levels() -> None:
    svg = nested().svg()
    assert svg == nested().svg()
    shown = words(svg)
    assert shown[0] == "@f"
    assert "exec.parallel(lower = [%n], upper = [%n], step = [%n])" in shown
    assert {"0 serial", "1 parallel"} <= set(shown)
    assert "%d0" not in svg
    boxes = places(svg, "rect")
    assert len(boxes) == 5 + 2, "five regions and two nests"
    function, outer, inner = boxes[0], boxes[1], boxes[2]
    for around, inside in ((function, outer), (outer, inner)):
        assert around["x"] < inside["x"]
        assert around["x"] + around["width"] > inside["x"] + inside["width"]
        assert around["y"] < inside["y"]
        assert around["y"] + around["height"] > inside["y"] + inside["height"]
    page = ET.fromstring(svg).attrib
    assert all(box["x"] + box["width"] <= float(page["width"]) for box in boxes)
    assert all(box["y"] + box["height"] <= float(page["height"]) for box in boxes)


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.NAME)
def test_every_operation_is_drawn(cls: type[Operation]) -> None:
    module = any_module(cls, 3)
    shown = words(module.svg())
    assert sum(cls.NAME in line for line in shown) >= sum(1 for _ in module.walk())


def test_large_modules_are_cut() -> None:
    line = "  %{} = scalar.constant 1 : index\n"
    body = "".join(line.format(place) for place in range(5000))
    text = f'module "candidate"\nfunc @f() {{\n{body}  func.return\n}}\n'
    svg = parse_module(text, registry()).svg()
    assert f"{5001 - MOST_OPERATIONS} more operations are not shown" in words(svg)
    assert len(svg) < 200 * MOST_OPERATIONS


def test_deep_modules_are_cut() -> None:
    text = "exec.if(%p) {\n" * 60 + "exec.yield\n" + "} { exec.yield }\nexec.yield\n" * 60
    whole = f'module "candidate"\nfunc @f(%p: bool) {{\n{text[:-11]}func.return\n}}\n'
    svg = parse_module(whole, registry()).svg()
    assert "more operations are not shown" in words(svg)[-1]
    assert len(places(svg, "rect")) < 40
