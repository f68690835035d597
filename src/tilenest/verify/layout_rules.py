"""Rules TN01 and TN07: maps meet what they map, and distributed values are held exactly.

In: every operation with a map among its attributes. Out: faults where the numbers of coordinates
differ from those of the operand, the result or the storage that a map is about, and where what is
said of a distribution is not proven. The rules about single operations assume that maps meet, so
TN01 is asked before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import (
    Distributions,
    distribution_facts,
    enclosing_parallels,
    lie_alike,
    owner_depth,
    repartition_cost,
    trip_counts,
)
from tilenest.dialects import Alloc, MapReducePost, Repartition, Spread
from tilenest.ir import BufType, Fault, MapUse, Operation, Rule, Subject, describe_attribute
from tilenest.verify.expectations import Findings

_EXTENTS = 1 << 63


def _meeting(subject: Subject) -> Iterator[Fault]:
    for op in subject.operations:
        for use in op.map_uses():
            if not _fits(use):
                yield Fault(op, _found(use), _wanted(use))
    yield from _spread_faults(subject)


def _fits(use: MapUse) -> bool:
    actual = use.map.n_dims, use.map.n_syms, len(use.map.results)
    return actual == (use.dims, use.symbols, use.results)


def _found(use: MapUse) -> str:
    return (
        f"{use.what} is addressed by {use.map.n_dims} dims and {use.map.n_syms} symbols at "
        f"{len(use.map.results)} coordinates"
    )


def _wanted(use: MapUse) -> str:
    return f"address it by {use.dims} dims and {use.symbols} symbols at {use.results} coordinates"


# Distributions ---------------------------------------------------------------------------------


def _spread_faults(subject: Subject) -> Iterator[Fault]:
    for op, what, spread in _spreads(subject):
        if not isinstance(spread, Spread):
            yield Fault(op, f"{what} is {describe_attribute(spread)}", "use a #spread record")
            continue
        places = len(spread.participants) + len(spread.fragment)
        use = MapUse(what, spread.placement, places, 0, len(spread.logical))
        extents = (*spread.logical, *spread.participants, *spread.fragment)
        if not all(0 <= extent < _EXTENTS for extent in extents):
            yield Fault(op, f"{what} has the extents {extents}", "use extents of at least 0")
        elif not _fits(use):
            yield Fault(op, _found(use), _wanted(use))
    for alloc in subject.of(Alloc):
        type_ = alloc.results[0].type if alloc.results else None
        if not isinstance(alloc.spread, Spread) or not isinstance(type_, BufType):
            continue
        if alloc.spread.fragment != type_.shape:
            yield Fault(
                alloc,
                f"the spread has fragments of {alloc.spread.fragment} in a buf of {type_.shape}",
                "give the buf one element for each place of a fragment",
            )
    for work in subject.of(MapReducePost):
        change = work.repartition
        if isinstance(change, Repartition) and change.source.logical != change.target.logical:
            yield Fault(
                work,
                f"a value of {change.source.logical} is held as one of {change.target.logical}",
                "repartition between distributions of one value",
            )


def _spreads(subject: Subject) -> Iterator[tuple[Operation, str, object]]:
    for alloc in subject.of(Alloc):
        if alloc.spread is not None:
            yield alloc, "the spread", alloc.spread
    for work in subject.of(MapReducePost):
        change = work.repartition
        if isinstance(change, Repartition):
            yield work, "the source", change.source
            yield work, "the target", change.target
        elif change is not None:
            yield work, "the repartition", change


def _coverage(subject: Subject) -> Iterator[Fault]:
    for op, what, spread in _spreads(subject):
        assert isinstance(spread, Spread), "TN01 holds"
        for fact in distribution_facts(spread):
            if not fact.answer.is_proven:
                text, remedy = _LAWS[fact.law]
                yield Fault(op, f"{what} {text}: {fact.answer}", remedy)
    for work in subject.of(MapReducePost):
        for message, remedy in _cost(work.repartition):
            yield Fault(work, message, remedy)


def _agreement(subject: Subject) -> Iterator[Fault]:
    """What is held differently from here on goes to storage that is held so."""
    for op in subject.of(MapReducePost):
        change, function = op.repartition, op.parent_function
        if not isinstance(change, Repartition) or not op.outputs or function is None:
            continue
        found = subject.analyses.get(Distributions, function).held.get(op.outputs[0])
        if found is None:
            yield Fault(op, "a repartition goes to storage of the caller", "store what it holds")
        elif not (answer := lie_alike(found.spread, change.target)).is_proven:
            yield Fault(
                op,
                f"the target of a repartition is not how its buf is held: {answer}",
                "give the buf the spread of the target",
            )


def _participants(subject: Subject) -> Iterator[Fault]:
    """Who takes part are instances of the innermost parallel levels around."""
    for op, what, spread in _spreads(subject):
        assert isinstance(spread, Spread), "TN01 holds"
        if owner_depth(op, spread) is None:
            nests = reversed(list(enclosing_parallels(op)))
            counts = [count for nest in nests for count in trip_counts(nest)]
            levels = ", ".join("?" if count is None else str(count) for count in counts)
            yield Fault(
                op,
                f"{what} is of {spread.participants} participants, and the parallel levels around "
                f"have ({levels}) instances",
                "name the extents of the innermost levels that hold a part each",
            )


_LAWS = {
    "place": ("has places that are not told apart", "give every place coordinates of its own"),
    "covers": ("leaves elements without a place", "let the placement reach every coordinate"),
    "once": ("holds an element at several places", "place it once, or say that it is replicated"),
    "full": ("has places without an element", "place an element there, or say that it is masked"),
}


def _cost(change: object) -> Findings:
    if isinstance(change, Repartition):
        found = repartition_cost(change.source, change.target)
        if found is not None and found != (change.moved, change.kept):
            yield (
                f"claims to move {change.moved} elements and keep {change.kept}, and it is "
                f"{found[0]} and {found[1]}",
                "state the cost as it is counted",
            )


MAPS_MEET = Rule("TN01", "maps go from and to what they map", _meeting)
DISTRIBUTION_RULES = (
    Rule("TN07", "distributed values are held exactly", _coverage),
    Rule("TN07b", "results lie as their storage is held", _agreement),
    Rule("TN07c", "participants are instances of the nests around", _participants),
)
