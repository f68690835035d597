"""isl's side of the isl engine: contexts, budgets, translated maps, and sample points.

In: formulas and index sets. Out: isl maps and sets, each translated once a thread, and witnesses
out of isl sets. A context of isl belongs to one thread, so each thread has its own with its own
translations; every question starts with a fresh budget of isl's steps and ends when it is spent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeVar

from tilenest.layouts.formula import Formula
from tilenest.layouts.isl_text import NotQuasiAffineError, map_text, parameter, set_text
from tilenest.layouts.spaces import MOST_EXTENT, IndexSet, Space

# Sets and maps of isl, whose module is loaded with the first question.
IslSet = Any
IslMap = Any
ResultT = TypeVar("ResultT")

_MOST_STEPS = 100_000
_MOST_TRANSLATIONS = 512
_SMALL = 64


class BudgetError(Exception):
    """isl ran out of steps, or refused the question."""


class _Translator:
    """One thread's context, and the maps and sets it has translated; None where it could not."""

    def __init__(self) -> None:
        self.isl = _import_islpy()
        self.context = self.isl.Context()
        self.known: OrderedDict[Formula | IndexSet, Any] = OrderedDict()

    def translated(self, source: Formula | IndexSet) -> Any:
        if source in self.known:
            self.known.move_to_end(source)
        else:
            self.known[source] = self._translate(source)
            if len(self.known) > _MOST_TRANSLATIONS:
                self.known.popitem(last=False)
        result = self.known[source]
        if result is None:
            raise NotQuasiAffineError
        return result

    def _translate(self, source: Formula | IndexSet) -> Any:
        try:
            if isinstance(source, Formula):
                return self.isl.Map.read_from_str(self.context, map_text(source))
            return self.isl.Set.read_from_str(self.context, set_text(source))
        except NotQuasiAffineError:
            return None


_THREAD = threading.local()


def _translator() -> _Translator:
    found: _Translator | None = getattr(_THREAD, "translator", None)
    if found is None:
        found = _THREAD.translator = _Translator()
    return found


def within_budget(question: Callable[[], ResultT]) -> ResultT:
    """The answer to a question, or BudgetError when it takes isl too long."""
    translator = _translator()
    translator.context.reset_operations()
    translator.context.set_max_operations(_MOST_STEPS)
    try:
        return question()
    except translator.isl.Error as error:
        raise BudgetError(f"isl gave up within {_MOST_STEPS} steps") from error
    finally:
        translator.context.set_max_operations(0)


def kinds() -> Any:
    """isl's names of parameters, coordinates and divisions."""
    return _translator().isl.dim_type


def isl_map(formulas: Sequence[Formula]) -> IslMap:
    """The union of the pieces, or NotQuasiAffineError."""
    result = _translator().translated(formulas[0])
    for formula in formulas[1:]:
        result = result.union(_translator().translated(formula))
    return result


def isl_set(index_set: IndexSet) -> IslSet:
    """A set, or NotQuasiAffineError."""
    return _translator().translated(index_set)


def isl_box(space: Space) -> IslSet:
    """All points of a space."""
    return isl_set(IndexSet(space))


def ascending_pairs(points: IslSet) -> IslMap:
    """The pairs of points of a set in ascending lexicographic order."""
    return _translator().isl.Map.lex_lt(points.get_space())


def not_ascending_pairs(points: IslSet) -> IslMap:
    """The pairs of points that are equal or in descending lexicographic order."""
    return _translator().isl.Map.lex_ge(points.get_space())


def sample(
    violations: IslSet, names: Sequence[str], extents: Container[str]
) -> tuple[tuple[int, ...], dict[str, int]] | None:
    """A point of a set and values of the symbols, small where that is easy; None without one.

    Extents known at run time lie in [0, 2**63), other symbols in signed 64 bits.
    """
    if violations.is_empty():
        return None
    if names:
        small = violations.intersect_params(_symbol_box(names, extents, _SMALL))
        if not small.is_empty():
            violations = small
        else:
            violations = violations.intersect_params(_symbol_box(names, extents, MOST_EXTENT))
            if violations.is_empty():
                return None
    point = violations.sample_point()
    kind = kinds()
    rank = violations.dim(kind.set)
    place = {point.get_space().get_dim_name(kind.param, at): at for at in range(len(names))}
    coordinates = tuple(
        int(point.get_coordinate_val(kind.set, at).to_python()) for at in range(rank)
    )
    values = {
        name: int(point.get_coordinate_val(kind.param, place[parameter(name)]).to_python())
        for name in names
    }
    return coordinates, values


def _symbol_box(names: Sequence[str], extents: Container[str], end: int) -> IslSet:
    """The values below `end` that symbols may have; an extent is never negative."""
    conditions = [
        f"{0 if name in extents else -end} <= {parameter(name)} < {end}" for name in names
    ]
    text = f"[{', '.join(map(parameter, names))}] -> {{ : {' and '.join(conditions)} }}"
    translator = _translator()
    return translator.isl.Set.read_from_str(translator.context, text)


def _import_islpy() -> Any:
    import islpy

    return islpy
