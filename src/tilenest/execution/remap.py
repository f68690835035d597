"""An execution structure rearranged: which old instance each new one is.

In: two structures and, for each point of the new one, the point of the old one that runs there.
Out: a frozen remap. The map `tau` goes from new to old, on the new instances that are active, so a
tail is a predicate and not an error. Nothing here says that a remap is legal: `check` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilenest.errors import RemapError
from tilenest.execution.levels import ExecStructure, renamed
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    Expressions,
    Formula,
    IndexExpr,
    IndexSet,
    Interval,
    LayoutMap,
    Space,
    Sym,
    check_kind,
    simplify,
)
from tilenest.records import record


@record
class ExecRemap:
    """`tau` takes the instances of `new` in `active` to those of `old`, which all have to run."""

    old: ExecStructure
    new: ExecStructure
    tau: LayoutMap
    active: IndexSet
    provenance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        old = {entry.name: entry for entry in self.old.definitions}
        names = set(self.old.symbols)
        for entry in self.new.definitions:
            # It would say of the old levels what nobody has shown.
            if entry.name in names and old.get(entry.name) != entry:
                raise RemapError(
                    f"the remap ({self}) defines {entry.name}, a name of the old levels {self.old}",
                    remedy="define only names that the old levels do not use",
                )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every name that the structures, the map and the sets use, sorted."""
        used = (self.old, self.new, self.tau, self.active)
        return tuple(sorted({name for part in used for name in part.symbols}))

    @property
    def formula(self) -> Formula:
        """`tau` where it is active and the definitions hold, over all `symbols`."""
        names = self.symbols
        found = formula_over(self.tau, names)
        if found is None:
            raise RemapError(
                f"the remap ({self}) is not one formula: {self.tau}",
                remedy="give the old coordinates as formulas over the new ones",
            )
        own = found.domain.constraints + _constraints_in(self.active, names)
        active = dict.fromkeys((*self.laws, *own))
        domain = IndexSet(self.new.space, tuple(active), names)
        return Formula(domain, self.old.space, found.results, names)

    @property
    def traced(self) -> tuple[IndexExpr, ...]:
        """The results of `formula`, in which a coordinate of one instance may still stand: they say
        which new levels an old coordinate went into."""
        tau = self.tau
        if not isinstance(tau, Expressions):
            return self.formula.results
        rank = self.new.depth
        return tuple(renamed(r, tau.symbols, self.symbols, rank) for r in tau.results)

    @property
    def wanted(self) -> IndexSet:
        """The old instances, where the definitions hold, over all `symbols`."""
        return IndexSet(self.old.space, self.laws, self.symbols)

    @property
    def laws(self) -> tuple[Constraint, ...]:
        """What holds of the names, over all `symbols`."""
        return _laws_of(self.symbols, self.old, self.new)

    def apply(
        self, point: tuple[int, ...], given: Mapping[str, int] | None = None
    ) -> tuple[int, ...] | None:
        """The old instance that runs at a new one; None where none does."""
        values = self.old.values(self.new.values({} if given is None else given))
        return self.tau.apply(point, values) if self.active.holds(point, values) else None

    def __str__(self) -> str:
        return "; ".join(self.provenance) or "identity"


def remap_of(
    old: ExecStructure,
    new: ExecStructure,
    results: Iterable[IndexExpr],
    predicates: Iterable[Constraint] = (),
    provenance: Iterable[str] = (),
) -> ExecRemap:
    """A remap of all of `old`, by formulas over the coordinates of `new` and over `names_of`.
    Raises a `RemapError` where `new` defines a name that `old` uses."""
    names = names_of(old, new)
    simple = tuple(_traced(result, new.space) for result in results)
    return ExecRemap(
        old,
        new,
        Expressions(new.space, old.space, simple, names),
        IndexSet(
            new.space,
            tuple(
                Constraint(simplified(p.expression, new.space), p.is_equality) for p in predicates
            ),
            names,
        ),
        tuple(provenance),
    )


def formula_over(layout: LayoutMap, names: tuple[str, ...]) -> Formula | None:
    """A map as one formula whose symbols are these names, the map's own among them; None where it
    is no formula, or more than one."""
    pieces = layout.formulas()
    if pieces is None or len(pieces) != 1:
        return None
    (piece,) = pieces
    domain = IndexSet(layout.domain, _constraints_in(piece.domain, names), names)
    rank = layout.domain.rank
    results = tuple(renamed(r, piece.symbols, names, rank) for r in piece.results)
    return Formula(domain, layout.codomain, results, names)


