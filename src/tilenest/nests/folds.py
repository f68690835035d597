"""Combining partial accumulators by a fixed tree.

In: partial accumulators, one a copy, and a lane where lanes split the fold. Out: the fold, combined
in an order that depends on the schedule alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.ir import Value
from tilenest.nests.atoms import PlacedAtom, call_atom
from tilenest.nests.emitter import Emitter
from tilenest.nests.lanes import apply_function


def combine(merge: str, parts: Sequence[Value], atom: PlacedAtom | None, emitter: Emitter) -> Value:
    """One state from partial accumulators: neighbours pairwise, then lanes by their atom. Without
    one, lanes are cells of their own."""
    level = list(parts)
    while len(level) > 1:
        pairs = [
            apply_function(merge, level[i : i + 2], emitter) for i in range(0, len(level) - 1, 2)
        ]
        level = pairs if len(level) % 2 == 0 else [*pairs, level[-1]]
    (total,) = level
    if atom is None:
        return total
    (total,) = call_atom(atom, [total], emitter)
    return total
