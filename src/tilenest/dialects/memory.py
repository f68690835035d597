"""Explicit memory: allocated, stored to and loaded from, as a whole or by parts.

Memory has an identity; what it holds is a value of type state, so that the order of effects is
ordinary data flow: an access takes the state that reaches it, a store gives the next one, and nests
and branches carry states as they carry tiles.
"""

from __future__ import annotations

from math import prod

from tilenest.dialects.iterations import dims_of, window_map
from tilenest.dialects.stages import CANDIDATE
from tilenest.ir import (
    Effect,
    EffectKind,
    MapUse,
    MemoryType,
    Operation,
    OpResult,
    OwnAccesses,
    OwnEffects,
    Touch,
    Type,
    Value,
    attribute,
    open_attribute,
    operand,
    variadic,
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
    resource = open_attribute(str, default="auto")
    layout = open_attribute(object, default=None)
    """an AffineMap, or None"""
    storage = attribute(tuple, default=())

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.ALLOCATE, self.memory),)

    def map_uses(self) -> tuple[MapUse, ...]:
        type_ = self.results[0].type if self.results else None
        if not isinstance(type_, MemoryType) or not isinstance(self.layout, AffineMap):
            return ()
        return (MapUse("the storage", self.layout, len(type_.dims), 0, len(self.storage)),)

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
    """A snapshot of what the state says: of all elements, or of the part at `origins`, one for each
    axis, of the shape of the result. What lies outside of the memory is 0."""

    NAME = "memory.load"
    FORMS = (CANDIDATE,)
    memory = operand()
    state = operand()
    origins = variadic()

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.READ, self.memory),)

    def accesses(self) -> OwnAccesses:
        return (_touch(self, EffectKind.READ),)

    @property
    def content(self) -> Type:
        """A tile or scalar of what is accessed."""
        return self.result.type


class MemoryStore(Operation):
    """Every element of the memory, or of the part at `origins`, anew; gives the next state, and
    ends the one it takes. What lies outside of the memory is dropped."""

    NAME = "memory.store"
    FORMS = (CANDIDATE,)
    memory = operand()
    state = operand()
    value = operand()
    origins = variadic()

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.WRITE, self.memory),)

    def accesses(self) -> OwnAccesses:
        return (_touch(self, EffectKind.WRITE),)

    @property
    def content(self) -> Type:
        """A tile or scalar of what is accessed."""
        return self.value.type


def _touch(op: MemoryLoad | MemoryStore, kind: EffectKind) -> Touch[Value]:
    """The elements of a memory that an access goes to."""
    dims = dims_of(op.content)
    map_ = window_map(dims, len(op.origins)) if op.origins else AffineMap.identity(len(dims))
    extents = tuple(dim.extent for dim in dims)
    return Touch("memory", 0, op.memory, kind, map_, "zero", extents, tuple(op.origins))
