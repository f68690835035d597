"""Effects that instances share: atomic updates of views, and synchronization.

An atomic reads and writes an element in one step as every other instance sees it; the order in
which instances come is not defined, nor is that of the elements of one operation. Whoever sees what
an update wrote sees what its instance wrote before it (acquire and release).
"""

from __future__ import annotations

from tilenest.dialects.iterations import window
from tilenest.dialects.stages import CANDIDATE, MACHINE, STRUCTURED
from tilenest.ir import (
    Effect,
    EffectKind,
    Operation,
    OwnAccesses,
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
    were before; outside and where masked it is 0. Behind Candidate form it updates one element.
    """

    NAME = "tile.atomic"
    ACTION = "atomic update"
    FORMS = STRUCTURED
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

    def accesses(self) -> OwnAccesses:
        is_masked = self.mask is not None
        kind = EffectKind.ATOMIC
        touch = window(
            self.view, self.origins, self.dims, kind, bounds=self.bounds, is_masked=is_masked
        )
        return (touch,)


class Synchronize(Operation):
    """All instances of the nearest parallel nest, or the one of the function, reach this before any
    goes on; what they wrote before it is seen by all after it."""

    NAME = "exec.sync"
    FORMS = (CANDIDATE,)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.SYNCHRONIZE),)


class AddressAtomic(Operation):
    """The update of the scalar at `pointer`; its result is what was there before. Where the mask is
    false nothing is touched and the result is 0."""

    NAME = "address.atomic"
    NEEDS = ("addresses", "atomics")
    FORMS = (MACHINE,)
    pointer = operand()
    value = operand()
    expected = optional()
    mask = optional()
    function = attribute(str, leading=True)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.ATOMIC, self.pointer),)
