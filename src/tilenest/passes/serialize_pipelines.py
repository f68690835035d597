"""Run pipelines in order: a pipeline becomes an `exec.serial` with its stages one after the other.

In: Candidate form. Out: no pipelines; a CPU core overlaps iterations by itself. The window a user
asked for is reported, not kept.

    exec.pipeline [%a] { (%k, %s): yield %x } { (%k, %s, %x): yield %n }
    becomes   exec.serial [%a] { (%k, %s): ...; yield %n }
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.dialects import Pipeline, Serial, Yield
from tilenest.ir import Block, Builder, Function, Region, Rewriter, Value, inline_block


def serialize_pipelines(function: Function, rewriter: Rewriter) -> list[Decision]:
    """Replace every pipeline, inner ones first."""
    pipelines = [op for op in function.walk() if isinstance(op, Pipeline)]
    for op in reversed(pipelines):
        _inline_stages(op, rewriter)
    return [
        Decision(
            "pipeline",
            "stages in order",
            f"{op.window or 'all'} iterations in flight",
            "one core runs an instance, and overlaps iterations by itself",
            op.location,
        )
        for op in pipelines
    ]


def _inline_stages(op: Pipeline, rewriter: Rewriter) -> None:
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
        result_types=[result.type for result in op.results],
        regions=[Region([body])],
    )
    rewriter.replace_op(op, rewriter.builder_before(op).insert(loop).results)
