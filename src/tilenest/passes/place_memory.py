"""Explicit memory becomes bufs, and its states the order of the program.

In: Candidate form and a target. Out: an allocation is a `buf.alloc` of its storage, padding
included, in the class of memory that the target chooses for it; a load is work that copies the
elements from where the layout puts them, a store is work that puts them there. States are gone:
they said that the order of the operations is the order of the effects.

    %s2 = memory.store(%m, %s1, %t)     becomes   map_reduce_post(%t at (d0, d1)) -> %b at L(d0, d1)
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.dialects import (
    Access,
    Alloc,
    CarryingNest,
    If,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
)
from tilenest.ir import (
    BufType,
    Function,
    MemoryType,
    OpResult,
    Rewriter,
    StateType,
    Value,
)
from tilenest.layouts import Const, DimRef, IndexExpr
from tilenest.machine import Target
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import insert_pointwise, insert_store, keep_laws
from tilenest.plan import choose_memory, plan_scopes


def place_memory(function: Function, target: Target, rewriter: Rewriter) -> None:
    """Rewrite every memory of one function in place."""
    allocations = [op for op in function.walk() if isinstance(op, MemoryAllocate)]
    if not allocations:
        return
    scopes = plan_scopes(function, target)
    bufs: dict[Value, Value] = {}
    for op in allocations:
        type_ = op.memory.type
        assert isinstance(type_, MemoryType)
        resource = choose_memory(op, scopes, target).name
        alloc = Alloc(resource=resource, result_types=[BufType(type_.dtype, op.placement[1])])
        buf = rewriter.builder_before(op).insert(alloc).result
        buf.name = op.memory.name
        bufs[op.memory] = buf
    # What is nested comes first, so that a region hands out nothing but states of outside.
    for operation in reversed(list(function.walk())):
        match operation:
            case MemoryLoad():
                _lower_load(operation, bufs, rewriter)
            case MemoryStore():
                _lower_store(operation, bufs, rewriter)
            case CarryingNest():
                _drop_carried(operation, rewriter)
            case If():
                _drop_yielded(operation, rewriter)
            case _:
                pass
    for op in allocations:
        rewriter.erase(op)


def _allocation_of(op: MemoryLoad | MemoryStore) -> MemoryAllocate:
    memory = op.memory
    assert isinstance(memory, OpResult) and isinstance(memory.owner, MemoryAllocate)
    return memory.owner


def _start(op: MemoryLoad | MemoryStore, bufs: Mapping[Value, Value]) -> tuple[Composer, Value]:
    """A composer over the elements of a memory, and its buf."""
    type_ = op.memory.type
    assert isinstance(type_, MemoryType)
    composer = Composer(type_.shape)
    composer.location(op.location)
    return composer, bufs[op.memory]


def _place(op: MemoryLoad | MemoryStore, composer: Composer) -> Access:
    """Where the element of a point lies; an empty memory has no element, hence no place."""
    layout, storage = _allocation_of(op).placement
    if 0 in composer.extents:
        return Access(composer.map([Const(0)] * len(storage)))
    return Access(composer.map([composer.simplified(result) for result in layout.results]))


def _lower_load(op: MemoryLoad, bufs: Mapping[Value, Value], rewriter: Rewriter) -> None:
    composer, buf = _start(op, bufs)
    element = composer.read(buf, _place(op, composer))
    work = insert_pointwise(rewriter.builder_before(op), composer, element, op.result.type)
    rewriter.replace_op(op, work.results)


def _lower_store(op: MemoryStore, bufs: Mapping[Value, Value], rewriter: Rewriter) -> None:
    composer, buf = _start(op, bufs)
    here: tuple[IndexExpr, ...] = tuple(DimRef(d) for d in range(composer.rank))
    element = composer.element(op.value, here)
    destination = buf, _place(op, composer)
    insert_store(rewriter.builder_before(op), composer, element, destination)
    rewriter.replace_op(op, [op.state])


# States ----------------------------------------------------------------------------------------


def _drop_carried(op: CarryingNest, rewriter: Rewriter) -> None:
    initial = op.initial
    states = [i for i, value in enumerate(initial) if isinstance(value.type, StateType)]
    if not states:
        return
    keep_laws(op, [i for i in range(len(initial)) if i not in states], rewriter)
    end = op.body.terminator
    yielded = end.operands
    rewriter.set_operands(end, "values", [v for i, v in enumerate(yielded) if i not in states])
    rewriter.set_operands(op, "initial", [v for i, v in enumerate(initial) if i not in states])
    for i in reversed(states):
        rewriter.replace_all_uses(op.body.arguments[op.rank + i], initial[i])
        rewriter.replace_all_uses(op.results[i], initial[i])
        rewriter.remove_argument(op.body, op.rank + i)
        rewriter.remove_result(op, i)


def _drop_yielded(op: If, rewriter: Rewriter) -> None:
    states = [i for i, result in enumerate(op.results) if isinstance(result.type, StateType)]
    for i in states:
        rewriter.replace_all_uses(op.results[i], op.regions[0].block.terminator.operands[i])
    for region in op.regions if states else ():
        end = region.block.terminator
        kept = [v for i, v in enumerate(end.operands) if i not in states]
        rewriter.set_operands(end, "values", kept)
    for i in reversed(states):
        rewriter.remove_result(op, i)
