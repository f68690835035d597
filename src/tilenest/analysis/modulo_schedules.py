"""Modulo schedules: when the stages of overlapping iterations run, in plain integers.

In: how long each stage takes and which engine it holds meanwhile, what waits for what over how many
iterations, how long values are needed, how many iterations may be in flight. Out: a frozen answer:
stage s of iteration i begins at i * interval + starts[s], and a value has a ring of versions so
long that none is written anew while it is read. The least interval follows from cycles of waits and
from engines; from there on intervals are tried. Small problems are searched completely, larger ones
from the earliest start on.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from tilenest.records import record

_MOST_TRIED = 4096
"""Residues of all stages that a complete search goes through."""


@record
class Work:
    """One stage: how long it takes, and the engine that it holds for this long."""

    latency: int
    engine: str = "worker"


@record
class Wait:
    """Stage `consumer` of the iteration `distance` later begins at least `latency` after stage
    `producer` began."""

    producer: int
    consumer: int
    latency: int
    distance: int = 0


@record
class Need:
    """A value that stage `producer` begins to write, and that `readers` (stages, and how many
    iterations later) have to find until they end."""

    producer: int
    readers: tuple[tuple[int, int], ...]


@record
class Problem:
    """What is to be scheduled. Engines that are not named have room for one stage at a time; a
    `window` of 0 lets any number of iterations be in flight."""

    work: tuple[Work, ...]
    waits: tuple[Wait, ...]
    needs: tuple[Need, ...] = ()
    engines: Mapping[str, int] = MappingProxyType({})
    window: int = 0
    interval: int = 1


@record
class ModuloSchedule:
    """When stages run, how many versions each need asks for, and why it is not denser."""

    interval: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    versions: tuple[int, ...]
    is_densest: bool
    """whether no legal schedule has a smaller interval"""
    reasons: tuple[str, ...]

    @property
    def span(self) -> int:
        """From the first start of an iteration to its last end."""
        return max(self.ends)

    @property
    def fill(self) -> int:
        """Until the last stage of the first iteration begins."""
        return max(self.starts)

    @property
    def drain(self) -> int:
        """From then on in the last iteration, until it ends."""
        return self.span - self.fill

    @property
    def in_flight(self) -> int:
        """The most iterations that have begun and not ended."""
        return max(1, -(-self.span // self.interval))

    def time(self, iterations: int) -> int:
        """From the start of the first to the end of the last of so many iterations."""
        return self.fill + (iterations - 1) * self.interval + self.drain if iterations > 0 else 0


@record
class Infeasible:
    """Why nothing can be scheduled."""

    reason: str


def modulo_schedule(problem: Problem) -> ModuloSchedule | Infeasible:
    """The densest schedule that is found, and of those the shortest."""
    bounds = _bounds(problem)
    if isinstance(bounds, Infeasible):
        return bounds
    least = max(bound for bound, _ in bounds)
    reasons = tuple(reason for bound, reason in bounds if bound == least)
    interval, starts = next(_found(problem, least))
    is_densest = all(_is_small(problem, tried) for tried in range(least, interval))
    if interval > least:
        reasons = (f"at {interval - 1} engines or the window leave a stage no place",)
    ends = tuple(s + work.latency for s, work in zip(starts, problem.work, strict=True))
    versions = _versions(problem, interval, starts)
    return ModuloSchedule(interval, starts, ends, versions, is_densest, reasons)


def _found(problem: Problem, least: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Schedules of ever larger intervals."""
    for interval in itertools.count(least):
        search = _best if _is_small(problem, interval) else _earliest
        starts = search(problem, interval)
        if starts is not None:
            yield interval, starts


def _is_small(problem: Problem, interval: int) -> bool:
    """Whether a complete search is short."""
    return bool(interval ** len(problem.work) <= _MOST_TRIED)


