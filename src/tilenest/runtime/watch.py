"""Whether the names a kernel read outside itself still hold what they held, in a tenth of a
microsecond.

In: the free variables that capture recorded. Out: a `Watch`. Functions, modules and classes, which
equal only themselves, are compared all at once; anything else by identity, and only where that
differs by value. Objects other than those are not kept alive: one that dies takes the quick answer
out of use, so a recycled address is never mistaken for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

from tilenest.capture import FreeVariable

_EQUAL_ONLY_THEMSELVES = (FunctionType, BuiltinFunctionType, ModuleType)
_Namespace = Mapping[str, object]
_Reader = tuple[Callable[[_Namespace], tuple[object, ...]], _Namespace]


class Watch:
    """The free variables of one variant."""

    __slots__ = ("_cells", "_identities", "_others", "_plain", "_references", "_variables")

    def __init__(self, variables: Sequence[FreeVariable]) -> None:
        self._variables = tuple(variables)
        plain, others, cells = _sorted(variables)
        self._plain = [(reader, space, reader(space)) for reader, space in _readers(plain)]
        self._others = _readers(others)
        self._cells = cells
        self._references: list[weakref.ref[Any]] = []
        self._identities: list[int] | None = None
        self._remember()

    def holds(self) -> bool:
        """Whether every name still holds what capture read."""
        try:
            for reader, space, expected in self._plain:
                if reader(space) != expected:
                    return False
            if not self._others and not self._cells:
                return True
            return self._seen() == self._identities or self._holds_by_value()
        except (KeyError, ValueError):
            return False

    def _seen(self) -> list[int]:
        seen = [id(value) for reader, space in self._others for value in reader(space)]
        return seen + [id(cell.cell_contents) for cell in self._cells]

    def _holds_by_value(self) -> bool:
        if not all(variable.holds() for variable in self._variables):
            return False
        self._remember()
        return True

    def _remember(self) -> None:
        self._references = [
            weakref.ref(variable.current(), self._forget)
            for variable in self._variables
            if variable.is_weak
        ]
        try:
            self._identities = self._seen()
        except (KeyError, ValueError):
            self._identities = None

    def _forget(self, _: weakref.ref[Any]) -> None:
        self._identities = None


def _sorted(
    variables: Iterable[FreeVariable],
) -> tuple[list[FreeVariable], list[FreeVariable], list[CellType]]:
    """Those that equal only themselves, the other ones, and the cells of closures."""
    plain: list[FreeVariable] = []
    others: list[FreeVariable] = []
    cells: list[CellType] = []
    for variable in variables:
        if isinstance(variable.place, CellType):
            cells.append(variable.place)
        elif isinstance(variable.current(), _EQUAL_ONLY_THEMSELVES) and variable.holds():
            plain.append(variable)
        else:
            others.append(variable)
    return plain, others, cells


def _readers(variables: Sequence[FreeVariable]) -> list[_Reader]:
    """One a namespace, reading all its names at once."""
    names: dict[int, tuple[_Namespace, list[str]]] = {}
    for variable in variables:
        space = vars(variable.place) if isinstance(variable.place, ModuleType) else variable.place
        assert isinstance(space, Mapping)
        names.setdefault(id(space), (space, []))[1].append(variable.name)
    # A getter of one name gives no tuple, so the first is read twice.
    return [(itemgetter(*listed, listed[0]), space) for space, listed in names.values()]
