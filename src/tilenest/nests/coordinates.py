"""Where the nest stands: slots for loop counters and symbols, and index expressions over them.

Access maps are rewritten so that `DimRef(i)` means slot i: a loop counter, a symbol's value, or
the lane number of the vector loop. With the slots' ranges known, quotients and remainders of panel
layouts vanish."""

from __future__ import annotations

from tilenest.analysis import BIT_FUNCTIONS
from tilenest.dialects import Lanes
from tilenest.ir import Value, VectorType, index
from tilenest.layouts import (
    Add,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Sym,
    bounds,
    simplify,
)
from tilenest.nests.emitter import Emitter, Index
from tilenest.records import record


@record
class _Slot:
    value: Value | None
    """None for the lane number."""
    depth: int
    """How many loops of the nest are open around the value's definition."""


class Coordinates:
    """The slots of one nest."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.lanes = 0
        self._slots: list[_Slot] = []
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._lane: int | None = None
        self._simplified: dict[IndexExpr, IndexExpr] = {}

    def add(self, value: Index, range_: Interval | None, depth: int) -> IndexExpr:
        """A new slot holding `value`; a number needs none."""
        if isinstance(value, int):
            return Const(value)
        return self._new(_Slot(value, depth), range_)

    def add_lane(self, lanes: int) -> IndexExpr:
        """The lane number 0..lanes-1 of the vector loop."""
        self.lanes = lanes
        self._lane = len(self._slots)
        return self._new(_Slot(None, 0), (0, lanes - 1))

    def _new(self, slot: _Slot, range_: Interval | None) -> IndexExpr:
        reference = DimRef(len(self._slots))
        self._slots.append(slot)
        if range_ is not None:
            self._ranges[reference] = range_
        return reference

    # Questions -------------------------------------------------------------------------------

    def simplify(self, expr: IndexExpr) -> IndexExpr:
        found = self._simplified.get(expr)
        if found is None:
            found = self._simplified[expr] = simplify(expr, self._ranges)
        return found

    def bounds(self, expr: IndexExpr) -> Interval | None:
        return bounds(expr, self._ranges)

    def depth(self, expr: IndexExpr) -> int:
        """The deepest loop the expression depends on."""
        return max((self._slots[i].depth for i in expr.used_dims()), default=0)

    def has_lane(self, expr: IndexExpr) -> bool:
        return self._lane is not None and bool(expr.dim_mask >> self._lane & 1)

    def lane_coefficient(self, expr: IndexExpr) -> int | None:
        """How the expression grows from lane to lane; None where that varies."""
        return 0 if self._lane is None else expr.coefficient(self._lane)

    def without_lane(self, expr: IndexExpr) -> IndexExpr:
        """The expression for lane 0."""
        if not self.has_lane(expr):
            return expr
        slots: list[IndexExpr] = [DimRef(i) for i in range(len(self._slots))]
        assert self._lane is not None
        slots[self._lane] = Const(0)
        return self.simplify(expr.substitute(slots))

    # Emission --------------------------------------------------------------------------------

    def emit(self, expr: IndexExpr) -> Index:
        """The expression's value; it must not depend on the lane."""
        emitter = self.emitter
        match expr:
            case Const(value):
                return value
            case DimRef(position):
                held = self._slots[position].value
                assert held is not None, "lane number in a scalar expression"
                return held
            case Add(operands):
                total: Index = 0
                for operand in operands:
                    total = emitter.add(total, self.emit(operand))
                return total
            case Mul(left, right):
                return emitter.multiply(self.emit(left), self.emit(right))
            case FloorDiv(left, right):
                return emitter.floor_divide(self.emit(left), self.emit(right))
            case Mod(left, right):
                return emitter.remainder(self.emit(left), self.emit(right))
            case BitExpr():
                parts = [emitter.value(self.emit(part)) for part in (expr.left, expr.right)]
                return emitter.apply(BIT_FUNCTIONS[type(expr)], *parts)
        raise AssertionError(f"unknown index expression {expr}")

    def emit_lanes(self, expr: IndexExpr) -> Value:
        """The expression's value in every lane, a vector of index."""
        if not self.has_lane(expr):
            return self.emitter.spread(self.emitter.value(self.emit(expr)), self.lanes)
        match expr:
            case DimRef():
                return self.emitter.emit(Lanes(result_types=[VectorType(index, self.lanes)]))
            case Add(operands):
                parts = [self.emit_lanes(operand) for operand in operands]
                total = parts[0]
                for part in parts[1:]:
                    total = self.emitter.apply("add", total, part)
                return total
            case Mul(left, right):
                return self._emit_pair("mul", left, right)
            case FloorDiv(left, right):
                return self._emit_pair("floordiv", left, right)
            case Mod(left, right):
                return self._emit_pair("mod", left, right)
            case BitExpr():
                return self._emit_pair(BIT_FUNCTIONS[type(expr)], expr.left, expr.right)
        raise AssertionError(f"unknown index expression {expr}")

    def _emit_pair(self, function: str, left: IndexExpr, right: IndexExpr) -> Value:
        return self.emitter.apply(function, self.emit_lanes(left), self.emit_lanes(right))
