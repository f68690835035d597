"""Whether the remaps that a function remembers are those of the nests that it has.

In: a function whose records are proven, each for the observers it lists. Out: what is wrong, or
nothing. The nests as they stand are led back through the records, the last one first. The new
levels of a record have to be there, by kind and extent; whoever looks at them now, found in the
function and not in the record, has to be somebody the record was proven for. What this leaves are
the nests before that remap, for the record before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

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
from tilenest.dialects import AppliedRemap, Nest, Placement, Synchronize, base_of
from tilenest.execution import ExecLevel, PrefixCut, holds_at
from tilenest.ir import EffectKind, Function, Operation, Value
from tilenest.machine import OPEN_SCOPE
from tilenest.records import record, replace

_MOST_JUDGED = 1024


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
    has_states: bool
    """whether the nest hands states on"""

    @property
    def around(self) -> tuple[Rung, ...]:
        """The levels around the nest itself."""
        own = self.rungs[-1].nest
        return tuple(rung for rung in self.rungs if rung.nest is not own)


def remap_problem(function: Function) -> RemapProblem | None:
    """What is wrong first with the remaps of a function; each of them is proven in itself."""
    remembered = remaps_of(function)
    paths = _Paths(function).paths() if remembered else ()
    for applied in reversed(remembered):
        found = _led_back(paths, applied)
        if isinstance(found, RemapProblem):
            return found
        paths = found
    return None


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
        return tuple(
            Path(
                rungs,
                tuple(dict.fromkeys(self.looks[nest])),
                self.passages[nest] is None and bool(initial_of(nest)),
            )
            for nest, rungs in self.rungs.items()
        )

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
                yield Look("owner", _owner_depth(self._around(op)), op.NAME)
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
        rungs = self.rungs[holder] if isinstance(holder, Nest) else self._around(holder)
        return _owner_depth(rungs)


def _owner_depth(rungs: Sequence[Rung]) -> int:
    return max((d for d, rung in enumerate(rungs, start=1) if rung.level.is_spatial), default=0)


# Back through a record -------------------------------------------------------------------------


def _led_back(paths: Sequence[Path], applied: AppliedRemap) -> tuple[Path, ...] | RemapProblem:
    """The nests as they were before a remap."""
    first: RemapProblem | None = None
    for place in _places(paths, applied):
        found = _undone(paths, place, applied)
        if not isinstance(found, RemapProblem):
            return found
        first = first or found
    extents = " x ".join(f"{level.extent} {level.kind}" for level in applied.new)
    return first or RemapProblem(
        f"no nests are {extents}, as the remap ({_title(applied)}) left them",
        "let a function forget its remaps when its nests change in another way",
    )


def _places(paths: Sequence[Path], applied: AppliedRemap) -> list[tuple[Rung, ...]]:
    """The nests that may be those that a remap left, with what is around them; where there are
    several, those whose levels are called as the record says come first."""
    new = tuple(map(level_of_record, applied.new))
    if not new:
        return [()]
    places = [
        path.rungs
        for path in paths
        if len(path.rungs) >= len(new)
        and all(
            _is_alike(rung.level, level)
            for rung, level in zip(path.rungs[-len(new) :], new, strict=True)
        )
    ]

    def other_names(rungs: tuple[Rung, ...]) -> int:
        pairs = zip(rungs[-len(new) :], new, strict=True)
        return sum(rung.level.name != level.name for rung, level in pairs)

    return sorted(places, key=other_names)


def _is_alike(one: ExecLevel, other: ExecLevel) -> bool:
    """Whether levels are of one kind, in one scope, and make as many trips, as far as is known; a
    scope that was left open may have been chosen since."""
    if one.family != other.family or other.scope not in (one.scope, OPEN_SCOPE):
        return False
    return one.extent == other.extent or {type(one.extent), type(other.extent)} == {str}


def _undone(
    paths: Sequence[Path], place: tuple[Rung, ...], applied: AppliedRemap
) -> tuple[Path, ...] | RemapProblem:
    """All paths as they were before the levels at the end of one of them were made."""
    start = len(place) - len(applied.new)
    nests = {level.nest or level.identity: object() for level in applied.old}
    old = tuple(Rung(level_of_record(lv), nests[lv.nest or lv.identity]) for lv in applied.old)
    found: list[Path] = []
    for path in paths:
        depth = _shared(path.rungs, place) - start
        if depth <= 0:
            found.append(path)
            continue
        is_whole = depth == len(applied.new)
        cut = len(old) if is_whole else _cut(applied, "anchor", depth)
        looks: list[Look] = []
        for look in (*path.looks, *_states(path, start + depth)):
            moved = _moved(look, applied, start, depth, cut)
            if moved is None:
                return _not_proven_for(look, applied, start)
            if look in path.looks:
                looks.append(moved)
        if cut is not None:
            rungs = path.rungs[:start] + old[:cut] + path.rungs[start + depth :]
            found.append(Path(rungs, tuple(looks), path.has_states))
    # Nests that the remap dissolved.
    for observer in applied.observers:
        if observer.kind == "anchor" and observer.depth:
            depth = start + observer.depth
            rungs = place[:start] + old[: observer.depth]
            found.append(Path(rungs, (Look("anchor", depth, observer.name),), False))
    return tuple(found)


def _states(path: Path, end: int) -> Iterator[Look]:
    """Who looks because a nest among the levels above a depth hands states on."""
    around = path.around
    if path.has_states and len(around) < end:
        yield Look("owner", _owner_depth(around), "a state")


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
    """The deepest old cut of the observers of a record that may as well stand at a new depth."""
    remap, observers, _ = remap_of_record(applied)
    alike = [one for one in observers if one.kind == kind]
    deepest_first = sorted(alike, key=lambda one: one.cut.depth, reverse=True)
    fits = (one.cut.depth for one in deepest_first if holds_at(remap, one, PrefixCut(depth)))
    return next(fits, None)


def _not_proven_for(look: Look, applied: AppliedRemap, start: int) -> RemapProblem:
    return RemapProblem(
        f"the remap ({_title(applied)}) is not proven for {look.kind} {look.name!r}, which looks "
        f"at the levels it left at depth {max(look.depth - start, 0)}",
        "remember a remap with everybody who looks at its levels",
    )


def _title(applied: AppliedRemap) -> str:
    return "; ".join(applied.steps) or "identity"
