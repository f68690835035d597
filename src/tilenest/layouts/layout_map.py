"""Layout maps: partial functions between spaces, and the nodes that join them.

In: spaces, and maps between them. Out: frozen maps, compared by value. A map is *undefined* at a
point outside its domain, at one that its sets leave out, and where a result leaves signed 64 bits;
what it gives may still lie outside its codomain, which is a question (`questions.is_bounded`) and
never checked on the way. Here are the nodes built from other maps or from positions; those with
numbers of their own are in `layout_leaves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from tilenest.errors import ShapeError
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import (
    Formulas,
    chosen,
    composed,
    merged_symbols,
    plain_formula,
    side_by_side,
)
from tilenest.layouts.index_expr import DimRef
from tilenest.layouts.kinds import MOST_NESTED, check_kind, tuple_of, whole_numbers
from tilenest.layouts.spaces import IndexSet, Space
from tilenest.records import record

Point = tuple[int, ...]
Values = Mapping[str, int]
INT64 = range(-(1 << 63), 1 << 63)
_set = object.__setattr__


class LayoutMap:
    """A partial function from the points of `domain` to points of `codomain`."""

    __slots__ = ("_n_nodes", "_nesting")

    @property
    def domain(self) -> Space:
        raise NotImplementedError

    @property
    def codomain(self) -> Space:
        raise NotImplementedError

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the run-time numbers the map depends on, sorted."""
        return merged_symbols(self.domain.symbols, self.codomain.symbols)

    @property
    def n_nodes(self) -> int:
        """How much work the value at a point is: the nodes of the formulas on the way."""
        return getattr(self, "_n_nodes", 1)

    def apply(self, point: Sequence[int], values: Values | None = None) -> Point | None:
        """Where a point goes, in unbounded integers on the way; None where undefined."""
        given = {} if values is None else values
        place = whole_numbers(point, "a point")
        if not self.domain.holds(place, given):
            return None
        result = self.value(place, given)
        return result if result is None or all(part in INT64 for part in result) else None

    def value(self, point: Point, values: Values) -> Point | None:
        """Where a point of the domain goes, unchecked."""
        raise NotImplementedError

    def formulas(self) -> Formulas | None:
        """The map as formulas with disjoint domains, or None when only values are known."""
        return _known_formulas(self)

    def build_formulas(self) -> Formulas | None:
        """The formulas, made anew."""
        raise NotImplementedError

    def then(self, other: LayoutMap) -> LayoutMap:
        """This map, and `other` on what it gives: `other` starts where this one ends."""
        return Compose(self, other)

    def product(self, other: LayoutMap) -> LayoutMap:
        """Both maps, each on its own coordinates."""
        return Product(self, other)

    def project(self, kept: Sequence[int]) -> LayoutMap:
        """This map with these result coordinates only, in this order."""
        return Compose(self, Project(self.codomain, whole_numbers(kept, "the kept positions")))

    def permute(self, order: Sequence[int]) -> LayoutMap:
        """This map with its results in another order: result i is the old result `order[i]`."""
        return Compose(self, Permute(self.codomain, whole_numbers(order, "the order of positions")))

    def restrict(self, index_set: IndexSet) -> LayoutMap:
        """This map where the set holds, undefined elsewhere."""
        return Piecewise(self.domain, self.codomain, ((index_set, self),))


@record
class Identity(LayoutMap):
    """Every point goes to itself."""

    domain: Space

    def __post_init__(self) -> None:
        check_kind(self.domain, Space, "the domain of a map")

    @property
    def codomain(self) -> Space:
        return self.domain

    def value(self, point: Point, _values: Values) -> Point:
        return point

    def build_formulas(self) -> Formulas:
        return (_selection(self.domain, self.domain, range(self.domain.rank)),)

    def __str__(self) -> str:
        return f"identity({self.domain})"


