"""From coordinates to memory: addresses, bounds masks, loads and stores of scalars and lanes.

The coefficient of the element offset on the lane number decides: 0 is one scalar for all lanes, 1
a contiguous vector, anything else a gather or scatter. An address is a chain of offsets, outermost
loop first, so that each link can leave the loops it does not depend on."""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import (
    Access,
    AddressLoad,
    AddressStore,
    Gather,
    LaneMask,
    Offset,
    Scatter,
)
from tilenest.ir import POINTER, DType, Value, VectorType, bool_, index
from tilenest.layouts import Const, IndexExpr, split_terms
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Emitter, Index, lane_type, lanes_of
from tilenest.records import record


@record
class Address:
    """Storage a nest reads or writes: extents and strides in elements, numbers where known."""

    pointer: Value
    dtype: DType
    extents: tuple[Index, ...]
    strides: tuple[Index, ...]


@record
class Place:
    """Resolved coordinates of one access (expressions over the nest's slots)."""

    address: Address
    coordinates: tuple[IndexExpr, ...]
    access: Access
    checked: tuple[int, ...]
    """axes that need a bounds check"""


class MemoryAccess:
    """Emits the accesses of one nest."""

    def __init__(self, emitter: Emitter, slots: Coordinates) -> None:
        self.emitter = emitter
        self.slots = slots

    # Loads and stores ------------------------------------------------------------------------

    def load(self, place: Place, tail: Value | None) -> Value:
        """The element(s) at `place`: a scalar when no lane is involved, else a vector. `tail` masks
        lanes past the end of the vector loop."""
        address, slots = place.address, self.slots
        mask = self.bounds_mask(place)
        is_vector = any(slots.has_lane(expr) for expr in place.coordinates)
        if not is_vector:
            assert mask is None or not lanes_of(mask)
            pointer = self.pointer(address, place.coordinates)
            return self._contiguous(place, pointer, mask, 0)
        mask = self.emitter.both(mask, tail, slots.lanes)
        mask = None if mask is None else self.emitter.spread(mask, slots.lanes)
        if self._is_contiguous(place):
            first = [slots.without_lane(expr) for expr in place.coordinates]
            return self._contiguous(place, self.pointer(address, first), mask, slots.lanes)
        pointer, offsets = self._scattered(place)
        type_ = VectorType(address.dtype, slots.lanes)
        return self.emitter.emit(
            Gather(
                pointer=pointer,
                offsets=offsets,
                mask=mask,
                otherwise=self._fill(place, mask, slots.lanes),
                scale=address.dtype.bytes,
                result_types=[type_],
            )
        )

    def store(self, place: Place, value: Value, mask: Value | None) -> None:
        """Write at `place`; `mask` joins the bounds mask."""
        address, slots, emitter = place.address, self.slots, self.emitter
        mask = emitter.both(self.bounds_mask(place), mask, slots.lanes)
        spread = lanes_of(value) or (mask is not None and lanes_of(mask))
        if not spread and not any(slots.has_lane(expr) for expr in place.coordinates):
            self._write(value, self.pointer(address, place.coordinates), mask, address.dtype)
            return
        value = emitter.spread(value, slots.lanes)
        mask = None if mask is None else emitter.spread(mask, slots.lanes)
        if self._is_contiguous(place):
            first = [slots.without_lane(expr) for expr in place.coordinates]
            self._write(value, self.pointer(address, first), mask, address.dtype)
            return
        pointer, offsets = self._scattered(place)
        emitter.builder.insert(
            Scatter(
                value=value,
                pointer=pointer,
                offsets=offsets,
                mask=mask,
                scale=address.dtype.bytes,
            )
        )

    def _write(self, value: Value, pointer: Value, mask: Value | None, dtype: DType) -> None:
        self.emitter.builder.insert(
            AddressStore(value=value, pointer=pointer, mask=mask, align=dtype.bytes)
        )

    def _contiguous(self, place: Place, pointer: Value, mask: Value | None, lanes: int) -> Value:
        dtype = place.address.dtype
        return self.emitter.emit(
            AddressLoad(
                pointer=pointer,
                mask=mask,
                otherwise=self._fill(place, mask, lanes),
                align=dtype.bytes,
                result_types=[lane_type(dtype, lanes)],
            )
        )

    def _fill(self, place: Place, mask: Value | None, lanes: int) -> Value | None:
        if mask is None:
            return None
        return self.emitter.constant(place.access.fill, lane_type(place.address.dtype, lanes))

    # Addresses -------------------------------------------------------------------------------

    def pointer(self, address: Address, coordinates: Sequence[IndexExpr]) -> Value:
        """The address of one element."""
        size = address.dtype.bytes
        fixed: IndexExpr = Const(0)
        pointer = address.pointer
        for stride, expr in zip(address.strides, coordinates, strict=True):
            if isinstance(stride, int):
                fixed = fixed + expr * stride
            else:
                pointer = self._strided(pointer, expr, stride, size)
        return self._offset_by(pointer, self.slots.simplify(fixed), size)

    def _strided(self, pointer: Value, expr: IndexExpr, stride: Value, size: int) -> Value:
        """pointer + expr * stride elements, term by term, outermost loop first."""
        units, constant = self._by_depth(expr)
        if constant:
            pointer = self._link(pointer, stride, constant * size, 0)
        for unit, coefficient in units:
            pointer = self._link(
                pointer,
                self.emitter.multiply(self.slots.emit(unit), stride),
                coefficient * size,
                0,
            )
        return pointer

    def _offset_by(self, pointer: Value, expr: IndexExpr, size: int) -> Value:
        units, constant = self._by_depth(expr)
        for unit, coefficient in units:
            pointer = self._link(pointer, self.slots.emit(unit), coefficient * size, 0)
        return self._link(pointer, 0, 1, constant * size) if constant else pointer

    def _by_depth(self, expr: IndexExpr) -> tuple[list[tuple[IndexExpr, int]], int]:
        units, constant = split_terms(expr)
        return sorted(units.items(), key=lambda term: self.slots.depth(term[0])), constant

    def _link(self, pointer: Value, offset: Index, scale: int, constant: int) -> Value:
        if isinstance(offset, int):
            constant, offset, scale = constant + offset * scale, 0, 1
        return self.emitter.emit(
            Offset(
                pointer=pointer,
                index=self.emitter.value(offset),
                scale=scale,
                constant=constant,
                result_types=[POINTER],
            )
        )

    def _is_contiguous(self, place: Place) -> bool:
        total = 0
        for stride, expr in zip(place.address.strides, place.coordinates, strict=True):
            coefficient = self.slots.lane_coefficient(expr)
            if coefficient is None or (coefficient and not isinstance(stride, int)):
                return False
            total += coefficient * stride if isinstance(stride, int) else 0
        return total == 1

    def _scattered(self, place: Place) -> tuple[Value, Value]:
        """A base address and one element offset per lane."""
        slots, emitter = self.slots, self.emitter
        base: list[IndexExpr] = []
        offsets: Value | None = None
        for stride, expr in zip(place.address.strides, place.coordinates, strict=True):
            is_linear = slots.lane_coefficient(expr) is not None
            first = slots.without_lane(expr) if is_linear else Const(0)
            base.append(first)
            rest = slots.simplify(expr - first)
            if rest == Const(0):
                continue
            step = emitter.spread(emitter.value(stride), slots.lanes)
            part = emitter.apply("mul", slots.emit_lanes(rest), step)
            offsets = part if offsets is None else emitter.apply("add", offsets, part)
        if offsets is None:
            offsets = emitter.constant(0, VectorType(index, slots.lanes))
        return self.pointer(place.address, base), offsets

    # Bounds ----------------------------------------------------------------------------------

    def bounds_mask(self, place: Place) -> Value | None:
        """Which lanes (or whether the one element) lie inside; None when provably all."""
        mask: Value | None = None
        for axis in place.checked:
            for part in self._axis_mask(place.coordinates[axis], place.address.extents[axis]):
                mask = self.emitter.both(mask, part, self.slots.lanes)
        return mask

    def _axis_mask(self, expr: IndexExpr, extent: Index) -> list[Value]:
        known = self.slots.bounds(expr)
        needs_lower = known is None or known[0] < 0
        needs_upper = known is None or not isinstance(extent, int) or known[1] >= extent
        coefficient = self.slots.lane_coefficient(expr)
        if coefficient == 0:
            return self._scalar_mask(expr, extent, needs_lower, needs_upper)
        if coefficient == 1:
            return self._contiguous_mask(expr, extent, needs_lower, needs_upper)
        vector = self.slots.emit_lanes(expr)
        masks = []
        if needs_lower:
            masks.append(self._compare_lanes("ge", vector, 0))
        if needs_upper:
            masks.append(self._compare_lanes("lt", vector, extent))
        return masks

    def _scalar_mask(
        self, expr: IndexExpr, extent: Index, needs_lower: bool, needs_upper: bool
    ) -> list[Value]:
        value = self.slots.emit(expr) if needs_lower or needs_upper else 0
        masks = [self.emitter.compare("ge", value, 0)] if needs_lower else []
        return [*masks, self.emitter.compare("lt", value, extent)] if needs_upper else masks

    def _contiguous_mask(
        self, expr: IndexExpr, extent: Index, needs_lower: bool, needs_upper: bool
    ) -> list[Value]:
        emitter, lanes = self.emitter, self.slots.lanes
        first = self.slots.emit(self.slots.without_lane(expr))
        masks = []
        if needs_lower:
            outside = self.lane_mask(emitter.subtract(0, first))
            masks.append(emitter.apply("not", outside))
        if needs_upper:
            # extent - first can't overflow into "inside": both are within 63 bits of a real view
            masks.append(self.lane_mask(emitter.subtract(extent, first)))
        assert all(lanes_of(mask) == lanes for mask in masks)
        return masks

    def lane_mask(self, count: Index) -> Value:
        """Lanes below `count`."""
        type_ = VectorType(bool_, self.slots.lanes)
        return self.emitter.emit(LaneMask(count=self.emitter.value(count), result_types=[type_]))

    def _compare_lanes(self, function: str, vector: Value, bound: Index) -> Value:
        lanes = self.slots.lanes
        other = self.emitter.spread(self.emitter.value(bound), lanes)
        return self.emitter.apply(function, vector, other, type_=VectorType(bool_, lanes))
