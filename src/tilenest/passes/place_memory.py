"""Explicit memory becomes bufs, and its states the order of the program.

In: Candidate form. Out: an allocation is a `buf.alloc` of its storage, padding included; a load is
work that copies the elements from where the layout puts them, a store is work that puts them there.
States are gone: they said that the order of the operations is the order of the effects.

    %s2 = memory.store(%m, %s1, %t)     becomes   map_reduce_post(%t at (d0, d1)) -> %b at L(d0, d1)
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.analysis import enclosing_parallels
from tilenest.dialects import (
    Access,
    Alloc,
    CarryingNest,
    If,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
)
from tilenest.errors import TargetError
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
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import insert_pointwise, insert_store, keep_laws

_MOST_BYTES = (1 << 63) - 1


def place_memory(function: Function, rewriter: Rewriter) -> None:
    """Rewrite every memory of one function in place."""
    allocations = [op for op in function.walk() if isinstance(op, MemoryAllocate)]
    if not allocations:
        return
    bufs: dict[Value, Value] = {}
    for op in allocations:
        _refuse_resource(op)
        type_ = op.memory.type
        assert isinstance(type_, MemoryType)
        alloc = Alloc(result_types=[BufType(type_.dtype, op.placement[1])])
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


def _refuse_resource(op: MemoryAllocate) -> None:
    """The CPU has private storage of a worker, and storage that the instances of a nest share."""
    if op.resource not in ("auto", "private", "shared"):
        raise TargetError(
            f"a memory asks for {op.resource} storage, which the CPU does not have",
            remedy="use auto or private, of a worker, or shared, of the instances of a nest",
            location=op.location,
        )
    if op.resource == "private" and _is_used_inside(op):
        raise TargetError(
            "a memory is private to the instance that declares it, and used by instances inside",
            remedy="declare it in the nest that uses it, or let it be shared",
            location=op.location,
        )
    if op.bytes > _MOST_BYTES:
        raise TargetError(
            f"a memory needs {op.bytes} bytes, which 64 bits cannot address",
            remedy="use a smaller shape, or smaller strides",
            location=op.location,
        )


def _is_used_inside(op: MemoryAllocate) -> bool:
    """Whether instances of a nest inside of its owner use a memory."""
    around = list(enclosing_parallels(op))
    return any(list(enclosing_parallels(user)) != around for user in op.memory.users)


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