@record
class Compose(LayoutMap):
    """`second` after `first`; undefined where `first` leaves the domain of `second`."""

    first: LayoutMap
    second: LayoutMap

    def __post_init__(self) -> None:
        check_kind(self.first, LayoutMap, "the first of two maps")
        check_kind(self.second, LayoutMap, "the second of two maps")
        _nest(self, self.first, self.second)
        if self.first.codomain != self.second.domain:
            raise ShapeError(
                f"a map into {self.first.codomain} cannot be followed by one from "
                f"{self.second.domain}",
                remedy="put a recast between them, or give both the same axes and extents",
            )

    @property
    def domain(self) -> Space:
        return self.first.domain

    @property
    def codomain(self) -> Space:
        return self.second.codomain

    @property
    def symbols(self) -> tuple[str, ...]:
        return merged_symbols(self.first.symbols, self.second.symbols)

    def value(self, point: Point, values: Values) -> Point | None:
        middle = self.first.apply(point, values)
        return None if middle is None else self.second.apply(middle, values)

    def build_formulas(self) -> Formulas | None:
        return composed(self.first.formulas(), self.second.formulas())

    def __str__(self) -> str:
        return f"compose({self.first}, {self.second})"


@record
class Product(LayoutMap):
    """Two maps side by side: the axes of `left`, then those of `right`."""

    left: LayoutMap
    right: LayoutMap

    def __post_init__(self) -> None:
        check_kind(self.left, LayoutMap, "the first of two maps")
        check_kind(self.right, LayoutMap, "the second of two maps")
        _nest(self, self.left, self.right)

    @property
    def domain(self) -> Space:
        return self.left.domain.product(self.right.domain)

    @property
    def codomain(self) -> Space:
        return self.left.codomain.product(self.right.codomain)

    @property
    def symbols(self) -> tuple[str, ...]:
        return merged_symbols(self.left.symbols, self.right.symbols)

    def value(self, point: Point, values: Values) -> Point | None:
        rank = self.left.domain.rank
        left = self.left.apply(point[:rank], values)
        right = self.right.apply(point[rank:], values)
        return None if left is None or right is None else left + right

    def build_formulas(self) -> Formulas | None:
        return side_by_side(self.left.formulas(), self.right.formulas())

    def __str__(self) -> str:
        return f"product({self.left}, {self.right})"


@record
class Project(LayoutMap):
    """The coordinates at these positions, in this order; the others are forgotten."""

    domain: Space
    kept: tuple[int, ...]

    def __post_init__(self) -> None:
        _set(self, "kept", _positions(self.domain, self.kept))

    @property
    def codomain(self) -> Space:
        return Space(tuple(self.domain.axes[place] for place in self.kept))

    def value(self, point: Point, _values: Values) -> Point:
        return tuple(point[place] for place in self.kept)

    def build_formulas(self) -> Formulas:
        return (_selection(self.domain, self.codomain, self.kept),)

    def __str__(self) -> str:
        return f"project({self.domain}, {tuple_text(self.kept)})"


@record
class Permute(LayoutMap):
    """All coordinates in another order: result i is coordinate `order[i]`."""

    domain: Space
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        _set(self, "order", _positions(self.domain, self.order))
        if len(self.order) != self.domain.rank:
            raise ShapeError(
                f"the order {tuple_text(self.order)} does not name every axis of {self.domain}",
                remedy="name each axis once, or use a projection to drop some",
            )

    @property
    def codomain(self) -> Space:
        return Space(tuple(self.domain.axes[place] for place in self.order))

    def value(self, point: Point, _values: Values) -> Point:
        return tuple(point[place] for place in self.order)

    def build_formulas(self) -> Formulas:
        return (_selection(self.domain, self.codomain, self.order),)

    def __str__(self) -> str:
        return f"permute({self.domain}, {tuple_text(self.order)})"


