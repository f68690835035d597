"""Pipelines are cut into stages: one region for each, and values that cross are handed on.

In: a pipeline whose body is one block, and where its `stage()` calls stood. Out: the same
operation with a region per stage. A stage yields what later stages use of it; each later stage
gets the indices, the states and all that earlier stages yield as its arguments; the last one
yields the next states.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.dialects import Pipeline, Yield
from tilenest.errors import SourceLocation
from tilenest.ir import Block, Operation, Region, Value
from tilenest.records import record


@record
class Cut:
    """A stage begins behind this operation of the body (None: at its start)."""

    name: str | None
    behind: Operation | None


def split_stages(pipeline: Pipeline, cuts: list[Cut], place: SourceLocation) -> None:
    """Cut the pipeline's only block; a pipeline without cuts is one stage."""
    if not cuts:
        pipeline.attributes["stage_names"] = (None,)
        return
    pipeline.attributes["stage_names"] = tuple(cut.name for cut in cuts)
    first = pipeline.body
    blocks = [first]
    for operations in _segments(first, cuts)[1:]:
        block = Block([argument.type for argument in first.arguments])
        for argument, original in zip(block.arguments, first.arguments, strict=True):
            argument.name = original.name
        pipeline.add_region(Region([block]))
        for operation in operations:
            block.append(operation.detach())
        blocks.append(block)
    crossing = _crossing_values(blocks)
    for stage, block in enumerate(blocks):
        _redirect(block, first, [value for given in crossing[:stage] for value in given])
    for block, values in zip(blocks[:-1], crossing, strict=False):
        block.append(Yield(values=values, location=place))


def _segments(body: Block, cuts: list[Cut]) -> list[list[Operation]]:
    # What stands before the first cut belongs to the first stage.
    behind = [cut.behind for cut in cuts[1:]]
    segments: list[list[Operation]] = [[] for _ in range(1 + behind.count(None))]
    for operation in list(body.operations):
        segments[-1].append(operation)
        segments += [[] for _ in range(behind.count(operation))]
    return segments


def _crossing_values(blocks: list[Block]) -> list[list[Value]]:
    """Per stage, its results that later stages use, in order of first use."""
    stage_of = {id(block): stage for stage, block in enumerate(blocks)}
    crossing: list[dict[Value, None]] = [{} for _ in blocks]
    for stage, block in enumerate(blocks):
        for value in _operands(block):
            home = stage_of.get(id(value.defining_block))
            if home is not None and home < stage and value not in blocks[0].arguments:
                crossing[home][value] = None
    return [list(values) for values in crossing]


def _operands(block: Block) -> Iterable[Value]:
    for operation in block.walk():
        yield from operation.operands


def _redirect(block: Block, first: Block, crossing: list[Value]) -> None:
    """Make a stage use its own arguments for the first block's, and for what crosses."""
    if block is first:
        return
    replacements: dict[Value, Value] = dict(zip(first.arguments, block.arguments, strict=True))
    for value in crossing:
        replacements[value] = block.add_argument(value.type, value.name)
    for operation in block.walk():
        for place, value in enumerate(operation.operands):
            if value in replacements:
                operation.set_operand(place, replacements[value])
