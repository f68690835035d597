"""Run pipelines in order: a pipeline becomes an `exec.serial` with its stages one after the other.

In: Candidate form, a target. Out: no pipelines; loops with the times of the pipelines they were. No
stage hands on anything, so no versions count. Where every stage holds the worker, overlapping takes
as long; where a target could overlap, a loop does not, and its decision says so. (Loading for the
next iteration first was tried by hand: the copy costs more than the core hides by itself.)

    exec.pipeline [%a] { (%k, %s): yield %x } { (%k, %s, %x): yield %n }
    becomes   exec.serial [%a] { (%k, %s): ...; yield %n }
"""

from __future__ import annotations

from tilenest.analysis import (
    ModuloSchedule,
    PipelineDependences,
    PipelineSchedules,
    schedule_record,
)
from tilenest.decisions import Decision
from tilenest.dialects import Pipeline, PipelineSchedule, Serial, Yield
from tilenest.ir import Block, Builder, Function, On, Region, Rewriter, Value, inline_block
from tilenest.machine import Target
from tilenest.records import replace


def serialize_pipelines(function: Function, target: Target, rewriter: Rewriter) -> list[Decision]:
    """Replace every pipeline, inner ones first."""
    on_target = On(function, target)
    schedules = rewriter.analyses.get(PipelineSchedules, on_target).schedules
    graphs = rewriter.analyses.get(PipelineDependences, function).graphs
    decisions: list[Decision] = []
    for op, graph in reversed(tuple(graphs.items())):
        assert isinstance(op, Pipeline)
        found = schedules[op].loop
        schedule = replace(schedule_record(op, graph, found), versions=())
        _inline_stages(op, schedule, rewriter)
        decisions.insert(0, _decision(op, found))
    return decisions


def _decision(op: Pipeline, found: ModuloSchedule) -> Decision:
    return Decision(
        "pipeline",
        f"{len(op.regions)} stages in order, an iteration every {found.interval} steps",
        f"{op.window or 'any number of'} iterations in flight",
        "; ".join(found.reasons),
        op.location,
    )


def _inline_stages(op: Pipeline, schedule: PipelineSchedule, rewriter: Rewriter) -> None:
    """A serial loop whose body is the stages one after the other."""
    body = Block()
    builder = Builder(body)
    for argument in op.body.arguments:
        builder.add_argument(argument.type, argument.name)
    arguments: list[Value] = list(body.arguments)
    yields: list[Value] = []
    for region in op.regions:
        yields = inline_block(region.block, arguments, builder)
        arguments += yields
    builder.location = op.location
    builder.insert(Yield(values=yields))
    loop = Serial(
        lower=op.lower,
        upper=op.upper,
        step=op.step,
        initial=op.initial,
        schedule=schedule,
        result_types=[result.type for result in op.results],
        regions=[Region([body])],
    )
    rewriter.replace_op(op, rewriter.builder_before(op).insert(loop).results)
