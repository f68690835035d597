"""Tile arrays: regions of a parent borrowed as a grid of tiles, and a parent assembled from tiles.

A borrowed array names its parent and holds nothing; it is used where it is made and crosses no
region. An array that is being filled is a state: setting a slot consumes it and gives the next, and
every slot is set once before the whole is assembled. Slot (i, j, ...) is the region of the parent
that begins at (i, j, ...) times the extents of a slot, and the slots cover the parent exactly.
"""

from __future__ import annotations

from tilenest.dialects.iterations import dims_of
from tilenest.ir import (
    Effect,
    EffectKind,
    Operation,
    OpResult,
    OwnAccesses,
    OwnEffects,
    Touch,
    Value,
    ViewType,
    operand,
    variadic,
)
from tilenest.layouts import AffineMap, DimRef, Sym


class Partition(Operation):
    """Borrow a tile, or the part of a view that begins at `origins`, as an array of its regions."""

    NAME = "array.partition"
    FORMS = ("candidate",)
    whole = operand()
    origins = variadic()

    def effects(self) -> OwnEffects:
        return ()


class ArrayGet(Operation):
    """The tile in one slot of a borrowed array; a region of a view is read now."""

    NAME = "array.get"
    FORMS = ("candidate",)
    array = operand()
    indices = variadic()

    @property
    def partition(self) -> Partition | None:
        """Where the array is borrowed; None where that is out of sight, which is a mistake."""
        maker = self.array.owner if isinstance(self.array, OpResult) else None
        return maker if isinstance(maker, Partition) else None

    def effects(self) -> OwnEffects:
        partition = self.partition
        source: Value | None = None if partition is None else partition.whole
        if source is not None and not isinstance(source.type, ViewType):
            return ()
        return (Effect(EffectKind.READ, source),)

    def accesses(self) -> OwnAccesses:
        partition = self.partition
        if partition is None or not isinstance(partition.whole.type, ViewType):
            return ()
        extents = tuple(dim.extent for dim in dims_of(self.result.type))
        rank = len(extents)
        places = [
            Sym(axis) + Sym(rank + axis) * extent + DimRef(axis)
            for axis, extent in enumerate(extents)
        ]
        map_ = AffineMap(rank, 2 * rank, tuple(places))
        symbols = (*partition.origins, *self.indices)
        kind = EffectKind.READ
        return (Touch("array", 0, partition.whole, kind, map_, "zero", extents, symbols),)


class ArrayMake(Operation):
    """An array to be filled, no slot of which is set."""

    NAME = "array.make"
    FORMS = ("candidate",)

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.ALLOCATE, self.result),)


class ArraySet(Operation):
    """The array with one more slot set, which was not set before."""

    NAME = "array.set"
    FORMS = ("candidate",)
    array = operand()
    indices = variadic()
    value = operand()

    def effects(self) -> OwnEffects:
        return ()


class ArrayAssemble(Operation):
    """The whole tile, once every slot is set."""

    NAME = "array.assemble"
    FORMS = ("candidate",)
    array = operand()

    def effects(self) -> OwnEffects:
        return ()
