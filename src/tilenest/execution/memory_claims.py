"""What a memory equation promises, claim by claim, each under the arrow it is about.

In: an equation. Out: an answer a claim; a failed one shows an event or a pair of states. Events are
at active coordinates, owners and instances must factor (`topology o exec_binding = instance o
owner_projection`), what is needed at once must lie apart, and every event must end at one byte that
is inside its allocation, inside the resource, and inside 64 bits. Access rights are no layout: they
are looked up in the relation.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.execution.memory_equation import MemoryEquation, diagonal, pairing
from tilenest.layouts import (
    Answer,
    Const,
    DimRef,
    Expressions,
    FiniteTable,
    Identity,
    IndexExpr,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    Project,
    Space,
    Witness,
    are_disjoint,
    check_kind,
    disproven,
    equal,
    is_bounded,
    is_injective,
    is_total,
    proven,
    unknown,
)
from tilenest.records import record, replace

ENGINE = "memory equation"
_BYTES = Space.box(1 << 63, prefix="byte")
_DEFAULT_BUDGET = 1 << 16


@record
class Claim:
    """Something that has to hold, the arrow it is about, and whether it does."""

    arrow: str
    text: str
    answer: Answer

    def __str__(self) -> str:
        return f"{self.arrow}: {self.text}: {self.answer}"


def check_equation(equation: MemoryEquation, budget: int = _DEFAULT_BUDGET) -> tuple[Claim, ...]:
    """Every claim of an equation, in the order of its arrows.

    Where an arrow that others start from has no value, their claims fail as well; the first failure
    names the arrow to mend.
    """
    check_kind(equation, MemoryEquation, "what is checked")
    return tuple(_Checker(equation, budget).claims())


def check_allocation(equation: MemoryEquation, budget: int = _DEFAULT_BUDGET) -> tuple[Claim, ...]:
    """The claims about what is reserved, whoever uses it: where it starts, that it is aligned and
    inside its resource, and that every version of every element has bytes of its own in it."""
    check_kind(equation, MemoryEquation, "what is checked")
    checker = _Checker(equation, budget)
    return (*checker.bases(), *checker.addresses())


def check_instances(equation: MemoryEquation, budget: int = _DEFAULT_BUDGET) -> tuple[Claim, ...]:
    """The claims about who has an instance: that it is the owner's, wherever it is used."""
    check_kind(equation, MemoryEquation, "what is checked")
    return tuple(_Checker(equation, budget).instances())


def check_apart(one: MemoryEquation, other: MemoryEquation, budget: int = _DEFAULT_BUDGET) -> Claim:
    """Whether two memories that are alive together share no byte of any instance.

    A witness is an execution coordinate of each, followed by the byte in its allocation.
    """
    check_kind(one, MemoryEquation, "one memory")
    check_kind(other, MemoryEquation, "the other memory")
    text = f"{one.name} and {other.name} lie apart"
    if one.right.resource != other.right.resource:
        return Claim("base", text, proven(ENGINE, "they lie in different resources"))
    return Claim("base", text, are_disjoint(_occupied(one), _occupied(other), budget))


def _occupied(equation: MemoryEquation) -> LayoutMap:
    """From an execution coordinate and a byte of the allocation to the instance and the byte."""
    inside = Space.box(equation.allocation.bytes, prefix="inside")
    space = equation.active.space.product(inside)
    rank = equation.active.space.rank
    owner = Project(space, tuple(range(rank))).then(equation.owner_projection)
    byte = pairing(owner.then(equation.base), Project(space, (rank,)))
    place = pairing(owner.then(equation.instance), _apply(byte, DimRef(0) + DimRef(1), _BYTES))
    active = IndexSet(space, equation.active.constraints, equation.active.extra)
    return place.restrict(active)


