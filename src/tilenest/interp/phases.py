"""Instances that wait for each other: they run in turns, from one synchronization to the next.

In: what each instance does. Out: nothing; all of it is done. Every instance runs in a thread of its
own, but only one at a time, in a given order, so a run is as repeatable as one without waiting. An
instance that ends while others still wait is an error of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from tilenest.analysis import nearest_parallel
from tilenest.dialects import Synchronize
from tilenest.errors import ControlFlowError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.values import RuntimeValue
from tilenest.ir import Block, Operation

_current = threading.local()


class _Stopped(BaseException):
    """Ends the thread of an instance when another one failed."""


class _Turns:
    """One instance: a thread that runs when it is its turn."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._mine = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self.is_over = False
        self.is_stopped = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run until the instance waits or ends."""
        self._mine.release()
        self._done.acquire()

    def wait(self) -> None:
        """Called by the instance itself: let the others come as far."""
        self._done.release()
        self._mine.acquire()
        if self.is_stopped:
            raise _Stopped

    def stop(self) -> None:
        self.is_stopped = True
        if not self.is_over:
            self.resume()
        self._thread.join()

    def _run(self) -> None:
        self._mine.acquire()
        _current.turns = self
        try:
            if not self.is_stopped:
                with np.errstate(all="ignore"):
                    self._work()
        except BaseException as error:  # noqa: BLE001  # handed to the caller, who raises it
            self.error = error
        self.is_over = True
        self._done.release()


def run_in_phases(instances: Sequence[Callable[[], object]]) -> None:
    """Run all instances, none past a synchronization that another has not reached."""
    turns = [_Turns(work) for work in instances]
    try:
        while any(not one.is_over for one in turns):
            for one in turns:
                if one.is_over:
                    raise ControlFlowError(
                        "an instance ends where others wait for it",
                        remedy="let all instances of a nest come to each of its tn.sync: give the "
                        "serial nests around it bounds that are the same for all of them",
                    )
                one.resume()
                if one.error is not None:
                    raise one.error
    finally:
        for one in turns:
            one.stop()


def waits(block: Block) -> bool:
    """Whether instances of this body wait for each other."""
    return any(
        isinstance(inner, Synchronize) and nearest_parallel(inner) is block.parent_op
        for op in block.operations
        for inner in op.walk()
    )


def synchronize(_: Frame, __: Synchronize) -> list[RuntimeValue]:
    turns: _Turns | None = getattr(_current, "turns", None)
    if turns is not None:
        turns.wait()
    return []


HANDLERS: dict[type[Operation], Handler] = {Synchronize: synchronize}
