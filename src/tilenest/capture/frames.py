"""Frames of interpreted functions: names, closures, and what is known of reads and writes.

In: assignments and look-ups by the evaluators. Out: values by Python's scoping rules, and for
every open region the names that were read before they were certainly written in it. A name
whose value ended with a region or exists on one path only holds a `Poison`, which raises when
it is read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import FunctionType

from tilenest.capture.guards import GuardRecorder
from tilenest.capture.source import FunctionCode
from tilenest.errors import ScopeError, SourceLocation, TileError, UndefinedVariableError
from tilenest.records import record


@record
class Poison:
    """What a name holds that must not be read any more, and what to say when it is."""

    error: type[TileError]
    message: str
    remedy: str

    def raise_error(self) -> None:
        raise self.error(self.message, self.remedy)


def ended(name: str, kind: str) -> Poison:
    """The poison of a name whose value ended with a region."""
    return Poison(
        ScopeError,
        f"{name!r} is local to the {kind} region that has ended",
        f"define {name!r} before the region to carry its value out, or move this use into it",
    )


def one_branch(name: str) -> Poison:
    """The poison of a name that only one branch of a run-time `if` defines."""
    return Poison(
        UndefinedVariableError,
        f"{name!r} is defined in one branch of a run-time `if` only",
        f"define {name!r} before the `if`, or in both branches",
    )


class Accesses:
    """Names of one frame that an open region read before writing, and those it certainly wrote."""

    __slots__ = ("places", "read", "written")

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.places: dict[str, SourceLocation] = {}
        """where each name was last assigned"""


class Frame:
    """One call of an interpreted function, or the scope of a comprehension."""

    __slots__ = (
        "accesses",
        "caller",
        "code",
        "contexts",
        "function",
        "guards",
        "is_comprehension",
        "local_names",
        "locals",
        "locations",
        "parent",
    )

    def __init__(
        self,
        code: FunctionCode,
        local_names: frozenset[str],
        function: FunctionType,
        parent: Frame | None,
        caller: SourceLocation | None,
        guards: GuardRecorder,
        is_comprehension: bool = False,
    ) -> None:
        self.code = code
        self.local_names = local_names
        self.function = function
        self.parent = parent
        self.caller = caller
        self.guards = guards
        self.is_comprehension = is_comprehension
        self.locals: dict[str, object] = {}
        self.accesses: list[Accesses] = []
        self.contexts: list[str] = []
        """open constructs, outermost first: 'loop' for a host loop, else a staged one's name"""
        self.locations: dict[ast.AST, SourceLocation] = {}

    @property
    def function_frame(self) -> Frame:
        """The frame of the function that this scope belongs to: where a walrus binds."""
        frame = self
        while frame.is_comprehension:
            assert frame.parent is not None
            frame = frame.parent
        return frame

    def locate(self, node: ast.AST) -> SourceLocation:
        """The place of a node in this call."""
        found = self.locations.get(node)
        if found is None:
            found = self.code.text.locate(node, self.code.name, self.caller)
            self.locations[node] = found
        return found

    def load(self, name: str) -> object:
        """The value of a name, wherever Python's rules find it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.local_names:
                return frame._load_local(name)
            if frame.parent is None:
                return frame.guards.read_free(frame.function, name)
            frame = frame.parent
        raise AssertionError("a chain of frames ends in a function")

    def _load_local(self, name: str) -> object:
        for accesses in self.accesses:
            if name not in accesses.written:
                accesses.read.add(name)
        if name not in self.locals:
            raise UndefinedVariableError(
                f"{name!r} is read before it is assigned",
                remedy=f"assign {name!r} on every path that leads here",
            )
        value = self.locals[name]
        if isinstance(value, Poison):
            value.raise_error()
        return value

    def store(self, name: str, value: object, place: SourceLocation) -> None:
        """Bind a local name."""
        self.locals[name] = value
        for accesses in self.accesses:
            accesses.written.add(name)
            accesses.places[name] = place

    def written_names(self) -> list[set[str]]:
        """A copy of the names certainly written, per open region, to return to."""
        return [set(accesses.written) for accesses in self.accesses]

    def set_written_names(self, saved: list[set[str]]) -> None:
        for accesses, names in zip(self.accesses, saved, strict=True):
            accesses.written = set(names)


class InterpretedFunction:
    """A function or lambda defined inside interpreted code; calling it interprets its body."""

    __slots__ = ("__name__", "_call", "code", "frame", "signature")

    def __init__(
        self,
        code: FunctionCode,
        frame: Frame,
        signature: inspect.Signature,
        call: Callable[[InterpretedFunction, tuple[object, ...], dict[str, object]], object],
    ) -> None:
        self.__name__ = code.name
        self.code = code
        self.frame = frame
        self.signature = signature
        self._call = call

    def __call__(self, *arguments: object, **keywords: object) -> object:
        return self._call(self, arguments, keywords)
