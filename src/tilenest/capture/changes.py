"""Which calls change an object, and which one.

In: a callee and its arguments. Out: the object that it changes, None if that is none or not known.
Known are the containers of Python and NumPy with their methods, however they are called, and the
functions of the library that change their first argument. What else host code does is not seen.
"""

from __future__ import annotations

import array
import bisect
import functools
import heapq
import operator
import random
from collections import Counter, UserDict, UserList, deque
from collections.abc import Mapping, Sequence
from types import (
    BuiltinFunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)

import numpy as np

from tilenest.records import record

_OF_SEQUENCES = {"append", "extend", "insert", "pop", "remove", "clear", "reverse"}
_OF_DICTS = {"update", "pop", "popitem", "setdefault", "clear", "move_to_end"}
_METHODS: Mapping[type, set[str]] = {
    list: {*_OF_SEQUENCES, "sort"},
    UserList: {*_OF_SEQUENCES, "sort"},
    deque: {*_OF_SEQUENCES, "appendleft", "extendleft", "popleft", "rotate"},
    bytearray: _OF_SEQUENCES,
    array.array: {*_OF_SEQUENCES, "byteswap", "frombytes", "fromfile", "fromlist"},
    dict: _OF_DICTS,
    Counter: {*_OF_DICTS, "subtract"},
    UserDict: _OF_DICTS,
    set: {
        *("add", "discard", "remove", "pop", "clear", "update"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    },
    np.ndarray: {"fill", "itemset", "put", "sort", "partition", "resize", "setflags"},
}
"""Host containers, and the methods that change one."""

_IN_PLACE = {
    *("__iadd__", "__isub__", "__imul__", "__imatmul__", "__itruediv__", "__ifloordiv__"),
    *("__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"),
}
_OF_ALL_CONTAINERS = {"__setitem__", "__delitem__", "__iconcat__", *_IN_PLACE}
_OF_ALL_OBJECTS = {"__setattr__", "__delattr__"}
_OPERATORS = {getattr(operator, name): name for name in sorted(_OF_ALL_CONTAINERS)}
_KEEP_LENGTH = {"__setitem__", "sort", "reverse"}

_FUNCTIONS: Sequence[object] = (
    *(setattr, delattr, next),
    *(heapq.heapify, heapq.heappush, heapq.heappop, heapq.heappushpop, heapq.heapreplace),
    *(bisect.insort_left, bisect.insort_right, random.shuffle),
    *(np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
)
"""These change their first argument."""


@record
class Change:
    """A call that changes an object."""

    changed: object
    keeps_length: bool = False
    is_argument: bool = False
    """whether the object is the first argument, rather than what a method belongs to"""


def change_of(callee: object, arguments: Sequence[object]) -> Change | None:
    """What a call changes, as far as that is known."""
    while isinstance(callee, functools.partial):
        arguments = (*callee.args, *arguments)
        callee = callee.func
    if any(callee is one for one in _FUNCTIONS):
        return Change(arguments[0], is_argument=True) if arguments else None
    owner, name, is_argument = _owner_of(callee, arguments)
    return Change(owner, name in _KEEP_LENGTH, is_argument) if _changes(owner, name) else None


def _owner_of(callee: object, arguments: Sequence[object]) -> tuple[object, str, bool]:
    """What a method belongs to, its name, and whether that is the first argument."""
    if isinstance(callee, MethodType) and not _is_of_library(callee):
        return None, "", False
    name = getattr(callee, "__name__", "")
    for function, method in _OPERATORS.items():
        if callee is function and arguments:
            return arguments[0], method, True
    if isinstance(callee, MethodDescriptorType | WrapperDescriptorType) and arguments:
        return arguments[0], name, True
    if isinstance(callee, BuiltinFunctionType | MethodWrapperType | MethodType):
        return callee.__self__, name, False
    return None, "", False


def _changes(owner: object, name: str) -> bool:
    if name in _OF_ALL_OBJECTS:
        return True
    kinds = [names for kind, names in _METHODS.items() if isinstance(owner, kind)]
    return any(name in names for names in kinds) or bool(kinds and name in _OF_ALL_CONTAINERS)


def _is_of_library(method: MethodType) -> bool:
    """Whether it is a method of a container, not one of a class of the user's."""
    return any(
        getattr(kind, method.__name__, None) is method.__func__
        for kind in (Counter, UserDict, UserList)
    )
