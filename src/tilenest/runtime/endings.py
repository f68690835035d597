"""The end of the interpreter: calls of kernels come to their own end first.

In: every loaded function, and which Python functions call them. Out: at exit, calls that begin keep
the interpreter's lock, and those under way are waited for. Python up to 3.13 ends a daemon thread
where it takes the lock back, in the middle of TVM-FFI's C++, which aborts the process. The wait has
no limit: a kernel that never ends keeps the process, as it would in the main thread, for to leave
in the middle of a call is that abort. Where each thread is, `sys` says: its function for that is
documented, the underscore notwithstanding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from sys import _current_frames as current_frames
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

_SECONDS_BETWEEN_LOOKS = 0.001


class _Functions:
    """All functions in use, by what owns them: TVM-FFI's own objects have no weak references."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.releases_lock = True
        self.by_owner: WeakKeyDictionary[object, Any] = WeakKeyDictionary()


_functions = _Functions()


def follow(owner: object, function: Any) -> None:
    """Know of a function as long as its owner lives."""
    with _functions.lock:
        function.release_gil = _functions.releases_lock
        _functions.by_owner[owner] = function


def finish_calls(callers: Collection[CodeType]) -> None:
    """Wait until no call is outside the interpreter's lock, and let none leave it from now on."""
    with _functions.lock:
        _functions.releases_lock = False
        for function in _functions.by_owner.values():
            function.release_gil = False
    frames = current_frames().items()
    calls = {thread: frame for thread, frame in frames if frame.f_code in callers}
    # A thread that makes its next call has another frame.
    while any(current_frames().get(thread) is frame for thread, frame in calls.items()):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
