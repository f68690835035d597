"""Rules `OP63` to `OP69`: explicit memory, its layouts and its states.

In: operations of the memory dialect, and functions that hold them. Out: findings about types,
layouts that lose or share elements, and states that do not reach the access that takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilenest.analysis import MemoryStates, StateFault, layout_problem
from tilenest.dialects import (
    CarryingNest,
    If,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    rank_of,
)
from tilenest.ir import (
    STATE,
    Fault,
    MemoryType,
    Operation,
    Rule,
    ScalarType,
    StateType,
    Subject,
    TileType,
    Type,
    describe_attribute,
    element_dtype,
)
from tilenest.layouts import AffineMap
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    expect_index,
    expect_types,
    op_rule,
    types_of,
)


def _allocate(op: MemoryAllocate) -> Findings:
    types = types_of(op.results)
    if len(types) != 2 or not isinstance(types[0], MemoryType) or types[1] is not STATE:
        yield f"gives {describe_types(types)}", "give a memory and its first state"
        return
    if op.layout is None:
        if op.storage:
            yield (
                f"has the storage {describe_attribute(op.storage)} and no layout",
                "give both, or neither",
            )
    elif not isinstance(op.layout, AffineMap) or not _is_shape(op.storage):
        found = f"{describe_attribute(op.layout)} in {describe_attribute(op.storage)}"
        yield f"has the layout {found}", "use a map and extents from 0"


def _is_shape(storage: tuple[object, ...]) -> bool:
    return all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in storage)


def _layout(op: MemoryAllocate) -> Findings:
    """The layout gives every element a place of its own in storage that can be addressed."""
    if any(True for _ in _allocate(op)):
        return
    problem = layout_problem(op)
    if problem is not None:
        yield problem.text, problem.remedy


def _access(op: MemoryLoad | MemoryStore) -> Findings:
    type_ = op.memory.type
    if not isinstance(type_, MemoryType) or not isinstance(op.state.type, StateType):
        found = describe_types([type_, op.state.type])
        yield f"takes {found}", "take a memory and a state of it"
        return
    if isinstance(op, MemoryStore):
        yield from expect_types("results", types_of(op.results), [STATE])
    elif len(op.results) != 1:
        yield f"gives {describe_types(types_of(op.results))}", "give what is loaded"
        return
    if op.origins:
        yield from _part(op, type_)
        return
    content: Type = TileType(type_.dtype, type_.dims) if type_.dims else ScalarType(type_.dtype)
    what = "results" if isinstance(op, MemoryLoad) else "stored values"
    yield from expect_types(what, [op.content], [content])


def _part(op: MemoryLoad | MemoryStore, type_: MemoryType) -> Findings:
    """A part has the rank and the dtype of the memory, and any extents."""
    yield from expect_index("origin", op.origins)
    content, rank = op.content, len(type_.dims)
    if len(op.origins) != rank or rank_of(content) != rank:
        yield (
            f"has {len(op.origins)} origins and {describe_types([content])} for a memory of rank "
            f"{rank}",
            "give one origin and one dim of the part per axis",
        )
    if element_dtype(content) is not type_.dtype:
        found = describe_types([content])
        yield f"accesses {found} in a memory of {type_.dtype.name}", "use the dtype of the memory"


def _states(*faults: StateFault) -> Callable[[Subject], Iterator[Fault]]:
    """The problems of these kinds, in every function."""

    def found(subject: Subject) -> Iterator[Fault]:
        kinds = MemoryAllocate, MemoryLoad, MemoryStore
        users = [op for kind in kinds for op in subject.of(kind)]
        for function in {op.parent_function: None for op in users}:
            assert function is not None
            if not all(map(_is_read, function.walk())):
                continue
            for problem in subject.analyses.get(MemoryStates, function).problems:
                if problem.fault in faults:
                    yield Fault(problem.operation, str(problem), _STATE_REMEDIES[problem.fault])

    return found


def _is_read(op: Operation) -> bool:
    """Whether regions take and give as many values as the operation carries, and an access is of a
    memory: else other rules tell."""
    if isinstance(op, MemoryLoad | MemoryStore):
        return not any(True for _ in _access(op))
    if not isinstance(op, CarryingNest | If):
        return True
    if any(len(region.blocks) != 1 for region in op.regions):
        return False
    blocks = [region.block for region in op.regions]
    if isinstance(op, If):
        return all(len(block.terminator.operands) == len(op.results) for block in blocks)
    count = len(op.initial)
    is_taken = all(len(block.arguments) >= op.rank + count for block in blocks)
    return is_taken and len(blocks[-1].terminator.operands) == len(op.results) == count


_STATE_REMEDIES = {
    StateFault.STALE: "take the state that the last store before it gives",
    StateFault.FOREIGN: "take a state of the memory that is accessed",
    StateFault.UNINITIALISED: "store in all of the part first, on every way to the access; a loop "
    "whose trip count may be 0 stores nothing for sure; limit the numbers that places are computed "
    "from, and where places are known at run time only or there are very many, store the whole "
    "once before",
    StateFault.LOST: "hand the state on: carry it through the nest, or yield it from every branch",
    StateFault.SHARED: "allocate the memory inside the nest, so that each instance has its own",
    StateFault.MISPLACED: "use states in accesses, nests and branches only",
}

MEMORY_RULES = (
    op_rule("OP63", "an allocation gives a memory and its first state", MemoryAllocate, _allocate),
    op_rule("OP64", "a layout gives every element its own place", MemoryAllocate, _layout),
    op_rule("OP65", "loads read a memory or a part of it", MemoryLoad, _access),
    op_rule("OP66", "stores write a memory or a part of it", MemoryStore, _access),
    Rule("OP67", "an access takes the state that reaches it", _states(
        StateFault.STALE, StateFault.FOREIGN, StateFault.MISPLACED)),
    Rule("OP68", "what is read was stored", _states(StateFault.UNINITIALISED)),
    Rule("OP69", "regions hand on the states they change", _states(
        StateFault.LOST, StateFault.SHARED)),
)  # fmt: skip
