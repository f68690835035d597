"""Whether the remaps that a function remembers are those of the nests that it has.

In: a function whose records are proven, each for the observers it lists. Out: what is wrong, or
nothing. The nests as they stand are led back through the records, the last one first. The new
levels of a record have to be there, by kind and extent, with a body that does what the record says;
whoever looks at them now, found in the function and not in the record, has to be somebody it was
proven for. What this leaves are the nests before that remap, for the record before. A level of one
instance tells nobody apart: levels are counted without it, wherever it stood when it went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from tilenest.analysis.execution_chains import levels_of
from tilenest.analysis.execution_remaps import (
    Look,
    level_of_record,
    looks_of,
    passage_of,
    remap_of_record,
    remaps_of,
)
from tilenest.analysis.execution_structure import initial_of
from tilenest.analysis.remapped_bodies import (
    NestBody,
    OldBody,
    RemapProblem,
    Rung,
    old_body,
    title_of,
)
from tilenest.analysis.structure import constant_of, enclosing_nests
from tilenest.dialects import AppliedRemap, Nest, RemapLevel
from tilenest.execution import ExecLevel, ExecRemap, Observer, ObserverKind, PrefixCut, holds_at
from tilenest.ir import Function, Operation
from tilenest.machine import OPEN_SCOPE
from tilenest.records import record, replace

_MOST_JUDGED = 1024
_MOST_TRIED = 100
"""After so many ways in which the nests did not come about, no other one is looked for."""


@record
class _Path:
    """A nest with those around it, from the outside in, and who looks from right inside of it. One
    that a remap dissolved has a path as long as somebody is known to have stood in it."""

    rungs: tuple[Rung, ...]
    """the levels of more than one instance"""
    looks: tuple[Look, ...]
    """at depths among these rungs"""
    carried: int | None
    """how many of the rungs are around the nest, if it hands states on"""


@record(eq=False)
class _Undo:
    """A record, with the levels that it is about: those of more than one instance."""

    applied: AppliedRemap
    old: tuple[Rung, ...]
    new: tuple[ExecLevel, ...]
    last: int
    """the old levels around the innermost old nest"""


def remap_problem(function: Function) -> RemapProblem | None:
    """What is wrong with the remaps of a function, each of which is proven in itself. Where nests
    are alike, each of them may be the one that a remap left; another one is looked at only where
    the nests did not come about by the one before."""
    undos = tuple(map(_undo, reversed(remaps_of(function))))
    if not undos:
        return None
    ways = [_led_back(_Paths(function).paths(), undos[0])]
    problems: list[tuple[int, RemapProblem]] = []
    while ways and len(problems) < _MOST_TRIED:
        found = next(ways[-1], None)
        if found is None:
            ways.pop()
        elif isinstance(found, RemapProblem):
            problems.append((len(ways), found))
        elif len(ways) == len(undos):
            return None
        else:
            ways.append(_led_back(found, undos[len(ways)]))
    if any(next(way, None) is not None for way in reversed(ways)):
        return _gave_up(undos[0].applied)
    return max(problems, key=lambda entry: entry[0])[1]


def _gave_up(last: AppliedRemap) -> RemapProblem:
    return RemapProblem(
        f"in none of {_MOST_TRIED} ways that were tried did the nests come about by its remaps, of "
        f"which the last is ({title_of(last)}); there are more ways",
        "name levels that are alike differently before they are rearranged, or let the function "
        "forget its remaps",
    )


# The nests as they stand -----------------------------------------------------------------------


class _Paths:
    """The paths of a function while they are collected."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.rungs: dict[Nest, tuple[Rung, ...]] = {}
        self.looks: dict[Nest, list[Look]] = {}
        self.passages: dict[Nest, Nest | None] = {}

    def paths(self) -> tuple[_Path, ...]:
        for op in self.function.walk():
            if isinstance(op, Nest):
                self._nest(op)
        for op in self.function.walk():
            nest = next(enclosing_nests(op), None)
            if nest is not None:
                self._home(nest).extend(looks_of(op))
        return tuple(self._path(nest) for nest in self.rungs)

    def _path(self, nest: Nest) -> _Path:
        rungs = self.rungs[nest]
        levels = [rung.level for rung in rungs]
        looks = (
            replace(look, depth=_depth_in(levels, look.kind, look.depth))
            for look in self.looks[nest]
        )
        is_carrying = self.passages[nest] is None and bool(initial_of(nest))
        around = _depth_in(levels, "anchor", len(rungs) - nest.rank)
        kept = tuple(rung for rung in rungs if _is_counted(rung.level))
        return _Path(kept, tuple(dict.fromkeys(looks)), around if is_carrying else None)

    def _nest(self, nest: Nest) -> None:
        outer = self._around(nest)
        rungs = (*outer, *_rungs_of(nest))
        self.rungs[nest], self.looks[nest] = rungs, []
        self.passages[nest] = passage_of(nest)
        if self.passages[nest] is None:
            self.looks[nest].append(
                Look("anchor", len(rungs), f"the body of {rungs[-1].level.name}")
            )

    def _home(self, nest: Nest) -> list[Look]:
        """Where looks from inside a nest are kept: with the next nest that is no passage."""
        inner: Nest | None = nest
        while inner is not None:
            nest, inner = inner, self.passages[inner]
        return self.looks[nest]

    def _around(self, op: Operation) -> tuple[Rung, ...]:
        nest = next(enclosing_nests(op), None)
        return () if nest is None else self.rungs[nest]


