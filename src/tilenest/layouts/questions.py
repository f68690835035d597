"""The questions about layout maps, each PROVEN, DISPROVEN with a witness, or UNKNOWN.

In: layout maps, index sets, and how many points may be tried when nothing else decides (0: none).
Out: answers; what each question means is said at `formula.Formula`. First comes what the shape of
the maps shows at once: empty spaces, positions, equal normal forms. `deciding` does the rest.
UNKNOWN is never success: ask `answer.is_proven`.
"""

from __future__ import annotations

from tilenest.errors import ShapeError
from tilenest.layouts import enumeration
from tilenest.layouts.answers import Answer, proven
from tilenest.layouts.deciding import DEFAULT_BUDGET, STRUCTURE, Question, all_of, decide
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Formulas, outside
from tilenest.layouts.index_expr import Const, DimRef
from tilenest.layouts.kinds import check_kind, whole_numbers
from tilenest.layouts.layout_leaves import Recast
from tilenest.layouts.layout_map import (
    Compose,
    Identity,
    LayoutMap,
    Permute,
    Point,
    Product,
    Project,
    Values,
)
from tilenest.layouts.normal_form import normalise
from tilenest.layouts.spaces import MOST_EXTENT, Constraint, IndexSet, Space

_SMALL = 1 << 12
_MAP = "what the question is about"


