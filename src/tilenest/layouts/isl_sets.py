"""isl's side of the isl engine: contexts, budgets, translated maps, and sample points.

In: formulas and index sets. Out: isl maps and sets, each translated once a thread, and witnesses
out of isl sets. A context of isl belongs to one thread, so each thread has its own with its own
translations; every question starts with a fresh budget of isl's steps and ends when it is spent.
A step costs what its rows are long: the more coordinates and the longer numbers, the fewer steps.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import operands_of
from tilenest.layouts.index_expr import Const, IndexExpr
from tilenest.layouts.isl_text import NotQuasiAffineError, map_text, parameter, set_text
from tilenest.layouts.spaces import MOST_EXTENT, IndexSet, Space

# Sets and maps of isl, whose module is loaded with the first question.
IslSet = Any
IslMap = Any
ResultT = TypeVar("ResultT")

_MOST_STEPS = 100_000
# isl does some work that it counts no steps for, which explodes with the number of coordinates.
_MOST_COORDINATES = 24
_MOST_ELIMINATED = 6
_WORD, _SHORT = 24, 8
# So many numbers in rows before a step counts for more.
_WIDEST_ROWS = 32768
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
        self.weight = 1

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
        self.weight = max(self.weight, _weight(source))
        self.allow(_MOST_STEPS // self.weight)
        return result

    def allow(self, steps: int) -> None:
        """Lets isl take so many steps from here on; 0 for any number."""
        self.context.reset_operations()
        self.context.set_max_operations(steps)

    def _translate(self, source: Formula | IndexSet) -> Any:
        """Reading takes many steps, all of them cheap, which are not the question's."""
        self.allow(_MOST_STEPS)
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
    translator.weight = 1
    translator.allow(_MOST_STEPS)
    try:
        return question()
    except translator.isl.Error as error:
        raise BudgetError(f"isl gave up within {_MOST_STEPS // translator.weight} steps") from error
    finally:
        translator.allow(0)


def _weight(source: Formula | IndexSet) -> int:
    """How many times as long a step takes as for one coordinate and short numbers."""
    if isinstance(source, Formula):
        rank, exprs = source.domain.space.rank, source.results
    else:
        rank = source.space.rank
        exprs = tuple(constraint.expression for constraint in source.constraints)
    numbers = _numbers(exprs)
    if _are_digits(numbers):
        return 1
    # Points of maps are asked about in pairs.
    if rank * (2 if isinstance(source, Formula) else 1) > _MOST_COORDINATES:
        raise BudgetError(f"isl is asked about at most {_MOST_COORDINATES} coordinates")
    return max(rank, 1) * (max(numbers, default=0).bit_length() // _WORD + 1)


def _numbers(exprs: Iterable[IndexExpr]) -> set[int]:
    """The sizes of all numbers but 0 in formulas."""
    found: set[int] = set()
    for expr in exprs:
        found |= {abs(expr.value)} if isinstance(expr, Const) else _numbers(operands_of(expr))
    return found - {0}


def _are_digits(numbers: Iterable[int]) -> bool:
    """Whether each number is a multiple of the one before, as strides of digits are; isl solves
    such formulas one coordinate after the other."""
    return all(large % small == 0 for small, large in pairwise(sorted(numbers)))


def kinds() -> Any:
    """isl's names of parameters, coordinates and divisions."""
    return _translator().isl.dim_type


def isl_map(formulas: Sequence[Formula]) -> IslMap:
    """The union of the pieces, or NotQuasiAffineError."""
    result = _translator().translated(formulas[0])
    for formula in formulas[1:]:
        result = result.union(_translator().translated(formula))
    return result


def isl_range(formulas: Sequence[Formula]) -> IslSet:
    """The values of a map, unless many coordinates have to be eliminated with long strides that do
    not divide each other."""
    for formula in formulas:
        numbers = _numbers(formula.results)
        is_easy = _are_digits(numbers) or max(numbers).bit_length() <= _SHORT
        if formula.domain.space.rank > _MOST_ELIMINATED and not is_easy:
            raise BudgetError(f"isl eliminates at most {_MOST_ELIMINATED} coordinates")
    return isl_map(formulas).range()


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


def least_values(
    names: Sequence[str], conditions: Sequence[str], forms: Sequence[str]
) -> list[int | None] | None:
    """The least values that linear forms have where integers of these names meet conditions, None
    for one without a least; None in place of all where no integers meet them."""
    translator = _translator()
    translator.weight = len(names) * len(conditions) // _WIDEST_ROWS + 1
    translator.allow(_MOST_STEPS // translator.weight)
    point = f"[{', '.join(names)}]"
    text = f"{{ {point} : {' and '.join(conditions) or 'true'} }}"
    points = translator.isl.Set.read_from_str(translator.context, text)
    if points.is_empty():
        return None
    aims = [
        translator.isl.Aff.read_from_str(translator.context, f"{{ {point} -> [{form}] }}")
        for form in forms
    ]
    leasts = [points.min_val(aim) for aim in aims]
    translator.allow(0)
    return [int(least.to_python()) if least.is_int() else None for least in leasts]


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
    # What is left is to read it: a number that isl has no steps left to write would be no number.
    _translator().allow(0)
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