def failures(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """The claims that are not proven: unknown is no success."""
    return tuple(claim for claim in claims if not claim.answer.is_proven)


class _Checker:
    """One equation under judgement."""

    def __init__(self, equation: MemoryEquation, budget: int) -> None:
        self.equation = equation
        self.budget = budget

    def claims(self) -> Iterator[Claim]:
        yield self._active()
        yield from self.instances()
        yield from self.bases()
        yield from self._versions()
        yield from self._accesses()
        yield self._right()

    def _active(self) -> Claim:
        """That what is claimed of active coordinates is claimed of those of all events."""
        e = self.equation
        inside = e.execution_of.then(Identity(e.active.space).restrict(e.active))
        text = "every event is at an active coordinate"
        return Claim("events", text, is_total(inside, e.events, self.budget))

    # Spatial arrows ------------------------------------------------------------------------

    def instances(self) -> Iterator[Claim]:
        e = self.equation
        bound, owned = e.exec_binding.then(e.topology), e.owner_projection.then(e.instance)
        yield self._lands("exec_binding", e.exec_binding, e.active)
        yield self._lands("topology", bound, e.active)
        yield self._lands("owner_projection", e.owner_projection, e.active)
        yield self._lands("instance", owned, e.active)
        text = "descendants do not change the instance of what an ancestor owns"
        answer = equal(bound.restrict(e.active), owned.restrict(e.active), self.budget)
        yield Claim("instance", text, answer)

    def bases(self) -> Iterator[Claim]:
        e = self.equation
        base = e.owner_projection.then(e.base)
        yield self._lands("base", base, e.active)
        room = _BYTES if e.allocation.capacity is None else Space.box(e.allocation.capacity)
        end = _apply(base, DimRef(0) + (e.allocation.bytes - 1), room)
        if e.allocation.bytes:
            yield self._lands("base", end, e.active, "the allocation fits the resource")
        if e.allocation.alignment > 1:
            rest = _apply(base, DimRef(0) % e.allocation.alignment, _BYTES)
            zero = _apply(base, Const(0), _BYTES)
            answer = equal(rest.restrict(e.active), zero.restrict(e.active), self.budget)
            yield Claim("base", f"aligned to {e.allocation.alignment} bytes", answer)

    # States --------------------------------------------------------------------------------

    def _versions(self) -> Iterator[Claim]:
        e = self.equation
        yield self._lands("reaching", e.reaching, e.active)
        yield self._lands("version", e.reaching.then(e.version), e.active)
        pairs = e.simultaneous.space
        rank = e.version.domain.rank
        first, second = (
            Project(pairs, tuple(place)).then(e.version)
            for place in (range(rank), range(rank, 2 * rank))
        )
        for side in (first, second):
            needed = self._lands("version", side, e.simultaneous, "a state in need has a version")
            yield replace(needed, answer=_of_states(needed.answer, rank))
        # Pairs of states with one version, as meetings of two maps that remember their pair.
        sides = [
            diagonal(pairs).then(side.product(Identity(pairs))).restrict(e.simultaneous)
            for side in (first, second)
        ]
        answer = _of_states(are_disjoint(sides[0], sides[1], self.budget), rank)
        yield Claim("version", "states that are needed at once have versions of their own", answer)

    # The way to a byte ---------------------------------------------------------------------

    def _accesses(self) -> Iterator[Claim]:
        e = self.equation
        if isinstance(e.access, LayoutCorr):
            access, claim = self._single_valued(e.access)
            yield claim
            if access is None:
                return
        else:
            access = e.access
        stored = access.then(e.view)
        yield self._lands("access", access, e.events)
        yield self._lands("view", stored, e.events)
        yield from self.addresses()
        place = e.execution_of.then(e.reaching).then(e.version)
        address = pairing(place, stored).then(e.address)
        yield self._lands("address", address, e.events)
        base = e.execution_of.then(e.owner_projection).then(e.base)
        last = DimRef(0) + DimRef(1) + (e.allocation.element_bytes - 1)
        byte = _apply(pairing(base, address), last, _BYTES)
        yield self._lands("address", byte, e.events, "the byte fits signed 64 bits")

    def _single_valued(self, relation: LayoutCorr) -> tuple[LayoutMap | None, Claim]:
        """The relation as a function, if it is one."""
        events, text = self.equation.events, "an event goes to one place"
        sizes = relation.domain.size, relation.occurrences.size
        if any(size is None or size > self.budget for size in sizes):
            answer = unknown(ENGINE, f"more than {self.budget} events, or a number not known")
            return None, Claim("access", text, answer)
        found = relation.placed(budget=self.budget)
        for point in events.points():
            places = found.get(point, ())
            if len(places) > 1:
                answer = disproven(ENGINE, f"one event, {len(places)} places", Witness((point,)))
                return None, Claim("access", text, answer)
        entries = tuple(next(iter(found.get(p, ())), None) for p in relation.domain.points())
        table = FiniteTable(relation.domain, relation.codomain, entries)
        return table, Claim("access", text, proven(ENGINE, "each was looked at"))

    def addresses(self) -> Iterator[Claim]:
        e = self.equation
        everywhere = IndexSet(e.address.domain)
        width = e.allocation.element_bytes
        room = Space.box(e.allocation.bytes)
        end = _apply(e.address, DimRef(0) + (width - 1), room)
        text = "every version and its padding lie in the allocation"
        yield self._lands("address", end, everywhere, text)
        if not e.allocation.is_owned:
            return
        rest, zero = (_apply(e.address, r, _BYTES) for r in (DimRef(0) % width, Const(0)))
        yield Claim(
            "address",
            f"a multiple of the element's {width} bytes",
            equal(rest, zero, self.budget),
        )
        yield Claim(
            "address",
            "different elements have bytes of their own",
            is_injective(e.address, self.budget),
        )

    def _right(self) -> Claim:
        e = self.equation
        right = e.right
        text = f"{right.scope!r} may {right.operation} {right.resource!r}"
        if right.is_granted:
            return Claim("right", text, proven(ENGINE, "the target's relation has it"))
        first = next(iter(e.events.points()), None) if e.events.space.is_static else None
        if first is None and e.events.space.is_static:
            return Claim("right", text, proven(ENGINE, "there is no event"))
        reason = "the target's relation does not have it"
        if first is None:
            return Claim("right", text, unknown(ENGINE, f"{reason}, and events are not known"))
        return Claim("right", text, disproven(ENGINE, reason, Witness((first,))))

    def _lands(
        self, arrow: str, way: LayoutMap, points: IndexSet, text: str = "total and in range"
    ) -> Claim:
        """That a map has a value in its codomain at every point of a set."""
        answer = is_total(way, points, self.budget)
        if answer.is_proven:
            answer = is_bounded(way.restrict(points), self.budget)
        return Claim(arrow, text, answer)


def _apply(inner: LayoutMap, result: IndexExpr, codomain: Space) -> LayoutMap:
    """One formula over the results of a map."""
    return inner.then(Expressions(inner.codomain, codomain, (result,)))


def _of_states(answer: Answer, rank: int) -> Answer:
    """An answer about pairs of states, its witness as the two states."""
    if answer.witness is None:
        return answer
    pair = answer.witness.points[0]
    return replace(answer, witness=replace(answer.witness, points=(pair[:rank], pair[rank:])))
