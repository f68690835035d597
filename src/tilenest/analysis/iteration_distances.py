"""Over how many iterations of a pipeline two accesses of one view meet.

In: two operations that load or store windows of a view, each in a stage. Out: the least number of
iterations, no smaller than asked, after which the second may touch what the first touched before;
None where it never does. Along an axis the windows move with the index of the pipeline; where both
move alike their gap is a number of iterations times a step, plus what intervals say of the rest.
Whatever is not known to keep them apart lets them meet at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilenest.analysis.index_values import formula_of, range_of
from tilenest.analysis.structure import constant_of, induction_of, is_defined_above
from tilenest.dialects import Load, Pipeline, Store, base_of
from tilenest.ir import BlockArgument, Operation, TileType, Value
from tilenest.layouts import DimRef, IndexExpr, Interval, Sym, bounds

_INDEX = DimRef(0)
_EVER = 1 << 62
"""More iterations than any loop has."""


def least_distance(op: Pipeline, first: Operation, second: Operation, least: int) -> int | None:
    """How many iterations after `first` runs, `least` or more, `second` may meet what it left."""
    step = constant_of(op.step[0])
    if op.rank != 1 or not step:
        return least
    if not isinstance(first, Load | Store) or not isinstance(second, Load | Store):
        return least
    if first.view is not second.view or base_of(first.view) is not first.view:
        # Other coordinates may be the same elements.
        return least
    lowest, highest = least, _EVER
    for axis in range(len(first.origins)):
        met = _meeting(op, first, second, axis, int(step))
        lowest, highest = max(lowest, met[0]), min(highest, met[1])
    return lowest if lowest <= highest else None


def _meeting(
    op: Pipeline, first: Load | Store, second: Load | Store, axis: int, step: int
) -> Interval:
    """The distances at which the windows may overlap along an axis."""
    leaves = _Leaves(op)
    one = formula_of(first.origins[axis], leaves.of(0))
    other = formula_of(second.origins[axis], leaves.of(1))
    slope = one.coefficient(0)
    if slope is None or other.coefficient(0) != slope:
        return 0, _EVER
    gap = bounds(other - one, leaves.ranges)
    if gap is None:
        return 0, _EVER
    # The windows overlap where -size(second) < gap + distance * slope * step < size(first).
    low, high = 1 - _size(second, axis) - gap[1], _size(first, axis) - 1 - gap[0]
    by = slope * step
    if by == 0:
        return (0, _EVER) if low <= 0 <= high else (1, 0)
    return (-(-low // by), high // by) if by > 0 else (-(-high // by), low // by)


def _size(access: Load | Store, axis: int) -> int:
    """How many elements an access touches along an axis."""
    if isinstance(access, Store):
        return access.dims[axis].extent if access.dims else 1
    type_ = access.result.type
    return type_.dims[axis].extent if isinstance(type_, TileType) else 1


class _Leaves:
    """What origins start from: the pipeline's index, values from outside that are the same in all
    iterations, and values of a stage, which are others in each."""

    def __init__(self, op: Pipeline) -> None:
        self.op = op
        self.symbols: dict[tuple[int, Value], Sym] = {}

    def of(self, side: int) -> Callable[[Value], IndexExpr]:
        """The leaves of the first or the second access."""

        def leaf(value: Value) -> IndexExpr:
            if self._is_index(value):
                return _INDEX
            key = 0 if is_defined_above(value, self.op) else 1 + side, value
            return self.symbols.setdefault(key, Sym(len(self.symbols)))

        return leaf

    @property
    def ranges(self) -> dict[DimRef | Sym, Interval]:
        return dict(self._ranges())

    def _ranges(self) -> Iterator[tuple[Sym, Interval]]:
        for (_, value), symbol in self.symbols.items():
            found = range_of(value)
            if found is not None:
                yield symbol, found

    def _is_index(self, value: Value) -> bool:
        return (
            isinstance(value, BlockArgument)
            and value.block.parent_op is self.op
            and induction_of(value) is not None
        )
