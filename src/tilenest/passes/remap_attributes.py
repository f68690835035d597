"""What is said of the nests that a remap makes, beyond what their levels say.

In: old nests with nothing between them, a run of new levels, and the remap. Out: the attributes of
the nest of these levels, or a refusal. A new nest is called what the old nests were whose levels
went into it, and these have to agree: the window of one pipeline is not that of another. What is
said is of a step, which is all that one instance does. A law of reduction steps holds for several
of them together as well, but not for a part of one: the old step has to stand, whole, inside of the
new nest. Laws that nobody vouches for are what a body shows: they are read off the new body. All
attributes count that a class of nests declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import isqrt
from typing import Any

from tilenest.analysis import ExecChain, Reductions, lacking_merges, shown_laws
from tilenest.dialects import Nest, Parallel, Pipeline, Reduce, ReductionContract, Serial
from tilenest.errors import RemapError
from tilenest.execution import ExecLevel, ExecRemap, Observer, PrefixCut, holds_at
from tilenest.ir import Rewriter, Variable, fresh
from tilenest.records import fields_of, is_record, record, replace

_CLASSES: Mapping[str, type[Nest]] = {
    "parallel": Parallel,
    "serial": Serial,
    "pipeline": Pipeline,
    "reduce": Reduce,
}
_MOST_DIVISORS = 8
"""to be told of one number"""


def class_of(level: ExecLevel) -> type[Nest]:
    """The class of a nest of such levels."""
    return _CLASSES[level.kind]


@record
class Sources:
    """The old nests from `first` to `last`, and the depth of the new levels that replace them."""

    chain: ExecChain
    remap: ExecRemap
    first: int
    last: int
    end: int

    def attributes(self, start: int, levels: Sequence[ExecLevel]) -> dict[str, Any]:
        """What the nest of these levels is said to be, which stand from `start` on."""
        stop = start + len(levels)
        found = _plain(levels[0])
        places = [
            place
            for place in self._places()
            if self._level(place).family == levels[0].family and self._went_into(place, start, stop)
        ]
        for name, plain in found.items():
            said = [self._said(name, place) for place in places]
            if said:
                self._check_alike(name, places)
                found[name] = said[0]
            if said and not (_is_same(said[0], plain) or isinstance(said[0], Variable)):
                self._check_step(name, places[-1], stop)
        return found

    def _said(self, name: str, place: int) -> Any:
        """An attribute of an old nest, without laws that its body showed."""
        value = self.chain.nests[place].attributes[name]
        if isinstance(value, ReductionContract) and value.provenance != "trusted":
            return replace(value, laws=(), provenance="derived")
        return value

    def _places(self) -> range:
        return range(self.first, self.last + 1)

    def _level(self, place: int) -> ExecLevel:
        """One level of an old nest; it speaks for the others."""
        return self.chain.structure.levels[self.chain.starts[place]]

    def _went_into(self, place: int, start: int, stop: int) -> bool:
        """Whether a level of an old nest is made of new levels."""
        first, last = self.chain.starts[place : place + 2]
        new = frozenset(range(start, stop))
        return any(new & result.used_dims() for result in self.remap.traced[first:last])

    def _check_alike(self, name: str, places: Sequence[int]) -> None:
        """Refuse to make one nest of several of which different things are said."""
        first = self._said(name, places[0])
        for place in places[1:]:
            other, nest = self._said(name, place), self.chain.nests[place]
            if _is_same(other, first):
                continue
            parts = ", ".join(_differences(name, first, other))
            raise RemapError(
                f"the remap ({self.remap}) makes one nest of "
                f"{self._title(self.chain.nests[places[0]])} and {self._title(nest)}, which differ "
                f"in {parts}",
                remedy="leave these nests apart, or say the same of both",
                location=nest.location,
            )

    def _check_step(self, name: str, place: int, depth: int) -> None:
        """Refuse to say of a nest, the inside of which is at a depth, what is said of steps that
        are not in it."""
        nests, value = self.chain.nests, self._said(name, place)
        alike = (
            other
            for other in reversed(self._places())
            if type(nests[other]) is type(nests[place]) and _is_same(self._said(name, other), value)
        )
        if any(self._is_inside(other, depth) for other in alike):
            return
        plain = _plain(self._level(place))[name]
        parts = ", ".join(_differences(name, value, plain))
        raise RemapError(
            f"the remap ({self.remap}) changes the steps of {self._title(nests[place])}, which are "
            f"what its {parts} is said of",
            remedy="leave the levels inside of this nest where they are",
            location=nests[place].location,
        )

    def _is_inside(self, place: int, depth: int) -> bool:
        """Whether the steps of an old nest run, whole and once, somewhere below a new depth."""
        if place == self.last:
            return True
        step = Observer("a step", "anchor", PrefixCut(self.chain.starts[place + 1]))
        return any(
            holds_at(self.remap, step, PrefixCut(inner)) for inner in range(depth, self.end + 1)
        )

    def _title(self, nest: Nest) -> str:
        indices = nest.body.arguments[: nest.rank]
        return f"{nest.NAME} of {', '.join(index.name or 'an index' for index in indices)}"


def show_laws(nest: Nest, remap: ExecRemap, rewriter: Rewriter) -> None:
    """Write the laws that the body of a new nest shows, where nobody vouches for others; refuse a
    tree of a body that shows none."""
    if not isinstance(nest, Reduce) or nest.contract.provenance == "trusted":
        return
    laws = shown_laws(nest)
    rewriter.set_attribute(nest, "contract", replace(nest.contract, laws=laws))
    answers = fresh(Reductions, nest)
    if not lacking_merges(nest, answers):
        return
    remedy = "give the reduction a fold policy such as tn.reduction.fold_left"
    if remap.active.constraints:
        extents = (level.extent for level in remap.old.levels if level.policy == nest.policy)
        divisors = "; ".join(
            f"{', '.join(map(str, _divisors(extent)))} divide {extent}"
            for extent in dict.fromkeys(extents)
            if isinstance(extent, int)
        )
        factors = f"use factors without a tail{divisors and ' (' + divisors + ')'}"
        remedy = f"{factors}, or {remedy}"
    raise RemapError(
        f"the remap ({remap}) leaves a reduction by {nest.policy}, which regroups contributions, "
        "with a body that shows no merge",
        remedy=remedy,
        location=nest.location,
    )


def _divisors(number: int) -> list[int]:
    """The smallest numbers above 1 that divide one, and the number itself."""
    found = (factor for factor in range(2, isqrt(max(number, 0)) + 1) if number % factor == 0)
    return [*islice(found, _MOST_DIVISORS), number]


def _plain(level: ExecLevel) -> dict[str, Any]:
    """What is said of a nest of which only a level is known."""
    cls = class_of(level)
    found = {field.name: field.default for field in cls.SPEC.attributes}
    if cls is Parallel:
        found["scope"] = level.scope
    if cls is Reduce:
        found["contract"] = ReductionContract(level.policy)
    return found


def _differences(name: str, one: object, other: object) -> Iterator[str]:
    """Where two values of an attribute differ: in fields, where they are records of one kind."""
    if type(one) is not type(other) or not is_record(one):
        yield f"`{name}`"
        return
    for field in fields_of(type(one)):
        if not _is_same(getattr(one, field), getattr(other, field)):
            yield f"`{name}.{field}`"


def _is_same(one: object, other: object) -> bool:
    """Whether two values of an attribute say the same; as numbers, 0 is -0, and NaN is no NaN."""
    return repr(one) == repr(other)
