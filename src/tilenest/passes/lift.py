"""Lift tile operations to `tensor.map_reduce_post` on values, and reductions to folds.

In: Candidate form. Out: every tile op is a map_reduce_post; a store has the view as its output.

    %y = tile.map(%x) {...}     becomes   %y = tensor.map_reduce_post(%x at (d0, d1)) {...}
    tile.store %v[o], %y        becomes   tensor.map_reduce_post(%y at (d0)) -> %v at (s0 + d0)

Broadcasts, transposes and slices live in the access maps. Loads and stores of one element, and
arithmetic on scalars, stay as they are. Regions are lifted before the nest that holds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import captured_values, constant_of
from tilenest.dialects import (
    Access,
    Atomic,
    Cast,
    Extent,
    Load,
    Map,
    MapReducePost,
    Mma,
    Parallel,
    Reduce,
    ReductionContract,
    Reindex,
    Store,
    broadcast_map,
    chain_of,
    stored_map,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    Function,
    Iteration,
    Operation,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    ViewType,
    element_dtype,
)
from tilenest.layouts import Dim, DimRef, IndexExpr
from tilenest.machine import Target
from tilenest.passes.compose import Composer
from tilenest.passes.lift_arrays import fill_slots, read_slots
from tilenest.passes.lift_atomics import lift_atomic
from tilenest.passes.lift_checks import lift_checks
from tilenest.passes.lift_reduction import lift_reduction
from tilenest.passes.lift_updates import lift_updates
from tilenest.passes.pieces import (
    FoldedResult,
    insert_fold,
    insert_pointwise,
    insert_store,
)
from tilenest.passes.place_memory import place_memory
from tilenest.passes.split_phases import split_phases
from tilenest.passes.view_chains import (
    all_of,
    drop_remapped_views,
    landing_of,
    lower_element_load,
    zero_of,
)


def lift(function: Function, target: Target, rewriter: Rewriter) -> tuple[()]:
    """Lift one function in place; there is nothing to decide."""
    place_memory(function, target, rewriter)
    read_slots(function, rewriter)
    split_phases(function, rewriter)
    _lift_block(function.body, rewriter)
    fill_slots(function, rewriter)
    drop_remapped_views(function, rewriter)
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
            case Atomic():
                lift_atomic(op, rewriter, _lift_block)
            case _:
                _lift_regions(op, rewriter)


def _lift_regions(op: Operation, rewriter: Rewriter) -> None:
    for region in op.regions:
        for nested in region.blocks:
            _lift_block(nested, rewriter)
    if isinstance(op, Parallel):
        lift_updates(op, rewriter)
    if isinstance(op, Reduce):
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
    elif chain_of(op.view):
        lower_element_load(op, rewriter)


def _lift_tile_load(op: Load, type_: TileType, rewriter: Rewriter) -> MapReducePost:
    dims = type_.dims
    composer = _start(op, dims)
    builder = rewriter.builder_before(op)
    results = [composer.symbol(o) + DimRef(d) for d, o in enumerate(op.origins)]
    if chain_of(op.view):
        element = _read_remapped(composer, op, type_, results, builder)
    else:
        element = _read_storage(composer, op, type_, results, builder)
    return insert_pointwise(builder, composer, element, type_)


def _read_remapped(
    composer: Composer,
    op: Load,
    type_: TileType,
    results: Sequence[IndexExpr],
    builder: Builder,
) -> Value:
    landing = landing_of(composer, op.view, results, op.bounds == "assume")
    fill = _fill(op) if landing.fill is None else landing.fill
    access = landing.access(composer, 0 if fill is None else fill)
    loaded = composer.read(landing.base, access)
    if fill is None and access.bounds == "zero":
        inside = _inside(composer, landing.base, access, builder)
        loaded = _choose(composer, inside, loaded, _other(composer, op, type_))
    element = landing.choose(composer, loaded, lambda: _other(composer, op, type_))
    if op.mask is None:
        return element
    mask = _broadcast(composer, op.mask, type_.dims)
    return _choose(composer, [mask], element, _other(composer, op, type_))


def _read_storage(
    composer: Composer,
    op: Load,
    type_: TileType,
    results: Sequence[IndexExpr],
    builder: Builder,
) -> Value:
    dims = type_.dims
    fill = _fill(op)
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
    return element


def _fill(op: Load) -> bool | int | float | None:
    """What is read outside, where that is one number; None for anything else."""
    return 0 if op.other is None else constant_of(op.other)


def _other(composer: Composer, op: Load, type_: TileType) -> Value:
    if op.other is None:
        return composer.constant(zero_of(type_), ScalarType(type_.dtype))
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
    return composer.apply("where", [all_of(composer, conditions), element, other], element.type)


def _broadcast(composer: Composer, value: Value, dims: Sequence[Dim]) -> Value:
    """The element of `value` that meets this point of a space of `dims`."""
    return composer.element(value, broadcast_map(value.type, dims).results)


def _begin(op: Operation, iteration: Iteration) -> Composer:
    composer = Composer(iteration.extents)
    composer.location(op.location)
    return composer


def _operand_element(
    composer: Composer, op: Operation, iteration: Iteration, place: int, bounds: str = "proven"
) -> Value:
    """The element of one operand that a point of the iteration touches."""
    map_, value = iteration.operands[place], op.operands[place]
    assert map_ is not None, f"operand {place} of {op.NAME} is no part of a point's work"
    here = tuple(DimRef(d) for d in range(composer.rank))
    symbols = [op.operands[i] for i in iteration.symbols]
    access = composer.place(Access(map_, bounds), here, symbols, value)
    return composer.input_element(value, access)


def _lift_map(op: Map, rewriter: Rewriter) -> MapReducePost:
    iteration = op.iteration()
    composer = _begin(op, iteration)
    arguments: list[Value] = [composer.index(DimRef(d)) for d in range(composer.rank)]
    arguments += [_operand_element(composer, op, iteration, i) for i in range(len(op.inputs))]
    values = {value: composer.element(value, ()) for value in captured_values(op)}
    (element,) = composer.paste(op.body, arguments, values)
    return insert_pointwise(rewriter.builder_before(op), composer, element, op.result.type)


def _lift_reindex(op: Reindex, rewriter: Rewriter) -> MapReducePost:
    iteration = op.iteration()
    composer = _begin(op, iteration)
    element = _operand_element(composer, op, iteration, 0, bounds="zero")
    return insert_pointwise(rewriter.builder_before(op), composer, element, op.result.type)


def _lift_mma(op: Mma, rewriter: Rewriter) -> MapReducePost:
    iteration = op.iteration()
    composer = _begin(op, iteration)
    element_type = ScalarType(element_dtype(op.c.type))
    factors: list[Value] = []
    for place in (0, 1):
        factor = _operand_element(composer, op, iteration, place)
        if factor.type is not element_type:
            cast = Cast(value=factor, result_types=[element_type])
            factor = composer.builder.insert(cast).result
        factors.append(factor)
    state = composer.state(element_type)
    if element_type.dtype.is_float:
        step = composer.apply("fma", [*factors, state], element_type)
    else:
        product = composer.apply("mul", factors, element_type)
        step = composer.apply("add", [product, state], element_type)
    kept = tuple(d for d in range(composer.rank) if d not in iteration.reduced)
    seed = Access(composer.map([DimRef(d) for d in kept]))
    return insert_fold(
        rewriter.builder_before(op),
        composer,
        [step],
        [FoldedResult(kept, ReductionContract("fold_left"), op.c, seed)],
        [op.result.type],
    )


def _lift_store(op: Store, rewriter: Rewriter) -> None:
    dims: tuple[Dim, ...] = op.dims
    lift_checks(op, _extents(dims), lambda c, mask: _stored(c, mask, dims), rewriter)
    composer = _start(op, dims)
    results: list[IndexExpr] = [composer.symbol(o) for o in op.origins]
    # A store of one element has origins but no dims.
    results = [r + DimRef(d) if dims else r for d, r in enumerate(results)]
    wanted = [] if op.mask is None else [_stored(composer, op.mask, dims)]
    if chain_of(op.view):
        landing = landing_of(composer, op.view, results, op.bounds == "assume")
        destination = landing.base, landing.access(composer)
        wanted += landing.is_there(composer)
    else:
        destination = op.view, composer.access(op.view, results, op.bounds)
    element = _stored(composer, op.value, dims)
    mask = all_of(composer, wanted) if wanted else None
    insert_store(rewriter.builder_before(op), composer, element, destination, mask)
    rewriter.erase(op)


def _stored(composer: Composer, value: Value, dims: tuple[Dim, ...]) -> Value:
    return composer.element(value, stored_map(value.type, dims).results)
