"""Where values are defined and used: enclosing blocks, trip counts, constants, splats.

In: values, operations and blocks. Out: plain facts read off their links; nothing is cached.
"""

from __future__ import annotations

from tilenest.dialects import Constant, MapReducePost, Nest
from tilenest.ir import Block, BlockArgument, Operation, OpResult, Value


def constant_of(value: Value) -> bool | int | float | None:
    """The number a value is known to be."""
    if isinstance(value, OpResult) and isinstance(value.owner, Constant):
        number: bool | int | float = value.owner.value  # type: ignore[assignment]  # declared as object
        return number
    return None


def ancestor_in(block: Block, op: Operation) -> Operation | None:
    """The operation directly in `block` that is or holds `op`."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op
    return current


def is_defined_above(value: Value, op: Operation) -> bool:
    """Whether `value` is defined outside `op`'s regions."""
    block = value.defining_block
    while block is not None:
        owner = block.parent_op
        if owner is op:
            return False
        block = None if owner is None else owner.parent
    return True


def trip_counts(nest: Nest) -> tuple[int | None, ...]:
    """Iterations of each axis of a nest, None where they are known at run time only."""
    counts: list[int | None] = []
    for lower, upper, step in zip(nest.lower, nest.upper, nest.step, strict=True):
        first, last, by = constant_of(lower), constant_of(upper), constant_of(step)
        if first is None or last is None or not by:
            counts.append(None)
        else:
            counts.append(max(0, int(-((first - last) // by))))
    return tuple(counts)


def is_splat(value: Value) -> Value | None:
    """The scalar that every element of `value` is, if its producer says so: a constant inside the
    producer's region, or one of its scalar inputs."""
    if not isinstance(value, OpResult) or not isinstance(value.owner, MapReducePost):
        return None
    producer = value.owner
    if producer.spec(value.index).policy is not None:
        return None
    element = producer.fold_block.terminator.operands[value.index]
    if isinstance(element, OpResult):
        return element if isinstance(element.owner, Constant) else None
    if isinstance(element, BlockArgument) and element.index >= producer.rank:
        position = element.index - producer.rank
        if not producer.access("input", position).map.results:
            scalar = producer.inputs[position]
            return scalar if not hasattr(scalar.type, "shape") else None
    return None
