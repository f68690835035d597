"""Lift tile operations to `tensor.map_reduce_post` on values, and reductions to folds.

In: Candidate form. Out: every tile op is a map_reduce_post; a store has the view as its output.

    %y = tile.map(%x) {...}     becomes   %y = tensor.map_reduce_post(%x at (d0, d1)) {...}
    tile.store %v[o], %y        becomes   tensor.map_reduce_post(%y at (d0)) -> %v at (s0 + d0)

Broadcasts, transposes and slices live in the access maps. Loads and stores of one element, and
arithmetic on scalars, stay as they are. Regions are lifted before the nest that holds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import constant_of, is_defined_above
from tilenest.dialects import (
    Access,
    Cast,
    Extent,
    Load,
    Map,
    MapReducePost,
    Mma,
    Reduce,
    Reindex,
    Store,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    Function,
    Operation,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    ViewType,
)
from tilenest.layouts import Const, Dim, DimRef, IndexExpr, dims_compatible_by_position
from tilenest.passes.compose import Composer
from tilenest.passes.lift_checks import hoist_checks, lift_checks
from tilenest.passes.lift_reduction import lift_reduction
from tilenest.passes.pieces import (
    FoldedResult,
    insert_fold,
    insert_pointwise,
    insert_store,
)


def lift(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Lift one function in place; there is nothing to decide."""
    _lift_block(function.body, rewriter)
    return ()


def _lift_block(block: Block, rewriter: Rewriter) -> None:
    for op in block.operations:
        match op:
            case Load():
                _lift_load(op, rewriter)
            case Map() if isinstance(op.results[0].type, TileType):
                _replace(op, _lift_map(op, rewriter), rewriter)
            case Reindex():
                _replace(op, _lift_reindex(op, rewriter), rewriter)
            case Mma():
                _replace(op, _lift_mma(op, rewriter), rewriter)
            case Store():
                _lift_store(op, rewriter)
            case _:
                for region in op.regions:
                    for nested in region.blocks:
                        _lift_block(nested, rewriter)
                if isinstance(op, Reduce):
                    hoist_checks(op, rewriter)
                    lift_reduction(op, rewriter)


def _replace(op: Operation, lifted: MapReducePost, rewriter: Rewriter) -> None:
    rewriter.replace_op(op, lifted.results)


# Tile operations -------------------------------------------------------------------------------


def _extents(dims: Sequence[Dim]) -> list[int]:
    return [dim.extent for dim in dims]


def _start(op: Operation, dims: Sequence[Dim]) -> Composer:
    composer = Composer(_extents(dims))
    composer.location(op.location)
    return composer


def _lift_load(op: Load, rewriter: Rewriter) -> None:
    type_ = op.result.type
    dims = type_.dims if isinstance(type_, TileType) else ()
    lift_checks(op, _extents(dims), lambda c, mask: _broadcast(c, mask, dims), rewriter)
    if isinstance(type_, TileType):
        _replace(op, _lift_tile_load(op, type_, rewriter), rewriter)


def _lift_tile_load(op: Load, type_: TileType, rewriter: Rewriter) -> MapReducePost:
    dims = type_.dims
    composer = _start(op, dims)
    builder = rewriter.builder_before(op)
    results = [composer.symbol(o) + DimRef(d) for d, o in enumerate(op.origins)]
    fill = 0 if op.other is None else constant_of(op.other)
    # A false mask protects elements that lie outside, so masked reads are always bounded.
    bounds = "zero" if op.bounds == "assume" and op.mask is not None else op.bounds
    access = composer.access(op.view, results, bounds, 0 if fill is None else fill)
    element = composer.read(op.view, access)
    conditions: list[Value] = []
    if fill is None and access.bounds == "zero":
        conditions += _inside(composer, op.view, access, builder)
    if op.mask is not None:
        conditions.append(_broadcast(composer, op.mask, dims))
    if conditions:
        element = _choose(composer, conditions, element, _other(composer, op, type_))
    return insert_pointwise(builder, composer, element, type_)


def _other(composer: Composer, op: Load, type_: TileType) -> Value:
    if op.other is None:
        zero: bool | int | float = 0.0 if type_.dtype.is_float else 0
        return composer.constant(False if type_.dtype.is_bool else zero, ScalarType(type_.dtype))
    return _broadcast(composer, op.other, type_.dims)


def _inside(composer: Composer, view: Value, access: Access, builder: Builder) -> list[Value]:
    """One predicate an axis bound: the coordinate is in [0, extent)."""
    found: list[Value] = []
    assert isinstance(view.type, ViewType)
    for axis, result in enumerate(access.map.results):
        coordinate = composer.index(result)
        known = view.type.shape[axis]
        if known is None:
            extent_op = Extent(view=view, axis=axis, result_types=[INDEX])
            extent = composer.element(builder.insert(extent_op).result, ())
        else:
            extent = composer.constant(known, INDEX)
        zero = composer.constant(0, INDEX)
        found.append(composer.apply("ge", [coordinate, zero], BOOL))
        found.append(composer.apply("lt", [coordinate, extent], BOOL))
    return found


