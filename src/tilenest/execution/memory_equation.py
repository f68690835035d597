"""Where one use of a memory goes: the arrows from an execution coordinate to a byte.

In: layout maps, one an arrow, the events in which the use happens, and who may access what. Out: a
frozen equation that gives the place of every event. `memory_claims` holds it to its promises.

    e in P            execution coordinate; o = owner_projection(e) is the memory's owner
    u in Local        local access coordinate; (e, u) in `events`
    instance(o)       which instance of the resource: topology(exec_binding(e)) must agree
    base(o)           where the allocation starts in it
    address(version(reaching(e)), view(access(e, u)))     the byte in the allocation
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilenest.errors import ShapeError
from tilenest.layouts import (
    DimRef,
    Expressions,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    Project,
    Space,
    whole_number,
)
from tilenest.records import record

Point = tuple[int, ...]
_END = 1 << 63
"""where the numbers of bytes end that an address can count"""


@record
class Allocation:
    """What is reserved at the base, in bytes: all versions, with padding."""

    bytes: int
    element_bytes: int
    alignment: int = 1
    capacity: int | None = None
    """of one instance of the resource; None where only addresses end it"""
    is_owned: bool = True
    """whether different elements need bytes of their own; an argument may repeat one"""

    def __post_init__(self) -> None:
        least = {"bytes": 0, "element_bytes": 1, "alignment": 1, "capacity": 0}
        for field, lowest in least.items():
            value = getattr(self, field)
            if value is None and field == "capacity":
                continue
            number = whole_number(value, f"the {field} of an allocation")
            if not lowest <= number < _END:
                raise ShapeError(
                    f"the {field} of an allocation is {number}",
                    remedy=f"use a number from {lowest} to {_END - 1}",
                )
            object.__setattr__(self, field, number)
        if self.alignment & (self.alignment - 1):
            raise ShapeError(
                f"the alignment of an allocation is {self.alignment}",
                remedy="use a power of two",
            )


@record
class AccessRight:
    """What the use does, from where, in which resource; `relation` has all triples that may be."""

    scope: str
    resource: str
    operation: str
    relation: frozenset[tuple[str, str, str]]

    @property
    def is_granted(self) -> bool:
        return (self.scope, self.resource, self.operation) in self.relation


@record
class Physical:
    """Where an event goes: a resource instance, and a byte in it by base, version and address."""

    instance: Point
    base: int
    version: Point
    byte: int


@record
class MemoryEquation:
    """One use of one memory. Each point of `events` is an execution coordinate, one of `active`,
    followed by a local one."""

    name: str
    active: IndexSet
    events: IndexSet
    exec_binding: LayoutMap
    topology: LayoutMap
    owner_projection: LayoutMap
    instance: LayoutMap
    base: LayoutMap
    access: LayoutMap | LayoutCorr
    view: LayoutMap
    reaching: LayoutMap
    """which state the use sees, and when: (state, time)"""
    version: LayoutMap
    address: LayoutMap
    simultaneous: IndexSet
    """pairs of different (state, time) whose contents are needed at once, each pair in one order"""
    allocation: Allocation
    right: AccessRight

    @property
    def execution_of(self) -> LayoutMap:
        """From an event to its execution coordinate."""
        return Project(self.events.space, tuple(range(self.active.space.rank)))

    def physical(self, event: Point, values: Mapping[str, int] | None = None) -> Physical | None:
        """Where an event goes; None where an arrow is undefined on its way, or a relation gives
        several places in the view."""
        if isinstance(self.access, LayoutMap):
            viewed = self.access.apply(event, values)
        else:
            viewed = _only(self.access.placed(values).get(event, ()))
        return self._physical(event, viewed, values)

    def _physical(
        self, event: Point, viewed: Point | None, values: Mapping[str, int] | None
    ) -> Physical | None:
        place = event[: self.active.space.rank]
        owner = self.owner_projection.apply(place, values)
        seen = _follow((self.reaching, self.version), place, values)
        stored = None if viewed is None else self.view.apply(viewed, values)
        if owner is None or seen is None or stored is None:
            return None
        instance, base = self.instance.apply(owner, values), self.base.apply(owner, values)
        address = self.address.apply((*seen, *stored), values)
        if instance is None or base is None or address is None:
            return None
        return Physical(instance, base[0], seen, base[0] + address[0])

    def places(
        self, values: Mapping[str, int] | None = None
    ) -> Iterator[tuple[Point, Physical | None]]:
        """Every event with where it goes."""
        if isinstance(self.access, LayoutMap):
            return ((event, self.physical(event, values)) for event in self.events.points(values))
        found = self.access.placed(values)
        return (
            (event, self._physical(event, _only(found.get(event, ())), values))
            for event in self.events.points(values)
        )


def _only(places: Sequence[Point]) -> Point | None:
    return places[0] if len(places) == 1 else None


def pairing(left: LayoutMap, right: LayoutMap) -> LayoutMap:
    """Both maps of one point, side by side."""
    return diagonal(left.domain).then(left.product(right))


def diagonal(space: Space) -> LayoutMap:
    """A point twice."""
    coordinates = tuple(DimRef(place) for place in range(space.rank))
    return Expressions(space, space.product(space), (*coordinates, *coordinates))


def _follow(
    arrows: Sequence[LayoutMap], point: Point, values: Mapping[str, int] | None
) -> Point | None:
    found: Point | None = point
    for arrow in arrows:
        if found is None:
            return None
        found = arrow.apply(found, values)
    return found
