"""Who holds the values of a Scheduled function, and what it costs to hold them differently.

In: a function, or spreads as attributes state them. Out: for every buf its distribution: the cut
at which its owner stands, who takes part, and which place holds which element; who would take part
where a value is held by each instance that needs it; facts about a spread; whether a value lies as
its reader wants it, and what a repartition moves. Answers about one spread are kept, since many
values lie alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import ClassVar

from tilenest.analysis.structure import enclosing_parallels, is_defined_above, trip_counts
from tilenest.dialects import Alloc, Spread
from tilenest.execution import (
    Distribution,
    ExecLevel,
    ExecStructure,
    Fact,
    PrefixCut,
    are_compatible,
    check_distribution,
    repartition,
)
from tilenest.ir import (
    Analysis,
    Asker,
    BufType,
    Edit,
    EditKind,
    Function,
    Operation,
    Value,
)
from tilenest.layouts import AffineMap, Answer, Const, DimRef, IndexExpr, Space, of_affine_map
from tilenest.records import record, replace


@record
class Held:
    """How a buf is held; its owner is an instance of the outer parallel levels around it, `depth`
    of them, and the others take part. None where those are no levels around it."""

    depth: int | None
    spread: Spread


@record
class Distributions(Analysis[Function, "Distributions"]):
    """How every buf of a function is distributed."""

    NAME: ClassVar[str] = "distributions"

    held: Mapping[Value, Held]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> Distributions:
        allocs = [op for op in subject.walk() if isinstance(op, Alloc)]
        spreads = {op: spread_of(op) for op in allocs}
        return cls({op.result: Held(owner_depth(op, s), s) for op, s in spreads.items()})

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            return edit.detail in ("spread", "value")
        return edit.kind not in (EditKind.LABEL, EditKind.FUNCTION, EditKind.SUCCESSORS)


def spread_of(op: Alloc) -> Spread:
    """How a buf is held: as it says, or whole and row-major by its owner."""
    if isinstance(op.spread, Spread):
        return op.spread
    type_ = op.result.type
    assert isinstance(type_, BufType)
    return whole(type_.shape)


def whole(extents: tuple[int, ...]) -> Spread:
    """A value that its owner holds as it is."""
    return Spread(extents, extents, AffineMap.identity(len(extents)))


def participants_of(value: Value, op: Operation) -> tuple[int, ...]:
    """Who holds a copy of a value that `op` makes for itself: the instances of the parallel levels
    between both. From a level on whose extent only a run knows, its instance is the owner."""
    extents: list[int] = []
    for nest in enclosing_parallels(op):
        counts = trip_counts(nest)
        if not is_defined_above(value, nest) or None in counts:
            break
        extents = [*(count for count in counts if count is not None and count != 1), *extents]
    return tuple(extents)


def owner_depth(op: Operation, spread: Spread) -> int | None:
    """How many parallel levels around an operation tell the owners of what it makes apart; None
    where the participants are not the levels inside of those. Levels of one instance count as
    none of them."""
    levels = [count for nest in enclosing_parallels(op) for count in reversed(trip_counts(nest))]
    wanted = [extent for extent in spread.participants if extent != 1]
    for place, extent in enumerate(levels):
        if not wanted:
            return len(levels) - place
        if extent != 1 and extent != wanted.pop():
            return None
    return None if wanted else 0


def held_by_each(spread: Spread, participants: tuple[int, ...]) -> Spread:
    """What one holder has, for each of several."""
    if not participants:
        return spread
    n, rank = len(participants), len(spread.fragment)
    own = [DimRef(n + place) for place in range(rank)]
    placement = spread.placement.with_dims(own, n + rank)
    return replace(spread, placement=placement, participants=participants, replicated=True)


def _of_each(spread: Spread) -> Spread | None:
    """What one participant holds, once; None where participants differ."""
    n, rank = len(spread.participants), len(spread.fragment)
    if any(result.dim_mask & ((1 << n) - 1) for result in spread.placement.results):
        return None
    own = [*[Const(0)] * n, *map(DimRef, range(rank))]
    placement = spread.placement.with_dims(own, rank)
    return replace(spread, placement=placement, participants=(), replicated=False)


def panels(extents: tuple[int, ...], axis: int, other: int, block: int) -> Spread:
    """A matrix in panels of `block` along one axis: (panel, other axis, place in the panel); axes
    besides these two have one coordinate.

    A last panel that is only partly needed has places without an element.
    """
    blocks = -(-extents[axis] // block)
    places: list[IndexExpr] = [Const(0)] * len(extents)
    places[axis], places[other] = DimRef(0) * block + DimRef(2), DimRef(1)
    fragment = blocks, extents[other], block
    is_partial = blocks * block != extents[axis]
    return Spread(extents, fragment, AffineMap(3, 0, tuple(places)), masked=is_partial)


def distribution_of(spread: Spread) -> tuple[ExecStructure, Distribution]:
    """A spread as a distribution among parallel levels below its owner."""
    names = [f"p{place}" for place in range(len(spread.participants))]
    levels = [
        ExecLevel(name, name, "parallel", extent)
        for name, extent in zip(names, spread.participants, strict=True)
    ]
    places = Space.box(*spread.participants, prefix="p").product(
        Space.box(*spread.fragment, prefix="f")
    )
    placement = of_affine_map(spread.placement, places, Space.box(*spread.logical))
    distribution = Distribution(
        PrefixCut(0), tuple(names), placement, spread.replicated, spread.masked
    )
    return ExecStructure(tuple(levels)), distribution


# A spread is a value: what is known of it changes with no edit, and after each pass it is asked
# for the same few.
@lru_cache(maxsize=256)
def distribution_facts(spread: Spread) -> tuple[Fact, ...]:
    """What is known of a spread: its places differ, cover the value, once, and none is idle."""
    return check_distribution(*distribution_of(spread))


def lie_alike(one: Spread, other: Spread) -> Answer:
    """Whether a value held in one way can be read as held in the other, in place."""
    return are_compatible(distribution_of(one)[1], distribution_of(other)[1])


@lru_cache(maxsize=256)
def repartition_cost(source: Spread, target: Spread) -> tuple[int, int] | None:
    """Elements that a participant of the target takes from another one, and that it has itself;
    None where they cannot be counted."""
    each = _of_each(target)
    if not source.participants and _covers(source) and each is not None and _is_exact(each):
        # One holder has every element, and every participant needs each once.
        return 0, prod(target.participants) * prod(target.logical)
    found = repartition(distribution_of(source)[1], distribution_of(target)[1])
    return None if found is None else (found.moved, found.kept)


def _covers(spread: Spread) -> bool:
    return all(fact.answer.is_proven for fact in distribution_facts(spread) if fact.law == "covers")


def _is_exact(spread: Spread) -> bool:
    return all(fact.answer.is_proven for fact in distribution_facts(spread))