def is_total(f: LayoutMap, on: IndexSet | None = None, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether the map is defined at every point of its domain, or of a set in it."""
    check_kind(f, LayoutMap, _MAP)
    points = IndexSet(f.domain) if on is None else on
    check_kind(points, IndexSet, "the set")
    _check_same_space("the set", points.space, "the map's domain", f.domain)
    if f.domain.size == 0 or _moves_positions(f):
        return proven(STRUCTURE, "the map is defined everywhere")
    formulas = _with_rest(f, points) if points.constraints else f.formulas()

    def by_parts() -> Answer | None:
        if isinstance(f, Compose):
            first = is_total(f.first, on, budget), is_bounded(f.first, budget)
            return all_of(*first, is_total(f.second, None, budget))
        if isinstance(f, Product) and not points.constraints:
            return all_of(is_total(f.left, None, budget), is_total(f.right, None, budget))
        return None

    question = Question(
        (f.domain,),
        f.n_nodes + points.n_nodes,
        _names(f.symbols, points.symbols),
        lambda engine: None if formulas is None else engine.is_total(formulas),
        by_parts,
        lambda values: enumeration.is_total(f, points, values),
        lambda w, values: points.holds(w[0], values) and f.apply(w[0], values) is None,
    )
    return decide(question, budget)


def is_bounded(f: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether every value lies in the codomain."""
    check_kind(f, LayoutMap, _MAP)
    if f.domain.size == 0 or _moves_positions(f):
        return proven(STRUCTURE, "coordinates stay in their extents")
    formulas = f.formulas()

    def by_parts() -> Answer | None:
        if isinstance(f, Compose):
            return all_of(is_bounded(f.second, budget))
        if isinstance(f, Product):
            return all_of(is_bounded(f.left, budget), is_bounded(f.right, budget))
        return None

    def is_broken(points: tuple[Point, ...], values: Values) -> bool:
        value = f.apply(points[0], values)
        return value is not None and not f.codomain.holds(value, values)

    question = Question(
        (f.domain,),
        f.n_nodes,
        f.symbols,
        lambda engine: None if formulas is None else engine.is_bounded(formulas),
        by_parts,
        lambda values: enumeration.is_bounded(f, values),
        is_broken,
    )
    return decide(question, budget)


def is_injective(f: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether no two different points have the same value."""
    check_kind(f, LayoutMap, _MAP)
    if f.domain.size in (0, 1) or isinstance(f, Identity | Permute | Recast):
        return proven(STRUCTURE, "no two points can meet")
    formulas = f.formulas()
    # More points than places: two of the first points meet, if their values are places.
    most = enumeration.points_within(budget, f.n_nodes)
    room = f.codomain.size
    few = None if room is None else Space.box(min(room + 1, MOST_EXTENT))
    is_crowded = room is not None and f.domain.size is not None and f.domain.size > room

    def by_parts() -> Answer | None:
        if isinstance(f, Compose):
            return all_of(is_injective(f.first, budget), is_injective(f.second, budget))
        if isinstance(f, Product):
            return all_of(is_injective(f.left, budget), is_injective(f.right, budget))
        return None

    def is_broken(points: tuple[Point, ...], values: Values) -> bool:
        first, second = (f.apply(point, values) for point in points)
        return points[0] != points[1] and first is not None and first == second

    question = Question(
        (f.domain,) if few is None or not is_crowded else (few,),
        f.n_nodes,
        f.symbols,
        lambda engine: None if formulas is None else engine.is_injective(formulas),
        by_parts,
        lambda values: enumeration.is_injective(f, values, most),
        is_broken,
    )
    return decide(question, budget)


def is_surjective(f: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether every point of the codomain is a value."""
    check_kind(f, LayoutMap, _MAP)
    if f.codomain.size == 0 or isinstance(f, Identity | Permute | Recast):
        return proven(STRUCTURE, "every place has its point")
    formulas = f.formulas()

    def by_parts() -> Answer | None:
        if isinstance(f, Compose):
            return all_of(is_surjective(f.first, budget), is_surjective(f.second, budget))
        if isinstance(f, Product):
            return all_of(is_surjective(f.left, budget), is_surjective(f.right, budget))
        return None

    question = Question(
        (f.domain,),
        f.n_nodes,
        f.symbols,
        lambda engine: None if formulas is None else engine.is_surjective(formulas),
        by_parts,
        # The first place without a point comes after at most as many places as there are points.
        lambda values: enumeration.covers(f, f.codomain.points(values), values),
        lambda w, values: _is_missed(f, IndexSet(f.codomain), w[0], values),
    )
    return decide(question, budget)


def covers(f: LayoutMap, wanted: IndexSet, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether every point of a set in the codomain is a value."""
    check_kind(f, LayoutMap, _MAP)
    check_kind(wanted, IndexSet, "the set")
    _check_same_space("the set", wanted.space, "the map's codomain", f.codomain)
    if wanted.space.size == 0:
        return proven(STRUCTURE, "the set is empty")
    if is_surjective(f, 0).is_proven:
        return proven(STRUCTURE, "every point of the codomain is a value")
    formulas = f.formulas()
    question = Question(
        (f.domain, f.codomain),
        f.n_nodes + wanted.n_nodes,
        _names(f.symbols, wanted.symbols),
        lambda engine: None if formulas is None else engine.covers(formulas, wanted),
        lambda: None,
        lambda values: enumeration.covers(f, wanted.points(values), values),
        lambda w, values: _is_missed(f, wanted, w[0], values),
    )
    return decide(question, budget)


def image_contains(f: LayoutMap, place: Point, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether a point of the codomain is a value."""
    check_kind(f, LayoutMap, _MAP)
    place = whole_numbers(place, "a place")
    ends = zip(place, f.codomain.extents, strict=False)
    if any(x < 0 or (isinstance(n, int) and x >= n) for x, n in ends):
        raise ShapeError(
            f"{place} is no point of {f.codomain}",
            remedy="ask about places in the codomain; `image_points` lists the others as well",
        )
    formulas = f.formulas()
    wanted = point_set(f.codomain, place)
    question = Question(
        (f.domain,),
        f.n_nodes,
        f.symbols,
        lambda engine: None if formulas is None else engine.covers(formulas, wanted),
        lambda: None,
        lambda values: enumeration.covers(f, [place], values),
        lambda w, values: _is_missed(f, wanted, w[0], values),
    )
    return decide(question, budget)


def equal(f: LayoutMap, g: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether two maps between the same spaces are defined at the same points and agree there."""
    check_kind(f, LayoutMap, _MAP)
    check_kind(g, LayoutMap, _MAP)
    _check_same_space("one map's domain", f.domain, "the other's", g.domain)
    _check_same_space("one map's codomain", f.codomain, "the other's", g.codomain)
    if f.domain.size == 0 or f == g or normalise(f) == normalise(g):
        return proven(STRUCTURE, "the maps have the same normal form")
    pair = f.formulas(), g.formulas()
    question = Question(
        (f.domain,),
        f.n_nodes + g.n_nodes,
        _names(f.symbols, g.symbols),
        lambda engine: (
            None if pair[0] is None or pair[1] is None else engine.equal(pair[0], pair[1])
        ),
        lambda: None,
        lambda values: enumeration.equal(f, g, values),
        lambda w, values: (
            f.domain.holds(w[0], values) and f.apply(w[0], values) != g.apply(w[0], values)
        ),
    )
    return decide(question, budget)


def are_disjoint(f: LayoutMap, g: LayoutMap, budget: int = DEFAULT_BUDGET) -> Answer:
    """Whether two maps into one space share no value."""
    check_kind(f, LayoutMap, _MAP)
    check_kind(g, LayoutMap, _MAP)
    _check_same_space("one map's codomain", f.codomain, "the other's", g.codomain)
    if 0 in (f.domain.size, g.domain.size):
        return proven(STRUCTURE, "one of the maps has no point")
    pair = f.formulas(), g.formulas()

    def is_broken(points: tuple[Point, ...], values: Values) -> bool:
        first, second = f.apply(points[0], values), g.apply(points[1], values)
        return first is not None and first == second

    question = Question(
        (f.domain, g.domain),
        f.n_nodes + g.n_nodes,
        _names(f.symbols, g.symbols),
        lambda engine: (
            None if pair[0] is None or pair[1] is None else engine.are_disjoint(pair[0], pair[1])
        ),
        lambda: None,
        lambda values: enumeration.are_disjoint(f, g, values),
        is_broken,
    )
    return decide(question, budget)


def point_set(space: Space, point: Point) -> IndexSet:
    """The set of one point."""
    check_kind(space, Space, "a space")
    place = whole_numbers(point, "a point")
    if len(place) != space.rank:
        raise ShapeError(
            f"a point of {len(place)} coordinates is none of {space}",
            remedy="give one coordinate an axis",
        )
    return IndexSet(
        space, tuple(Constraint(DimRef(i) - x, is_equality=True) for i, x in enumerate(place))
    )


def _moves_positions(f: LayoutMap) -> bool:
    return isinstance(f, Identity | Permute | Project | Recast)


def _with_rest(f: LayoutMap, points: IndexSet) -> Formulas | None:
    """Formulas that are total exactly if the map is on the set: elsewhere they give 0."""
    inside = f.restrict(points).formulas()
    if inside is None:
        return None
    zero = (Const(0),) * f.codomain.rank
    names = _names(f.domain.symbols, f.codomain.symbols)
    return inside + tuple(Formula(part, f.codomain, zero, names) for part in outside(points))


def _is_missed(f: LayoutMap, wanted: IndexSet, place: Point, values: Values) -> bool:
    """Whether a place belongs to a set and, where that can be tried, is no value."""
    if not wanted.holds(place, values):
        return False
    size = Space.box(*f.domain.shape(values)).size
    if size is None or size > _SMALL:
        return True
    return next(iter(enumeration.preimage(f, place.__eq__, values)), None) is None


def _names(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({name for group in groups for name in group}))


def _check_same_space(name: str, space: Space, other_name: str, other: Space) -> None:
    if space != other:
        raise ShapeError(
            f"{name} {space} is not {other_name} {other}",
            remedy="ask about maps and sets of the same axes and extents",
        )
