"""Tokens of the text of the IR, and errors that point into it.

In: any text. Out: a cursor over its tokens. Whatever is not a token, and whatever a reader did not
expect, is a `ParseError` with line, column and caret.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from tilenest.errors import ParseError, SourceLocation
from tilenest.records import record

# Possessive, or a long run of blanks before a stray character would be split in every way.
_SPACE = r"(?:\s++|;[^\n]*+)*+"
_TOKEN = re.compile(
    _SPACE
    + r"""
    (?:
      (?P<value>   %\w+ )
    | (?P<record>  \#\w+ )
    | (?P<label>   \^[0-9]+ )
    | (?P<string>  "(?:[^"\\\n]|\\.)*" )
    | (?P<float>   nan:0x[0-9a-f]{16}\b | -inf\b
                 | -?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+) )
    | (?P<shape>   [0-9]+x\w+ )
    | (?P<integer> -?[0-9]+ )
    | (?P<name>    [^\W\d][\w.]* )
    | (?P<mark>    -> | [-{}()\[\]<>,=:|?@+*/%^&~] )
    | (?P<end>     \Z )
    )
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(_SPACE)


@record
class Token:
    """A piece of the text: `kind` is a group of the pattern, 'end', or 'stray' for a character
    that no token starts with."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Cursor:
    """The next two tokens of one text; those behind them are not looked at yet."""

    __slots__ = (
        "_line",
        "_line_starts",
        "_position",
        "_source",
        "file",
        "following",
        "text",
        "token",
    )

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._position = 0
        self._line, self._source = 0, ""
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.token = self._next()
        self.following = self._next()
        """the token after the next one"""

    def _next(self) -> Token:
        match = _TOKEN.match(self.text, self._position)
        if match is None:
            start = _BLANKS.match(self.text, self._position)
            assert start is not None, "the pattern matches the empty text"
            return Token("stray", self.text[start.end()], start.end())
        self._position = match.end()
        kind = match.lastgroup or ""
        return Token(kind, match[kind], match.start(kind))

    def error(
        self, message: str, token: Token | None = None, remedy: str | None = None
    ) -> ParseError:
        """The text is bad at a token, by default the next one."""
        token = token or self.token
        if token.kind == "stray":
            message = f"the character {token.text!r} has no meaning here"
        return ParseError(message, remedy, self.locate(token))

    def locate(self, token: Token) -> SourceLocation:
        line = bisect_right(self._line_starts, token.start)
        start = self._line_starts[line - 1]
        if line != self._line:
            # Kept, so that all places on one line share its text, however long it is.
            stop = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
            self._line, self._source = line, self.text[start:stop]
        column = token.start - start + 1
        end = column + max(len(token.text), 1)
        return SourceLocation(self.file, line, column, end, "the module text", self._source)

    def take(self) -> Token:
        token = self.token
        if token.kind == "stray":
            raise self.error("")
        if token.kind != "end":
            self.token = self.following
            self.following = self._next()
        return token

    def at(self, text: str) -> bool:
        """True when the next token is this mark or word."""
        return self.token.text == text and self.token.kind in ("mark", "name")

    def accept(self, text: str) -> bool:
        found = self.at(text)
        if found:
            self.take()
        return found

    def expect(self, text: str) -> Token:
        if not self.at(text):
            raise self.error(f"expected `{text}`, found {self.found()}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            raise self.error(f"expected {what}, found {self.found()}")
        return self.take()

    def found(self) -> str:
        """The next token as an error names it."""
        text = self.token.text
        if self.token.kind == "end":
            return "the end of the text"
        return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}...`"
