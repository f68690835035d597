"""Machine form: loops, branches, launches, addresses, vector memory and lane operations.

Scalars and lanes use the ops of `scalar`; a VectorType operand makes them lane-wise (all vector
operands have the same lane count; scalars are splatted explicitly by `vector.splat`). Function
arguments of a kernel's main function: per view parameter one pointer, then its extents, then its
strides (index each); per scalar parameter one scalar.
"""

from __future__ import annotations

from tilenest.dialects.stages import LIFTED, MACHINE, SCHEDULED
from tilenest.ir import (
    Carry,
    Effect,
    EffectKind,
    Induction,
    Operation,
    OwnEffects,
    RegionUse,
    Value,
    attribute,
    operand,
    optional,
    variadic,
)


class _Computation(Operation):
    """Values in, values out, and nothing else."""

    FORMS = (MACHINE,)

    def effects(self) -> OwnEffects:
        return ()


class For(_Computation):
    """for i in range(lower, upper, step): region (i, states...) -> next states. step > 0."""

    NAME = "loop.for"
    REGION_USE = RegionUse.REPEATED
    lower = operand()
    upper = operand()
    step = operand()
    initial = variadic()

    def inductions(self) -> tuple[Induction[Value], ...]:
        return (Induction(self.lower, self.upper, self.step),)

    def carries(self) -> tuple[Carry[Value], ...]:
        block = self.body
        following = block.terminator.operands
        return tuple(
            Carry(initial, (block.arguments[1 + place],), following[place], self.results[place])
            for place, initial in enumerate(self.initial)
        )


class LoopIf(_Computation):
    """Two regions without arguments yielding the results; the condition is a scalar bool."""

    NAME = "loop.if"
    REGION_USE = RegionUse.ALTERNATIVE
    condition = operand()


class LoopYield(_Computation):
    NAME = "loop.yield"
    TERMINATOR = True
    values = variadic()


class Launch(Operation):
    """Run function `callee` over [0, total) in chunks, on the pool. Its arguments are
    (begin: index, end: index, scratch: pointer, captured...). `cost_ns` estimates one item."""

    NAME = "loop.launch"
    NEEDS = ("pool",)
    FORMS = (MACHINE,)
    total = operand()
    captured = variadic()
    callee = attribute(str, leading=True)
    scratch_bytes = attribute(int, default=0)
    cost_ns = attribute(float, default=1000.0)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.CALL),)


class Offset(_Computation):
    """pointer + index * scale + constant, in bytes."""

    NAME = "address.offset"
    NEEDS = ("addresses",)
    pointer = operand()
    index = operand()
    scale = attribute(int)
    constant = attribute(int, default=0)


class Check(Operation):
    """End the call with a fault unless `first` .. `first + count - 1` lie in [0, extent).

    Nothing is checked where `condition` is false. It stands in front of an access with bounds
    'check', from the lifted form on: `access` says what the access does, `site` is its number, and
    `depth` how many views above it are what is left.
    """

    NAME = "address.check"
    NEEDS = ("faults",)
    FORMS = (LIFTED, SCHEDULED, MACHINE)
    first = operand()
    extent = operand()
    condition = optional()
    access = attribute(str, leading=True)
    axis = attribute(int)
    count = attribute(int, default=1)
    site = attribute(int, default=0)
    depth = attribute(int, default=0)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.FAULT),)


class AddressLoad(Operation):
    """A scalar or contiguous vector at `pointer` (the first element's address). With a mask, lanes
    that are false are not read and give `otherwise` (a value of the result type)."""

    NAME = "address.load"
    NEEDS = ("addresses",)
    FORMS = (MACHINE,)
    pointer = operand()
    mask = optional()
    otherwise = optional()
    align = attribute(int)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.READ, self.pointer),)


class AddressStore(Operation):
    """Write a scalar or contiguous vector; masked lanes are not written."""

    NAME = "address.store"
    NEEDS = ("addresses",)
    FORMS = (MACHINE,)
    value = operand()
    pointer = operand()
    mask = optional()
    align = attribute(int)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.WRITE, self.pointer),)


class Gather(Operation):
    """Lane l is the element at pointer + offsets[l] * scale bytes."""

    NAME = "address.gather"
    NEEDS = ("addresses",)
    FORMS = (MACHINE,)
    pointer = operand()
    offsets = operand()
    mask = optional()
    otherwise = optional()
    scale = attribute(int)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.READ, self.pointer),)


class Scatter(Operation):
    """Write lane l at pointer + offsets[l] * scale bytes, in lane order."""

    NAME = "address.scatter"
    NEEDS = ("addresses",)
    FORMS = (MACHINE,)
    value = operand()
    pointer = operand()
    offsets = operand()
    mask = optional()
    scale = attribute(int)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.WRITE, self.pointer),)


class Splat(_Computation):
    """The scalar in every lane."""

    NAME = "vector.splat"
    NEEDS = ("lanes",)
    value = operand()


class Lanes(_Computation):
    """0, 1, 2, ... in the result's dtype."""

    NAME = "vector.lanes"
    NEEDS = ("lanes",)


class LaneMask(_Computation):
    """Lane l is true when l < count (an index, any value)."""

    NAME = "vector.lane_mask"
    NEEDS = ("lanes",)
    count = operand()
