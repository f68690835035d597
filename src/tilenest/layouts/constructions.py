"""Sets and maps that answer for a layout map: image, preimage, fibres, inverse.

In: layout maps, index sets, a budget of points to try. Out: what was asked for, or None, and beside
it the answer that says whether it is exact. An inverse is partial: it is defined on the values that
lie in the codomain and nowhere else. Structure comes first, then formulas and engines, then trying
every point.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from tilenest.errors import ShapeError
from tilenest.layouts import enumeration
from tilenest.layouts.answers import Answer, proven, unknown
from tilenest.layouts.deciding import DEFAULT_BUDGET, STRUCTURE
from tilenest.layouts.engines import engines
from tilenest.layouts.formula_algebra import Formulas, Scope, merged_symbols
from tilenest.layouts.kinds import check_kind, whole_number, whole_numbers
from tilenest.layouts.layout_leaves import FiniteTable, Recast, Transform, Translate
from tilenest.layouts.layout_map import (
    Compose,
    Identity,
    LayoutMap,
    Permute,
    Point,
    Product,
    Values,
)
from tilenest.layouts.normal_form import from_formulas
from tilenest.layouts.questions import is_injective
from tilenest.layouts.spaces import IndexSet, Space, without_values

_MAP = "what is asked about"


def try_inverse(f: LayoutMap) -> LayoutMap | None:
    """The inverse that the shape of the map shows at once, or None."""
    check_kind(f, LayoutMap, _MAP)
    # An identity behind a map leaves out what lies outside.
    match f:
        case Identity():
            return f
        case Permute(domain, order):
            return Permute(f.codomain, tuple(order.index(i) for i in range(domain.rank)))
        case Recast(domain, codomain):
            return Recast(codomain, domain)
        case Transform(domain, codomain, registered, is_inverse):
            back = Transform(codomain, domain, registered, not is_inverse)
            return back.then(Identity(domain))
        case Translate(domain, codomain, offset):
            moved = Translate(codomain, domain, tuple(-x for x in offset))
            return moved.then(Identity(domain))
        case Compose(first, second):
            return _paired(try_inverse(second), try_inverse(first), Compose)
        case Product(left, right):
            return _paired(try_inverse(left), try_inverse(right), Product)
    return None


def _builders() -> tuple[ModuleType, ...]:
    """The engines that build maps and sets."""
    return engines().affine, engines().bits, engines().isl


def inverse(f: LayoutMap, budget: int = DEFAULT_BUDGET) -> tuple[LayoutMap | None, Answer]:
    """The inverse; where two points share a value, None and the disproof of injectivity."""
    found = try_inverse(f)
    if found is not None:
        return found, proven(STRUCTURE, "every step has its inverse")
    formulas = f.formulas()
    for engine in _builders() if formulas is not None else ():
        built = engine.inverse(formulas)
        if built is not None and built[0].is_proven and built[1]:
            return from_formulas(built[1]), built[0]
    answer = is_injective(f, budget)
    if answer.is_disproven:
        return None, answer
    by_parts = _inverse_of_parts(f, budget)
    if by_parts is not None:
        return by_parts, proven(STRUCTURE, "every part has its inverse")
    sizes, most = (f.domain.size, f.codomain.size), enumeration.points_within(budget, f.n_nodes)
    if f.symbols or any(size is None or size > most for size in sizes):
        return None, unknown("enumeration", f"{f.domain} or {f.codomain} has over {most} points")
    source = {f.apply(point): point for point in f.domain.points()}
    entries = tuple(source.get(place) for place in f.codomain.points())
    return FiniteTable(f.codomain, f.domain, entries), answer


def image(f: LayoutMap) -> tuple[tuple[IndexSet, ...] | None, Answer]:
    """The values in the codomain, as a union of sets."""
    check_kind(f, LayoutMap, _MAP)
    if f.domain.size == 0:
        return (), proven(STRUCTURE, "the map has no point")
    formulas = f.formulas()
    for engine in _builders() if formulas is not None else ():
        built = engine.image(formulas)
        if built is not None and built[0].is_proven:
            return built[1], built[0]
    return None, unknown("questions", "no engine builds the image of this map")


def preimage(f: LayoutMap, wanted: IndexSet) -> tuple[tuple[IndexSet, ...] | None, Answer]:
    """The points whose value lies in a set of the codomain, as a union of disjoint sets."""
    check_kind(f, LayoutMap, _MAP)
    check_kind(wanted, IndexSet, "the set")
    if wanted.space != f.codomain:
        raise ShapeError(
            f"the set {wanted} does not lie in {f.codomain}",
            remedy="ask for the preimage of a set in the map's codomain",
        )
    formulas = f.formulas()
    if formulas is None:
        return None, unknown("questions", "the map is only known by its values")
    try:
        return _pulled_back(formulas, wanted), proven("formulas", "the set, asked of the results")
    except ShapeError as error:
        return None, unknown("formulas", error.message)


def image_points(
    f: LayoutMap, values: Values | None = None, budget: int = DEFAULT_BUDGET
) -> tuple[frozenset[Point] | None, Answer]:
    """Every value of the map, those outside the codomain included."""
    check_kind(f, LayoutMap, _MAP)
    refusal = _refusal(f, values, budget)
    if refusal is not None:
        return None, refusal
    return enumeration.image(f, _given(values)), proven("enumeration", "every point was tried")


def preimage_points(
    f: LayoutMap,
    place: Sequence[int],
    values: Values | None = None,
    budget: int = DEFAULT_BUDGET,
) -> tuple[tuple[Point, ...] | None, Answer]:
    """The fibre of a place: every point that has it as its value, in row-major order."""
    check_kind(f, LayoutMap, _MAP)
    wanted, budget = whole_numbers(place, "a place"), whole_number(budget, "a budget of points")
    found = try_inverse(f)
    if found is not None and f.codomain.holds(wanted, values):
        source = found.apply(wanted, values)
        return () if source is None else (source,), proven(STRUCTURE, "by the inverse")
    formulas = f.formulas()
    built = None if formulas is None else engines().bits.fibre(formulas, wanted, budget)
    if built is not None and built[0].is_proven:
        return built[1], built[0]
    refusal = _refusal(f, values, budget)
    if refusal is not None:
        return None, refusal
    fibre = enumeration.preimage(f, wanted.__eq__, _given(values))
    return fibre, proven("enumeration", "every point was tried")


def _inverse_of_parts(f: LayoutMap, budget: int) -> LayoutMap | None:
    match f:
        case Compose(first, second):
            return _paired(inverse(second, budget)[0], inverse(first, budget)[0], Compose)
        case Product(left, right):
            return _paired(inverse(left, budget)[0], inverse(right, budget)[0], Product)
    return None


def _paired(
    first: LayoutMap | None, second: LayoutMap | None, kind: type[Compose | Product]
) -> LayoutMap | None:
    if first is None or second is None:
        return None
    try:
        return kind(first, second)
    except ShapeError:
        # The maps would stand too deep inside one another.
        return None


def _pulled_back(formulas: Formulas, wanted: IndexSet) -> tuple[IndexSet, ...]:
    sets: list[IndexSet] = []
    for formula in formulas:
        names = merged_symbols(formula.domain.symbols, formula.symbols, wanted.symbols)
        scope = Scope(formula.domain.space, names)
        results = [scope.respelled(result, formula.symbols) for result in formula.results]
        constraints = scope.respelled_constraints(formula.domain)
        constraints += scope.inside(results, formula.codomain)
        constraints += scope.respelled_constraints(wanted, results)
        sets.append(scope.set_of(constraints))
    return tuple(sets)


def _given(values: Values | None) -> Values:
    return {} if values is None else values


def _refusal(f: LayoutMap, values: Values | None, budget: int) -> Answer | None:
    missing = without_values(f.symbols, values)
    if missing:
        return unknown("enumeration", f"{', '.join(missing)} have no values")
    size = Space.box(*f.domain.shape(_given(values))).size
    most = enumeration.points_within(budget, f.n_nodes)
    if size is None or size > most:
        return unknown("enumeration", f"{f.domain} has over {most} points")
    return None
