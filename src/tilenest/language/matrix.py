"""Matrix multiply-accumulate and the rules by which its dims are found.

In: two tiles and an accumulator. Out: `tile.mma` on operands whose dims match by identity. A dim in
all three is batch, one in both inputs only is contracted, one in an input and the accumulator is
free. Operands of rank 2 with plain extents are matched by position, (M, K) x (K, N).
"""

from __future__ import annotations

from tilenest.dialects import Mma
from tilenest.errors import DTypeError, ShapeError, shown
from tilenest.ir import DType
from tilenest.language.creation import zeros
from tilenest.language.dtypes import accumulator_dtype
from tilenest.language.reindexing import relabel_value
from tilenest.language.session import current_session
from tilenest.language.values import Tile, as_tile
from tilenest.layouts import Dim, check_kind, namesakes_hint

Dims = tuple[Dim, ...]


def mma(a: Tile, b: Tile, c: Tile, ordered: bool = False) -> Tile:
    """c + a x b over the dims that a and b share and c lacks; c's dims and dtype.

    The inputs are converted to c's dtype, which holds all their numbers: floats of one dtype go
    into that or a wider one, integers of any into an integer dtype. Each cell is a chain of fused
    multiply-adds with k upwards; `ordered=True` demands that order on every target. An empty
    contraction gives c.
    Raises ShapeError when the dims do not match and DTypeError when the dtypes do not.
    """
    session = current_session()
    for name, tile in (("a", a), ("b", b), ("c", c)):
        if not isinstance(tile, Tile):
            raise ShapeError(
                f"operand {name} of tn.mma is {shown(tile)}",
                remedy="give three tiles of rank 1 or more",
            )
    check_kind(ordered, bool, "ordered= of tn.mma")
    _check_dtypes(a.dtype, b.dtype, c.dtype)
    a_dims, b_dims = matched_dims(a.dims, b.dims, c.dims)
    operation = Mma(
        result_types=[c.value.type],
        a=relabel_value(session, session.value_of(a), a_dims),
        b=relabel_value(session, session.value_of(b), b_dims),
        c=session.value_of(c),
        ordered=ordered,
    )
    return Tile(session.insert(operation).result, session)


def matmul(a: Tile, b: Tile) -> Tile:
    """The matrix product (..., M, K) x (..., K, N), kept in the dtype it is accumulated in.

    That is float32 for floats of 16 bits, int32 for integers of 8 or 16, else the wider one's. The
    last axis of a and the one before the last of b are one axis, or have one extent and at most one
    of them is a named axis; so are the leading ones, which are batch.
    """
    session = current_session()
    a, b = as_tile(a, "matmul"), as_tile(b, "matmul")
    if a.ndim != b.ndim or a.ndim < 2:
        raise ShapeError(
            f"tn.matmul is given tiles of {a.ndim} and {b.ndim} dims",
            remedy="give both the same number of dims, at least 2, as with tn.reshape",
        )
    pairs = [(a.dims[-1], b.dims[-2]), *zip(a.dims[:-2], b.dims[:-2], strict=True)]
    for one, other in pairs:
        if not _match_by_position(one, other):
            raise ShapeError(
                f"tn.matmul cannot match {one} of a with {other} of b",
                remedy="use the same axis in both tiles, or plain extents that agree"
                f"{namesakes_hint((one, other))}",
            )
    batch = [other if one.position is not None else one for one, other in pairs[1:]]
    kept = [*batch, a.dims[-2], b.dims[-1]]
    shape = tuple(dim if dim.position is None else dim.extent for dim in kept)
    wider = a.dtype if a.dtype.bits >= b.dtype.bits else b.dtype
    c = zeros(shape, accumulator_dtype(wider))
    assert isinstance(c, Tile)
    contracted = _named(*pairs[0])
    left = (*c.dims[:-1], contracted)
    right = (*c.dims[:-2], contracted, c.dims[-1])
    return mma(
        Tile(relabel_value(session, session.value_of(a), left), session),
        Tile(relabel_value(session, session.value_of(b), right), session),
        c,
    )


def matched_dims(a: Dims, b: Dims, c: Dims) -> tuple[Dims, Dims]:
    """The dims under which a and b enter the product: their own, or relabelled by position."""
    fault = _identity_fault(a, b, c)
    if fault is None:
        return a, b
    if len(a) == len(b) == len(c) == 2 and all(
        _match_by_position(*pair) for pair in ((a[0], c[0]), (a[1], b[0]), (b[1], c[1]))
    ):
        contracted = _named(a[1], b[0])
        return (c[0], contracted), (contracted, c[1])
    raise ShapeError(
        f"tn.mma cannot match its dims: {fault}",
        remedy="let a and b share the axis to contract, which c lacks, and give c the others; "
        "tiles of plain extents need the shapes (M, K), (K, N) and (M, N)"
        f"{namesakes_hint((*a, *b, *c))}",
    )


def _identity_fault(a: Dims, b: Dims, c: Dims) -> str | None:
    """Why the dims do not match by identity, None when they do."""
    if not any(dim in b and dim not in c for dim in a):
        return "a and b share no axis that c lacks"
    for name, mine, other in (("a", a, b), ("b", b, a)):
        for dim in mine:
            if dim not in other and dim not in c:
                return f"{dim} is in {name} only"
    for dim in c:
        if dim not in a and dim not in b:
            return f"{dim} is in c only"
    return None


def _match_by_position(one: Dim, other: Dim) -> bool:
    """Whether two dims may stand for each other: the same, or one is a plain extent as long."""
    is_plain = one.position is not None or other.position is not None
    return one is other or (is_plain and one.extent == other.extent)


def _named(one: Dim, other: Dim) -> Dim:
    """The dim to contract over: the named one, else a fresh one, apart from plain extents of c."""
    named = one if one.position is None else other
    return named if named.position is None else Dim(None, named.extent)


def _check_dtypes(a: DType, b: DType, c: DType) -> None:
    if not Mma.takes(a, b, c):
        raise DTypeError(
            f"tn.mma multiplies {a} and {b} into {c}",
            remedy="give floats one dtype, and c one of its inputs' kind that holds all their "
            "numbers: theirs or a wider one, as float16 into float32 or int8 and uint8 into int32",
        )