def _choose(composer: Composer, conditions: Sequence[Value], element: Value, other: Value) -> Value:
    condition = conditions[0]
    for further in conditions[1:]:
        condition = composer.apply("and", [condition, further], BOOL)
    return composer.apply("where", [condition, element, other], element.type)


def _broadcast(composer: Composer, value: Value, dims: Sequence[Dim]) -> Value:
    """The element of `value` that meets this point of a space of `dims`."""
    if not isinstance(value.type, TileType):
        return composer.element(value, ())
    coordinates: list[IndexExpr] = [
        DimRef(dims.index(dim)) if dim in dims else Const(0) for dim in value.type.dims
    ]
    return composer.element(value, tuple(coordinates))


def _lift_map(op: Map, rewriter: Rewriter) -> MapReducePost:
    type_ = op.result.type
    assert isinstance(type_, TileType)
    composer = _start(op, type_.dims)
    arguments: list[Value] = [composer.index(DimRef(d)) for d in range(composer.rank)]
    arguments += [_broadcast(composer, value, type_.dims) for value in op.inputs]
    captured = _captured_scalars(op)
    values = {value: composer.element(value, ()) for value in captured}
    (element,) = composer.paste(op.body, arguments, values)
    return insert_pointwise(rewriter.builder_before(op), composer, element, type_)


def _captured_scalars(op: Operation) -> list[Value]:
    """Values of outside that the op's regions use."""
    nested = [inner for region in op.regions for inner in region.walk()]
    return [
        operand
        for inner in nested
        for operand in dict.fromkeys(inner.operands)
        if is_defined_above(operand, op)
    ]


def _lift_reindex(op: Reindex, rewriter: Rewriter) -> MapReducePost:
    dims = op.result.type.dims if isinstance(op.result.type, TileType) else ()
    composer = _start(op, dims)
    here = tuple(DimRef(d) for d in range(composer.rank))
    access = composer.place(Access(op.map, "zero"), here, op.symbols, op.value)
    element = composer.input_element(op.value, access)
    return insert_pointwise(rewriter.builder_before(op), composer, element, op.result.type)


def _lift_mma(op: Mma, rewriter: Rewriter) -> MapReducePost:
    a, b, c = op.a.type, op.b.type, op.c.type
    assert isinstance(a, TileType) and isinstance(b, TileType) and isinstance(c, TileType)
    folded = tuple(dim for dim in a.dims if dim in b.dims and dim not in c.dims)
    domain = (*c.dims, *folded)
    composer = _start(op, domain)
    element_type = ScalarType(c.dtype)
    factors: list[Value] = []
    for value in (op.a, op.b):
        factor = _broadcast(composer, value, domain)
        if factor.type is not element_type:
            cast = Cast(value=factor, result_types=[element_type])
            factor = composer.builder.insert(cast).result
        factors.append(factor)
    state = composer.state(element_type)
    if c.dtype.is_float:
        step = composer.apply("fma", [*factors, state], element_type)
    else:
        product = composer.apply("mul", factors, element_type)
        step = composer.apply("add", [product, state], element_type)
    kept = tuple(range(len(c.dims)))
    seed = Access(composer.map([DimRef(d) for d in kept]))
    return insert_fold(
        rewriter.builder_before(op),
        composer,
        [step],
        [FoldedResult(kept, "fold_left", None, op.c, seed)],
        [op.result.type],
    )


def _lift_store(op: Store, rewriter: Rewriter) -> None:
    dims: tuple[Dim, ...] = op.dims
    lift_checks(op, _extents(dims), lambda c, mask: _stored(c, mask, dims), rewriter)
    composer = _start(op, dims)
    results: list[IndexExpr] = [composer.symbol(o) for o in op.origins]
    # A store of one element has origins but no dims.
    results = [r + DimRef(d) if dims else r for d, r in enumerate(results)]
    access = composer.access(op.view, results, op.bounds)
    element = _stored(composer, op.value, dims)
    mask = None if op.mask is None else _stored(composer, op.mask, dims)
    insert_store(rewriter.builder_before(op), composer, element, (op.view, access), mask)
    rewriter.erase(op)


def _stored(composer: Composer, value: Value, dims: tuple[Dim, ...]) -> Value:
    if not isinstance(value.type, TileType):
        return composer.element(value, ())
    positions = dims_compatible_by_position(value.type.dims, dims)
    coordinates = [Const(0) if place is None else DimRef(place) for place in positions]
    return composer.element(value, tuple(coordinates))
