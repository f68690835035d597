"""Whether the remaps that a function remembers are those of the nests that it has.

In: a function whose records are proven, each for the observers it lists. Out: what is wrong, or
nothing. The nests as they stand are led back through the records, the last one first. The new
levels of a record have to be there, by kind and extent; whoever looks at them now, found in the
function and not in the record, has to be somebody the record was proven for. What this leaves are
the nests before that remap, for the record before. A level of one instance tells nobody apart: here
levels are counted without it, so that it does not matter in which nest it stood when it went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from tilenest.analysis.execution_chains import levels_of
from tilenest.analysis.execution_remaps import (
    SHARED_EFFECTS,
    level_of_record,
    passage_of,
    remap_of_record,
    remaps_of,
)
from tilenest.analysis.execution_structure import initial_of
from tilenest.analysis.structure import enclosing_nests, nearest_parallel
from tilenest.dialects import AppliedRemap, Nest, Placement, RemapLevel, Synchronize, base_of
from tilenest.execution import ExecLevel, ExecRemap, Observer, PrefixCut, holds_at
from tilenest.ir import EffectKind, Function, Operation, Value
from tilenest.machine import OPEN_SCOPE
from tilenest.records import record, replace

_MOST_JUDGED = 1024
_MOST_TRIED = 100
"""After so many ways in which the nests did not come about, no other one is looked for."""


@record
class RemapProblem:
    """Why a function cannot remember what it does, and what to do."""

    message: str
    remedy: str


@record(eq=False)
class Rung:
    """One level of one nest, which may be alike to others."""

    level: ExecLevel
    nest: object
    """the same for the levels of one nest"""


@record
class Look:
    """Somebody who looks at the levels above a depth."""

    kind: str
    depth: int
    name: str


@record
class Path:
    """A nest with those around it, from the outside in, and who looks from right inside of it."""

    rungs: tuple[Rung, ...]
    looks: tuple[Look, ...]
    carried: int | None
    """the levels around the nest, if it hands states on"""


@record(eq=False)
class Undo:
    """A record, with the levels that it is about: those of more than one instance."""

    applied: AppliedRemap
    old: tuple[Rung, ...]
    new: tuple[ExecLevel, ...]
    last: int
    """the old levels around the innermost old nest"""


def remap_problem(function: Function) -> RemapProblem | None:
    """What is wrong with the remaps of a function, each of which is proven in itself. Where nests
    are alike, each of them may be the one that a remap left."""
    undos = tuple(map(_undo, reversed(remaps_of(function))))
    waiting = [(0, _Paths(function).paths() if undos else ())]
    problems: list[tuple[int, RemapProblem]] = []
    while waiting and len(problems) < _MOST_TRIED:
        done, paths = waiting.pop()
        if done == len(undos):
            return None
        found = _led_back(paths, undos[done])
        if isinstance(found, RemapProblem):
            problems.append((done, found))
        else:
            waiting += [(done + 1, before) for before in reversed(found)]
    return max(problems, key=lambda entry: entry[0])[1]


# The nests as they stand -----------------------------------------------------------------------


class _Paths:
    """The paths of a function while they are collected."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.rungs: dict[Nest, tuple[Rung, ...]] = {}
        self.looks: dict[Nest, list[Look]] = {}
        self.passages: dict[Nest, Nest | None] = {}

    def paths(self) -> tuple[Path, ...]:
        for op in self.function.walk():
            if isinstance(op, Nest):
                self._nest(op)
        for op in self.function.walk():
            nest = next(enclosing_nests(op), None)
            if nest is not None:
                self._home(nest).extend(self._looks(op))
        return tuple(self._path(nest) for nest in self.rungs)

    def _path(self, nest: Nest) -> Path:
        rungs = self.rungs[nest]
        levels = [rung.level for rung in rungs]
        looks = (
            replace(look, depth=_depth_in(levels, look.kind, look.depth))
            for look in self.looks[nest]
        )
        is_carrying = self.passages[nest] is None and bool(initial_of(nest))
        around = _depth_in(levels, "anchor", len(rungs) - nest.rank)
        kept = tuple(rung for rung in rungs if _is_counted(rung.level))
        return Path(kept, tuple(dict.fromkeys(looks)), around if is_carrying else None)

    def _nest(self, nest: Nest) -> None:
        outer = self._around(nest)
        rungs = (*outer, *(Rung(level, nest) for level in levels_of(nest)))
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

    def _looks(self, op: Operation) -> Iterator[Look]:
        for effect in op.effects():
            if effect.kind is EffectKind.ALLOCATE:
                yield Look("owner", len(self._around(op)), op.NAME)
            elif effect.kind in SHARED_EFFECTS:
                yield Look("owner", self._depth_of_memory(effect.resource), op.NAME)
        if isinstance(op, Synchronize):
            nest = nearest_parallel(op)
            if nest is not None:
                yield Look("convergence", len(self._around(nest)), op.NAME)
        stated = op.attributes.get("place")
        if isinstance(stated, Placement):
            yield Look("anchor", stated.anchor, op.NAME)
            yield Look("frontier", stated.frontier, op.NAME)

    def _depth_of_memory(self, memory: Value | None) -> int:
        """The depth at which the owner of a memory stands, the caller at 0."""
        block = None if memory is None else base_of(memory).defining_block
        holder = None if block is None else block.parent_op
        if holder is None:
            return 0
        return len(self.rungs[holder] if isinstance(holder, Nest) else self._around(holder))


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


