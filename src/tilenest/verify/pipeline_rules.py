"""Rules `TN14` to `TN14d` and `TN15`: pipelines keep time, and versions do not meet.

In: pipelines and the loops they became, with the schedules that were chosen; all rules about single
ops hold, so stages and stated dependences exist. Out: faults at stages that are no cuts of their
own, at effects that nothing orders, at stages issued before what they wait for, at waits of fewer
instances than touch a memory, and at rings shorter than what they hold lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilenest.analysis import (
    Need,
    PipelineDependences,
    Wait,
    carried_storage,
    handed_values,
    late_waits,
    live_length,
    stage_storage,
    unkept_dependences,
)
from tilenest.dialects import (
    SCHEDULED,
    Alloc,
    Dependence,
    Parallel,
    Pipeline,
    PipelineSchedule,
    Serial,
)
from tilenest.ir import Fault, Operation, OpResult, Rule, Subject
from tilenest.machine import OPEN_SCOPE
from tilenest.verify.expectations import Findings, expect_choice, place_rule
from tilenest.verify.targets import scopes_of

_REMEDY = "schedule it again"


def _schedules(subject: Subject) -> Iterator[tuple[Pipeline | Serial, PipelineSchedule]]:
    """The schedules that are sound in themselves."""
    owners: list[Pipeline | Serial] = [*subject.of(Pipeline), *subject.of(Serial)]
    for op in owners:
        if isinstance(op.schedule, PipelineSchedule) and not any(_sound(op, op.schedule)):
            yield op, op.schedule


# Stages ----------------------------------------------------------------------------------------


def _cuts(subject: Subject) -> Iterator[Fault]:
    owners: list[Pipeline | Serial] = [*subject.of(Pipeline), *subject.of(Serial)]
    for op in owners:
        if isinstance(op, Pipeline):
            yield from (Fault(op, *f) for f in _names(op.stage_names, len(op.regions), "stages"))
        if isinstance(op.schedule, PipelineSchedule):
            yield from (Fault(op, *finding) for finding in _sound(op, op.schedule))
        elif op.schedule is not None:
            yield Fault(op, "`schedule` is no schedule", "give it a #pipeline_schedule")


def _names(names: Sequence[str | None], count: int, what: str) -> Findings:
    named = [name for name in names if name is not None]
    if len(names) not in (0, count):
        yield f"has {count} {what} and {len(names)} names", "name every stage, or say none"
    repeated = sorted({name for name in named if named.count(name) > 1})
    if repeated:
        yield f"has several stages called {', '.join(repeated)}", "give each a name of its own"


def _sound(op: Pipeline | Serial, schedule: PipelineSchedule) -> Findings:
    """Whether a schedule says when each stage runs, one after the other begun."""
    starts, ends = schedule.starts, schedule.ends
    stages = len(op.regions) if isinstance(op, Pipeline) else len(starts)
    if not starts or {len(starts), len(ends)} != {stages}:
        yield (
            f"its schedule has {len(starts)} starts and {len(ends)} ends for {stages} stages",
            "give each stage both",
        )
        return
    if schedule.interval < 1 or any(b < a for a, b in zip(starts, ends, strict=True)):
        yield "its schedule has a stage or an interval of negative length", _REMEDY
    if list(starts) != sorted(starts):
        yield "its schedule begins a stage before the one it follows", "begin stages in order"
    yield from _names(schedule.names, stages, "scheduled stages")
    for d in schedule.dependences:
        if d.producer not in range(stages) or d.consumer not in range(stages):
            yield f"its schedule keeps a dependence of {stages} stages on another one", _REMEDY


# Order and time --------------------------------------------------------------------------------


def _ordered(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(Pipeline):
        if op.dependences is None:
            continue
        assert isinstance(op.dependences, tuple), "OP85 holds"
        for needed in unkept_dependences(op, op.dependences):
            over = "of one iteration" if not needed.distance else "of an iteration before"
            yield Fault(
                op,
                f"stage {needed.consumer} touches memory that stage {needed.producer} {over} "
                "touches too, and nothing orders them",
                f"state #dependence<producer = {needed.producer}, consumer = {needed.consumer}, "
                f'kind = "effect", distance = {needed.distance}>',
            )


def _timely(subject: Subject) -> Iterator[Fault]:
    for op, schedule in _schedules(subject):
        kept = schedule.dependences
        if isinstance(op, Pipeline):
            assert op.parent_function is not None, "pipelines stand in functions"
            graphs = subject.analyses.get(PipelineDependences, op.parent_function).graphs
            kept = tuple(dict.fromkeys((*kept, *graphs[op].dependences)))
        for message in _late(schedule, kept):
            yield Fault(op, message, "begin the consumer later, or iterations further apart")
        yield from (Fault(op, *finding) for finding in _pace(op, schedule))


def _late(schedule: PipelineSchedule, kept: Sequence[Dependence]) -> Iterator[str]:
    starts, ends = schedule.starts, schedule.ends
    waits = [
        Wait(d.producer, d.consumer, ends[d.producer] - starts[d.producer], d.distance)
        for d in kept
    ]
    for late in late_waits(waits, schedule.interval, starts):
        begin = starts[late.consumer] + late.distance * schedule.interval
        over = f" {late.distance} iterations later" if late.distance else ""
        yield (
            f"stage {late.consumer}{over} begins at {begin}, and stage {late.producer}, which it "
            f"depends on, ends at {ends[late.producer]}"
        )


def _pace(op: Pipeline | Serial, schedule: PipelineSchedule) -> Findings:
    """How many iterations may be in flight."""
    window = op.window if isinstance(op, Pipeline) else 1
    if window and schedule.in_flight > window:
        yield (
            f"{schedule.in_flight} iterations are in flight, where {window} may be",
            f"begin iterations {-(-schedule.span // window)} apart",
        )
    if isinstance(op, Pipeline) and schedule.interval < op.interval:
        yield (
            f"begins an iteration every {schedule.interval}, where {op.interval} was asked for",
            f"begin iterations {op.interval} apart",
        )


# Scopes ----------------------------------------------------------------------------------------


def _synchronised(op: Pipeline, subject: Subject) -> Findings:
    stated_by_user = () if op.dependences is None else op.dependences
    assert isinstance(stated_by_user, tuple), "OP85 holds"
    for stated in stated_by_user:
        what = f"the dependence of stage {stated.consumer} on stage {stated.producer}"
        if stated.scope == OPEN_SCOPE:
            continue
        inner = _scopes_inside(op, (stated.producer, stated.consumer))
        scopes = scopes_of(subject, (stated.scope, *inner))
        known = (OPEN_SCOPE, *scopes.names)
        wrong = list(expect_choice(f"the scope of {what}", stated.scope, known))
        yield from wrong
        if wrong or stated.kind != "effect":
            continue
        around = [name for name in scopes.outside_in if scopes.is_within(stated.scope, name)]
        hidden = [name for name in around if name in inner]
        if hidden:
            yield (
                f"{what} waits within each {stated.scope}, and instances of scope {hidden[0]} "
                "do not wait for each other",
                f"wait within a scope that holds every {hidden[0]}",
            )


def _scopes_inside(op: Pipeline, stages: Sequence[int]) -> frozenset[str]:
    """The scopes over which the work of stages is spread."""
    return frozenset(
        nested.scope
        for stage in stages
        for top in op.regions[stage].operations()
        for nested in top.walk()
        if isinstance(nested, Parallel) and nested.scope != OPEN_SCOPE
    )


# Versions --------------------------------------------------------------------------------------


def _rings(subject: Subject) -> Iterator[Fault]:
    scheduled = dict(_schedules(subject))
    held: set[Operation] = set()
    for op, schedule in scheduled.items():
        if isinstance(op, Serial):
            # Before, some of what iterations update are values, and nothing has versions.
            carried = carried_storage(op) if subject.module.form == SCHEDULED else ()
            yield from (Fault(op, *finding) for finding in _updated(carried, schedule))
            continue
        yield from (Fault(op, *finding) for finding in _handed(op, schedule))
        for stored in stage_storage(op):
            made = stored.value
            assert isinstance(made, OpResult)
            if isinstance(made.owner, Alloc):
                held.add(made.owner)
                found = _short("the storage", stored.need, made.owner.versions, schedule)
                yield from (Fault(made.owner, *finding) for finding in found)
    for alloc in subject.of(Alloc):
        if alloc.versions != 1 and alloc not in held:
            yield Fault(
                alloc,
                f"has {alloc.versions} versions, and no schedule takes turns with them",
                "give it one version, or schedule the pipeline around it",
            )


def _handed(op: Pipeline, schedule: PipelineSchedule) -> Findings:
    handed = handed_values(op)
    if len(schedule.versions) != len(handed):
        yield (
            f"its schedule has {len(schedule.versions)} versions for {len(handed)} values that "
            "stages hand on",
            "give each carried state and each yielded value its number",
        )
        return
    for place, (value, versions) in enumerate(zip(handed, schedule.versions, strict=True)):
        yield from _short(f"value {place} that its stages hand on", value.need, versions, schedule)


def _updated(carried: Sequence[Alloc], schedule: PipelineSchedule) -> Findings:
    """A loop in order updates in place what it carries."""
    if len(schedule.versions) != len(carried):
        yield (
            f"its schedule has {len(schedule.versions)} versions for {len(carried)} bufs that its "
            "iterations update",
            "give each buf from before the loop that it reads and writes its number, and no other",
        )
        return
    for alloc, versions in zip(carried, schedule.versions, strict=True):
        if versions != 1:
            name = alloc.result.name or alloc.NAME
            yield (
                f"its schedule has {versions} versions of {name}, which iterations in order "
                "update in place",
                "give it one version",
            )


def _short(what: str, need: Need, versions: int, schedule: PipelineSchedule) -> Findings:
    """A ring comes back to a version no sooner than its last reader has ended."""
    length = live_length(need, schedule.interval, schedule.starts, schedule.ends)
    if versions < 1 or versions * schedule.interval < length:
        wanted = max(1, -(-length // schedule.interval))
        yield (
            f"{what} lives for {length}, and its {versions} versions come back every "
            f"{versions * schedule.interval}",
            f"give it {wanted} versions",
        )


PIPELINE_RULES = (
    Rule("TN14", "stages are cuts with names of their own", _cuts),
    Rule("TN14b", "effects on one memory are in a stated order", _ordered),
    Rule("TN14c", "stages begin after what they depend on", _timely),
    place_rule("TN14d", "dependences wait for every instance", Pipeline, _synchronised),
    Rule("TN15", "versions come back after their last reader", _rings),
)
