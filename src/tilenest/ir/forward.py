"""Values that a text uses before the block that defines them.

In: uses and definitions in the order of the text. Out: the same operands, pointed at the values
once those are read. In a printed module only blocks that are never reached are in need of it: they
may use what any other block of their region defines. Inside one block a value comes first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilenest.errors import ParseError
from tilenest.ir.core import Use, Value
from tilenest.ir.lexer import Cursor, Token
from tilenest.ir.types import INDEX

# A chain of names is read as a whole, or a long one would be looked at from each of its names.
_CHAIN = re.compile(r"(%\w++(?:\s*+,\s*+%\w++)*+)\s*+([:=])?")
_REMEDY = "a value is defined earlier in the same block or in an enclosing one"


def last_definitions(text: str) -> Mapping[str, int]:
    """Where a text may define each name for the last time; more than it does, never less."""
    return {
        name.group(): chain.start() + name.start()
        for chain in _CHAIN.finditer(text)
        if chain[2]
        for name in re.finditer(r"%\w+", chain[1])
    }


def undefined(cursor: Cursor, token: Token) -> ParseError:
    return cursor.error(f"{token.text} is not defined here", token, _REMEDY)


class Forward(Value):
    """Stands for a value that is not read yet, in these operands."""

    __slots__ = ("slots", "token")

    def __init__(self, token: Token) -> None:
        super().__init__(INDEX, 0)
        self.token = token
        self.slots: list[Use] = []


class Waiting:
    """The uses in one region, and in those inside it, of what is not defined yet."""

    def __init__(self) -> None:
        self._earlier: dict[str, list[Forward]] = {}
        self._here: dict[str, list[Forward]] = {}
        """those of the block being read, which may not define them any more"""

    def refer(self, token: Token) -> Forward:
        forward = Forward(token)
        self._here.setdefault(token.text, []).append(forward)
        return forward

    def next_block(self) -> None:
        for name, forwards in self._here.items():
            self._earlier.setdefault(name, []).extend(forwards)
        self._here.clear()

    def define(self, token: Token, value: Value, cursor: Cursor) -> None:
        """Hand the value to the earlier blocks that use it."""
        for forward in self._here.get(token.text, ()):
            raise cursor.error(
                f"{token.text} is not defined here, but later in the same block",
                forward.token,
                _REMEDY,
            )
        for forward in self._earlier.pop(token.text, ()):
            for use in forward.slots:
                use.operation.set_operand(use.index, value)

    def hand_on(self, outer: Waiting | None, cursor: Cursor) -> None:
        """At the end of the region, what is left waits for a block further out, if there is one."""
        self.next_block()
        for name, forwards in self._earlier.items():
            if outer is None:
                raise undefined(cursor, forwards[0].token)
            outer._here.setdefault(name, []).extend(forwards)
