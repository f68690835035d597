"""Explicit memory becomes bufs, and its states the order of the program.

In: Candidate form and a target. Out: an allocation is a `buf.alloc` of its storage, padding
included, in the class of memory that the target chooses for it; a load is work that copies the
elements from where the layout puts them, a store is work that puts them there, each where the
elements of its part are in the memory. States are gone: they said that the order of the operations
is the order of the effects.

    %s2 = memory.store(%m, %s1, %t, [%o])
    becomes   map_reduce_post(%t at (d0)) -> %b at L(s0 + d0)
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
    dims_of,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    BufType,
    Function,
    MemoryType,
    OpResult,
    Rewriter,
    StateType,
    Value,
)
from tilenest.layouts import Const, DimRef, IndexExpr, bounds
from tilenest.machine import Target
from tilenest.passes.compose import Composer
from tilenest.passes.far_symbols import is_near, limited
from tilenest.passes.pieces import insert_pointwise, insert_store, keep_laws
from tilenest.passes.view_chains import all_of, zero_of
from tilenest.plan import choose_memory, plan_scopes
from tilenest.records import record


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


@record
class _Place:
    """Where the element of a point of a part lies in a buf, and what has to hold there, as bools of
    the region, for it to be in the memory."""

    buf: Value
    access: Access
    conditions: tuple[Value, ...]


def _start(op: MemoryLoad | MemoryStore) -> Composer:
    """A composer over the elements that are accessed."""
    composer = Composer(tuple(dim.extent for dim in dims_of(op.content)))
    composer.location(op.location)
    return composer


def _place(
    op: MemoryLoad | MemoryStore,
    composer: Composer,
    bufs: Mapping[Value, Value],
    rewriter: Rewriter,
) -> _Place:
    layout, storage = _allocation_of(op).placement
    shape, buf = _shape(op), bufs[op.memory]
    if 0 in (*shape, *composer.extents):
        # An empty memory has no element, hence no place.
        nowhere = Access(composer.map([Const(0)] * len(storage)), "zero")
        return _Place(buf, nowhere, ())
    here = _elements(op, composer, rewriter)
    outside = [axis for axis, n in enumerate(shape) if not _is_inside(here[axis], n, composer)]
    places = [composer.simplified(result.substitute(here, ())) for result in layout.results]
    if not outside:
        return _Place(buf, Access(composer.map(places)), ())
    # The ends of the storage are those of an axis that is one of its coordinates.
    kept = {
        result.position
        for result, size in zip(layout.results, storage, strict=True)
        if isinstance(result, DimRef) and size == shape[result.position]
    }
    conditions = [
        each
        for axis in outside
        if axis not in kept
        for each in _compute_inside(here[axis], shape[axis], composer)
    ]
    return _Place(buf, composer.access(buf, places, "zero"), tuple(conditions))


def _elements(
    op: MemoryLoad | MemoryStore, composer: Composer, rewriter: Rewriter
) -> list[IndexExpr]:
    """The coordinates of the element of a point. An origin is limited to where the part meets the
    memory, so that no place is too far away to compute."""
    builder = rewriter.builder_before(op)
    dims: list[IndexExpr] = [DimRef(d) for d in range(composer.rank)]
    for axis, origin in enumerate(op.origins):
        # Farther away the part lies outside, as it does there.
        most = max(composer.extents[axis], _shape(op)[axis])
        near = origin if is_near(origin, most) else limited(builder, origin, most)
        dims[axis] = dims[axis] + composer.symbol(near)
    return dims


def _is_inside(coordinate: IndexExpr, extent: int, composer: Composer) -> bool:
    found = bounds(composer.simplified(coordinate), composer.ranges)
    return found is not None and found[0] >= 0 and found[1] < extent


def _compute_inside(coordinate: IndexExpr, extent: int, composer: Composer) -> tuple[Value, Value]:
    place = composer.index(composer.simplified(coordinate))
    limits = composer.constant(0, INDEX), composer.constant(extent, INDEX)
    ends = zip(("ge", "lt"), limits, strict=True)
    low, high = (composer.apply(function, [place, limit], BOOL) for function, limit in ends)
    return low, high


def _shape(op: MemoryLoad | MemoryStore) -> tuple[int, ...]:
    type_ = op.memory.type
    assert isinstance(type_, MemoryType)
    return type_.shape


def _lower_load(op: MemoryLoad, bufs: Mapping[Value, Value], rewriter: Rewriter) -> None:
    composer = _start(op)
    place = _place(op, composer, bufs, rewriter)
    element = composer.read(place.buf, place.access)
    if place.conditions:
        is_there = all_of(composer, place.conditions)
        zero = composer.constant(zero_of(element.type), element.type)
        element = composer.apply("where", [is_there, element, zero], element.type)
    work = insert_pointwise(rewriter.builder_before(op), composer, element, op.result.type)
    rewriter.replace_op(op, work.results)


def _lower_store(op: MemoryStore, bufs: Mapping[Value, Value], rewriter: Rewriter) -> None:
    composer = _start(op)
    place = _place(op, composer, bufs, rewriter)
    mask = all_of(composer, place.conditions) if place.conditions else None
    here: tuple[IndexExpr, ...] = tuple(DimRef(d) for d in range(composer.rank))
    element = composer.element(op.value, here)
    destination = place.buf, place.access
    insert_store(rewriter.builder_before(op), composer, element, destination, mask)
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
