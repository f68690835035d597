"""Write the planned schedule on every op, and prove accesses inside where the nest clips.

In: bufferized work over its final domains. Out: every map_reduce_post has a `sched`; an input that
the output's clip keeps inside its view is 'proven'; a function with guards states what its code
needs of the machine.
"""

from __future__ import annotations

from tilenest.analysis import is_inside, output_clips, ranges_of
from tilenest.decisions import Decision
from tilenest.dialects import Access, MapReducePost
from tilenest.ir import Function, Rewriter, Value, ViewType
from tilenest.layouts import DimRef, IndexExpr
from tilenest.machine import Target
from tilenest.passes.pieces import state_capabilities
from tilenest.plan import plan_schedule
from tilenest.records import replace


def apply_schedules(function: Function, target: Target, rewriter: Rewriter) -> list[Decision]:
    """Schedule every op that has no schedule yet."""
    decisions: list[Decision] = []
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        _prove_inputs(op, rewriter)
        if op.sched is None:
            sched, why = plan_schedule(op, target, rewriter.analyses)
            rewriter.set_attribute(op, "sched", sched)
            decisions += why
    state_capabilities(function, target, rewriter)
    return decisions


def _prove_inputs(op: MapReducePost, rewriter: Rewriter) -> None:
    """Mark what the domain and the output's clip keep inside."""
    ranges = ranges_of(op.extents, op.symbols)
    clips = {
        (clip.offset + DimRef(clip.dim)): _extent(op.outputs[0], clip.axis)
        for clip in output_clips(op)
    }

    def is_clipped(result: IndexExpr, value: Value, axis: int) -> bool:
        if result not in clips:
            return False
        kept, extent = clips[result], _extent(value, axis)
        if kept is None or extent is None:
            return value is op.outputs[0]
        return kept <= extent

    accesses: list[Access] = []
    for i, value in enumerate(op.inputs):
        access = op.access("input", i)
        if access.bounds == "zero" and isinstance(value.type, ViewType):
            inside = is_inside(access, value, ranges, op.symbols)
            if all(
                known or is_clipped(access.map.results[axis], value, axis)
                for axis, known in enumerate(inside)
            ):
                access = replace(access, bounds="proven", fill=0)
        accesses.append(access)
    rewriter.set_attribute(op, "input_access", tuple(accesses))


def _extent(view: Value, axis: int) -> int | None:
    shape: tuple[int | None, ...] = view.type.shape  # type: ignore[attr-defined]  # views and bufs
    return shape[axis]
