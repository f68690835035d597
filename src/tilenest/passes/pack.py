"""Copy the operands of matrix products into panels, and skip steps that only add zeros.

In: lifted work on values, before fusion. Out: a contraction's packed operands are read from tiles
of shape (blocks, k, block); a last partial block is filled up, so the product runs whole blocks.
Where both operands are 0 past a run-time end of k, the product stops there (`clipped`).

    fma(a[m, k], b[k, n], acc[m, n])
    becomes   %pa = map_reduce_post(%a at (d0*12 + d2, d1))       panels (m/12, k, 12)
              fma(%pa[m//12, k, m%12], %pb[n//32, k, n%32], acc[m, n])
"""

from __future__ import annotations

from tilenest.decisions import Decision
from tilenest.dialects import Access, Apply, Extent, MapReducePost
from tilenest.ir import INDEX, Builder, Function, Rewriter, TileType, Value, ViewType
from tilenest.layouts import AffineMap, Dim, DimRef, IndexExpr
from tilenest.machine import Machine
from tilenest.passes.compose import Composer
from tilenest.passes.index_ops import emit_index
from tilenest.passes.pieces import clip_dim, insert_pointwise
from tilenest.plan import Contraction, OperandPlan, plain_load, plan_packing


def pack(function: Function, machine: Machine, rewriter: Rewriter) -> list[Decision]:
    """Apply the packing plan of every contraction in a function."""
    decisions: list[Decision] = []
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        plan = plan_packing(op, machine)
        if plan is None:
            continue
        roles = plan.contraction
        rewriter.set_attribute(op, "sched", plan.sched)
        _clip_steps(op, roles, rewriter)
        if plan.a.is_packed:
            _pack_operand(op, plan.a, roles.a, roles.m, roles.k, rewriter)
        if plan.b.is_packed:
            _pack_operand(op, plan.b, roles.b, roles.n, roles.k, rewriter)
        decisions += plan.decisions
    return decisions


def _pack_operand(
    op: MapReducePost, plan: OperandPlan, position: int, kept: int, k: int, rewriter: Rewriter
) -> None:
    block = plan.block
    blocks = -(-op.extents[kept] // block)
    value = op.inputs[position]
    assert isinstance(value.type, TileType)
    composer = Composer((blocks, op.extents[k], block))
    composer.location(op.location)
    inside = DimRef(0) * block + DimRef(2)
    results = op.access("input", position).map.results
    place = tuple(inside if r == DimRef(kept) else DimRef(1) for r in results)
    element = _padded_element(composer, value, place)
    dims = (Dim(None, blocks), value.type.dims[results.index(DimRef(k))], Dim(None, block))
    panel = insert_pointwise(
        rewriter.builder_before(op), composer, element, TileType(value.type.dtype, dims)
    )
    rewriter.set_attribute(panel, "repartition", plan.repartition)
    panel.results[0].name = f"{value.name}_panels" if value.name else "panels"
    row = DimRef(kept)
    access = Access(AffineMap(op.rank, len(op.symbols), (row // block, DimRef(k), row % block)))
    accesses = list(op.input_access)
    accesses[position] = access
    inputs = op.inputs
    inputs[position] = panel.results[0]
    rewriter.set_operands(op, "inputs", inputs)
    rewriter.set_attribute(op, "input_access", tuple(accesses))


def _padded_element(composer: Composer, value: Value, place: tuple[IndexExpr, ...]) -> Value:
    """The operand's element; past its extent whatever the view holds there, or 0 outside it.

    What a partial block reads beyond the tile meets only accumulators that nobody reads.
    """
    load = plain_load(value)
    if load is None:
        return composer.input_element(value, composer.access(value, place, "zero"))
    axes = load.spec(0).dims
    dims = tuple(place[axes.index(d)] for d in range(load.rank))
    source = load.access("input", 0)
    placed = composer.place(source, dims, load.symbols, load.inputs[0])
    view = load.inputs[0]
    # A promise about the tile says nothing of what lies beyond it.
    fill = source.fill if source.bounds == "zero" else 0
    return composer.read(view, composer.access(view, placed.map.results, "zero", fill))


# Skipping zeros --------------------------------------------------------------------------------


def _clip_steps(op: MapReducePost, roles: Contraction, rewriter: Rewriter) -> None:
    """Let k end where both operands have run out of their views."""
    ends = [_end_of(op, position, roles.k) for position in (roles.a, roles.b)]
    if ends[0] is None or ends[1] is None:
        return
    builder = rewriter.builder_before(op)
    first, second = (_emit_end(builder, *end) for end in ends if end is not None)
    if first is not second:
        latest = Apply(arguments=[first, second], function="maximum", result_types=[INDEX])
        first = builder.insert(latest).result
    clip_dim(op, roles.k, first, rewriter)


def _end_of(op: MapReducePost, position: int, k: int) -> tuple[MapReducePost, int, int] | None:
    """The load, the view's axis and the load's dim that k runs along, if 0 is read beyond it."""
    load = plain_load(op.inputs[position])
    if load is None:
        return None
    access = load.access("input", 0)
    if access.bounds != "zero" or access.fill != 0:
        return None
    axis_of_tile = op.access("input", position).map.results.index(DimRef(k))
    dim = load.spec(0).dims[axis_of_tile]
    for axis, result in enumerate(access.map.results):
        if result.dim_mask == 1 << dim and result.coefficient(dim) == 1:
            return load, axis, dim
    return None


def _emit_end(builder: Builder, load: MapReducePost, axis: int, dim: int) -> Value:
    view = load.inputs[0]
    assert isinstance(view.type, ViewType)
    offset = load.access("input", 0).map.results[axis] - DimRef(dim)
    extent = builder.insert(Extent(view=view, axis=axis, result_types=[INDEX])).result
    start = emit_index(builder, offset, load.symbols)
    end = Apply(arguments=[extent, start], function="sub", result_types=[INDEX])
    return builder.insert(end).result
