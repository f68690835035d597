"""Fit contractions to whole register blocks, and skip blocks whose cells are dropped anyway.

In: bufferized work. Out: an accumulator's buf and its product cover whole blocks (mr x nr) along
the dims whose operand is read from panels; where its only reader stores it to a view that drops
what is outside, the product's m and n end there too.

    acc: buf 97 x 131, product over (97, 131, k)  ->  acc: buf 98 x 160, product over (98, 160, k)
                                                      clipped at (M - i*97, N - j*131)
"""

from __future__ import annotations

from tilenest.analysis import ancestor_in, output_clips
from tilenest.dialects import Alloc, Apply, Extent, MapReducePost
from tilenest.ir import (
    INDEX,
    BufType,
    Function,
    Operation,
    OpResult,
    Rewriter,
    Value,
    ViewType,
)
from tilenest.layouts import DimRef, FloorDiv, Mod
from tilenest.passes.index_ops import emit_index
from tilenest.passes.pieces import clip_dim, is_identity
from tilenest.plan import register_block_of
from tilenest.records import record


def block_products(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Pad and clip every contraction that accumulates in a buf of its own; nothing to decide."""
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        blocks = register_block_of(op)
        accumulator = op.outputs[0] if op.outputs else None
        if blocks is None or not isinstance(accumulator, OpResult):
            continue
        if not isinstance(accumulator.owner, Alloc) or not is_identity(op.access("output", 0), 2):
            continue
        product = _Product(op, accumulator, accumulator.owner)
        _clip_cells(product, rewriter)
        _pad(product, blocks, rewriter)
    return ()


@record
class _Product:
    """A contraction over (m, n, k) and the buf it accumulates in."""

    op: MapReducePost
    accumulator: Value
    alloc: Alloc

    @property
    def others(self) -> list[MapReducePost] | None:
        """The accumulator's other users, None when one of them is no map_reduce."""
        users = [user for user in self.accumulator.users if user is not self.op]
        work = [user for user in users if isinstance(user, MapReducePost)]
        return work if len(work) == len(users) else None


# Padding ---------------------------------------------------------------------------------------


def _pad(product: _Product, blocks: tuple[int, int], rewriter: Rewriter) -> None:
    op = product.op
    rounded = [
        -(-op.extents[d] // blocks[d]) * blocks[d] if _may_round(product, d) else op.extents[d]
        for d in range(2)
    ]
    if list(op.extents[:2]) == rounded or product.others is None:
        return
    if any(
        len(user.outputs) != 1 and product.accumulator in user.outputs for user in product.others
    ):
        return
    type_ = product.accumulator.type
    assert isinstance(type_, BufType)
    fresh = Alloc(result_types=[BufType(type_.dtype, tuple(rounded))])
    fresh.result.name = product.accumulator.name
    rewriter.builder_before(product.alloc).insert(fresh)
    rewriter.replace_by_storage(product.accumulator, fresh.result)
    rewriter.erase(product.alloc)
    rewriter.set_attribute(op, "extents", (*rounded, op.extents[2]))
    for user in list(fresh.result.users):
        if isinstance(user, MapReducePost) and _is_fill(user, fresh.result):
            rewriter.set_attribute(user, "extents", tuple(rounded))


def _may_round(product: _Product, dim: int) -> bool:
    """Whether whole blocks along `dim` stay inside everything that is read there: panels, and the
    accumulator, which grows with them."""
    op = product.op
    others = zip((*op.seeds, *op.posts), (*op.seed_access, *op.post_access), strict=True)
    inputs = all(
        isinstance(result, FloorDiv | Mod)
        for access in op.input_access
        for result in access.map.results
        if result.dim_mask >> dim & 1
    )
    return inputs and not any(
        result.dim_mask >> dim & 1
        for value, access in others
        if value is not product.accumulator
        for result in access.map.results
    )


def _is_fill(op: MapReducePost, accumulator: Value) -> bool:
    """Whether the op writes one scalar everywhere, so that it may write more of it."""
    return (
        op.outputs == [accumulator]
        and is_identity(op.access("output", 0), 2)
        and op.rank == 2
        and not op.folded_results
        and not any(access.map.results for access in op.input_access)
        and not any(argument.has_uses for argument in op.fold_block.arguments[:2])
    )


# Clipping --------------------------------------------------------------------------------------


def _clip_cells(product: _Product, rewriter: Rewriter) -> None:
    others = product.others
    if others is None:
        return
    readers = [op for op in others if product.accumulator not in op.outputs]
    if (
        len(readers) != 1
        or readers[0].parent is not product.alloc.parent
        or any(
            product.accumulator in (*op.inputs, *op.seeds, *op.posts)
            for op in others
            if op is not readers[0]
        )
    ):
        return
    (reader,) = readers
    for axis in range(2):
        bound = _bound_of(product, reader, axis, rewriter)
        if bound is not None:
            clip_dim(product.op, axis, bound, rewriter)


def _bound_of(
    product: _Product, reader: MapReducePost, axis: int, rewriter: Rewriter
) -> Value | None:
    """How many rows (or columns) of the accumulator the reader keeps, at run time."""
    dims = {
        reader.access("input", i).map.results[axis]
        for i, value in enumerate(reader.inputs)
        if value is product.accumulator
    }
    if len(dims) != 1:
        return None
    (dim,) = dims
    for clip in output_clips(reader):
        if DimRef(clip.dim) == dim:
            return _emit_bound(product, reader, clip.axis, clip.dim, rewriter)
    return None


def _emit_bound(
    product: _Product, reader: MapReducePost, axis: int, dim: int, rewriter: Rewriter
) -> Value | None:
    block = product.alloc.parent
    assert block is not None
    anchor = ancestor_in(block, product.op)
    assert anchor is not None
    if not all(_is_defined_before(symbol, anchor) for symbol in reader.symbols):
        return None
    view = reader.outputs[0]
    assert isinstance(view.type, ViewType)
    builder = rewriter.builder_before(anchor)
    extent = builder.insert(Extent(view=view, axis=axis, result_types=[INDEX])).result
    offset = reader.access("output", 0).map.results[axis] - DimRef(dim)
    start = emit_index(builder, offset, reader.symbols)
    bound = Apply(arguments=[extent, start], function="sub", result_types=[INDEX])
    return builder.insert(bound).result


def _is_defined_before(value: Value, anchor: Operation) -> bool:
    """Whether a value is available where `anchor` stands."""
    if not isinstance(value, OpResult) or value.owner.parent is not anchor.parent:
        # It dominates a later op of this block, so it comes from an enclosing one or an argument.
        return True
    op = anchor.previous
    while op is not None:
        if op is value.owner:
            return True
        op = op.previous
    return False
