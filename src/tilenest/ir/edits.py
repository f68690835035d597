"""What has changed: one `Edit` for every primitive change of a module.

In: what the rewriter and its builders do. Out: records for whoever listens. An edit is told when
its place can be seen: what goes away is told just before, all else after. Changes outside of
functions are nobody's business and make no edit.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

from tilenest.ir.contents import ModuleContents
from tilenest.ir.core import Block, Function, Operation, Region, Value
from tilenest.records import record


class EditKind(Enum):
    """What a primitive changes."""

    INSERTED = "inserted"
    """An operation, with all that hangs below, or a block (then no operation is named)."""
    ERASED = "erased"
    """The same goes away."""
    MOVED = "moved"
    """The same within one function; an edit for where it was and one for where it is."""
    OPERANDS = "operands"
    SUCCESSORS = "successors"
    DEFINITIONS = "definitions"
    """Results of an operation or arguments of a block, their number, order or types."""
    ATTRIBUTE = "attribute"
    """`detail` is its name."""
    FUNCTION = "function"
    """An attribute of the function, named by `detail`, or the function as a whole."""
    MODULE = "module"
    """The form or an attribute of the module."""
    LABEL = "label"
    """A name or a location: nothing that has a meaning."""


@record(eq=False)
class Edit:
    """One change: its kind, where it happens, and which attribute it is, or which operands went and
    came."""

    kind: EditKind
    module: ModuleContents | None
    function: Function | None
    block: Block | None
    operation: Operation | None
    detail: str | None = None
    values: tuple[Value, ...] = ()


class Listener(Protocol):
    """Whoever wants to know of edits."""

    @property
    def is_idle(self) -> bool:
        """True while edits would change nothing for it."""

    def edited(self, edit: Edit) -> None:
        """Hear of one edit."""

    def mark(self) -> Any:
        """What `restore` takes."""

    def restore(self, mark: Any) -> None:
        """Be as at the mark: the module is, too."""


def function_of(place: Block | Region | None) -> Function | None:
    """The function that a block or region is in."""
    region = place.parent if isinstance(place, Block) else place
    owner = None if region is None else region.parent
    return owner.parent_function if isinstance(owner, Operation) else owner
