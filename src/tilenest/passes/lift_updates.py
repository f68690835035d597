"""Lift updates: what instances patch lives in a buf that the parallel writes to.

In: a parallel with results whose region is lifted. Out: a nest without results. The buf starts as
the initial value; each patch is work that writes it in place; the result is read from it behind the
nest. Entry values are the initial ones, which nothing writes. Where patches combine, instances run
in the order of the domain, so that the result is the same on any number of threads.

    %r = exec.parallel init(%a) { (%i, %e): ...; yield_updates %p at [%o] }
    becomes   %a -> %b;  exec.parallel { (%i): ...; %p -> %b at (s0 + d0) };  %r = read %b
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import Alloc, BoundPatch, Parallel, Serial, Yield, YieldUpdates
from tilenest.ir import (
    BufType,
    Builder,
    Rewriter,
    ScalarType,
    TileType,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import Const, DimRef, IndexExpr, dims_compatible_by_position
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import insert_pointwise, insert_store


def lift_updates(op: Parallel, rewriter: Rewriter) -> None:
    """Rewrite one parallel in place."""
    if not op.results:
        return
    end = op.body.terminator
    assert isinstance(end, YieldUpdates)
    bufs = [_start(value, rewriter.builder_before(op)) for value in op.initial]
    for buf, result in zip(bufs, op.results, strict=True):
        buf.name = result.name
    inside = rewriter.builder_before(end)
    combines = False
    for bound in end.bound():
        _write(bound, bufs[bound.patch.result], inside)
        combines |= bound.patch.combine is not None
    inside.insert(Yield())
    rewriter.erase(end)
    after = rewriter.builder_after(op)
    for buf, result in zip(bufs, op.results, strict=True):
        rewriter.replace_all_uses(result, _finish(buf, result.type, after))
    _drop_states(op, rewriter)
    if combines:
        in_order = Serial(lower=op.lower, upper=op.upper, step=op.step, location=op.location)
        rewriter.replace_keeping_regions(in_order, op)


def _extents(type_: Type) -> tuple[int, ...]:
    return type_.shape if isinstance(type_, TileType) else ()


def _composer(extents: Sequence[int], builder: Builder) -> Composer:
    composer = Composer(extents)
    composer.location(builder.location)
    return composer


def _start(initial: Value, builder: Builder) -> Value:
    """A buf that holds the initial value."""
    shape = _extents(initial.type)
    buf_type = BufType(element_dtype(initial.type), shape)
    buf = builder.insert(Alloc(result_types=[buf_type])).result
    composer = _composer(shape, builder)
    here = tuple(DimRef(d) for d in range(len(shape)))
    element = composer.element(initial, here)
    insert_store(builder, composer, element, (buf, composer.access(buf, here, "proven")))
    return buf


def _finish(buf: Value, type_: Type, builder: Builder) -> Value:
    """The value that the buf holds behind the nest."""
    composer = _composer(_extents(type_), builder)
    here = tuple(DimRef(d) for d in range(composer.rank))
    element = composer.read(buf, composer.access(buf, here, "proven"))
    return insert_pointwise(builder, composer, element, type_).result


def _write(bound: BoundPatch, buf: Value, builder: Builder) -> None:
    """One patch, in place; what lies outside is dropped."""
    payload = bound.payload
    composer = _composer(_extents(payload.type), builder)
    here = [DimRef(d) for d in range(composer.rank)]
    element = composer.element(payload, tuple(here))
    places: list[IndexExpr] = [composer.symbol(origin) for origin in bound.origins]
    if here:
        places = [place + dim for place, dim in zip(places, here, strict=True)]
    mask = None if bound.predicate is None else _predicate(bound, bound.predicate, composer)
    access = composer.access(buf, places, "zero")
    if bound.patch.combine is not None:
        before = composer.read(buf, access)
        type_ = ScalarType(element_dtype(payload.type))
        element = composer.apply(bound.patch.combine, [before, element], type_)
    insert_store(builder, composer, element, (buf, access), mask)


def _predicate(bound: BoundPatch, predicate: Value, composer: Composer) -> Value:
    if not isinstance(predicate.type, TileType):
        return composer.element(predicate, ())
    assert isinstance(bound.payload.type, TileType)
    positions = dims_compatible_by_position(predicate.type.dims, bound.payload.type.dims)
    return composer.element(
        predicate, tuple(Const(0) if place is None else DimRef(place) for place in positions)
    )


def _drop_states(op: Parallel, rewriter: Rewriter) -> None:
    body = op.body
    for place in reversed(range(len(op.initial))):
        argument = body.arguments[op.rank + place]
        rewriter.replace_all_uses(argument, op.initial[place])
        rewriter.remove_argument(body, op.rank + place)
        rewriter.remove_result(op, place)
    rewriter.set_operands(op, "initial", [])
