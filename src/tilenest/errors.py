"""Source locations, caret rendering and every error class a user of tilenest can meet.

In: what failed, a remedy, and where in the user's source it happened. Out: exceptions whose text
is complete on its own: message, `file:line:column in function`, the source line with a caret run,
the chain of inlined calls, and a `help:` line. Code that detects a mistake raises without a
location; the nearest code that knows the place fills it with `with_location`, and the first one
to do so wins. There is one class per cause, and where users expect a builtin, it is that as well.
What a user passed stands in a message as `shown` has it.
"""

from __future__ import annotations

from typing import Self

from tilenest.records import record

_INDENT = "    "
_MOST_SHOWN = 80


def shown(value: object) -> str:
    """Any object as a message shows it: never long, and never an error of its own."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - Python prints no endless number, and a class may fail at it
        size = f" of {int.bit_length(value)} bits" if isinstance(value, int) else ""
        return f"<{type(value).__name__}{size}>"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@record
class SourceLocation:
    """A run of characters on one source line, and the call it was inlined into.

    Columns count characters from 1; `end_column` is one past the last character, and may lie beyond
    the line for an expression that continues on the next one. What was made from several places
    stands at the first and names the others.
    """

    file: str
    line: int
    column: int
    end_column: int
    function: str
    source: str
    caller: SourceLocation | None = None
    fused: tuple[SourceLocation, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def render(location: SourceLocation) -> str:
    """The place, its source line with a caret run, then each caller, outermost last, then the other
    places it was made from."""
    lines = _render_one(location)
    caller = location.caller
    while caller is not None:
        first, *rest = _render_one(caller)
        lines += [f"called from {first}", *rest]
        caller = caller.caller
    for other in location.fused:
        first, *rest = _render_one(other)
        lines += [f"together with {first}", *rest]
    return "\n".join(lines)


def _render_one(location: SourceLocation) -> list[str]:
    lines = [f"{location} in {location.function}"]
    source = location.source.rstrip()
    code = source.lstrip()
    if code:
        dropped = len(source) - len(code)
        start = max(location.column - 1 - dropped, 0)
        end = min(location.end_column - 1 - dropped, len(code))
        # Tabs are kept so that the carets line up however wide the reader's tabs are.
        padding = "".join("\t" if char == "\t" else " " for char in code[:start])
        lines += [_INDENT + code, _INDENT + padding + "^" * max(end - start, 1)]
    return lines


class TileError(Exception):
    """The base of every error tilenest raises."""

    message: str
    remedy: str | None
    location: SourceLocation | None

    def __init__(
        self, message: str, remedy: str | None = None, location: SourceLocation | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.location = location

    def with_location(self, location: SourceLocation | None) -> Self:
        """This error, placed at `location` unless it already has a place."""
        if self.location is None:
            self.location = location
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.location is not None:
            parts.append(render(self.location))
        if self.remedy is not None:
            parts.append(f"help: {self.remedy}")
        return "\n".join(parts)


class CaptureError(TileError):
    """A kernel uses Python that has no meaning inside a tile kernel."""


class SourceUnavailableError(TileError, OSError):
    """The source text of a kernel or of a function it calls cannot be read."""


class UndefinedVariableError(TileError, NameError):
    """A variable is read where it is undefined or defined on some paths only."""


class MissingAttributeError(TileError, AttributeError):
    """Something that a kernel holds is asked for an attribute that it does not have."""


class ScopeError(TileError, RuntimeError):
    """A nest handle or a value local to a region is used after that region ended."""


class CarriedTypeError(TileError, TypeError):
    """A variable carried by a region changes its type or shape between iterations."""


class AncestorUpdateError(TileError, RuntimeError):
    """A child region updates a tile of an enclosing region in a way that has no single meaning."""


class ControlFlowError(TileError, RuntimeError):
    """Branches or calls go round in a circle, or instances wait for one that has ended."""


class TileArrayError(TileError, ValueError):
    """A slot of a tile array is set twice, or one is missing when the whole is assembled."""


class ViewAssignmentError(TileError, TypeError):
    """An array view is assigned through item or slice syntax instead of being stored to."""


class ShapeError(TileError, ValueError):
    """Shapes, dimensions or extents do not fit together or are no valid extents."""


class DTypeError(TileError, TypeError):
    """An operation gets element types it does not accept."""


class ReductionPolicyError(TileError, ValueError):
    """A reduction's policy grants an order that its body does not allow."""


class DomainError(TileError, ValueError):
    """An operation has no result over its domain, as a maximum over nothing."""


class ArgumentTypeError(TileError, TypeError):
    """A kernel, or a function in one, is called with arguments that it does not take."""


class RankError(TileError, ValueError):
    """An array, an origin or an index has the wrong number of dimensions."""


class ReadOnlyError(TileError, ValueError):
    """A kernel would write to an array that cannot be written."""


class OverlapError(TileError, ValueError):
    """Arguments share memory in a way that the program's result would depend on."""


class UninitialisedMemoryError(TileError, RuntimeError):
    """An explicit memory is loaded where not all that is loaded may be stored in it yet."""


class OutOfBounds(TileError, IndexError):  # noqa: N818 - reads as the fact it reports
    """An access declared with `bounds="check"` reached outside its array."""


class OutOfMemory(TileError, MemoryError):  # noqa: N818 - reads as the fact it reports
    """A memory, a temporary or a result is larger than what the system gives."""

    @classmethod
    def of_memory(cls, size: int, location: SourceLocation | None) -> OutOfMemory:
        """For a memory that a kernel names."""
        return cls(
            f"a memory of {size} bytes is more than the system gives",
            "use a memory of a smaller shape, as for one part of the arrays at a time",
            location,
        )


class AssertionFailed(TileError, AssertionError):  # noqa: N818 - reads as the fact it reports
    """A condition that a program asserts does not hold."""


class TargetError(TileError, RuntimeError):
    """A target is unknown, unavailable or cannot run this program."""


class ParseError(TileError, ValueError):
    """A text is not valid TileIR."""


class VerifyError(TileError, ValueError):
    """A program breaks a rule of TileIR."""


class RemapError(TileError, ValueError):
    """Execution levels cannot be rearranged like that without changing what a program means."""


class InternalError(TileError, RuntimeError):
    """tilenest broke one of its own rules; the user's program is not to blame."""

    def __init__(
        self, message: str, remedy: str | None = None, location: SourceLocation | None = None
    ) -> None:
        if remedy is None:
            remedy = (
                "this is a bug in tilenest: please report it to the project's issue tracker with "
                "the kernel's source, this message, and the versions of tilenest, Python, NumPy "
                "and llvmlite"
            )
        super().__init__(message, remedy, location)
