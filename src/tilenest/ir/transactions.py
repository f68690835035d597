"""Noting changes while they are made, to undo them and to tell who listens.

In: from the rewriter and its builders, before every primitive change how to undo it, and beside it
what it is. Out: transactions, which on an exception or on demand leave everything as it was;
edits, to the listeners. Without a transaction nothing is noted, without a listener nothing told.
Transactions nest like the blocks of code that open them; to undo one ends those inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilenest.ir.contents import module_of
from tilenest.ir.core import Block, Operation, Value
from tilenest.ir.edits import Edit, EditKind, Listener, function_of
from tilenest.ir.inverses import Undo

Hook = Callable[[], None]


class Recorder:
    """The journal of the open transactions, and the listeners."""

    __slots__ = ("_hooks", "_journal", "_open", "listeners")

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self._journal: list[Undo] = []
        self._hooks: list[Hook] = []
        self._open: list[Transaction] = []

    def before(self, inverse: Callable[..., Undo], *subjects: Any) -> None:
        """To be called before a primitive changes anything."""
        if self._open:
            self._open[-1].assert_going_on()
            for hook in self._hooks:
                hook()
            self._journal.append(inverse(*subjects))

    def tell(
        self,
        kind: EditKind,
        block: Block | None,
        operation: Operation | None = None,
        detail: str | None = None,
        values: tuple[Value, ...] = (),
    ) -> None:
        """To be called beside a primitive, while what it is about hangs in the module; `block` is
        where."""
        function = function_of(block) if self.is_heard else None
        if function is not None:
            module = module_of(function)
            self.publish(Edit(kind, module, function, block, operation, detail, values))

    @property
    def is_heard(self) -> bool:
        """Whether an edit would change anything for a listener."""
        return any(not listener.is_idle for listener in self.listeners)

    def publish(self, edit: Edit) -> None:
        for listener in self.listeners:
            listener.edited(edit)

    @contextmanager
    def transaction(self, hook: Hook | None) -> Iterator[Transaction]:
        """All or nothing: an exception that leaves it undoes what was done inside."""
        if self._open:
            self._open[-1].assert_going_on()
        marks = [(listener, listener.mark()) for listener in self.listeners]
        opened = Transaction(self._open, self._journal, marks)
        hooks = [] if hook is None else [hook]
        self._open.append(opened)
        self._hooks += hooks
        try:
            yield opened
        except BaseException:
            if opened.is_going_on:
                opened.rollback()
            raise
        finally:
            opened.is_going_on = False
            self._open.pop()
            if hooks:
                self._hooks.pop()
            if not self._open:
                self._journal.clear()


class Transaction:
    """An open transaction; one inside of another is a savepoint of it."""

    __slots__ = ("_journal", "_marks", "_open", "_start", "is_going_on")

    def __init__(
        self,
        open_: list[Transaction],
        journal: list[Undo],
        marks: list[tuple[Listener, Any]],
    ) -> None:
        self._open = open_
        self._journal = journal
        self._marks = marks
        self._start = len(journal)
        self.is_going_on = True
        """until its block of code is left, or one around it is rolled back"""

    def rollback(self) -> None:
        """Undo all that was done since the transaction was opened, and end those inside of it; it
        stays open."""
        self.assert_going_on()
        for inner in self._open[self._open.index(self) + 1 :]:
            inner.is_going_on = False
        while len(self._journal) > self._start:
            self._journal.pop()()
        for listener, mark in self._marks:
            listener.restore(mark)

    def assert_going_on(self) -> None:
        assert self.is_going_on, "the transaction has ended: it was left, or undone with one around"
