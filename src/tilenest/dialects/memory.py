"""Explicit memory: allocated, stored to and loaded from as a whole.

Memory has an identity; what it holds is a value of type state, so that the order of effects is
ordinary data flow: an access takes the state that reaches it, a store gives the next one, and nests
and branches carry states as they carry tiles.
"""

from __future__ import annotations

from math import prod

from tilenest.dialects.stages import CANDIDATE
from tilenest.ir import (
    Effect,
    EffectKind,
    MemoryType,
    Operation,
    OpResult,
    OwnEffects,
    attribute,
    operand,
)
from tilenest.layouts import AffineMap


class MemoryAllocate(Operation):
    """A memory, and its first state: nothing is in it yet.

    There is one for each instance of the nearest enclosing parallel nest, or of the function.
    Element u lies at `layout(u)` of a row-major storage of extents `storage` (without a layout: at
    u of the memory's own extents); what no element uses is padding. `resource` is the class of
    storage that is asked for: targets have classes of their own, and refuse what they lack.
    """

    NAME = "memory.allocate"
    FORMS = (CANDIDATE,)
    resource = attribute(str, default="auto")
    layout = attribute(object, default=None)
    """an AffineMap, or None"""
    storage = attribute(tuple, default=())

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.ALLOCATE, self.memory),)

    @property
    def memory(self) -> OpResult:
        return self.results[0]

    @property
    def state(self) -> OpResult:
        return self.results[1]

    @property
    def placement(self) -> tuple[AffineMap, tuple[int, ...]]:
        """Where elements lie, and the extents of the storage they lie in."""
        type_ = self.memory.type
        assert isinstance(type_, MemoryType)
        if isinstance(self.layout, AffineMap):
            return self.layout, self.storage
        return AffineMap.identity(len(type_.dims)), type_.shape

    @property
    def bytes(self) -> int:
        """The size of the storage, padding included, in unbounded integers."""
        type_ = self.memory.type
        assert isinstance(type_, MemoryType)
        return prod(self.placement[1]) * type_.dtype.bytes


class MemoryLoad(Operation):
    """A snapshot of all elements, as the state says."""

    NAME = "memory.load"
    FORMS = (CANDIDATE,)
    memory = operand()
    state = operand()

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.READ, self.memory),)


class MemoryStore(Operation):
    """Every element anew; gives the next state, and ends the one it takes."""

    NAME = "memory.store"
    FORMS = (CANDIDATE,)
    memory = operand()
    state = operand()
    value = operand()

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.WRITE, self.memory),)
