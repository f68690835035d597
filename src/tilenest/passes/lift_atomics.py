"""Lift atomic updates: many elements are updated one after the other, each in the storage.

In: a `tile.atomic` in Candidate form. Out: updates of one element, whose bounds are checked in
front of them and whose views are followed down to the storage. What the elements were before is
gathered in a buf, where anybody asks.

    %old = tile.atomic "add" %v[%o], %t over (64)
    becomes   exec.serial (0)..(64) { (%i): %x = %t[%i]; %e = tile.atomic "add" %v[%o + %i], %x;
                                            %e -> %b at (%i) };  %old = %b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.dialects import (
    Access,
    Alloc,
    Atomic,
    Reindex,
    Serial,
    Yield,
    chain_of,
    stored_map,
)
from tilenest.ir import (
    INDEX,
    Block,
    BufType,
    Builder,
    Region,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    element_dtype,
)
from tilenest.layouts import AffineMap, Sym
from tilenest.passes.compose import Composer
from tilenest.passes.index_ops import apply_scalar, index_number
from tilenest.passes.lift_checks import lift_checks
from tilenest.passes.pieces import insert_pointwise, insert_store
from tilenest.passes.view_chains import lower_element_update

LiftBlock = Callable[[Block, Rewriter], None]


def lift_atomic(op: Atomic, rewriter: Rewriter, lift_block: LiftBlock) -> None:
    """Rewrite one update in place; `lift_block` lifts the body of the loop over its elements."""
    extents = [dim.extent for dim in op.dims]
    lift_checks(op, extents, lambda c, mask: _stored(c, mask, op), rewriter)
    if not op.dims:
        if chain_of(op.view):
            lower_element_update(op, rewriter)
        return
    builder = rewriter.builder_before(op)
    before = _buf_of_results(op, builder)
    block = Block([INDEX] * len(extents))
    zero, one = (index_number(builder, number) for number in (0, 1))
    sizes = [index_number(builder, extent) for extent in extents]
    each = len(extents)
    loop = Serial(
        lower=[zero] * each,
        upper=sizes,
        step=[one] * each,
        initial=[],
        regions=[Region([block])],
    )
    builder.insert(loop)
    _update_element(op, before, rewriter.builder_at_end(block))
    lift_block(block, rewriter)
    if before is not None:
        rewriter.replace_all_uses(op.result, _read_whole(op, before, builder))
    rewriter.erase(op)


def _stored(composer: Composer, value: Value, op: Atomic) -> Value:
    return composer.element(value, stored_map(value.type, op.dims).results)


def _buf_of_results(op: Atomic, builder: Builder) -> Value | None:
    if not any(result.has_uses for result in op.results):
        return None
    type_ = op.result.type
    assert isinstance(type_, TileType)
    return builder.insert(Alloc(result_types=[BufType(type_.dtype, type_.shape)])).result


def _update_element(op: Atomic, before: Value | None, builder: Builder) -> None:
    """The body of the loop: its coordinates are the arguments of the builder's block."""
    builder.location = op.location
    here = builder.block.arguments
    dtype = element_dtype(op.value.type)
    update = Atomic(
        view=op.view,
        origins=[
            apply_scalar(builder, "add", *pair) for pair in zip(op.origins, here, strict=True)
        ],
        value=_element(builder, op.value, op, here),
        expected=None if op.expected is None else _element(builder, op.expected, op, here),
        mask=None if op.mask is None else _element(builder, op.mask, op, here),
        function=op.function,
        bounds=op.bounds,
        result_types=[ScalarType(dtype)],
    )
    builder.insert(update)
    if before is not None:
        composer = Composer(())
        composer.location(op.location)
        place = [composer.symbol(coordinate) for coordinate in here]
        element = composer.element(update.result, ())
        insert_store(builder, composer, element, (before, composer.access(before, place, "zero")))
    builder.insert(Yield(values=[]))


def _element(builder: Builder, value: Value, op: Atomic, here: Sequence[Value]) -> Value:
    """The element of an operand that meets the coordinates."""
    if not isinstance(value.type, TileType):
        return value
    symbols = [Sym(place) for place in range(len(here))]
    places = [p.substitute(symbols, ()) for p in stored_map(value.type, op.dims).results]
    return builder.insert(
        Reindex(
            value=value,
            symbols=here,
            map=AffineMap(0, len(here), tuple(places)),
            result_types=[ScalarType(value.type.dtype)],
        )
    ).result


def _read_whole(op: Atomic, buf: Value, builder: Builder) -> Value:
    composer = Composer([dim.extent for dim in op.dims])
    composer.location(op.location)
    element = composer.read(buf, Access(AffineMap.identity(composer.rank)))
    return insert_pointwise(builder, composer, element, op.result.type).result
