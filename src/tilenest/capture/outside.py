"""What exists apart from a capture, and must not be changed by it.

In: what capture has read outside the kernel. Out: whether an object is among that or can be reached
from there. What the kernel makes itself cannot: what is outside is looked at before host code of
the user's runs, which may keep what it makes.
"""

from __future__ import annotations

import ast
import itertools

from tilenest.capture.guards import GuardRecorder
from tilenest.capture.reach import Reach
from tilenest.errors import CaptureError


class Outside:
    """The objects outside, looked at when one is asked for."""

    __slots__ = ("_guards", "_new", "_reach", "_read")

    def __init__(self, guards: GuardRecorder) -> None:
        self._guards = guards
        self._read = 0
        """how many of the variables read have been looked at"""
        self._new: list[object] = []
        self._reach = Reach()

    def add(self, value: object) -> None:
        """Something that the kernel was given."""
        self._new.append(value)

    def check(self, value: object, node: ast.expr) -> None:
        """Refuse to change the value of an expression."""
        self.collect()
        if self._reach.has(value):
            what = f"{ast.unparse(node)!r}, a {type(value).__name__}"
            raise CaptureError(
                f"{what} from outside the kernel, is changed in it",
                remedy="keep what the kernel changes in its own variables, a copy if need be",
            )

    def collect(self) -> None:
        """Look at what has been read since the last time."""
        for variable in itertools.islice(self._guards.free_variables, self._read, None):
            self._read += 1
            if not isinstance(variable.place, dict):
                self._new.append(variable.place)
            self._new.append(variable.current())
        while self._new:
            self._reach.add(self._new.pop())

    def forget(self) -> None:
        """Hold nothing any more: the capture has ended."""
        self._new.clear()
        self._reach = Reach()