@record
class Piecewise(LayoutMap):
    """A choice: at a point, the map of the first set that holds it; undefined where none does.

    When the chosen map is undefined there, so is the choice: no later piece is tried.
    """

    domain: Space
    codomain: Space
    pieces: tuple[tuple[IndexSet, LayoutMap], ...]

    def __post_init__(self) -> None:
        check_spaces(self)
        pieces = tuple_of(self.pieces, tuple, "the pieces of a choice")
        _set(self, "pieces", pieces)
        for index_set, chosen_map in pieces:
            check_kind(index_set, IndexSet, "where a piece applies")
            check_kind(chosen_map, LayoutMap, "a piece of a choice")
            if {index_set.space, chosen_map.domain} != {self.domain}:
                raise ShapeError(
                    f"a piece from {index_set.space} and {chosen_map.domain} cannot stand in a "
                    f"choice from {self.domain}",
                    remedy="give every set and map of a choice the same domain",
                )
            if chosen_map.codomain != self.codomain:
                raise ShapeError(
                    f"a piece into {chosen_map.codomain} cannot stand in a choice into "
                    f"{self.codomain}",
                    remedy="give every map of a choice the same codomain",
                )
        _nest(self, *(chosen_map for _, chosen_map in pieces))
        _set(self, "_n_nodes", self.n_nodes + sum(index_set.n_nodes for index_set, _ in pieces))

    @property
    def symbols(self) -> tuple[str, ...]:
        own = (self.domain.symbols, self.codomain.symbols)
        return merged_symbols(*own, *(s.symbols + m.symbols for s, m in self.pieces))

    def value(self, point: Point, values: Values) -> Point | None:
        for index_set, chosen_map in self.pieces:
            if index_set.holds(point, values):
                return chosen_map.apply(point, values)
        return None

    def build_formulas(self) -> Formulas | None:
        # A choice without pieces is defined nowhere, and no formula says that.
        return chosen(self.domain, [(s, m.formulas()) for s, m in self.pieces]) or None

    def __str__(self) -> str:
        pieces = [f", {set_text(s)}: {m}" for s, m in self.pieces]
        return f"piecewise({self.domain} -> {self.codomain}{''.join(pieces)})"


@lru_cache(maxsize=1024)
def _known_formulas(layout: LayoutMap) -> Formulas | None:
    return layout.build_formulas()


def tuple_text(numbers: Sequence[object]) -> str:
    """Items in parentheses, without the comma Python puts behind a single one."""
    return f"({', '.join(map(str, numbers))})"


def set_text(index_set: IndexSet) -> str:
    """The constraints of a set whose space is known from its place."""
    named = f"with {' '.join(index_set.extra)} " if index_set.extra else ""
    return named + "{" + ", ".join(map(str, index_set.constraints)) + "}"


def _selection(domain: Space, codomain: Space, places: Sequence[int]) -> Formula:
    return plain_formula(domain, codomain, [DimRef(place) for place in places])


def _nest(layout: LayoutMap, *parts: LayoutMap) -> None:
    """Note how deep maps stand inside a map, up to a limit, and how much work they are."""
    nesting = 1 + max((getattr(part, "_nesting", 0) for part in parts), default=0)
    if nesting > MOST_NESTED:
        raise ShapeError(
            f"a map would have over {MOST_NESTED} maps inside one another",
            remedy="normalise the map on the way, or join its parts in pairs",
        )
    _set(layout, "_nesting", nesting)
    _set(layout, "_n_nodes", sum(part.n_nodes for part in parts))


def check_spaces(layout: LayoutMap) -> None:
    """A map goes between two spaces."""
    check_kind(layout.domain, Space, "the domain of a map")
    check_kind(layout.codomain, Space, "the codomain of a map")


def _positions(space: Space, given: Sequence[int]) -> tuple[int, ...]:
    """Different axes of a space."""
    check_kind(space, Space, "the domain of a map")
    places = whole_numbers(given, "the positions")
    if len(set(places)) != len(places) or not set(places) <= set(range(space.rank)):
        raise ShapeError(
            f"{tuple_text(places)} are no different axes of {space}",
            remedy=f"use each position from 0 to {space.rank - 1} at most once",
        )
    return places
