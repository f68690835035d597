"""Give the work the simplest domain: no loops of extent 1, one loop where memory is one run.

In: bufferized work without schedules. Out: the same accesses over fewer loop dims.

    over (1, 768)    reads %v at (s0 + d0, d1)     ->   over (768):    %v at (s0, d0)
    over (96, 768)   reads %v at (d0, d1), dense   ->   over (73728):  %v at (d0//768, d0%768)

Two neighbouring dims of pointwise work become one when every operand moves by the inner extent
times the inner dim's step along the outer dim, no access can leave its operand, and the region
does not ask for the coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import offset_step
from tilenest.dialects import Access, Constant, MapReducePost, ResultSpec
from tilenest.ir import INDEX, Block, Function, Rewriter
from tilenest.layouts import Const, DimRef, IndexExpr
from tilenest.records import replace

_GROUPS = ("input", "seed", "post", "output")


def flatten(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Simplify the domain of every op that has no schedule yet; there is nothing to decide."""
    for op in [op for op in function.walk() if isinstance(op, MapReducePost)]:
        if op.sched is not None or op.clipped:
            continue
        _drop_unit_dims(op, rewriter)
        while (dim := _collapsible_dim(op)) is not None:
            _collapse(op, dim, rewriter)
    return ()


# Loops of extent 1 -----------------------------------------------------------------------------


def _drop_unit_dims(op: MapReducePost, rewriter: Rewriter) -> None:
    kept = [d for d, extent in enumerate(op.extents) if extent != 1]
    if len(kept) == op.rank:
        return
    replaced: list[IndexExpr] = [
        DimRef(kept.index(d)) if d in kept else Const(0) for d in range(op.rank)
    ]
    dropped = [d for d in range(op.rank) if d not in kept]
    for region in op.regions:
        for d in reversed(dropped):
            _drop_index(region.block, d, rewriter)
    specs = tuple(
        replace(spec, dims=tuple(kept.index(d) for d in spec.dims if d in kept))
        for spec in op.specs
    )
    _reshape(op, [op.extents[d] for d in kept], replaced, specs, rewriter)


def _drop_index(block: Block, position: int, rewriter: Rewriter) -> None:
    argument = block.arguments[position]
    if argument.has_uses:
        first = block.operations.first
        assert first is not None
        zero = rewriter.insert_before(Constant(value=0, result_types=[INDEX]), first)
        rewriter.replace_all_uses(argument, zero.result)
    rewriter.remove_argument(block, position)


def _reshape(
    op: MapReducePost,
    extents: Sequence[int],
    dims: Sequence[IndexExpr],
    specs: tuple[ResultSpec, ...],
    rewriter: Rewriter,
) -> None:
    """Replace the loop dims in every access by expressions over the new ones."""
    for group in _GROUPS:
        name = f"{group}_access"
        accesses: tuple[Access, ...] = op.attributes[name]
        moved = tuple(_over(access, dims, len(extents)) for access in accesses)
        rewriter.set_attribute(op, name, moved)
    rewriter.set_attribute(op, "extents", tuple(extents))
    rewriter.set_attribute(op, "specs", specs)


def _over(access: Access, dims: Sequence[IndexExpr], rank: int) -> Access:
    return replace(access, map=access.map.with_dims(dims, rank))


# One run of memory -----------------------------------------------------------------------------


def _collapsible_dim(op: MapReducePost) -> int | None:
    """The first dim that forms one run with the next."""
    if op.folded_results or any(
        argument.has_uses for argument in op.fold_block.arguments[: op.rank]
    ):
        return None
    operands = [
        (value, op.access(group, i))
        for group, values in (("input", op.inputs), ("output", op.outputs))
        for i, value in enumerate(values)
    ]
    if any(access.bounds not in ("proven", "assume") for _, access in operands):
        return None
    for dim in range(op.rank - 1):
        inner = op.extents[dim + 1]
        steps = [
            [offset_step(v.type, a.map, d, op.extents) for d in (dim, dim + 1)] for v, a in operands
        ]
        if all(o is not None and i is not None and o == i * inner for o, i in steps):
            return dim
    return None


def _collapse(op: MapReducePost, dim: int, rewriter: Rewriter) -> None:
    inner = op.extents[dim + 1]
    run = DimRef(dim)
    dims: list[IndexExpr] = [DimRef(d) for d in range(dim)]
    dims += [run // inner, run % inner]
    dims += [DimRef(d - 1) for d in range(dim + 2, op.rank)]
    extents = [*op.extents[:dim], op.extents[dim] * inner, *op.extents[dim + 2 :]]
    rewriter.remove_argument(op.fold_block, dim + 1)
    specs = tuple(replace(spec, dims=tuple(range(len(extents)))) for spec in op.specs)
    _reshape(op, extents, dims, specs, rewriter)
