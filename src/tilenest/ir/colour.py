"""The text of a module in colour, for terminals.

In: any text of TileIR. Out: the same characters with ANSI escapes around what is a name, a type, a
value. Colour is given where somebody reads it: a stream that is a terminal, unless the environment
says otherwise by NO_COLOR or a TERM without colours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

from tilenest.ir.types import DTYPE_BY_TEXT

_TYPES = "|".join(
    [*DTYPE_BY_TEXT, "tile", "view", "buf", "vector", "tuple", "array", "memory", "ptr", "token"]
)
_PIECE = re.compile(
    rf"""
      (?P<comment>   ;[^\n]* )
    | (?P<string>    "(?:[^"\\\n]|\\.)*" )
    | (?P<value>     %\w+ )
    | (?P<label>     [\^@\#]\w+ )
    | (?P<operation> \b[a-z_]+\.[a-z_]\w*\b )
    | (?P<keyword>   \b(?:module|func|dim|location|with|at)\b )
    | (?P<type>      \b(?:{_TYPES}|state)\b (?!\s*=) | \b[0-9]+x(?:{_TYPES})\b )
    | (?P<number>    \b[0-9][\w.+@-]* | \b(?:true|false|none|inf|nan)\b )
    """,
    re.VERBOSE,
)
_STYLES: Mapping[str, str] = {
    "comment": "2",
    "string": "32",
    "value": "36",
    "label": "1;35",
    "operation": "1;34",
    "keyword": "1",
    "type": "33",
    "number": "35",
}


def coloured(text: str) -> str:
    """The text with escapes; without them it is the text."""
    return _PIECE.sub(_styled, text)


def _styled(piece: re.Match[str]) -> str:
    return f"\x1b[{_STYLES[piece.lastgroup or '']}m{piece.group()}\x1b[0m"


def wants_colour(stream: TextIO) -> bool:
    """Whether whoever reads the stream sees colours."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_plain
