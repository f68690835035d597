"""The meaning of atomic updates: element after element, in the order of the window.

In: a view and tiles of operands. Out: the view's elements updated, and what they were before. Any
order of elements and instances is allowed by the operation; this is one of them.
"""

from __future__ import annotations

import itertools

import numpy as np

from tilenest.dialects import Atomic
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.functions import apply
from tilenest.interp.tile import spread_over, window_of
from tilenest.interp.values import Array
from tilenest.interp.views import read, write
from tilenest.ir import DType, Operation, element_dtype


def atomic(frame: Frame, op: Atomic) -> list[Array]:
    window = window_of(frame, op, op.dims)
    mask = spread_over(frame, op.mask, op.dims, window)
    if op.bounds != "zero":
        window.refuse_outside(mask, "atomic update", op.bounds)
    dtype = element_dtype(op.value.type)
    given = [
        np.broadcast_to(operand, window.extents)
        for value in (op.value, op.expected)
        if (operand := spread_over(frame, value, op.dims, window)) is not None
    ]
    chosen = np.broadcast_to(True if mask is None else mask, window.extents)
    before = np.zeros(window.extents, window.view.dtype)
    rank, zero = len(window.extents), np.zeros((), window.view.dtype)
    for point in itertools.product(*map(range, window.extents)):
        if not chosen[point]:
            continue
        place = [
            np.full((1,) * rank, origin + step, np.object_)
            for origin, step in zip(window.origins, point, strict=True)
        ]
        old = read(window.view, place, rank, zero)
        seen, new = updated(op.function, dtype, old, [operand[point] for operand in given])
        write(window.view, place, np.ones((1,) * rank, np.bool_), new)
        before[point] = seen.reshape(())
    return [before.reshape([dim.extent for dim in op.dims])] if op.results else []


def updated(function: str, dtype: DType, old: Array, given: list[Array]) -> tuple[Array, Array]:
    """What an element is as a value, and what it becomes in memory; `given` is the value, and what
    is expected where that is asked."""
    value = np.full(old.shape, given[0], old.dtype)
    # Any byte but 0 is true, which NumPy does not promise for a reinterpreted bool.
    seen = old.view(np.uint8) != 0 if dtype.is_bool else old
    if function == "exchange":
        return seen, value
    if function == "compare_exchange":
        expected = np.full(old.shape, given[1], old.dtype)
        return seen, value if seen.tobytes() == expected.tobytes() else old
    return seen, apply(function, dtype, [seen, value])


HANDLERS: dict[type[Operation], Handler] = {Atomic: atomic}
