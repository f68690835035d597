"""Rules `OP10` to `OP16`: facts of views, loads, stores, maps, reindexing and mma.

In: operations of the tile dialect. Out: findings about ranks, dims, dtypes and regions.
"""

from __future__ import annotations

from tilenest.dialects import Extent, Load, Map, Mma, Reindex, Store, Stride
from tilenest.ir import (
    INDEX,
    Operation,
    ScalarType,
    TileType,
    Type,
    Value,
    ViewType,
    describe_type,
    element_dtype,
)
from tilenest.layouts import Dim
from tilenest.verify.expectations import (
    Findings,
    broadcasts_to,
    describe_types,
    dims_of,
    element_type,
    expect_choice,
    expect_index,
    expect_region,
    expect_regions,
    expect_scalar_block,
    expect_types,
    is_bool,
    is_storable,
    op_rule,
    type_is_over,
    types_of,
)

BOUNDS = ("zero", "assume", "check")


def _fact(op: Extent | Stride) -> Findings:
    yield from expect_types("results", types_of(op.results), [INDEX])
    type_ = op.view.type
    if not isinstance(type_, ViewType):
        yield f"asks a {describe_type(type_)}", "ask a view"
    elif not 0 <= op.axis < type_.rank:
        yield f"asks for axis {op.axis} of a view of rank {type_.rank}", "name an axis it has"


def _access(op: Load | Store) -> Findings:
    """What loads and stores have in common."""
    yield from expect_choice("`bounds`", op.bounds, BOUNDS)
    yield from expect_index("origin", op.origins)
    type_ = op.view.type
    if not isinstance(type_, ViewType):
        yield f"accesses a {describe_type(type_)}", "access a view"
    elif len(op.origins) != type_.rank:
        yield (
            f"has {len(op.origins)} origins for a view of rank {type_.rank}",
            "give one origin per axis",
        )


def _mask(mask: Value | None, dims: tuple[Dim, ...]) -> Findings:
    if mask is not None and not (is_bool(mask.type) and broadcasts_to(mask.type, dims)):
        yield (
            f"the mask is a {describe_type(mask.type)}",
            "use a bool that broadcasts over the accessed dims",
        )


def _load(op: Load) -> Findings:
    yield from _access(op)
    dims = _result_dims(op)
    if dims is None or not isinstance(op.view.type, ViewType):
        yield f"gives {describe_types(types_of(op.results))}", "give one tile or scalar"
        return
    dtype = op.view.type.dtype
    if not type_is_over(op.result.type, dtype):
        yield f"gives {describe_type(op.result.type)}", f"the view holds {dtype.text}"
    if dims and len(dims) != op.view.type.rank:
        yield f"gives {len(dims)} dims from rank {op.view.type.rank}", "give one dim per axis"
    yield from _mask(op.mask, dims)
    other = op.other
    if other is not None:
        is_fitting = type_is_over(other.type, dtype) and broadcasts_to(other.type, dims)
        if not is_fitting:
            yield (
                f"`other` is a {describe_type(other.type)}",
                f"use a {dtype.text} that broadcasts over the result",
            )


def _store(op: Store) -> Findings:
    yield from _access(op)
    if op.results:
        yield "has results", "a store gives nothing"
    dims = tuple(dim for dim in op.dims if isinstance(dim, Dim))
    if len(dims) != len(op.dims) or len(set(dims)) != len(dims):
        yield "`dims` are not distinct dims", "name one dim per axis"
        return
    if not isinstance(op.view.type, ViewType):
        return
    if dims and len(dims) != op.view.type.rank:
        yield f"writes {len(dims)} dims into rank {op.view.type.rank}", "name one dim per axis"
    yield from _mask(op.mask, dims)
    if not type_is_over(op.value.type, op.view.type.dtype):
        yield (
            f"writes {describe_type(op.value.type)} into {op.view.type.dtype.text}",
            "cast the value",
        )
    if not is_storable(op.value.type, dims):
        yield (
            f"the value {describe_type(op.value.type)} does not fit the stored dims",
            "store the dims of the region, or the same extents",
        )


def _result_dims(op: Operation) -> tuple[Dim, ...] | None:
    """The dims of the only result, a tile or scalar."""
    return dims_of(op.results[0].type) if len(op.results) == 1 else None


def _map(op: Map) -> Findings:
    dims = _result_dims(op)
    if dims is None:
        yield f"gives {describe_types(types_of(op.results))}", "give one tile or scalar"
        return
    elements: list[Type] = []
    for place, value in enumerate(op.inputs):
        if not broadcasts_to(value.type, dims):
            yield (
                f"input {place}, {describe_type(value.type)}, does not broadcast over "
                f"{describe_type(op.result.type)}",
                "give the result every dim of the inputs",
            )
        elements.append(element_type(value.type) or value.type)
    wrong = list(expect_regions(op, 1))
    yield from wrong
    if not wrong:
        element = ScalarType(element_dtype(op.result.type))
        yield from expect_region(op, 0, [INDEX] * len(dims) + elements, [element])
        yield from expect_scalar_block(op.body)


def _reindex(op: Reindex) -> Findings:
    dims = _result_dims(op)
    source = dims_of(op.value.type)
    if dims is None or source is None:
        found = describe_types(types_of([op.value, *op.results]))
        yield f"goes between {found}", "reindex a tile or scalar into one"
        return
    yield from expect_index("symbol", op.symbols)
    if not type_is_over(op.result.type, element_dtype(op.value.type)):
        yield "changes the element type", "cast the tile"


def _mma(op: Mma) -> Findings:
    types = types_of(op.operands)
    tiles = [type_ for type_ in types if isinstance(type_, TileType)]
    if len(tiles) != 3:
        yield f"multiplies {describe_types(types)}", "use tiles"
        return
    yield from expect_types("results", types_of(op.results), [types[2]])
    a, b, c = tiles
    if not Mma.takes(a.dtype, b.dtype, c.dtype):
        yield (
            f"multiplies {a.dtype.text} by {b.dtype.text} into {c.dtype.text}",
            "use floats of one dtype, or integers, and an accumulator of their kind that holds "
            "all their numbers",
        )
    shared = set(a.dims) & set(b.dims)
    if not shared - set(c.dims):
        yield "no dim is shared by the factors alone", "share the contracted dim between them"
    if not set(c.dims) <= set(a.dims) | set(b.dims):
        yield "the accumulator has a dim of neither factor", "take its dims from the factors"
    if not set(a.dims) ^ set(b.dims) <= set(c.dims):
        yield (
            "a dim of one factor is in neither the other nor the accumulator",
            "sum over it first, or give it to the accumulator",
        )


TILE_RULES = (
    op_rule("OP10", "extents are asked of an axis of a view", Extent, _fact),
    op_rule("OP11", "strides are asked of an axis of a view", Stride, _fact),
    op_rule("OP12", "loads fit their view", Load, _load),
    op_rule("OP13", "stores fit their view", Store, _store),
    op_rule("OP14", "maps lift one scalar region over the dims", Map, _map),
    op_rule("OP15", "reindexing maps result coordinates to the value's", Reindex, _reindex),
    op_rule("OP16", "mma contracts shared dims", Mma, _mma),
)
