"""Lift tile arrays: a borrowed slot is read from its parent, an array that is filled is a buf.

In: Candidate form, whose slots are read before its tile ops are lifted (`read_slots`); then lifted
form, whose filled arrays are replaced (`fill_slots`). Out: no arrays. Setting a slot writes its
region of the buf; since a state is used once, whoever sets a slot may write in place, and nests and
conditionals carry nothing. An array made anew where one is carried is refused.

    %p = array.partition %t; %x = array.get %p[%i]    becomes   %x = tile.reindex %t at (d0 + 4 i)
    %m = array.set %n[%i], %x                         becomes   %x -> %buf at (d0 + 4 i)
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import (
    Access,
    Alloc,
    ArrayAssemble,
    ArrayGet,
    ArrayMake,
    ArraySet,
    CarryingNest,
    If,
    Load,
    Partition,
    Reindex,
)
from tilenest.errors import TileArrayError
from tilenest.ir import (
    ArrayType,
    Block,
    BufType,
    Builder,
    Function,
    Operation,
    Rewriter,
    TileType,
    Value,
    ViewType,
)
from tilenest.layouts import AffineMap, DimRef, IndexExpr, Sym
from tilenest.passes.compose import Composer
from tilenest.passes.index_ops import apply_scalar, index_number
from tilenest.passes.pieces import insert_pointwise, insert_store

# Borrowed arrays -------------------------------------------------------------------------------


def read_slots(function: Function, rewriter: Rewriter) -> None:
    """Replace every slot that is read by a reindexing or a load."""
    operations = list(function.walk())
    for op in operations:
        if isinstance(op, ArrayGet):
            assert op.partition is not None, "borrowed in sight"
            read = _read(op, op.partition, rewriter.builder_before(op))
            rewriter.replace_op(op, read.results)
    for op in operations:
        if isinstance(op, Partition):
            rewriter.erase(op)


def _read(op: ArrayGet, partition: Partition, builder: Builder) -> Operation:
    type_ = op.result.type
    assert isinstance(type_, TileType)
    if isinstance(partition.whole.type, ViewType):
        origins = [
            _origin(base, at, extent, builder)
            for base, at, extent in zip(partition.origins, op.indices, type_.shape, strict=True)
        ]
        return builder.insert(Load(view=partition.whole, origins=origins, result_types=[type_]))
    rank = len(type_.dims)
    places = [DimRef(d) + Sym(d) * extent for d, extent in enumerate(type_.shape)]
    return builder.insert(
        Reindex(
            value=partition.whole,
            symbols=op.indices,
            map=AffineMap(rank, rank, tuple(places)),
            result_types=[type_],
        )
    )


def _origin(base: Value, at: Value, extent: int, builder: Builder) -> Value:
    step = apply_scalar(builder, "mul", at, index_number(builder, extent))
    return apply_scalar(builder, "add", base, step)


# Filled arrays ---------------------------------------------------------------------------------


def fill_slots(function: Function, rewriter: Rewriter) -> None:
    """Replace every array that is filled by a buf."""
    _fill_block(function.body, rewriter)


def _fill_block(block: Block, rewriter: Rewriter) -> None:
    """From the top down: what makes an array becomes its buf before anything uses it."""
    for op in list(block.operations):
        match op:
            case ArrayMake():
                buf = rewriter.builder_before(op).insert(Alloc(result_types=[_buf_type(op)])).result
                buf.name = op.result.name
                _stand_in(op, buf, rewriter)
            case ArraySet():
                _write_slot(op, rewriter.builder_before(op))
                _stand_in(op, op.array, rewriter)
            case ArrayAssemble():
                read = _read_whole(op, rewriter.builder_before(op))
                rewriter.replace_op(op, [read])
            case _:
                _fill_regions(op, rewriter)


def _stand_in(op: ArrayMake | ArraySet, buf: Value, rewriter: Rewriter) -> None:
    rewriter.replace_by_storage(op.result, buf)
    rewriter.erase(op)


def _buf_type(op: ArrayMake) -> BufType:
    array = _array(op)
    extents = zip(array.shape, array.element.shape, strict=True)
    return BufType(array.element.dtype, tuple(slots * extent for slots, extent in extents))


def _array(op: ArrayMake | ArraySet) -> ArrayType:
    assert isinstance(op.result.type, ArrayType)
    return op.result.type


def _write_slot(op: ArraySet, builder: Builder) -> None:
    element = _array(op).element
    composer = Composer(element.shape)
    composer.location(op.location)
    here = tuple(DimRef(d) for d in range(composer.rank))
    value = composer.element(op.value, here)
    places: list[IndexExpr] = [
        composer.symbol(at) * extent + dim
        for at, extent, dim in zip(op.indices, element.shape, here, strict=True)
    ]
    access = composer.access(op.array, places, "zero")
    insert_store(builder, composer, value, (op.array, access))


def _read_whole(op: ArrayAssemble, builder: Builder) -> Value:
    type_ = op.result.type
    assert isinstance(type_, TileType)
    composer = Composer(type_.shape)
    composer.location(op.location)
    element = composer.read(op.array, Access(AffineMap.identity(composer.rank)))
    return insert_pointwise(builder, composer, element, type_).result


def _fill_regions(op: Operation, rewriter: Rewriter) -> None:
    """Inside, and then without the states and results that are bufs now."""
    places = [i for i, result in enumerate(op.results) if isinstance(result.type, ArrayType)]
    if isinstance(op, CarryingNest):
        for place in places:
            rewriter.replace_by_storage(op.body.arguments[op.rank + place], op.initial[place])
    for region in op.regions:
        for nested in region.blocks:
            _fill_block(nested, rewriter)
    for place in reversed(places):
        assert isinstance(op, CarryingNest | If)
        _drop_array(op, place, rewriter)


def _drop_array(op: CarryingNest | If, place: int, rewriter: Rewriter) -> None:
    ends = [region.block.terminator for region in op.regions]
    bufs = [end.operands[place] for end in ends]
    if isinstance(op, CarryingNest):
        bufs.append(op.initial[place])
    if any(buf is not bufs[0] for buf in bufs):
        raise TileArrayError(
            "a region hands on a tile array that is not the one it was given",
            "make the array once, before the region",
            op.location,
        )
    rewriter.replace_by_storage(op.results[place], bufs[0])
    rewriter.remove_result(op, place)
    for end in ends:
        rewriter.set_operands(end, "values", _without(end.operands, place))
    if isinstance(op, CarryingNest):
        rewriter.set_operands(op, "initial", _without(op.initial, place))
        rewriter.remove_argument(op.body, op.rank + place)


def _without(values: Sequence[Value], place: int) -> list[Value]:
    return [*values[:place], *values[place + 1 :]]