def _rungs_of(nest: Nest) -> Iterator[Rung]:
    """The levels of a nest as it stands."""
    block = nest.regions[-1].block
    body = NestBody(block, block.arguments[nest.rank :])
    for axis, level in enumerate(levels_of(nest)):
        bounds = nest.inductions()[axis]
        is_plain = (constant_of(bounds.lower), constant_of(bounds.step)) == (0, 1)
        counters = (nest.body.arguments[axis],)
        yield (
            Rung(level, body, counters, trips=bounds.upper)
            if is_plain
            else Rung(level, body, counters, bounds)
        )


def _is_counted(level: ExecLevel) -> bool:
    return level.extent != 1


def _depth_in(levels: Sequence[ExecLevel], kind: str, depth: int) -> int:
    """A depth among all levels as one among those of more than one instance; who owns something
    stands right below the last parallel one."""
    above = [level for level in levels[:depth] if _is_counted(level)]
    while kind == "owner" and above and not above[-1].is_spatial:
        above.pop()
    return len(above)


# Back through a record -------------------------------------------------------------------------


def _undo(applied: AppliedRemap) -> _Undo:
    old: list[Rung] = []
    last = 0
    for _, run in groupby(_levels(applied.old), key=_nest_of):
        nest, last = NestBody(), len(old)
        old += [Rung(level, nest) for level in run if _is_counted(level)]
    return _Undo(applied, tuple(old), tuple(filter(_is_counted, _levels(applied.new))), last)


def _levels(recorded: Sequence[RemapLevel]) -> tuple[ExecLevel, ...]:
    return tuple(map(level_of_record, recorded))


def _nest_of(level: ExecLevel) -> tuple[str, str]:
    return level.nest, "" if level.nest else level.identity


def _led_back(paths: tuple[_Path, ...], undo: _Undo) -> Iterator[tuple[_Path, ...] | RemapProblem]:
    """The nests as they may have been before a remap; what is wrong, where there are none such."""
    problem: RemapProblem | None = None
    is_found = False
    for place in _places(paths, undo.new):
        before = _undone(paths, place, undo)
        if isinstance(before, RemapProblem):
            problem = problem or before
        else:
            is_found = True
            yield before
    if not is_found:
        yield problem or _missing(undo)


def _missing(undo: _Undo) -> RemapProblem:
    extents = " x ".join(f"{level.extent} {level.kind}" for level in undo.new)
    return RemapProblem(
        f"no nests are {extents}, as the remap ({title_of(undo.applied)}) left them",
        "let a function forget its remaps when its nests change in another way",
    )


def _places(paths: Sequence[_Path], new: tuple[ExecLevel, ...]) -> list[tuple[Rung, ...]]:
    """The nests that may be those that a remap left, with what is around them; where there are
    several, those whose levels are called as the record says come first."""
    if not new:
        return [()]
    ends = dict.fromkeys(rungs for path in paths for rungs in _ends(path.rungs))
    places = [
        rungs
        for rungs in ends
        if len(rungs) >= len(new)
        and all(
            _is_alike(rung.level, level)
            for rung, level in zip(rungs[-len(new) :], new, strict=True)
        )
    ]

    def other_names(rungs: tuple[Rung, ...]) -> int:
        pairs = zip(rungs[-len(new) :], new, strict=True)
        return sum(rung.level.name != level.name for rung, level in pairs)

    return sorted(places, key=other_names)


