"""How a schedule splits the accumulators of a fold.

In: the loops from the first folded one on, and the tile sizes there. Out: which loops are copies,
which of them belong to kept dims (one cell each) and which split the folded dims into partial
accumulators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tilenest.dialects import Loop, MapReducePost
from tilenest.nests.emitter import Index

Key = tuple[int, ...]


class FoldShape:
    """Which copies split the accumulators opened at one loop."""

    def __init__(
        self,
        loops: Sequence[Loop],
        position: int,
        folded: frozenset[int],
        sizes: Sequence[Index],
    ) -> None:
        inner = range(position, len(loops))
        self.copy_loops = tuple(q for q in inner if loops[q].policy != "plain")
        self.kept_loops = [q for q in self.copy_loops if loops[q].dim not in folded]
        self._counts = {q: _copies(loops, q, folded, sizes) for q in self.copy_loops}
        split = [q for q in self.copy_loops if q not in self.kept_loops]
        has_split_lane = any(loops[q].policy == "vector" for q in split)
        self.is_partial = has_split_lane or any(self._counts[q] > 1 for q in split)

    def partial_keys(self, copies: dict[int, int]) -> list[Key]:
        """The accumulators of the cell that `copies` stands at."""
        choices = [
            [copies.get(q, 0)] if q in self.kept_loops else range(self._counts[q])
            for q in self.copy_loops
        ]
        return list(itertools.product(*choices))


def _copies(
    loops: Sequence[Loop], position: int, folded: frozenset[int], sizes: Sequence[Index]
) -> int:
    loop = loops[position]
    if loop.dim in folded:
        outer = [other.step for other in loops[:position] if other.dim == loop.dim]
        return max(1, outer[-1] // loop.step) if outer else 1
    tile = sizes[loop.dim]
    assert isinstance(tile, int), "kept dims are tiled outside the fold"
    return max(1, tile // loop.step)


def folded_dims(op: MapReducePost) -> frozenset[int]:
    """Loop dims that the folded results drop; all of them keep the same ones."""
    kept = {frozenset(op.spec(result).dims) for result in op.folded_results}
    assert len(kept) <= 1, "folded results of one op keep the same dims"
    return frozenset(range(op.rank)).difference(*kept) if kept else frozenset()
