"""What the operators' kernels share: computing dtypes, rows, whole vectors as tiles.

16-bit floats are computed in float32 and rounded once at the end; everything else stays in its
own dtype. Extents read here are equal in every variant, so no loop needs a bounds check for them.
"""

from __future__ import annotations

from typing import Any

import tilenest as tn


@tn.function
def wide(tile: Any) -> Any:
    """The tile in the dtype arithmetic is done in."""
    return tile.cast(tn.float32) if tile.dtype in (tn.float16, tn.bfloat16) else tile


@tn.function
def whole(vector: Any, n: Any) -> Any:
    """A one-dimensional view as one tile along `n`, in the dtype arithmetic is done in; None stays
    None."""
    if vector is None:
        return None
    if vector.shape[0] != n.extent:
        raise tn.ShapeError(f"a vector of {vector.shape[0]} elements beside rows of {n.extent}")
    return wide(vector[0, n])


@tn.function
def row_axis(*views: Any) -> Any:
    """The axis along the rows of two-dimensional views, which have the same number of columns."""
    counts = {view.shape[1] for view in views if view is not None}
    if len(counts) != 1:
        raise tn.ShapeError(f"rows of {sorted(counts)} elements beside each other")
    return tn.axis("n", counts.pop())
