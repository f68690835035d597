"""What exists apart from a capture, and must not be changed by it.

In: what capture has read outside the kernel. Out: whether an object is among that or can be reached
from there, through whatever holds it: containers, attributes, the defaults and the closure of a
function. What the kernel makes itself cannot. Python's garbage collector knows what an object
holds, so nothing of the user's runs.
"""

from __future__ import annotations

import ast
import gc
import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType, NoneType

import numpy as np

from tilenest.capture.guards import GuardRecorder, is_package_module
from tilenest.errors import CaptureError

_OF_SEQUENCES = {"append", "extend", "insert", "pop", "remove", "clear", "reverse"}
_CHANGES: Mapping[type, set[str]] = {
    list: {*_OF_SEQUENCES, "sort"},
    deque: {*_OF_SEQUENCES, "appendleft", "extendleft", "popleft", "rotate"},
    bytearray: _OF_SEQUENCES,
    dict: {"update", "pop", "popitem", "setdefault", "clear", "move_to_end"},
    set: {
        *("add", "discard", "remove", "pop", "clear", "update"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    },
    np.ndarray: {"fill", "put", "sort", "partition", "resize"},
}
"""Host containers, and the methods that change one."""

_ATOMS = {bool, int, float, complex, str, bytes, NoneType}


def is_container(value: object) -> bool:
    """Whether operators that assign change the value itself."""
    return isinstance(value, tuple(_CHANGES))


def changes_container(value: object, method: str) -> bool:
    """Whether a method of this name changes the value."""
    return any(isinstance(value, kind) and method in names for kind, names in _CHANGES.items())


class Outside:
    """The objects outside, searched when one is asked for."""

    __slots__ = ("_guards", "_known", "_new", "_read")

    def __init__(self, guards: GuardRecorder) -> None:
        self._guards = guards
        self._read = 0
        """how many of the variables read have been looked at"""
        self._new: list[object] = []
        self._known: dict[int, object] = {}

    def add(self, value: object) -> None:
        """Something that the kernel was given."""
        self._new.append(value)

    def check(self, value: object, node: ast.expr) -> None:
        """Refuse to change the value of an expression."""
        if self._holds(value):
            what = f"{ast.unparse(node)!r}, a {type(value).__name__}"
            raise CaptureError(
                f"{what} from outside the kernel, is changed in it",
                remedy="keep what the kernel changes in its own variables, a copy if need be",
            )

    def _holds(self, value: object) -> bool:
        for variable in itertools.islice(self._guards.free_variables, self._read, None):
            self._read += 1
            if not isinstance(variable.place, dict):
                self._new.append(variable.place)
            self._new.append(variable.current())
        while self._new:
            item = self._new.pop()
            if id(item) not in self._known:
                self._known[id(item)] = item
                self._new += [held for held in _held_by(item) if type(held) not in _ATOMS]
        while isinstance(value, np.ndarray) and value.base is not None:
            # A view shares the elements.
            value = value.base
        return id(value) in self._known


def _held_by(item: object) -> Iterable[object]:
    """What belongs to an object. Modules are shared: what is read from one is outside by itself."""
    owner = item if isinstance(item, type) else type(item)
    if isinstance(item, ModuleType) or is_package_module(owner.__module__):
        return ()
    if isinstance(item, FunctionType):
        return item.__dict__, item.__defaults__, item.__kwdefaults__, item.__closure__
    return gc.get_referents(item)
