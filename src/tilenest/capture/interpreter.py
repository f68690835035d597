"""The interpreter's core: dispatch over syntax nodes, the call stack, places and errors.

In: the session to emit into and the tables of evaluators. Out: values of expressions and
signals of statements. What each node means is in `expressions`, `statements` and their
neighbours; here is what all of them share: every operation gets the place of the node that
emits it, and every error leaves with the place of the innermost node.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import tilenest.errors
from tilenest.capture.frames import Frame
from tilenest.capture.guards import GuardRecorder
from tilenest.capture.outside import Outside
from tilenest.capture.variables import Environment
from tilenest.errors import CaptureError, InternalError, SourceLocation, TileError, render
from tilenest.language import Session
from tilenest.records import record

MAX_DEPTH = 64
"""Inlined calls within each other; deeper ones are taken for a recursion without end."""

_PACKAGE = str(Path(tilenest.errors.__file__).parent)
_NOTE = "while capturing a kernel at "


class Jump(Enum):
    """How a statement left its block, when it did not fall through or return."""

    BREAK = "break"
    CONTINUE = "continue"


@record
class Return:
    """A statement returned this value."""

    value: object


Signal = Jump | Return | None
Evaluator = Callable[["Interpreter", Any, Frame], object]
Executor = Callable[["Interpreter", Any, Frame], Signal]


class Interpreter:
    """One capture in progress."""

    def __init__(
        self,
        session: Session,
        expressions: Mapping[type[ast.expr], Evaluator],
        statements: Mapping[type[ast.stmt], Executor],
    ) -> None:
        self.session = session
        self.guards = GuardRecorder()
        self.outside = Outside(self.guards)
        self.frames: list[Frame] = []
        self.environments: list[Environment] = []
        """per open region: what there was before it"""
        self._expressions = expressions
        self._statements = statements

    def evaluate(self, node: ast.expr, frame: Frame) -> object:
        """The value of an expression."""
        handler = self._expressions.get(type(node))
        try:
            if handler is None:
                raise unsupported(node)
            return handler(self, node, frame)
        except Exception as error:
            located = placed(error, node, frame)
            if located is error:
                raise
            raise located from error

    def execute(self, statements: Sequence[ast.stmt], frame: Frame) -> Signal:
        """Run statements until one jumps."""
        for node in statements:
            signal = self._execute_one(node, frame)
            if signal is not None:
                return signal
        return None

    def _execute_one(self, node: ast.stmt, frame: Frame) -> Signal:
        handler = self._statements.get(type(node))
        try:
            if handler is None:
                raise unsupported(node)
            return handler(self, node, frame)
        except Exception as error:
            located = placed(error, node, frame)
            if located is error:
                raise
            raise located from error

    def check_change(self, value: object, node: ast.expr, *, keeps_length: bool = False) -> None:
        """Refuse to change the value of an expression, unless the kernel made it, and here."""
        self.outside.check(value, node)
        for environment in self.environments:
            environment.check_change(value, node, keeps_length)

    def look_around(self) -> None:
        """Remember what there is, before host code may put there what it makes."""
        self.outside.collect()
        for environment in self.environments:
            environment.collect()

    def at(self, node: ast.AST, frame: Frame) -> SourceLocation:
        """Give operations emitted from now on the place of `node`."""
        location = frame.locate(node)
        self.session.builder.location = location
        return location

    def enter(self, frame: Frame) -> None:
        """Push a call, unless there are too many."""
        if len(self.frames) >= MAX_DEPTH:
            raise CaptureError(
                f"calls are nested {MAX_DEPTH} deep: {frame.code.name!r} seems to call itself "
                "without end",
                remedy="let the recursion end on a host value, or write it as a loop",
            )
        self.frames.append(frame)

    def leave(self) -> None:
        self.frames.pop()


@contextmanager
def placing(node: ast.AST, frame: Frame) -> Iterator[None]:
    """Errors of the context get the place of `node`."""
    try:
        yield
    except Exception as error:
        located = placed(error, node, frame)
        if located is error:
            raise
        raise located from error


def placed(error: Exception, node: ast.AST, frame: Frame) -> Exception:
    """The error with the place of `node`, unless a node inside has given it one."""
    if isinstance(error, TileError):
        return error.with_location(frame.locate(node))
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return error
    location = frame.locate(node)
    if isinstance(error, RecursionError):
        return CaptureError(
            "calls or expressions are nested too deeply for Python's recursion limit",
            remedy="let the recursion end on a host value, or write it as a loop",
            location=location,
        )
    if isinstance(error, AssertionError) and _is_ours(error):
        return InternalError(f"an internal check failed: {error}", location=location)
    error.add_note(_NOTE + render(location))
    return error


def noted_assertion(message: object, location: SourceLocation) -> AssertionError:
    """The failure of an `assert` of the user's."""
    error = AssertionError() if message is None else AssertionError(message)
    error.add_note(_NOTE + render(location))
    return error


def _is_ours(error: AssertionError) -> bool:
    """Whether the assertion stands in this package, not in host code that it called."""
    traceback = error.__traceback__
    file = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        traceback = traceback.tb_next
    return file.startswith(_PACKAGE)


_REMEDIES: dict[type[ast.AST], tuple[str, str]] = {
    ast.Yield: ("yield", "return a list"),
    ast.YieldFrom: ("yield from", "return a list"),
    ast.Await: ("await", "await outside the kernel and pass the result as an argument"),
    ast.AsyncFunctionDef: ("an async function", "define it with plain `def`"),
    ast.AsyncFor: ("async for", "use a plain `for`"),
    ast.AsyncWith: ("async with", "open the context around the kernel call"),
    ast.With: ("with", "open the context around the kernel call"),
    ast.ClassDef: ("a class definition", "define the class outside the kernel"),
    ast.Global: (
        "global",
        "leave the line out to read the name; results leave a kernel through views, a function of "
        "its own by `return`",
    ),
    ast.Nonlocal: ("nonlocal", "return the value and assign it in the function that owns it"),
    ast.Try: ("try", "test the condition with `if` before the statement that may fail"),
    ast.TryStar: ("try", "test the condition with `if` before the statement that may fail"),
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("import", "import at the top of the module"),
    ast.Match: ("match", "use `if` and `elif`"),
}


def unsupported(node: ast.AST) -> CaptureError:
    """The error of syntax that has no meaning in a kernel."""
    name, remedy = _REMEDIES.get(type(node), (type(node).__name__, "write it with other syntax"))
    return CaptureError(f"`{name}` is not supported inside a kernel", remedy=remedy)