def is_legal(problem: Problem, interval: int, starts: Sequence[int]) -> bool:
    """Whether waits, engines and the window hold for all iterations."""
    span = max(starts[s] + work.latency for s, work in enumerate(problem.work)) - min(starts)
    return (
        not any(late_waits(problem.waits, interval, starts))
        and all(_has_room(problem, interval, starts, s) for s in range(len(starts)))
        and (not problem.window or -(-span // interval) <= problem.window)
    )


def late_waits(waits: Sequence[Wait], interval: int, starts: Sequence[int]) -> Iterator[Wait]:
    """The waits whose consumer begins too early."""
    for wait in waits:
        begins = starts[wait.consumer] + wait.distance * interval
        if begins < starts[wait.producer] + wait.latency:
            yield wait


def live_length(need: Need, interval: int, starts: Sequence[int], ends: Sequence[int]) -> int:
    """From the moment a value is begun until its last reader has ended."""
    last = max(ends[stage] + distance * interval for stage, distance in need.readers)
    return max(last, ends[need.producer]) - starts[need.producer]


# Bounds ----------------------------------------------------------------------------------------


def _bounds(problem: Problem) -> list[tuple[int, str]] | Infeasible:
    """Least intervals with their reasons."""
    found = [(max(1, problem.interval), "no shorter interval was asked for")]
    for engine in sorted({work.engine for work in problem.work}):
        room = problem.engines.get(engine, 1)
        held = sum(work.latency for work in problem.work if work.engine == engine)
        each = f"{room} at a time" if room > 1 else "one at a time"
        found.append((-(-held // room), f"each iteration holds {engine} for {held}, {each}"))
    longest = sum(wait.latency for wait in problem.waits) + 1
    if _circle(problem, longest):
        return Infeasible("a circle of stages waits for itself within one iteration")
    recurrence = 1 + bisect(range(1, longest + 1), False, key=lambda i: not _circle(problem, i))
    found.append((recurrence, "a circle of stages hands on what the next iteration waits for"))
    return found


def _circle(problem: Problem, interval: int) -> bool:
    """Whether some circle of waits takes longer than the iterations it spans."""
    return _longest(problem, interval, [0] * len(problem.work)) is None


def _longest(problem: Problem, interval: int, starts: list[int]) -> list[int] | None:
    """The earliest starts that are no earlier than those given; None where there are none."""
    found = list(starts)
    for _ in range(len(found) + 1):
        late = list(late_waits(problem.waits, interval, found))
        if not late:
            return found
        for wait in late:
            begin = found[wait.producer] + wait.latency - wait.distance * interval
            found[wait.consumer] = max(found[wait.consumer], begin)
    return None


# Search ----------------------------------------------------------------------------------------


def _best(problem: Problem, interval: int) -> tuple[int, ...] | None:
    """The shortest schedule of an interval, and of those one with the fewest versions."""
    found: tuple[tuple[int, int], tuple[int, ...]] | None = None
    for residues in itertools.product(range(interval), repeat=len(problem.work)):
        starts = _in_classes(problem, interval, residues)
        if starts is None or not is_legal(problem, interval, starts):
            continue
        span = max(s + work.latency for s, work in zip(starts, problem.work, strict=True))
        candidate = (span, sum(_versions(problem, interval, starts))), starts
        found = candidate if found is None else min(found, candidate)
    return None if found is None else found[1]


def _in_classes(problem: Problem, interval: int, residues: Sequence[int]) -> tuple[int, ...] | None:
    """The earliest starts that are congruent to residues, the first of them below the interval."""
    starts = list(residues)
    while (late := next(late_waits(problem.waits, interval, starts), None)) is not None:
        begin = starts[late.producer] + late.latency - late.distance * interval
        starts[late.consumer] += -(-(begin - starts[late.consumer]) // interval) * interval
        if max(starts) > interval + sum(wait.latency + interval for wait in problem.waits):
            return None
    return tuple(starts)


def _earliest(problem: Problem, interval: int) -> tuple[int, ...] | None:
    """Stage by stage, at the first time that waits and engines leave."""
    earliest = _longest(problem, interval, [0] * len(problem.work))
    assert earliest is not None, "the interval is long enough for every circle"
    starts: dict[int, int] = {}
    for stage in sorted(range(len(earliest)), key=lambda s: (earliest[s], s)):
        begin = earliest[stage]
        for wait in problem.waits:
            if wait.consumer == stage and wait.producer in starts:
                ready = starts[wait.producer] + wait.latency - wait.distance * interval
                begin = max(begin, ready)
        # Room begins where some other stage ends.
        ends = [starts[other] + problem.work[other].latency for other in starts]
        places = sorted({begin, *(begin + (end - begin) % interval for end in ends)})
        found = next((p for p in places if _fits(problem, interval, starts, stage, p)), None)
        if found is None:
            return None
        starts[stage] = found
    placed = tuple(starts[stage] - min(starts.values()) for stage in range(len(earliest)))
    return placed if is_legal(problem, interval, placed) else None


def _fits(
    problem: Problem, interval: int, starts: Mapping[int, int], stage: int, begin: int
) -> bool:
    work = problem.work[stage]
    rivals = [s for s in starts if problem.work[s].engine == work.engine]
    times = [(begin, work.latency), *((starts[s], problem.work[s].latency) for s in rivals)]
    return _most_at_once(times, interval) <= problem.engines.get(work.engine, 1)


def _has_room(problem: Problem, interval: int, starts: Sequence[int], stage: int) -> bool:
    others = {s: start for s, start in enumerate(starts) if s != stage}
    return _fits(problem, interval, others, stage, starts[stage])


def _most_at_once(times: Sequence[tuple[int, int]], interval: int) -> int:
    """How many of these (start, length) overlap, repeated every interval."""
    instants = {start % interval for start, _ in times}
    return max(
        sum(_covers(at - start, length, interval) for start, length in times) for at in instants
    )


def _covers(offset: int, length: int, interval: int) -> int:
    """How often 0 <= offset + k * interval < length."""
    first = offset % interval
    return max(0, -(-(length - first) // interval))


def _versions(problem: Problem, interval: int, starts: Sequence[int]) -> tuple[int, ...]:
    ends = [start + work.latency for start, work in zip(starts, problem.work, strict=True)]
    lengths = [live_length(need, interval, starts, ends) for need in problem.needs]
    return tuple(max(1, -(-length // interval)) for length in lengths)
