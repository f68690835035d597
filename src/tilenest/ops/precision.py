"""In which dtype the operators compute.

16-bit floats are computed in float32 and rounded once at the end; everything else stays in its
own dtype.
"""

from __future__ import annotations

from typing import Any

import tilenest as tn


@tn.function
def wide(tile: Any) -> Any:
    """The tile in the dtype arithmetic is done in."""
    return tile.cast(tn.float32) if tile.dtype in (tn.float16, tn.bfloat16) else tile
