"""Which loop dims of a map_reduce_post shrink to the part its output keeps.

An output that drops what falls outside its view needs no iteration there: where one axis of the
output is `dim + offset`, the nest runs that dim only over 0 <= dim + offset < extent. A nest clips
exactly these dims, so an input read at the same formula with the same extent is inside too."""

from __future__ import annotations

from tilenest.dialects import MapReducePost
from tilenest.layouts import DimRef, IndexExpr
from tilenest.records import record


@record
class OutputClip:
    """Loop dim `dim` runs where 0 <= dim + offset < extent of `axis` of the only output."""

    dim: int
    axis: int
    offset: IndexExpr
    """over the op's symbols"""


def output_clips(op: MapReducePost) -> tuple[OutputClip, ...]:
    """The clips of an op with one output (on values or with several outputs there are none)."""
    if len(op.outputs) != 1 or op.access("output", 0).bounds != "zero":
        return ()
    clips: list[OutputClip] = []
    for axis, expr in enumerate(op.access("output", 0).map.results):
        dims = expr.used_dims()
        if len(dims) != 1:
            continue
        (dim,) = dims
        offset = expr - DimRef(dim)
        if not offset.used_dims() and all(clip.dim != dim for clip in clips):
            clips.append(OutputClip(dim, axis, offset))
    return tuple(clips)