def names_of(*structures: ExecStructure) -> tuple[str, ...]:
    """The names that structures use, sorted."""
    return tuple(sorted({name for structure in structures for name in structure.symbols}))


def extent_in(extent: int | str, names: tuple[str, ...]) -> IndexExpr:
    """An extent as a formula over names."""
    return Const(extent) if isinstance(extent, int) else Sym(names.index(extent))


def identity(structure: ExecStructure) -> ExecRemap:
    """The remap that changes nothing."""
    check_kind(structure, ExecStructure, "what is rearranged")
    return remap_of(structure, structure, map(DimRef, range(structure.depth)))


def compose(first: ExecRemap, second: ExecRemap) -> ExecRemap:
    """One remap that does the first and then the second. Raises a `RemapError` where the second
    begins at other levels, or defines a name that the first one's old levels use."""
    check_kind(first, ExecRemap, "the first remap")
    check_kind(second, ExecRemap, "the second remap")
    if first.new != second.old:
        raise RemapError(
            f"the remap {second} begins at other levels than the remap {first} ends with",
            remedy="make the second remap from the first one's `new`",
        )
    inner, outer = second.formula, first.formula
    names = tuple(sorted({*inner.symbols, *outer.symbols}))
    middle, last = first.new.depth, second.new.depth
    keep = [Sym(place) for place in range(len(names))]

    def pulled_back(expression: IndexExpr, results: Sequence[IndexExpr]) -> IndexExpr:
        steps = [renamed(result, inner.symbols, names, last) for result in results]
        return renamed(expression, outer.symbols, names, middle).substitute(steps, keep)

    active = dict.fromkeys(_constraints_in(inner.domain, names))
    active |= dict.fromkeys(
        Constraint(
            simplified(pulled_back(c.expression, inner.results), second.new.space), c.is_equality
        )
        for c in outer.domain.constraints
    )
    # What holds of the names without saying needs no predicate.
    laws = {*_laws_of(names, first.old, second.new), *_extents_over(names, second.old)}
    traced = second.traced
    results = tuple(_traced(pulled_back(r, traced), second.new.space) for r in first.traced)
    return ExecRemap(
        first.old,
        second.new,
        Expressions(second.new.space, first.old.space, results, names),
        IndexSet(second.new.space, tuple(c for c in active if c not in laws), names),
        first.provenance + second.provenance,
    )


def _laws_of(names: tuple[str, ...], *structures: ExecStructure) -> tuple[Constraint, ...]:
    """What definitions say, and that no extent is negative."""
    said = [law for structure in structures for law in structure.laws_over(names)]
    return tuple(dict.fromkeys((*said, *_extents_over(names, *structures))))


def _extents_over(names: tuple[str, ...], *structures: ExecStructure) -> tuple[Constraint, ...]:
    """That no extent is negative."""
    extents = {name for structure in structures for name in structure.space.symbols}
    return tuple(Constraint(Sym(names.index(name))) for name in sorted(extents))


def _constraints_in(points: IndexSet, names: tuple[str, ...]) -> tuple[Constraint, ...]:
    """The constraints of a set, over other names."""
    return tuple(
        Constraint(renamed(c.expression, points.symbols, names, points.space.rank), c.is_equality)
        for c in points.constraints
    )


def simplified(expression: IndexExpr, space: Space) -> IndexExpr:
    """A formula of equal value in a space that is not empty."""
    return expression if space.size == 0 else simplify(expression, box_ranges(space))


def _traced(expression: IndexExpr, space: Space) -> IndexExpr:
    """A formula simplified, but that a coordinate of one instance is not taken for 0."""
    wider: dict[DimRef | Sym, Interval] = {
        place: (0, max(last, 1)) for place, (_, last) in box_ranges(space).items()
    }
    return expression if space.size == 0 else simplify(expression, wider)


def box_ranges(space: Space) -> dict[DimRef | Sym, Interval]:
    """What the known extents of a space, none of them 0, say of its coordinates."""
    return {
        DimRef(place): (0, extent - 1)
        for place, extent in enumerate(space.extents)
        if isinstance(extent, int)
    }
