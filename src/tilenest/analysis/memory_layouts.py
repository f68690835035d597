"""Whether the storage of an explicit memory can hold it.

In: an allocation. Out: what is wrong with it first, or None: the storage can be addressed, and
where a layout is given, elements need a place in it, each one of its own. An empty memory has no
element, so nothing is wrong with any map.
"""

from __future__ import annotations

from tilenest import layouts
from tilenest.dialects import MemoryAllocate
from tilenest.ir import MemoryType
from tilenest.layouts import Space
from tilenest.records import record

_MOST_BYTES = (1 << 63) - 1


@record
class LayoutProblem:
    """What is wrong, as the rest of a sentence about the memory, and a remedy."""

    text: str
    remedy: str


def layout_problem(op: MemoryAllocate) -> LayoutProblem | None:
    """The first thing that is wrong with the storage, or not proven of the layout."""
    type_ = op.memory.type
    assert isinstance(type_, MemoryType)
    if op.bytes > _MOST_BYTES:
        text = f"needs {op.bytes} bytes, which 64 bits cannot address"
        return LayoutProblem(text, "use a smaller shape, or smaller strides")
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
            text = f"has the layout {op.layout}, which is not {what}: {answer}"
            return LayoutProblem(text, remedy)
    return None
