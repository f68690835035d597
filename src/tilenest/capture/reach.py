"""What can be reached from some objects, through whatever holds it.

In: objects. Out: whether another is among them or belongs to one: what containers hold, attributes,
the defaults and the closure of a function. Python's garbage collector knows what an object holds,
so nothing of the user's runs. What lies nearest is looked at first, and of each object that was
given only so many are: what is not found there counts as not reached, so that a table of a million
rows costs no more than a tenth of a second.
"""

from __future__ import annotations

import gc
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType, NoneType

import numpy as np

from tilenest.capture.frames import Frame, InterpretedFunction
from tilenest.capture.guards import is_package_module

_MOST_OBJECTS = 50_000
"""looked at from one object"""
_ATOMS = {bool, int, float, complex, str, bytes, NoneType}


class Reach:
    """The objects that have been reached."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, object] = {}

    def add(self, start: object) -> None:
        """Look at an object, and at what belongs to it now."""
        waiting = deque([start])
        left = _MOST_OBJECTS
        while waiting:
            item = waiting.popleft()
            if id(item) not in self._known:
                self._known[id(item)] = item
                held = (one for one in _held_by(item) if type(one) not in _ATOMS)
                added = list(itertools.islice(held, left))
                left -= len(added)
                waiting += added

    def hold(self, item: object) -> None:
        """Count an object as reached, and not what belongs to it."""
        self._known[id(item)] = item

    def has(self, value: object) -> bool:
        """Whether it has been reached, or an array has that it is a view of."""
        while id(value) not in self._known:
            if not isinstance(value, np.ndarray) or value.base is None:
                return False
            value = value.base
        return True


def scopes_of(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Frames, and those that their names are looked up in next."""
    for frame in frames:
        scope: Frame | None = frame
        while scope is not None:
            yield scope
            scope = scope.parent


def _held_by(item: object) -> Iterable[object]:
    """What belongs to an object. Modules are shared: what is read from one is outside by itself."""
    owner = item if isinstance(item, type) else type(item)
    if isinstance(item, InterpretedFunction):
        return [item.signature, *(scope.locals for scope in scopes_of([item.frame]))]
    if isinstance(item, ModuleType) or is_package_module(owner.__module__):
        return ()
    if isinstance(item, FunctionType):
        return item.__dict__, item.__defaults__, item.__kwdefaults__, item.__closure__
    if isinstance(item, np.ndarray):
        return item.base, item.tolist() if item.dtype.hasobject else None
    return gc.get_referents(item)
