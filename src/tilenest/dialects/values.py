"""Several values as one: tuples are built and taken apart.

A tuple is a name for its items and has no storage: `unpack_tuples` hands the items on one by one
before anything is planned.
"""

from __future__ import annotations

from tilenest.ir import Operation, OwnEffects, attribute, operand, variadic


class Aggregate(Operation):
    """The tuple of the items, in order."""

    NAME = "value.aggregate"
    FORMS = ("candidate",)
    items = variadic()

    def effects(self) -> OwnEffects:
        return ()


class Extract(Operation):
    """Item `index` of a tuple."""

    NAME = "value.extract"
    FORMS = ("candidate",)
    aggregate = operand()
    index = attribute(int)

    def effects(self) -> OwnEffects:
        return ()
