"""The variables of a kernel: names of a frame and slots of lists, and the values inside them.

In: the frames that are being interpreted. Out: an `Environment`: every variable with what it
holds, which can be restored (to run a body again, or the other branch of an `if`) and compared.
A variable that holds a tuple stands for one value per leaf of the tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tilenest.capture.frames import Frame, Poison
from tilenest.capture.guards import is_package_module, is_same_constant
from tilenest.capture.reach import Reach, scopes_of
from tilenest.errors import CaptureError, shown
from tilenest.language import Element
from tilenest.layouts import namesakes_hint
from tilenest.records import record


@record
class NameVariable:
    """A local name of a frame."""

    frame: Frame
    name: str

    @property
    def label(self) -> str:
        return self.name

    def get(self) -> object:
        return self.frame.locals.get(self.name, UNDEFINED)

    def set(self, value: object) -> None:
        self.frame.locals[self.name] = value


@record
class SlotVariable:
    """One item of a list that exists before the construct."""

    items: list[object]
    index: int
    label: str

    def get(self) -> object:
        return self.items[self.index]

    def set(self, value: object) -> None:
        self.items[self.index] = value


Variable = NameVariable | SlotVariable
UNDEFINED = Poison(CaptureError, "a variable is undefined", "assign it first")


class Environment:
    """The variables that a construct in `frame` may change, and what they hold now."""

    __slots__ = ("_before", "_list_identities", "_lists", "_names", "_reach", "frame")

    def __init__(self, frame: Frame, frames: Sequence[Frame]) -> None:
        self.frame = frame.function_frame
        self._names = dict(self.frame.locals)
        self._lists = [(items, list(items), label) for items, label in _reachable_lists(frames)]
        self._list_identities = {id(items) for items, _, _ in self._lists}
        self._before = [
            value for scope in scopes_of([*frames, frame]) for value in scope.locals.values()
        ]
        self._reach = Reach()
        for items, values, _ in self._lists:
            self._reach.hold(items)
            self._before += values

    def check_change(self, value: object, node: ast.expr, keeps_length: bool) -> None:
        """Refuse to change what was there before the construct, which may run never or often. Slots
        of lists are variables."""
        is_carried = id(value) in self._list_identities
        if (is_carried and keeps_length) or not self._was_there(value):
            return
        what = f"{ast.unparse(node)!r}, a {type(value).__name__}"
        raise CaptureError(
            f"{what} from before it, is changed inside a run-time loop or `if`",
            remedy="give the list its full length before, and assign its slots inside"
            if is_carried
            else "use a variable or a slot of a list that has a name: those are carried out of it",
        )

    def collect(self) -> None:
        """Look at what was there, once."""
        while self._before:
            self._reach.add(self._before.pop())

    def _was_there(self, value: object) -> bool:
        if is_package_module(type(value).__module__):
            return False
        self.collect()
        return self._reach.has(value)

    def entries(self) -> Iterator[tuple[Variable, object]]:
        """Each variable with the value it had; one that was not defined has no entry."""
        for name, value in self._names.items():
            if not isinstance(value, Poison):
                yield NameVariable(self.frame, name), value
        for items, values, label in self._lists:
            for index, value in enumerate(values):
                yield SlotVariable(items, index, f"{label}[{index}]"), value

    def new_names(self) -> Iterator[str]:
        """Names that hold something now and did not when the environment was taken."""
        for name, value in self.frame.locals.items():
            before = self._names.get(name, UNDEFINED)
            if isinstance(before, Poison) and value is not before:
                yield name

    def restore(self) -> None:
        """Give every variable the value it had."""
        self.frame.locals.clear()
        self.frame.locals.update(self._names)
        for items, values, _ in self._lists:
            items[:] = values

    def check_lists(self, construct: str) -> None:
        """Lists must keep their length: a slot is a variable, a new slot has no former value."""
        for items, values, label in self._lists:
            if len(items) != len(values):
                raise CaptureError(
                    f"the list {label!r} changes its length from {len(values)} to {len(items)} "
                    f"inside {construct}",
                    remedy="give the list its full length before, and assign its slots inside",
                )


def _reachable_lists(frames: Sequence[Frame]) -> list[tuple[list[object], str]]:
    """Lists that interpreted code can reach through its names, each once."""
    found: dict[int, tuple[list[object], str]] = {}
    for scope in scopes_of(frames):
        for name, value in scope.locals.items():
            _collect_lists(value, name, found)
    return list(found.values())


def _collect_lists(value: object, label: str, found: dict[int, tuple[list[object], str]]) -> None:
    inner: Iterable[tuple[object, object]]
    if isinstance(value, list):
        if id(value) in found:
            return
        found[id(value)] = value, label
        inner = enumerate(value)
    elif isinstance(value, tuple):
        inner = enumerate(value)
    elif isinstance(value, dict):
        inner = value.items()
    else:
        return
    for key, item in inner:
        if isinstance(item, list | tuple | dict):
            _collect_lists(item, f"{label}[{shown(key)}]", found)


def leaves(value: object) -> list[object]:
    """The values a variable stands for: those inside a tuple, else the value itself."""
    if not isinstance(value, tuple):
        return [value]
    return [leaf for item in value for leaf in leaves(item)]


def rebuild(value: object, replacements: Iterator[object]) -> object:
    """`value` with its leaves replaced, in order."""
    if not isinstance(value, tuple):
        return next(replacements)
    items = [rebuild(item, replacements) for item in value]
    make: Callable[..., object] | None = getattr(type(value), "_make", None)
    return tuple(items) if make is None else make(items)


def same_structure(one: object, other: object) -> bool:
    """Whether two values are tuples of one nesting, or neither is a tuple."""
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return isinstance(one, tuple) is isinstance(other, tuple)
    return (
        type(one) is type(other)
        and len(one) == len(other)
        and all(same_structure(a, b) for a, b in zip(one, other, strict=True))
    )


def is_number(value: object) -> bool:
    """A host number, which can become a run-time scalar."""
    return isinstance(value, bool | int | float | np.bool_ | np.number)


def is_unchanged(before: object, after: object) -> bool:
    """Whether a leaf holds what it held."""
    if before is after:
        return True
    if isinstance(before, Element) and isinstance(after, Element):
        return before.value is after.value
    if is_number(before) or isinstance(before, str):
        return is_same_constant(before, after)
    return False


def namesakes(*values: object) -> str:
    """What a remedy adds where values have different dims of one label."""
    tiles = [value for value in values if isinstance(value, Element)]
    return namesakes_hint(dim for tile in tiles for dim in tile.dims)


def describe(value: object) -> str:
    """What a variable holds, for messages."""
    if isinstance(value, Element):
        shape = "x".join(str(extent) for extent in value.shape)
        noun = f"a tile of shape {shape}" if value.dims else "a scalar"
        labels = ", ".join(dim.label for dim in value.dims if dim.label)
        return f"{noun} of {value.dtype}" + (f" over {labels}" if labels else "")
    if is_number(value):
        return f"the number {shown(value)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, Poison):
        return "undefined"
    is_plain = value is None or isinstance(value, str)
    return shown(value) if is_plain else f"a {type(value).__name__}"
