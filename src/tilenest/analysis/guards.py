"""Guards: which calls meet them, what follows from them, which calls a fallback is offered.

In: the types of a function's arguments, and guards, which say themselves what they mean. Out:
frozen answers with a call as the witness. All questions are one: is there a call that meets these
guards and misses those? It is decided exactly, one array at a time: with elements or without any,
and then by axes. Only arguments that are the same array share extents, and the strides they use.
Calling a kernel asks nothing here: a call that no variant takes gets one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from tilenest.dialects import Guard, PassedArguments, PassedArray, guards_of
from tilenest.ir import Analysis, Asker, Edit, EditKind, Function, Type, ViewType
from tilenest.records import record

_MOST = (1 << 63) - 1
_Axis = tuple[int, list[int]]
"""An extent, and the stride of each argument that is this array."""


@record
class Claim:
    """A guard that is met, or missed."""

    guard: Guard
    is_met: bool = True


@record
class Unproven:
    """Something a function assumes, and a call that meets its guards without it."""

    assumption: Guard
    call: PassedArguments


@record
class EntryFacts:
    """What the guards of a function amount to."""

    example: PassedArguments | None
    """a call that meets them; None where they contradict each other"""
    unproven: tuple[Unproven, ...]


@record
class GuardCoverage:
    """What becomes of calls that are offered to variants in order."""

    shadowed: tuple[int, ...]
    """the variants that no call reaches"""
    uncovered: PassedArguments | None
    """a call that none takes"""


class GuardFacts(Analysis[Function, EntryFacts]):
    """Whether the guards of a function can be met, and imply what it assumes."""

    __slots__ = ()
    NAME = "guards"

    @classmethod
    def compute(cls, subject: Function, ask: Asker, /) -> EntryFacts:
        del ask
        types = [argument.type for argument in subject.arguments]
        given = guards_of(subject)
        if given is None:
            return EntryFacts(None, ())
        claims = [Claim(guard) for guard in given]
        found = (
            (guard, guard_counterexample(types, given, guard)) for guard in assumptions(subject)
        )
        return EntryFacts(
            find_call(types, claims),
            tuple(Unproven(guard, call) for guard, call in found if call is not None),
        )

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.FUNCTION:
            return edit.detail in ("guards", "alias_groups")
        # Another first block, or another argument of it, gives other arguments.
        return edit.operation is None and edit.kind is not EditKind.LABEL


def assumptions(function: Function) -> Iterator[Guard]:
    """What the types of the arguments and the groups of coinciding ones state as known."""
    for argument in function.arguments:
        if isinstance(argument.type, ViewType):
            place = argument.index
            for axis, extent in enumerate(argument.type.shape):
                if extent is not None:
                    yield Guard("extent", place, extent, axis)
            for axis, stride in enumerate(argument.type.strides):
                if stride is not None:
                    yield Guard("stride", place, stride, axis)
    groups = zip(function.arguments, function.attributes.get("alias_groups", ()), strict=False)
    for argument, first in groups:
        if isinstance(argument.type, ViewType):
            yield Guard("first_alike", argument.index, first)


def entry_guards(function: Function) -> tuple[Guard, ...]:
    """What a call has to meet to enter a function: its guards, or without any what it assumes."""
    given = guards_of(function)
    return tuple(assumptions(function)) if given is None else given


def guard_counterexample(
    types: Sequence[Type], given: Sequence[Guard], guard: Guard
) -> PassedArguments | None:
    """A call that meets the given guards and not this one; None where they imply it."""
    claims = [_plain(Claim(one)) for one in given]
    # Most often it is one of them, and nothing has to be searched.
    if _plain(Claim(guard)) in claims:
        return None
    return find_call(types, [*claims, Claim(guard, False)])


def cover_calls(types: Sequence[Type], variants: Sequence[Sequence[Guard]]) -> GuardCoverage:
    """What becomes of calls with arguments of these types; the first variant that fits runs."""
    rests: list[tuple[Claim, ...]] = [()]
    """what is known of calls that no variant took so far"""
    shadowed: list[int] = []
    for place, guards in enumerate(variants):
        met = [Claim(guard) for guard in guards]
        if all(find_call(types, [*rest, *met]) is None for rest in rests):
            shadowed.append(place)
        rests = [
            part
            for rest in rests
            for number, guard in enumerate(guards)
            if find_call(types, part := (*rest, *met[:number], Claim(guard, False))) is not None
        ]
    return GuardCoverage(tuple(shadowed), find_call(types, rests[0]) if rests else None)


def find_call(types: Sequence[Type], claims: Sequence[Claim]) -> PassedArguments | None:
    """A call for which every claim holds, if there is one."""
    plain = [_plain(claim) for claim in claims]
    for alike in _groupings(types, plain, ()):
        call = _filled(types, plain, alike)
        if call is not None:
            return call
    return None


def _plain(claim: Claim) -> Claim:
    """The same with one way to say that a stride is 1."""
    guard = claim.guard
    if guard.kind != "unit_stride" or not guard.value:
        return claim
    return Claim(Guard("stride", guard.argument, 1, guard.axis), claim.is_met)


# Arguments that are the same array -------------------------------------------------------------


def _groupings(
    types: Sequence[Type], claims: Sequence[Claim], chosen: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """For every argument the first one that is the same array; what no claim mentions is alone."""
    place = len(chosen)
    if place == len(types):
        yield chosen
        return
    about = [claim for claim in claims if claim.guard.kind == "first_alike"]
    own = [claim for claim in about if claim.guard.argument == place]
    firsts = [place]
    if own:
        firsts += [j for j in range(place) if chosen[j] == j and _may_be_same(types, j, place)]
    for first in firsts:
        if all((claim.guard.value == first) == claim.is_met for claim in own):
            yield from _groupings(types, claims, (*chosen, first))


def _may_be_same(types: Sequence[Type], one: int, other: int) -> bool:
    left, right = types[one], types[other]
    return (
        isinstance(left, ViewType)
        and isinstance(right, ViewType)
        and (left.dtype, left.rank) == (right.dtype, right.rank)
    )


# Extents and strides ---------------------------------------------------------------------------


def _filled(
    types: Sequence[Type], claims: Sequence[Claim], alike: tuple[int, ...]
) -> PassedArguments | None:
    """A call whose arguments coincide in this way."""
    call: list[PassedArray | None] = [None] * len(types)
    for first, type_ in enumerate(types):
        if not isinstance(type_, ViewType) or alike[first] != first:
            continue
        members = [place for place, group in enumerate(alike) if group == first]
        own = [
            [claim for claim in claims if claim.guard.argument == place and _is_about_axis(claim)]
            for place in members
        ]
        axes = _axes(own, type_.rank)
        if axes is None:
            return None
        shape = tuple(extent for extent, _ in axes)
        for number, place in enumerate(members):
            call[place] = PassedArray(shape, tuple(strides[number] for _, strides in axes), first)
    return tuple(call)


def _is_about_axis(claim: Claim) -> bool:
    return claim.guard.axis is not None


def _axes(members: Sequence[Sequence[Claim]], rank: int) -> list[_Axis] | None:
    """The axes of arguments that are one array, by the claims about each of them."""
    by_axis = [
        [[claim for claim in own if claim.guard.axis == axis] for own in members]
        for axis in range(rank)
    ]
    filled = [axis for axis in map(_axis, by_axis) if axis is not None]
    if len(filled) == rank:
        return filled
    return _empty(by_axis) if len(members) == 1 else None


def _axis(members: Sequence[Sequence[Claim]]) -> _Axis | None:
    """One axis of an array that has elements."""
    claims = [claim for own in members for claim in own]
    extent, stride = _extent(claims, 2, _MOST), _stride(claims)
    if extent is None or stride is None:
        # An axis of one element does not use its stride, so every guard about that is met.
        extent, stride = None if _uses_stride(claims) else _extent(claims, 1, 1), 1
    return None if extent is None else (extent, [stride] * len(members))


def _empty(axes: Sequence[Sequence[Sequence[Claim]]]) -> list[_Axis] | None:
    """An array without elements, which uses no stride."""
    claims = [[claim for own in members for claim in own] for members in axes]
    if any(_uses_stride(own) for own in claims):
        return None
    extents = [_extent(own, 0, _MOST) for own in claims]
    found = [extent for extent in extents if extent is not None]
    return [(extent, [1]) for extent in found] if len(found) == len(axes) and 0 in found else None


def _uses_stride(claims: Sequence[Claim]) -> bool:
    """Whether one of the claims holds only where the stride is used."""
    return any(claim.guard.kind != "extent" and not claim.is_met for claim in claims)


def _stride(claims: Sequence[Claim]) -> int | None:
    """A stride, that is used, for which the claims hold."""
    wanted: set[int] = set()
    refused: set[int] = set()
    for claim in claims:
        guard = claim.guard
        if guard.kind == "stride":
            (wanted if claim.is_met else refused).add(guard.value)
        elif guard.kind == "unit_stride":
            (wanted if claim.is_met == bool(guard.value) else refused).add(1)
    return next(_numbers(wanted, refused, 1), None)


def _extent(claims: Sequence[Claim], low: int, high: int) -> int | None:
    """The least number from `low` to `high` for which the claims hold."""
    about = [claim for claim in claims if claim.guard.kind == "extent"]
    wanted = {claim.guard.value for claim in about if claim.is_met}
    refused = {claim.guard.value for claim in about if not claim.is_met}
    number = next(_numbers(wanted, refused, low), None)
    return number if number is not None and low <= number <= high else None


def _numbers(wanted: set[int], refused: set[int], low: int) -> Iterator[int]:
    """The only number that is wanted; where none is, those from `low` that are not refused."""
    if len(wanted) > 1:
        return
    for number in wanted or count(low):
        if number not in refused:
            yield number
