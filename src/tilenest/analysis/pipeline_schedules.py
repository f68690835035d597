"""How the stages of a pipeline may overlap, and the schedule that this gives on a machine.

In: a function with pipelines, and a target. Out: frozen answers: every dependence between stages
with its iteration distance, how long what they hand on and the storage they allocate are needed,
and modulo schedules with the reasons for their intervals. On a machine that copies only by the
worker's own loads every stage holds the worker, so no order is denser than one after the other; a
copy engine lets stages that only load run beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import ClassVar

from tilenest.analysis.modulo_schedules import (
    ModuloSchedule,
    Problem,
    Wait,
    Work,
    modulo_schedule,
)
from tilenest.analysis.stage_dependences import (
    StageValue,
    effect_dependences,
    handed_values,
    stage_storage,
    value_dependences,
)
from tilenest.analysis.structure import CONTRACTS
from tilenest.analysis.work_estimates import WorkEstimates
from tilenest.dialects import Dependence, Pipeline, PipelineSchedule
from tilenest.ir import (
    Analysis,
    ArrayType,
    Asker,
    Block,
    Edit,
    EditKind,
    EffectKind,
    Function,
    On,
    Operation,
    Region,
    ScalarType,
    TileType,
    Type,
    element_dtype,
)
from tilenest.machine import Target
from tilenest.records import record, replace

ASYNC_COPIES = "async copies"
"""The feature of targets on which loads run beside the work of a stage."""
WORKER = "worker"
COPIES = "copies"
_FINEST = 64
"""Parts of the longest stage in which latencies are measured."""
_VALUES = ScalarType | TileType


@record
class StageGraph:
    """What ties the stages of one pipeline."""

    dependences: tuple[Dependence, ...]
    handed: tuple[StageValue, ...]
    storage: tuple[StageValue, ...]


@record
class PipelineDependences(Analysis[Function, "PipelineDependences"]):
    """The stage graphs of a function's pipelines."""

    NAME: ClassVar[str] = "pipeline dependences"

    graphs: Mapping[Operation, StageGraph]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> PipelineDependences:
        pipelines = [op for op in subject.walk() if isinstance(op, Pipeline)]
        return cls(MappingProxyType({op: _stage_graph(op) for op in pipelines}))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.FUNCTION:
            return edit.detail == "alias_groups"
        is_apart = edit.detail in CONTRACTS and edit.detail != "dependences"
        return edit.kind is not EditKind.LABEL and not is_apart


@record
class StageSchedules:
    """When the stages of one pipeline run on a target, and when in a loop in its place, whose
    iterations never overlap."""

    pipeline: ModuloSchedule
    loop: ModuloSchedule


@record
class PipelineSchedules(Analysis[On[Function, Target], "PipelineSchedules"]):
    """The schedules of a function's pipelines on a target."""

    NAME: ClassVar[str] = "pipeline schedules"
    DEPENDS_ON: ClassVar = (PipelineDependences, WorkEstimates)

    schedules: Mapping[Operation, StageSchedules]

    @classmethod
    def compute(cls, subject: On[Function, Target], ask: Asker, /) -> PipelineSchedules:
        function, target = subject.place, subject.given
        graphs = ask.get(PipelineDependences, function).graphs
        times = ask.get(WorkEstimates, function).times if graphs else {}
        found: dict[Operation, StageSchedules] = {}
        for op, graph in graphs.items():
            assert isinstance(op, Pipeline)
            problem = pipeline_problem(op, graph, stage_work(op, times, target.features))
            found[op] = _schedules(problem, graph, target)
        return cls(MappingProxyType(found))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind is EditKind.ATTRIBUTE and edit.detail in ("window", "interval")


def _stage_graph(op: Pipeline) -> StageGraph:
    """Its dependences: of values, and of effects as they are stated, or else found."""
    stated = op.dependences
    effects = effect_dependences(op) if stated is None else stated
    assert isinstance(effects, tuple), "dependences are a tuple of records"
    dependences = dict.fromkeys((*value_dependences(op), *effects))
    return StageGraph(tuple(dependences), handed_values(op), stage_storage(op))


def stage_work(
    op: Pipeline, times: Mapping[Block, float], features: frozenset[str]
) -> tuple[Work, ...]:
    """How long each stage takes, in parts of the longest one, and what it holds."""
    needed = [sum(times[block] for block in region.blocks) for region in op.regions]
    unit = max(needed) / _FINEST
    return tuple(
        Work(max(1, round(time / unit)), COPIES if _copies(region, features) else WORKER)
        for time, region in zip(needed, op.regions, strict=True)
    )


def _copies(region: Region, features: frozenset[str]) -> bool:
    """Whether a stage does nothing but load, on a machine that does so on the side."""
    kinds = {e.kind for op in region.operations() for n in op.walk() for e in n.effects()}
    return ASYNC_COPIES in features and EffectKind.READ in kinds <= {
        EffectKind.READ,
        EffectKind.ALLOCATE,
    }


def pipeline_problem(op: Pipeline, graph: StageGraph, work: Sequence[Work]) -> Problem:
    """A pipeline as a problem of plain numbers; stages of one iteration begin in their order."""
    waits = (
        *(Wait(stage, stage + 1, 0) for stage in range(len(work) - 1)),
        *(
            Wait(d.producer, d.consumer, work[d.producer].latency, d.distance)
            for d in graph.dependences
        ),
    )
    needs = tuple(value.need for value in (*graph.handed, *graph.storage))
    return Problem(tuple(work), waits, needs, window=op.window, interval=op.interval)


def _schedules(problem: Problem, graph: StageGraph, target: Target) -> StageSchedules:
    """Where their versions need more memory than an instance has, one iteration runs after the
    other; what the verifier accepts always leaves that order."""
    found = _solved(problem)
    capacity = target.allocation("auto").capacity
    needed = _bytes_of_versions(graph, found)
    if found.in_flight > 1 and capacity is not None and needed > capacity:
        reason = (
            f"versions for an iteration every {found.interval} need {needed} of {capacity} bytes"
        )
        found = _in_order(problem, reason)
    if found.in_flight == 1:
        return StageSchedules(found, found)
    reason = f"a loop ends an iteration first, where they could begin every {found.interval}"
    return StageSchedules(found, _in_order(problem, reason))


def _in_order(problem: Problem, reason: str) -> ModuloSchedule:
    return replace(_solved(replace(problem, window=1)), is_densest=False, reasons=(reason,))


def _solved(problem: Problem) -> ModuloSchedule:
    found = modulo_schedule(problem)
    assert isinstance(found, ModuloSchedule), found
    return found


def _bytes_of_versions(graph: StageGraph, found: ModuloSchedule) -> int:
    """What the versions of all that stages hand on or allocate take together."""
    # Storage counts where it is made, and not again where it is handed on.
    values = [v.value if isinstance(v.value.type, _VALUES) else None for v in graph.handed]
    values += [v.value for v in graph.storage]
    pairs = zip(values, found.versions, strict=True)
    return sum(_bytes(value.type) * n for value, n in pairs if value is not None)


def _bytes(type_: Type) -> int:
    if isinstance(type_, ArrayType):
        return prod(type_.shape) * _bytes(type_.element)
    shape: tuple[int, ...] = getattr(type_, "shape", ())
    return element_dtype(type_).bytes * prod(shape)


def schedule_record(op: Pipeline, graph: StageGraph, found: ModuloSchedule) -> PipelineSchedule:
    """The schedule as the program carries it."""
    return PipelineSchedule(
        found.interval,
        found.starts,
        found.ends,
        graph.dependences,
        found.versions[: len(graph.handed)],
        op.stage_names,
    )