def _undo(applied: AppliedRemap) -> Undo:
    old: list[Rung] = []
    last = 0
    for _, run in groupby(_levels(applied.old), key=_nest_of):
        nest, last = object(), len(old)
        old += [Rung(level, nest) for level in run if _is_counted(level)]
    return Undo(applied, tuple(old), tuple(filter(_is_counted, _levels(applied.new))), last)


def _levels(recorded: Sequence[RemapLevel]) -> tuple[ExecLevel, ...]:
    return tuple(map(level_of_record, recorded))


def _nest_of(level: ExecLevel) -> tuple[str, str]:
    return level.nest, "" if level.nest else level.identity


def _led_back(paths: tuple[Path, ...], undo: Undo) -> tuple[tuple[Path, ...], ...] | RemapProblem:
    """The nests as they may have been before a remap."""
    tried = [_undone(paths, place, undo) for place in _places(paths, undo.new)]
    found = tuple(one for one in tried if not isinstance(one, RemapProblem))
    if found:
        return found
    extents = " x ".join(f"{level.extent} {level.kind}" for level in undo.new)
    missing = RemapProblem(
        f"no nests are {extents}, as the remap ({_title(undo.applied)}) left them",
        "let a function forget its remaps when its nests change in another way",
    )
    return next((one for one in tried if isinstance(one, RemapProblem)), missing)


def _places(paths: Sequence[Path], new: tuple[ExecLevel, ...]) -> list[tuple[Rung, ...]]:
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
    if one.family != other.family or other.scope not in (one.scope, OPEN_SCOPE):
        return False
    return one.extent == other.extent or {type(one.extent), type(other.extent)} == {str}


def _undone(
    paths: Sequence[Path], place: tuple[Rung, ...], undo: Undo
) -> tuple[Path, ...] | RemapProblem:
    """All paths as they were before the levels at the end of one of them were made."""
    start = len(place) - len(undo.new)
    found: list[Path] = []
    for path in paths:
        depth = _shared(path.rungs, place) - start
        if depth <= 0:
            found.append(path)
            continue
        is_whole = depth == len(undo.new)
        cut = len(undo.old) if is_whole else _cut(undo.applied, "anchor", depth)
        looks: list[Look] = []
        for look in (*path.looks, *_states(path, start + depth)):
            moved = _moved(look, undo.applied, start, depth, cut)
            if moved is None:
                return _not_proven_for(look, undo.applied, start)
            if look in path.looks:
                looks.append(moved)
        if cut is not None:
            rungs = path.rungs[:start] + undo.old[:cut] + path.rungs[start + depth :]
            carried = _carried(path, undo, start, depth, cut)
            found.append(Path(rungs, tuple(looks), carried))
    return (*found, *_dissolved(place[:start], undo))


def _states(path: Path, end: int) -> Iterator[Look]:
    """Who looks because a nest among the levels above a depth hands states on."""
    if path.carried is not None and path.carried < end:
        levels = [rung.level for rung in path.rungs]
        yield Look("owner", _depth_in(levels, "owner", path.carried), "a state")


