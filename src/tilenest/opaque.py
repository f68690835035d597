"""Objects that are no numbers and no containers: whatever would use them as such is refused.

In: a class of what a program holds, and the error that says what to write instead. Out: the class
with every operator, comparison, conversion and subscript of Python raising that error. An operator
that is missing would end in a TypeError of Python's own, which knows neither the thing nor a
remedy; comparisons for equality would be answered, and a program would take the answer. `is` and
keys of dicts go by identity. What a class defines itself stays.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import ismemberdescriptor
from typing import Any, Never

from tilenest.errors import MissingAttributeError, TileError

_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_OTHERS = """
    eq ne lt le gt ge neg pos abs invert round trunc floor ceil index int float complex
    len iter next reversed contains getitem setitem delitem call array enter exit
"""


class Opaque:
    """The base of such a class, which says what its misuse is."""

    __slots__ = ()
    __hash__ = object.__hash__

    def _misuse(self) -> TileError:
        """The error of whoever computes with it."""
        raise NotImplementedError

    def __array_ufunc__(self, function: Any, method: str, *_: object, **__: object) -> object:
        """What NumPy's functions call, and its operators with one of its values on the left."""
        raise self._misuse()

    def __format__(self, spec: str) -> str:
        """A text, which has no digits to choose."""
        if spec:
            raise self._misuse()
        return str(self)

    def __bool__(self) -> bool:
        # Without it Python would ask for a length.
        return True


def _refusal(name: str) -> Callable[..., Never]:
    def refuse(self: Opaque, *_: object, **__: object) -> Never:
        raise self._misuse()

    refuse.__name__ = refuse.__qualname__ = f"__{name}__"
    return refuse


def _missing(self: Opaque, name: str) -> Never:
    """What Python asks for an attribute that is not there."""
    kind = type(self)
    names = [other for other in dir(kind) if not other.startswith("_")]
    # Slots are how a class does its work, unless they are all that it has.
    public = [other for other in names if not ismemberdescriptor(getattr(kind, other))]
    known = ", ".join(public or names)
    raise MissingAttributeError(
        f"a {kind.__name__} has no attribute {name!r}", remedy=f"it has {known}"
    )


_methods: dict[str, Callable[..., Never]] = {"getattr": _missing}
_methods |= {name: _refusal(name) for name in _OTHERS.split()}
_methods |= {f"{side}{name}": _refusal(name) for name in _BINARY.split() for side in ("", "r")}
for _name, _method in _methods.items():
    # Type checkers do not see them, so they refuse the same.
    setattr(Opaque, f"__{_name}__", _method)
