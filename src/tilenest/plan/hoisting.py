"""Which tile work is done once in front of the loops that would repeat it.

In: a function of lifted work on values, with the operands of products in panels. Out: work to move,
each with the loop it goes in front of, producers first, and decisions. An operation may go up as
far as its anchor: nothing it depends on changes in the loops between. It goes where it pays: a
fold, an expensive function, or a panel that a product reads; what costs no more than reading its
result is left to be fused. No parallel is crossed, so storage stays as often as it is, and nothing
faults that a loop without instances would not have run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from tilenest.analysis import ExecutionStructure, is_computation, is_defined_above, trip_counts
from tilenest.decisions import Decision
from tilenest.dialects import SCALAR_FUNCTIONS, Apply, CarryingNest, Load, MapReducePost
from tilenest.ir import Asker, Function, Operation, OpResult, TileType
from tilenest.layouts import FloorDiv
from tilenest.records import record


@record
class HoistPlan:
    """What moves in front of which loop, in order."""

    moves: tuple[tuple[Operation, Operation], ...]
    decisions: tuple[Decision, ...]


def plan_hoists(function: Function, ask: Asker) -> HoistPlan:
    """The moves in one function."""
    work = [op for op in function.walk() if _is_candidate(op)]
    moves: dict[Operation, Operation] = {}
    decisions: list[Decision] = []
    for op in work:
        reason = _reason_to(op, moves)
        target = None if reason is None else _target(op, ask.get(ExecutionStructure, function))
        if reason is None or target is None:
            continue
        needed = _needed(op, target, moves)
        if needed is not None:
            moves |= dict.fromkeys(needed, target)
            decisions.append(_decision(op, target, reason))
    return HoistPlan(tuple(moves.items()), tuple(decisions))


def _decision(op: Operation, loop: Operation, reason: str) -> Decision:
    name, loop_name = op.results[0].name, loop.regions[0].block.arguments[0].name
    return Decision(
        f"value %{name}" if name else f"value of {op.NAME}",
        f"once in front of the loop over {loop_name or '_'}",
        "in each instance",
        f"nothing it depends on changes there, and {reason}",
        op.location,
    )


def _is_candidate(op: Operation) -> bool:
    """Whether an operation is work on values, directly in a loop."""
    return (
        isinstance(op, MapReducePost)
        and bool(op.results)
        and isinstance(op.parent_op, CarryingNest)
        and all(isinstance(user, MapReducePost) for result in op.results for user in result.users)
    )


def _reason_to(op: Operation, moves: dict[Operation, Operation]) -> str | None:
    """Why doing an operation once pays; None where it may not."""
    assert isinstance(op, MapReducePost)
    if op.folded_results:
        return "it folds"
    if any(_is_expensive(inner) for inner in op.fold_block.operations):
        return "it evaluates an expensive function"
    if any(_is_panel(use.operation, use.index) for result in op.results for use in result.uses):
        return "a product reads it as panels"
    behind = [value for value in op.inputs if isinstance(value.type, TileType)]
    moved = [v for v in behind if isinstance(v, OpResult) and v.owner in moves]
    if moved and all(_elements(result) <= max(map(_elements, moved)) for result in op.results):
        return "what it reads is made there as well"
    return None


def _is_expensive(op: Operation) -> bool:
    return isinstance(op, Apply) and SCALAR_FUNCTIONS[op.function].is_expensive


def _is_panel(user: Operation, index: int) -> bool:
    """Whether a scheduled product reads an operand block by block."""
    assert isinstance(user, MapReducePost)
    start, stop = user.SPEC.group_range(user.segments, "inputs")
    if user.sched is None or not start <= index < stop:
        return False
    return any(isinstance(r, FloorDiv) for r in user.access("input", index - start).map.results)


def _elements(value: object) -> int:
    assert isinstance(value, OpResult)
    size = 1
    for dim in value.type.dims if isinstance(value.type, TileType) else ():
        size *= dim.extent
    return size


def _target(op: Operation, structure: ExecutionStructure) -> Operation | None:
    """The outermost loop that an operation may leave."""
    place = structure.place(op)
    depth, target = len(place.levels), None
    for loop in _loops(op):
        depth -= loop.rank
        if depth < place.anchor.depth:
            break
        target = loop
    return target


def _loops(op: Operation) -> Iterator[CarryingNest]:
    """The loops directly around an operation, from the inside out, up to anything else."""
    holder = op.parent_op
    while isinstance(holder, CarryingNest) and len(holder.regions) == 1:
        yield holder
        holder = holder.parent_op


def _needed(
    op: Operation, target: Operation, moves: dict[Operation, Operation]
) -> tuple[Operation, ...] | None:
    """An operation and what has to go with it, producers first; None where something cannot."""
    if not _may_go(op, target):
        return None
    needed: dict[Operation, None] = {}
    for value in op.operands:
        if is_defined_above(value, target):
            continue
        if not isinstance(value, OpResult):
            return None
        behind = () if value.owner in moves else _needed(value.owner, target, moves)
        if behind is None:
            return None
        needed |= dict.fromkeys(behind)
    return (*needed, op)


def _may_go(op: Operation, target: Operation) -> bool:
    """Whether an operation may run although no instance of the loops around it would."""
    if isinstance(op, MapReducePost) and not op.outputs:
        bounds = {access.bounds for access in op.input_access}
    elif isinstance(op, Load):
        bounds = {op.bounds}
    else:
        return is_computation(op)
    if bounds <= {"zero", "proven"}:
        return True
    # What is promised of an access is promised where it runs.
    running = list(takewhile(lambda loop: all(trip_counts(loop)), _loops(op)))
    return bounds <= {"zero", "proven", "assume"} and target in running
