"""Tokens of the text of the IR, and errors that point into it.

In: any text. Out: a cursor over its tokens. Whatever is not a token, and whatever a reader did not
expect, is a `ParseError` with line, column and caret.
"""

from __future__ import annotations

import re

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
    | (?P<string>  "(?:[^"\\\n]|\\.)*" )
    | (?P<float>   nan:0x[0-9a-f]{16}\b | -inf\b
                 | -?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+) )
    | (?P<shape>   [0-9]+x\w+ )
    | (?P<integer> -?[0-9]+ )
    | (?P<name>    [^\W\d][\w.]* )
    | (?P<mark>    -> | [-{}()\[\]<>,=:|?@+*/%] )
    | (?P<end>     \Z )
    )
    """,
    re.VERBOSE,
)


@record
class Token:
    """A piece of the text: `kind` is a group of the pattern, or 'end'."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Cursor:
    """The tokens of one text, and how far they are read."""

    __slots__ = ("_place", "_tokens", "file", "text", "token")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._tokens = self._tokenize()
        self._place = 0
        self.token = self._tokens[0]

    def _tokenize(self) -> list[Token]:
        tokens: list[Token] = []
        position, kind = 0, ""
        while kind != "end":
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self._stray(position)
            position, kind = match.end(), match.lastgroup or ""
            tokens.append(Token(kind, match[kind], match.start(kind)))
        return tokens

    def _stray(self, position: int) -> ParseError:
        start = re.compile(_SPACE).match(self.text, position)
        assert start is not None, "the pattern matches the empty text"
        bad = Token("mark", self.text[start.end()], start.end())
        return self.error(f"the character {bad.text!r} has no meaning here", bad)

    def error(
        self, message: str, token: Token | None = None, remedy: str | None = None
    ) -> ParseError:
        """The text is bad at a token, by default the next one."""
        return ParseError(message, remedy, self.locate(token or self.token))

    def locate(self, token: Token) -> SourceLocation:
        before = self.text[: token.start]
        line = before.count("\n") + 1
        line_start = before.rfind("\n") + 1
        source = self.text[line_start:].split("\n", 1)[0]
        column = token.start - line_start + 1
        return SourceLocation(
            self.file, line, column, column + max(len(token.text), 1), "the module text", source
        )

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._place += 1
            self.token = self._tokens[self._place]
        return token

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

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