def _ends(rungs: tuple[Rung, ...]) -> Iterator[tuple[Rung, ...]]:
    """The levels down to the end of each nest of a path, from the inside out; a nest that is no
    path of its own any more may still be around one."""
    for end in range(len(rungs), 0, -1):
        if end == len(rungs) or rungs[end].nest is not rungs[end - 1].nest:
            yield rungs[:end]


def _is_alike(one: ExecLevel, other: ExecLevel) -> bool:
    """Whether levels are of one kind, in one scope, and make as many trips, as far as is known; a
    scope that was left open may have been chosen since."""
    is_of_kind = (one.kind, one.policy) == (other.kind, other.policy)
    if not is_of_kind or other.scope not in (one.scope, OPEN_SCOPE):
        return False
    return one.extent == other.extent or {type(one.extent), type(other.extent)} == {str}


# What `_undone` keeps true. Say that the paths are those of the nests of a function, each with
# everybody who looks from right inside its nest, and at what depth. Let the levels at the end of
# `place` be those that a record left, and let the record be proven for each of its observers. Then
# the function may have come about by this remap from one with the paths that `_undone` gives:
# - the body of the new levels is a program of the old ones, by `old_body`;
# - whoever looks at a depth among the new levels has a counterpart among the old ones, an observer
#   that the record is proven for, and looks there in the path before;
# - whoever looks from above them looks at the same depth as before, and whoever looks from below at
#   one that is deeper by as many levels as there are more;
# - a nest that is gone has a path for each anchor that the record says stood in it.
# So a function of which all records are undone may have come about by them, in their order, and
# each of them was legal for everybody who looked at its levels then.


def _undone(
    paths: Sequence[_Path], place: tuple[Rung, ...], undo: _Undo
) -> tuple[_Path, ...] | RemapProblem:
    """All paths as they were before the levels at the end of one of them were made."""
    start = len(place) - len(undo.new)
    body = old_body(undo.applied, place[start:])
    if isinstance(body, OldBody):
        undo = _placed(undo, body)
    found: list[_Path] = []
    for path in paths:
        new_depth = _shared(path.rungs, place) - start
        if new_depth <= 0:
            found.append(path)
            continue
        is_whole = new_depth == len(undo.new)
        old_depth = len(undo.old) if is_whole else _old_depth(undo.applied, "anchor", new_depth)
        looks: list[Look] = []
        for look in (*path.looks, *_states(path, start + new_depth)):
            moved = _moved(look, undo.applied, start, new_depth, old_depth)
            if moved is None:
                return _not_proven_for(look, undo.applied, start)
            if look in path.looks:
                looks.append(moved)
        if old_depth is not None:
            rungs = path.rungs[:start] + undo.old[:old_depth] + path.rungs[start + new_depth :]
            carried = _carried(path, undo, start, new_depth, old_depth)
            found.append(_Path(rungs, tuple(looks), carried))
    return body if isinstance(body, RemapProblem) else (*found, *_dissolved(place[:start], undo))


def _placed(undo: _Undo, body: OldBody) -> _Undo:
    """The old levels where they are in the function."""
    counters = [
        (values, domain)
        for values, domain, level in zip(
            body.counters, body.domains, _levels(undo.applied.old), strict=True
        )
        if _is_counted(level)
    ]
    nests: dict[NestBody, NestBody] = {rung.nest: NestBody() for rung in undo.old}
    if undo.old:
        nests[undo.old[-1].nest] = body.nest
    old = [
        Rung(
            rung.level,
            nests[rung.nest],
            values,
            domain,
            body.trips.get(str(rung.level.extent)) if domain is None else None,
            body.guards,
        )
        for rung, (values, domain) in zip(undo.old, counters, strict=True)
    ]
    return replace(undo, old=tuple(old))


def _states(path: _Path, end: int) -> Iterator[Look]:
    """Who looks because a nest among the levels above a depth hands states on."""
    if path.carried is not None and path.carried < end:
        levels = [rung.level for rung in path.rungs]
        yield Look("owner", _depth_in(levels, "owner", path.carried), "a state")


