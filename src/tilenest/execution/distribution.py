"""Who holds which part of a value, and what it costs to hold it differently.

In: the levels whose instances hold a value together, and a map from (participant, place in its
fragment) to the logical coordinate held there. Out: facts: every coordinate is held, by one place
unless the value is replicated, and every place holds one unless it is masked. A repartition is from
one distribution to another; it costs the elements that a participant needs and does not hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tilenest.errors import VerifyError
from tilenest.execution.levels import ExecStructure, PrefixCut
from tilenest.execution.pairs import STRUCTURE, all_proven
from tilenest.execution.proofs import Fact
from tilenest.layouts import (
    Answer,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    Space,
    check_kind,
    covers,
    equal,
    is_bounded,
    is_injective,
    is_total,
    tuple_of,
    unknown,
)
from tilenest.records import record

DEFAULT_BUDGET = 1 << 16
_Point = tuple[int, ...]


@record
class Distribution:
    """A value of each instance of the prefix `owner`, held by the instances of `participants`.

    The places of `placement` have one axis a participant level, then those of a fragment. A
    replicated value may stand at several places; a masked one may leave places without meaning.
    """

    owner: PrefixCut
    participants: tuple[str, ...]
    placement: LayoutMap | LayoutCorr
    is_replicated: bool = False
    is_masked: bool = False

    def __post_init__(self) -> None:
        check_kind(self.owner, PrefixCut, "the owner of a value")
        check_kind(self.placement, LayoutMap | LayoutCorr, "the placement of a value")
        object.__setattr__(self, "participants", tuple_of(self.participants, str, "participants"))

    @property
    def relation(self) -> LayoutCorr:
        """Between places and logical coordinates."""
        if isinstance(self.placement, LayoutCorr):
            return self.placement
        return LayoutCorr.from_map(self.placement)

    @property
    def places(self) -> Space:
        """Participants and places in their fragments."""
        return self.placement.domain

    @property
    def logical(self) -> Space:
        """The coordinates of the value."""
        return self.placement.codomain

    def holdings(self) -> Iterator[tuple[_Point, _Point]]:
        """Each participant with each logical coordinate that it holds."""
        n = len(self.participants)
        yield from {(place[:n], held) for place, held in self.relation.pairs()}


@record
class Repartition:
    """From one distribution of a value to another.

    The cost counts pairs of a target participant and an element it needs: `moved` of them come from
    a participant that differs in a level both distributions name, `kept` do not.
    """

    source: Distribution
    target: Distribution
    moved: int
    kept: int


def check_distribution(structure: ExecStructure, distribution: Distribution) -> tuple[Fact, ...]:
    """What is known of a distribution over the levels of a structure."""
    check_kind(structure, ExecStructure, "the levels")
    check_kind(distribution, Distribution, "what is judged")
    _check_participants(structure, distribution)
    relation = distribution.relation
    facts = [
        Fact("place", is_injective(relation.left)),
        Fact("covers", covers(relation.right, IndexSet(distribution.logical))),
    ]
    if not distribution.is_replicated:
        facts.append(Fact("once", is_injective(relation.right)))
    if not distribution.is_masked:
        facts.append(Fact("full", _is_full(distribution)))
    return tuple(facts)


def _is_full(distribution: Distribution) -> Answer:
    """Whether every place holds an element of the value."""
    relation = distribution.relation
    answers = (
        covers(relation.left, IndexSet(distribution.places)),
        is_total(relation.right),
        is_bounded(relation.right),
    )
    return all_proven(answers, "every place holds an element")


def _check_participants(structure: ExecStructure, distribution: Distribution) -> None:
    structure.check_cut(distribution.owner)
    axes = distribution.places.axes[: len(distribution.participants)]
    extents = tuple(axis.extent for axis in axes)
    wanted = []
    for identity in distribution.participants:
        place = structure.position(identity)
        level = structure.levels[place]
        if not level.is_spatial or place < distribution.owner.depth:
            raise VerifyError(
                f"level {level} takes no part in a value owned at depth {distribution.owner.depth}",
                remedy="let parallel levels below the owner take part",
            )
        wanted.append(level.extent)
    if extents != tuple(wanted):
        raise VerifyError(
            f"the places {distribution.places} do not begin with the participants "
            f"{', '.join(distribution.participants)}",
            remedy="give every participant level its axis first",
        )


def are_compatible(one: Distribution, other: Distribution) -> Answer:
    """Whether a value distributed in one way can be used as distributed in the other, in place."""
    check_kind(one, Distribution, "the first distribution")
    check_kind(other, Distribution, "the other distribution")
    if (one.owner, one.participants, one.places, one.logical) != (
        other.owner,
        other.participants,
        other.places,
        other.logical,
    ):
        return unknown(STRUCTURE, "owners, participants or spaces differ")
    if isinstance(one.placement, LayoutMap) and isinstance(other.placement, LayoutMap):
        return equal(one.placement, other.placement)
    return unknown(STRUCTURE, "only distributions by maps are compared in place")


def repartition(
    source: Distribution, target: Distribution, budget: int = DEFAULT_BUDGET
) -> Repartition | None:
    """What it takes to go from one distribution to another; None where it cannot be counted."""
    check_kind(source, Distribution, "the source")
    check_kind(target, Distribution, "the target")
    if source.logical != target.logical:
        raise VerifyError(
            f"values of {source.logical} and {target.logical} are not the same value",
            remedy="repartition between distributions of one value",
        )
    spaces = (source.relation.occurrences, target.relation.occurrences)
    if any(space.size is None or space.size > budget for space in spaces):
        return None
    shared = [level for level in target.participants if level in source.participants]
    held: dict[_Point, set[_Point]] = defaultdict(set)
    for participant, element in source.holdings():
        held[element].add(_at(source, participant, shared))
    needs = list(target.holdings())
    kept = sum(_at(target, participant, shared) in held[element] for participant, element in needs)
    return Repartition(source, target, len(needs) - kept, kept)


def _at(distribution: Distribution, participant: _Point, levels: list[str]) -> _Point:
    return tuple(participant[distribution.participants.index(level)] for level in levels)
