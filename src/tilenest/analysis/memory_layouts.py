"""Whether the layout of an explicit memory can hold it.

In: an allocation with a layout. Out: what is wrong with it first, or None: elements need a place,
in the storage, each one of its own. An empty memory has no element, so nothing is wrong with any
map.
"""

from __future__ import annotations

from tilenest import layouts
from tilenest.dialects import MemoryAllocate
from tilenest.ir import MemoryType
from tilenest.layouts import Answer, Space
from tilenest.records import record


@record
class LayoutProblem:
    """What a layout is not, why, and a remedy."""

    what: str
    answer: Answer
    remedy: str


def layout_problem(op: MemoryAllocate) -> LayoutProblem | None:
    """The first thing that is not proven of the layout."""
    type_ = op.memory.type
    assert isinstance(type_, MemoryType)
    if op.layout is None or 0 in type_.shape:
        return None
    layout, storage = op.placement
    map_ = layouts.Expressions(Space.box(*type_.shape), Space.box(*storage), layout.results)
    questions = (
        (layouts.is_total, "total", "use a map that is defined for every element"),
        (layouts.is_bounded, "bounded", "let the storage hold every place that the map gives"),
        (layouts.is_injective, "injective", "give every element a place of its own"),
    )
    for question, what, remedy in questions:
        answer = question(map_)
        if not answer.is_proven:
            return LayoutProblem(what, answer, remedy)
    return None
