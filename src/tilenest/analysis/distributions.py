"""Who holds the values of a Scheduled function, and what it costs to hold them differently.

In: a function, or spreads as attributes state them. Out: for every buf its distribution: the cut
at which its owner stands, who takes part, and which place holds which element; facts about a
spread; whether a value lies as its reader wants it, and what a repartition moves. Answers about one
spread are kept, since many values lie alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import ClassVar

from tilenest.analysis.structure import enclosing_parallels
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
from tilenest.ir import Analysis, Asker, BufType, Function, Operation, Value
from tilenest.layouts import AffineMap, Answer, Const, DimRef, IndexExpr, Space, of_affine_map
from tilenest.records import record


@record
class Held:
    """How a buf is held; its owner is an instance of the parallel levels around it, `depth` of
    them."""

    depth: int
    spread: Spread


@record
class Distributions(Analysis[Function, "Distributions"]):
    """How every buf of a function is distributed."""

    NAME: ClassVar[str] = "distributions"

    held: Mapping[Value, Held]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> Distributions:
        allocs = [op for op in subject.walk() if isinstance(op, Alloc)]
        return cls({op.result: Held(_depth(op), spread_of(op)) for op in allocs})


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


@lru_cache(maxsize=256)
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


@lru_cache(maxsize=256)
def distribution_facts(spread: Spread) -> tuple[Fact, ...]:
    """What is known of a spread: its places differ, cover the value, once, and none is idle."""
    return check_distribution(*distribution_of(spread))


@lru_cache(maxsize=256)
def lie_alike(one: Spread, other: Spread) -> Answer:
    """Whether a value held in one way can be read as held in the other, in place."""
    return are_compatible(distribution_of(one)[1], distribution_of(other)[1])


@lru_cache(maxsize=256)
def repartition_cost(source: Spread, target: Spread) -> tuple[int, int] | None:
    """Elements that a participant of the target takes from another one, and that it has itself;
    None where they cannot be counted."""
    if not source.participants and not target.participants and _covers(source) and _covers(target):
        # One holder has every element, and needs it.
        return 0, prod(target.logical)
    found = repartition(distribution_of(source)[1], distribution_of(target)[1])
    return None if found is None else (found.moved, found.kept)


def _covers(spread: Spread) -> bool:
    return all(fact.answer.is_proven for fact in distribution_facts(spread) if fact.law == "covers")


def _depth(op: Operation) -> int:
    """How many parallel levels tell instances of an operation apart."""
    return sum(nest.rank for nest in enclosing_parallels(op))