def _carried(path: Path, undo: Undo, start: int, depth: int, cut: int) -> int | None:
    """What was around a nest that hands states on."""
    if path.carried is None:
        return None
    if path.carried >= start + depth:
        return path.carried - depth + cut
    if cut == len(undo.old):
        return start + undo.last
    own = undo.old[cut - 1].nest
    return start + sum(rung.nest is not own for rung in undo.old[:cut])


def _dissolved(around: tuple[Rung, ...], undo: Undo) -> Iterator[Path]:
    """The nests that a remap dissolved. What stood below all levels still stands in the last nest
    that it left, which is a path already."""
    levels = _levels(undo.applied.old)
    deepest = len(undo.old) - bool(undo.new)
    for observer in undo.applied.observers:
        depth = _depth_in(levels, "anchor", observer.depth)
        if observer.kind == "anchor" and 0 < depth <= deepest:
            look = Look("anchor", len(around) + depth, observer.name)
            yield Path(around + undo.old[:depth], (look,), None)


def _shared(one: Sequence[Rung], other: Sequence[Rung]) -> int:
    """How many levels two paths share."""
    pairs = zip(one, other, strict=False)
    return next((d for d, (a, b) in enumerate(pairs) if a is not b), min(len(one), len(other)))


def _moved(
    look: Look, applied: AppliedRemap, start: int, depth: int, cut: int | None
) -> Look | None:
    """Where somebody looked before; None where the record was not proven for it. Of the levels that
    the record made, from `start` on, `depth` are around it now, and `cut` were."""
    seen = look.depth - start
    if seen > depth:
        return None if cut is None else replace(look, depth=look.depth - depth + cut)
    if seen < 0 and look.kind != "owner":
        return look
    found = _cut(applied, look.kind, max(seen, 0))
    if found is None:
        return None
    return look if seen <= 0 else replace(look, depth=start + found)


@lru_cache(maxsize=_MOST_JUDGED)
def _cut(applied: AppliedRemap, kind: str, depth: int) -> int | None:
    """The deepest old cut of the observers of a record that may as well stand at a new depth, and
    wherever there are only levels of one instance between."""
    remap, observers, _ = remap_of_record(applied)
    old, new = remap.old.levels, remap.new.levels
    there = [
        PrefixCut(place)
        for place in range(len(new) + 1)
        if _depth_in(new, "anchor", place) == depth
    ]
    alike = [_counted(one, old) for one in observers if one.kind == kind]
    alike += _at_ends(remap, kind, depth)
    deepest_first = sorted(alike, key=lambda one: one.cut.depth, reverse=True)
    fits = (
        _depth_in(old, kind, one.cut.depth)
        for one in deepest_first
        if all(holds_at(remap, one, cut) for cut in there)
    )
    return next(fits, None)


def _at_ends(remap: ExecRemap, kind: str, depth: int) -> Iterator[Observer]:
    """Those who see nothing of the levels, or as much as the levels as a whole do: no record has to
    list them. What runs below all levels is listed, since a record says whose work it moves."""
    if depth == 0 and kind != "owner":
        yield Observer("above", kind, PrefixCut(0))  # type: ignore[arg-type]  # a look has no other
    if depth == sum(map(_is_counted, remap.new.levels)) and kind in ("frontier", "convergence"):
        yield Observer("below", kind, remap.old.leaf)  # type: ignore[arg-type]  # a look has no other


def _counted(observer: Observer, old: Sequence[ExecLevel]) -> Observer:
    """Who owns something, right below the last parallel level of more than one instance."""
    if observer.kind != "owner":
        return observer
    above = enumerate(old[: observer.cut.depth], start=1)
    depths = [depth for depth, level in above if level.is_spatial and _is_counted(level)]
    return replace(observer, cut=PrefixCut(max(depths, default=0)))


def _not_proven_for(look: Look, applied: AppliedRemap, start: int) -> RemapProblem:
    return RemapProblem(
        f"the remap ({_title(applied)}) is not proven for {look.kind} {look.name!r}, which looks "
        f"at the levels it left at depth {max(look.depth - start, 0)}",
        "remember a remap with everybody who looks at its levels",
    )


def _title(applied: AppliedRemap) -> str:
    return "; ".join(applied.steps) or "identity"
