"""How a nest's axis is counted in 64 bits.

In: an axis of a nest, in machine form or above. Out: how many iterations it has; and whether a loop
may add the step to its index until that reaches the end, which is wrong where the sum behind the
last iteration leaves 64 bits. Such a loop counts its iterations instead.
"""

from __future__ import annotations

from tilenest.analysis import ANY_INDEX, constant_of, range_of, trip_counts
from tilenest.dialects import Nest
from tilenest.ir import BOOL, Builder, Value
from tilenest.layouts import Interval
from tilenest.nests import Emitter, Index
from tilenest.passes.index_ops import apply_scalar, index_number


def counts_up(nest: Nest, axis: int) -> bool:
    """Whether the step is a positive number, and the sum of the last index and the step fits."""
    step = constant_of(nest.step[axis])
    if not isinstance(step, int) or step <= 0:
        return False
    return _interval(nest.upper[axis])[1] - 1 + step <= ANY_INDEX[1]


def emit_trips(
    emitter: Emitter, nest: Nest, axis: int, lower: Index, upper: Index, step: Index
) -> Index:
    """The number of iterations: ceil((upper - lower) / step), at least 0, for either sign; 0 for a
    step of 0."""
    known = trip_counts(nest)[axis]
    if known is not None:
        return known
    whole: Index = 0
    if not _span_fits(nest, axis):
        upper = _reached(emitter, lower, upper, step)
        # The difference of the quotients fits, and that of the remainders is less than a step.
        whole = emitter.subtract(
            emitter.floor_divide(upper, step), emitter.floor_divide(lower, step)
        )
        lower, upper = emitter.remainder(lower, step), emitter.remainder(upper, step)
    rest = emitter.floor_divide(emitter.subtract(lower, upper), step)
    return emitter.maximum(emitter.subtract(whole, rest), 0)


def emit_count(builder: Builder, lower: Value, upper: Value, step: Value) -> Value:
    """The same number above machine form."""

    def apply(function: str, *arguments: Value) -> Value:
        return apply_scalar(builder, function, *arguments)

    known = constant_of(step)
    if isinstance(known, int) and known and known > ANY_INDEX[0]:
        first, end = (lower, upper) if known > 0 else (upper, lower)
        count = _emit_quotient(builder, first, end, abs(known))
    else:
        after, before = apply("maximum", lower, upper), apply("minimum", lower, upper)
        is_up = apply_scalar(builder, "gt", step, index_number(builder, 0), result_type=BOOL)
        count = _emit_apart(builder, lower, apply("where", is_up, after, before), step)
    ends = range_of(count)
    if ends is not None and ends[0] >= 0:
        return count
    return apply("maximum", count, index_number(builder, 0))


def _emit_quotient(builder: Builder, first: Value, end: Value, step: int) -> Value:
    """How often a number of at least 1 fits between two values, the last time in part; below 0 or 0
    where the end comes first."""

    def apply(function: str, one: Value, other: Value) -> Value:
        return apply_scalar(builder, function, one, other)

    begins, ends = _interval(first), _interval(end)
    if ends[1] - begins[0] + step - 1 <= ANY_INDEX[1] and ends[0] - begins[1] >= ANY_INDEX[0]:
        span = end if constant_of(first) == 0 else apply("sub", end, first)
        if step == 1:
            return span
        more, by = (index_number(builder, number) for number in (step - 1, step))
        return apply("floordiv", apply("add", span, more), by)
    end = apply("maximum", end, first)
    if step == 1:
        return apply("sub", end, first)
    return _emit_apart(builder, first, end, index_number(builder, step))


def _emit_apart(builder: Builder, first: Value, end: Value, step: Value) -> Value:
    """ceil((end - first) / step) where the difference may leave 64 bits: that of the quotients does
    not, and that of the remainders is less than a step."""

    def apply(function: str, one: Value, other: Value) -> Value:
        return apply_scalar(builder, function, one, other)

    whole = apply("sub", apply("floordiv", end, step), apply("floordiv", first, step))
    rest = apply("sub", apply("mod", first, step), apply("mod", end, step))
    return apply("sub", whole, apply("floordiv", rest, step))


def _reached(emitter: Emitter, lower: Index, upper: Index, step: Index) -> Index:
    """The end, or the beginning where the end lies behind it."""
    after, before = emitter.maximum(lower, upper), emitter.minimum(lower, upper)
    if isinstance(step, int):
        return after if step > 0 else before
    is_up = emitter.compare("gt", step, 0)
    return emitter.apply("where", is_up, emitter.value(after), emitter.value(before))


def _span_fits(nest: Nest, axis: int) -> bool:
    """Whether lower - upper stays in 64 bits."""
    lower, upper = _interval(nest.lower[axis]), _interval(nest.upper[axis])
    return ANY_INDEX[0] <= lower[0] - upper[1] and lower[1] - upper[0] <= ANY_INDEX[1]


def _interval(value: Value) -> Interval:
    found = constant_of(value)
    if isinstance(found, int):
        return (found, found)
    return range_of(value) or ANY_INDEX
