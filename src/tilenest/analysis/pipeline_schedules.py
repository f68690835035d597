"""How the stages of a pipeline may overlap, and the schedule that this gives on a machine.

In: a function with pipelines, and what engines a worker has. Out: frozen answers: every dependence
between stages with its iteration distance, how long what they hand on and the storage they allocate
are needed, and a modulo schedule with the reasons for its interval. On a machine that copies only
by the worker's own loads every stage holds the worker, so no order is denser than one after the
other; a copy engine lets stages that only load run beside the others.
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
from tilenest.analysis.work_estimates import estimated_time
from tilenest.dialects import Dependence, Pipeline, PipelineSchedule
from tilenest.ir import (
    Analysis,
    Asker,
    EffectKind,
    Function,
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
        return cls(MappingProxyType({op: stage_graph(op) for op in pipelines}))


def stage_graph(op: Pipeline) -> StageGraph:
    """Its dependences: of values, and of effects as they are stated, or else found."""
    stated = op.dependences
    effects = effect_dependences(op) if stated is None else stated
    assert isinstance(effects, tuple), "dependences are a tuple of records"
    dependences = dict.fromkeys((*value_dependences(op), *effects))
    return StageGraph(tuple(dependences), handed_values(op), stage_storage(op))


def stage_work(op: Pipeline, features: frozenset[str]) -> tuple[Work, ...]:
    """How long each stage takes, in parts of the longest one, and what it holds."""
    times = [sum(estimated_time(block) for block in region.blocks) for region in op.regions]
    unit = max(times) / _FINEST
    return tuple(
        Work(max(1, round(time / unit)), COPIES if _copies(region, features) else WORKER)
        for time, region in zip(times, op.regions, strict=True)
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


def pipeline_schedule(op: Pipeline, graph: StageGraph, target: Target) -> ModuloSchedule:
    """When the stages run. Where their versions need more memory than an instance has, one
    iteration runs after the other; what the verifier accepts always leaves that order."""
    problem = pipeline_problem(op, graph, stage_work(op, target.features))
    found = _solved(problem)
    capacity = target.allocation("auto").capacity
    needed = _bytes_of_versions(graph, found)
    if capacity is None or needed <= capacity or found.in_flight == 1:
        return found
    reason = f"versions for an iteration every {found.interval} need {needed} of {capacity} bytes"
    return _in_order(problem, reason)


def serial_schedule(op: Pipeline, graph: StageGraph, target: Target) -> ModuloSchedule:
    """The same for a loop, whose iterations never overlap: it may be slower than the target is."""
    found = pipeline_schedule(op, graph, target)
    if found.in_flight == 1:
        return found
    problem = pipeline_problem(op, graph, stage_work(op, target.features))
    reason = f"a loop ends an iteration first, where they could begin every {found.interval}"
    return _in_order(problem, reason)


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
