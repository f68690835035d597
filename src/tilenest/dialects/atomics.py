"""Effects that instances share: atomic updates of views, and synchronization.

An atomic reads and writes an element in one step as every other instance sees it; the order in
which instances come is not defined, nor is that of the elements of one operation.
"""

from __future__ import annotations

from tilenest.dialects.stages import CANDIDATE
from tilenest.ir import (
    Effect,
    EffectKind,
    Operation,
    OwnEffects,
    attribute,
    operand,
    optional,
    variadic,
)

ATOMIC_FUNCTIONS = ("add", "minimum", "maximum", "and", "or", "xor", "exchange", "compare_exchange")


class Atomic(Operation):
    """view[origins + t] = function(view[origins + t], value[t]) for every t of `dims`.

    The value, `expected` and the mask broadcast to `dims` (one per axis; empty for one element).
    What lies outside, or is masked, is left alone. `compare_exchange` writes the value where the
    element is equal, bit by bit, to `expected`. A result, where there is one, is what the elements
    were before; outside and where masked it is 0.
    """

    NAME = "tile.atomic"
    FORMS = (CANDIDATE,)
    view = operand()
    origins = variadic()
    value = operand()
    expected = optional()
    mask = optional()
    function = attribute(str, leading=True)
    bounds = attribute(str, default="zero")
    dims = attribute(tuple, default=())
    site = attribute(int, default=0)

    def effects(self) -> OwnEffects:
        access = Effect(EffectKind.ATOMIC, self.view)
        return (access, Effect(EffectKind.FAULT)) if self.bounds == "check" else (access,)


class Synchronize(Operation):
    """All instances of the nearest parallel nest, or the one of the function, reach this before any
    goes on; what they wrote before it is seen by all after it."""

    NAME = "exec.sync"
    FORMS = (CANDIDATE,)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.SYNCHRONIZE),)