def _carried(path: _Path, undo: _Undo, start: int, new_depth: int, old_depth: int) -> int | None:
    """What was around a nest that hands states on."""
    if path.carried is None:
        return None
    if path.carried >= start + new_depth:
        return path.carried - new_depth + old_depth
    if old_depth == len(undo.old):
        return start + undo.last
    own = undo.old[old_depth - 1].nest
    return start + sum(rung.nest is not own for rung in undo.old[:old_depth])


def _dissolved(around: tuple[Rung, ...], undo: _Undo) -> Iterator[_Path]:
    """The nests that a remap dissolved. What stood below all levels still stands in the last nest
    that it left, which is a path already."""
    levels = _levels(undo.applied.old)
    deepest = len(undo.old) - bool(undo.new)
    for observer in undo.applied.observers:
        depth = _depth_in(levels, "anchor", observer.depth)
        if observer.kind == "anchor" and 0 < depth <= deepest:
            look = Look("anchor", len(around) + depth, observer.name)
            yield _Path(around + undo.old[:depth], (look,), None)


def _shared(one: Sequence[Rung], other: Sequence[Rung]) -> int:
    """How many levels two paths share."""
    pairs = zip(one, other, strict=False)
    return next((d for d, (a, b) in enumerate(pairs) if a is not b), min(len(one), len(other)))


def _moved(
    look: Look, applied: AppliedRemap, start: int, new_depth: int, old_depth: int | None
) -> Look | None:
    """Where somebody looked before; None where the record was not proven for it. Of the levels that
    the record made, from `start` on, `new_depth` are around it now; of those before, `old_depth`
    were."""
    seen = look.depth - start
    if seen > new_depth:
        return (
            None if old_depth is None else replace(look, depth=look.depth - new_depth + old_depth)
        )
    if seen < 0 and look.kind != "owner":
        return look
    found = _old_depth(applied, look.kind, max(seen, 0))
    if found is None:
        return None
    return look if seen <= 0 else replace(look, depth=start + found)


@lru_cache(maxsize=_MOST_JUDGED)
def _old_depth(applied: AppliedRemap, kind: ObserverKind, new_depth: int) -> int | None:
    """The deepest depth in the old levels of an observer of the record that may as well stand at a
    depth in the new ones, and wherever there are only levels of one instance between."""
    remap, observers, _ = remap_of_record(applied)
    old, new = remap.old.levels, remap.new.levels
    there = [
        PrefixCut(place)
        for place in range(len(new) + 1)
        if _depth_in(new, "anchor", place) == new_depth
    ]
    alike = [_counted(one, old) for one in observers if one.kind == kind]
    alike += _at_ends(remap, kind, new_depth)
    deepest_first = sorted(alike, key=lambda one: one.cut.depth, reverse=True)
    fits = (
        _depth_in(old, kind, one.cut.depth)
        for one in deepest_first
        if all(holds_at(remap, one, new_cut) for new_cut in there)
    )
    return next(fits, None)


def _at_ends(remap: ExecRemap, kind: ObserverKind, depth: int) -> Iterator[Observer]:
    """Those who see nothing of the levels, or as much as the levels as a whole do: no record has to
    list them. What runs below all levels is listed, since a record says whose work it moves."""
    if depth == 0 and kind != "owner":
        yield Observer("above", kind, PrefixCut(0))
    if depth == sum(map(_is_counted, remap.new.levels)) and kind in ("frontier", "convergence"):
        yield Observer("below", kind, remap.old.leaf)


def _counted(observer: Observer, old: Sequence[ExecLevel]) -> Observer:
    """Who owns something, right below the last parallel level of more than one instance."""
    if observer.kind != "owner":
        return observer
    above = enumerate(old[: observer.cut.depth], start=1)
    depths = [depth for depth, level in above if level.is_spatial and _is_counted(level)]
    return replace(observer, cut=PrefixCut(max(depths, default=0)))


def _not_proven_for(look: Look, applied: AppliedRemap, start: int) -> RemapProblem:
    return RemapProblem(
        f"the remap ({title_of(applied)}) is not proven for {look.kind} {look.name!r}, which looks "
        f"at the levels it left at depth {max(look.depth - start, 0)}",
        "remember a remap with everybody who looks at its levels",
    )
