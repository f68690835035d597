"""What the loops of a schedule leave to atoms, read off the op, its loops and its memory.

In: a map_reduce_post and loops over its dims. Out: sites for the catalogue, by result: the square
of a transposed loop, or a fold along lanes for each folded result whose folded dim runs along them.
What is computed is the op's request; operands lie as the loops hold them; results lie as what the
op keeps and how its destination lies in memory have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis.memory_steps import offset_step
from tilenest.dialects import Loop, MapReducePost
from tilenest.ir import AtomRequest, ScalarType, Type, VectorType
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr
from tilenest.machine import AtomSite

_LANES = "vector"
_SQUARES = "transposed"


def atom_sites(op: MapReducePost, loops: Sequence[Loop]) -> dict[int, AtomSite]:
    """For each result that an atom has to finish, the place it fills."""
    lane = next((loop for loop in loops if loop.policy == _LANES), None)
    if lane is None:
        return {}
    rows = next((loop for loop in loops if loop.policy == _SQUARES), None)
    dims = (lane.dim,) if rows is None else (rows.dim, lane.dim)
    # A square moves what the result keeps; what it folds along the lanes is combined.
    is_kept = rows is not None
    return {
        result: _site(op, result, request, dims, lane.step)
        for result, request in enumerate(op.atom_requests())
        if request is not None and (DimRef(lane.dim) in request.result.results) is is_kept
    }


def _site(
    op: MapReducePost, result: int, request: AtomRequest, dims: tuple[int, ...], lanes: int
) -> AtomSite:
    """Iteration coordinates are `dims` of the op: one per register where there are two, and the
    one along the lanes that elements are computed in."""
    kept = request.result.results
    is_kept = [DimRef(dim) in kept for dim in dims]
    stored = _stored(op, result, dims) if all(is_kept) else AffineMap(len(dims), 0, ())
    return AtomSite(
        f"{'square of lanes' if len(dims) > 1 else 'fold along lanes'} of result {result}",
        request.semantic,
        request.policy,
        request.rounding,
        _registers(request, lanes, len(dims)),
        _registers(request, lanes, len(stored.results)),
        (lanes,) * len(dims),
        (_held(dims, dims[-1]),),
        (stored,),
        _LANES,
        is_exact=request.is_exact,
        location=op.location,
    )


def _registers(request: AtomRequest, lanes: int, rank: int) -> tuple[Type, ...]:
    """What holds the elements of a space of so many dims, each with as many points as lanes."""
    if rank == 0:
        return (ScalarType(request.dtype),)
    return (VectorType(request.dtype, lanes),) * (lanes if rank > 1 else 1)


def _held(dims: tuple[int, ...], along: int) -> AffineMap:
    """From points to (register, lane), with lanes along one of the dims."""
    registers: list[IndexExpr] = [DimRef(place) for place, dim in enumerate(dims) if dim != along]
    lane = DimRef(dims.index(along))
    return AffineMap(len(dims), 0, (*(registers or [Const(0)]), lane))


def _stored(op: MapReducePost, result: int, dims: tuple[int, ...]) -> AffineMap:
    """Where registers have to hold a result for the store: neighbours in memory along lanes."""
    map_, memory = op.access("output", result).map, op.outputs[result].type
    # A square is whole even where the domain has one row.
    extents = [max(2, extent) for extent in op.extents]
    steps = {dim: offset_step(memory, map_, dim, extents) for dim in dims}
    return _held(dims, next((dim for dim in dims if steps[dim] == 1), dims[-1]))
