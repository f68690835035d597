"""The laws of rearranged levels, asked of one prefix at a time.

In: a prefix of the new levels, one of the old levels, and the map between their instances. Out:
answers: every new instance stands for an old one, each once, none left out; no coordinate changes
its kind; what was ordered stays in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilenest.execution.levels import ExecLevel, PrefixCut
from tilenest.execution.pairs import Pairs, all_proven, holds_on, no_pair
from tilenest.execution.remap import ExecRemap, extent_in
from tilenest.layouts import (
    Answer,
    Const,
    Constraint,
    DimRef,
    Expressions,
    Formula,
    IndexExpr,
    IndexSet,
    LayoutMap,
    Sym,
    covers,
    is_injective,
)
from tilenest.records import record


@record
class CutMap:
    """The instances of a prefix of new levels, and which of an old prefix each one is."""

    old: tuple[ExecLevel, ...]
    new: tuple[ExecLevel, ...]
    formula: Formula
    wanted: IndexSet

    @property
    def active(self) -> IndexSet:
        """The new instances."""
        return self.formula.domain

    @property
    def layout(self) -> LayoutMap:
        """The map itself."""
        f = self.formula
        whole = Expressions(f.domain.space, f.codomain, f.results, f.symbols)
        return whole.restrict(f.domain) if f.domain.constraints else whole


def cut_map(remap: ExecRemap, whole: Formula, old_cut: PrefixCut, new_cut: PrefixCut) -> CutMap:
    """The map between two prefixes, as `whole` is where all deeper coordinates are 0."""
    names = whole.symbols
    results = tuple(
        at_origin(result, new_cut.depth, remap.new.depth, names)
        for result in whole.results[: old_cut.depth]
    )
    wanted = remap.old.active_set(remap.wanted, old_cut)
    active = remap.new.active_set(whole.domain, new_cut)
    return CutMap(
        remap.old.levels[: old_cut.depth],
        remap.new.levels[: new_cut.depth],
        Formula(active, wanted.space, results, names),
        wanted,
    )


def at_origin(expression: IndexExpr, depth: int, rank: int, symbols: tuple[str, ...]) -> IndexExpr:
    """A formula where the coordinates from `depth` on are 0."""
    dims = [DimRef(place) if place < depth else Const(0) for place in range(rank)]
    return expression.substitute(dims, [Sym(place) for place in range(len(symbols))])


def commutes(whole: Formula, cut: CutMap) -> Answer:
    """Whether the new prefix alone decides the old one, by the map of the cut."""
    answers = (
        holds_on(whole.domain, Constraint(result - part, True), "the prefix decides it")
        for result, part in zip(whole.results, cut.formula.results, strict=False)
        if result != part
    )
    return all_proven(answers, "the new prefix decides the old one")


def lands(cut: CutMap) -> Answer:
    """Whether every new instance stands for one of the old ones."""
    names, results = cut.formula.symbols, cut.formula.results
    claims = []
    for result, extent in zip(results, cut.wanted.space.extents, strict=True):
        claims += [Constraint(result), Constraint(extent_in(extent, names) - 1 - result)]
    keep = [Sym(place) for place in range(len(names))]
    claims += [
        Constraint(c.expression.substitute(results, keep), c.is_equality)
        for c in cut.wanted.constraints
    ]
    reason = "every new instance is an old one"
    return all_proven((holds_on(cut.active, claim, reason) for claim in claims), reason)


def is_once(cut: CutMap) -> Answer:
    """Whether no old instance runs twice."""
    return is_injective(cut.layout)


def reaches_all(cut: CutMap) -> Answer:
    """Whether no old instance is left out."""
    return covers(cut.layout, cut.wanted)


def keeps_kinds(cut: CutMap) -> Answer:
    """Whether the coordinates of each kind of level come from levels of that kind alone."""
    reason = "every coordinate comes from levels of its kind"
    answers = (
        no_pair(cut.active, family, (), result, reason)
        for result, family in zip(cut.formula.results, _families(cut), strict=True)
        if not result.used_dims() <= family
    )
    return all_proven(answers, reason)


def _families(cut: CutMap) -> Iterator[frozenset[int]]:
    for level in cut.old:
        yield frozenset(i for i, new in enumerate(cut.new) if new.family == level.family)


def keeps_owners_apart(cut: CutMap) -> Answer:
    """Whether two owners of the new prefix are never one owner of the old prefix."""
    spatial = [r for r, level in zip(cut.formula.results, cut.old, strict=True) if level.is_spatial]
    reason = "every new owner is an old owner of its own"
    answers = (
        no_pair(cut.active, (), spatial, DimRef(place), reason)
        for place, level in enumerate(cut.new)
        if level.is_spatial and DimRef(place) not in spatial
    )
    return all_proven(answers, reason)


def keeps_order(cut: CutMap, same: Collection[int]) -> Answer:
    """Whether instances that agree in the `same` old coordinates stay in their order.

    The levels give a partial order: the first level in which two instances differ puts one before
    the other if it is ordered. Each pair of an old level that orders and a new level that does
    not, or orders the other way, is asked for.
    """
    reason = "what was ordered stays in its order"
    answers = (
        _keeps_pair(cut, same, old, new, is_descending, reason)
        for old, level in enumerate(cut.old)
        if level.is_ordered
        for new, other in enumerate(cut.new)
        for is_descending in ((True,) if other.is_ordered else (True, False))
    )
    return all_proven(answers, reason)


def _keeps_pair(
    cut: CutMap, same: Collection[int], old: int, new: int, is_descending: bool, reason: str
) -> Answer:
    """Whether no two instances are ordered by an old level and first differ in a new level that
    does not put them in that order."""
    results = cut.formula.results
    equal = [results[place] for place in sorted({*same, *range(old)})]
    shared = frozenset(range(new)) | {e.position for e in equal if isinstance(e, DimRef)}
    pairs = Pairs(cut.active, shared)
    differs = pairs.more if is_descending else pairs.less
    conditions = [*map(pairs.same, equal), pairs.less(results[old]), differs(DimRef(new))]
    return pairs.none(conditions, reason)
