"""What an operation touches in memory or in tiles: operand by operand, over which points.

In: an operation in lifted or Scheduled form. Out: frozen touches: the memory, what is done there,
the map from the points of a box to coordinates, and where the box ends at run time. Seeds, epilogue
operands and outputs belong to a result, and are touched once a cell of it: dims that the result
folds stand at 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import Access, Alloc, Load, MapReducePost, Read
from tilenest.ir import BufType, Operation, TileType, Value, ViewType
from tilenest.layouts import AffineMap, Sym
from tilenest.records import record


@record
class Touch:
    """One operand of one operation."""

    group: str
    position: int
    memory: Value
    operation: str
    """'load', 'store' or 'allocate'"""
    access: Access
    extents: tuple[int, ...]
    symbols: tuple[Value, ...] = ()
    clips: tuple[tuple[int, Value], ...] = ()
    """dims of the box, and where they end at run time"""
    is_masked: bool = False
    """whether the program computes which points there are"""


def touches_of(op: Operation) -> tuple[Touch, ...]:
    """The touches of one operation, without those of operations nested in it."""
    match op:
        case MapReducePost():
            return tuple(_work(op))
        case Alloc():
            type_ = op.result.type
            assert isinstance(type_, BufType)
            everything = Access(AffineMap.identity(len(type_.shape)))
            return (Touch("result", 0, op.result, "allocate", everything, type_.shape),)
        case Read():
            return (Touch("buffer", 0, op.buffer, "load", Access(AffineMap(0, 0, ())), ()),)
        case Load():
            rank = len(op.origins)
            access = Access(AffineMap(0, rank, tuple(map(Sym, range(rank)))), op.bounds)
            is_masked = op.mask is not None
            origins = tuple(op.origins)
            return (Touch("view", 0, op.view, "load", access, (), origins, (), is_masked),)
    return ()


def _work(op: MapReducePost) -> Iterator[Touch]:
    every = tuple(range(op.rank))
    folded = op.folded_results
    owners = [j for j in folded for _ in range(op.spec(j).posts)]
    groups = (
        ("input", op.inputs, [every] * len(op.inputs)),
        ("seed", op.seeds, [op.spec(j).dims for j in folded]),
        ("post", op.posts, [op.spec(j).dims for j in owners]),
        ("output", op.outputs, [op.spec(j).dims for j in range(len(op.outputs))]),
    )
    for group, values, kept in groups:
        for position, (value, dims) in enumerate(zip(values, kept, strict=True)):
            if isinstance(value.type, ViewType | BufType | TileType):
                yield _of_work(op, group, position, value, dims)


def _of_work(
    op: MapReducePost, group: str, position: int, value: Value, dims: tuple[int, ...]
) -> Touch:
    clips = zip(op.clipped, op.upper, strict=True)
    return Touch(
        group,
        position,
        value,
        "store" if group == "output" else "load",
        op.access(group, position),
        tuple(extent if d in dims else 1 for d, extent in enumerate(op.extents)),
        tuple(op.symbols),
        tuple((d, end) for d, end in clips if d in dims),
        group == "output" and op.spec(position).is_masked,
    )
