"""The pieces of every SVG drawing: boxes, words, light colours, the document around them.

In: places in pixels, text, numbers that stand for colours. Out: elements as text. Equal drawings
give equal bytes, and any text is safe in them. Letters are of one width, so a text's length is its
room.
"""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb
from html import escape

CHARACTER = 8
"""The width of a letter."""
LINE = 24
"""The height of a line of text in its box."""
_GOLDEN = 0.618034


def document(width: float, height: float, shapes: Iterable[str]) -> str:
    """The whole drawing."""
    wide, high = number(width), number(height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" font-family="monospace" font-size="12">'
    )
    return "\n".join([head, *shapes, "</svg>"]) + "\n"


def box(x: float, y: float, width: float, height: float, colour: int | None = None) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}" fill="{fill(colour)}" stroke="#666666"/>'
    )


def words(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """A line of text; what has no shape is a blank."""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" '
        f'dominant-baseline="central">{escape(printable(text))}</text>'
    )


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def fill(colour: int | None) -> str:
    """A light colour of its own for every number: hues a golden angle apart."""
    if colour is None:
        return "#ffffff"
    parts = hls_to_rgb(colour * _GOLDEN % 1, 0.82, 0.65)
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)


def number(x: float) -> str:
    return f"{x:g}"
