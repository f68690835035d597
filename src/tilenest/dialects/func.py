"""Functions: calls of other functions of the module, and returns.

In: values. Out: what the callee returns. A call is gone before anything is planned: `inline_calls`
puts the callee's body in its place, so a function costs nothing and calls form no cycle.
"""

from __future__ import annotations

from tilenest.dialects.stages import EVERY
from tilenest.ir import Effect, EffectKind, Operation, OwnEffects, attribute, variadic


class Return(Operation):
    """Ends a function."""

    NAME = "func.return"
    FORMS = EVERY
    TERMINATOR = True
    values = variadic()

    def effects(self) -> OwnEffects:
        return ()


class Call(Operation):
    """Run function `callee` of the module on `arguments`; the results are what it returns.

    A callee that sorts, selects or scans keeps its `ordering` here: it takes the elements, then a
    mask where there is one, and returns values, then positions.
    """

    NAME = "func.call"
    FORMS = ("candidate",)
    arguments = variadic()
    callee = attribute(str, leading=True)
    ordering = attribute(object, default=None)
    """an `OrderingContract`, or None"""

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.CALL),)
