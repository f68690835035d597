"""Where values are defined and used: what is around them, trip counts, constants, splats.

In: values, operations and blocks. Out: plain facts read off their links; nothing is cached.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import Constant, MapReducePost, Nest, Parallel
from tilenest.ir import Block, BlockArgument, Induction, Operation, OpResult, Value

CONTRACTS = frozenset(
    {
        "contract",
        "dependences",
        "interval",
        "ordering",
        "repartition",
        "sched",
        "schedule",
        "specs",
        "spread",
        "window",
    }
)
"""The attributes that say how results come about and are held, and not where memory is touched."""


def constant_of(value: Value) -> bool | int | float | None:
    """The number a value is known to be."""
    if isinstance(value, OpResult) and isinstance(value.owner, Constant):
        number: bool | int | float = value.owner.value  # type: ignore[assignment]  # declared as object
        return number
    return None


def enclosing_blocks(
    op: Operation, within: Operation | None = None
) -> Iterator[tuple[Block, Operation]]:
    """The blocks around an operation and whose they are, from the inside out, up to an operation
    that is left out; without one, up to the function."""
    block = op.parent
    while block is not None:
        holder = block.parent_op
        if holder is None or holder is within:
            return
        yield block, holder
        block = holder.parent


def enclosing(op: Operation, within: Operation | None = None) -> Iterator[Operation]:
    """The operations around one, as `enclosing_blocks` gives them."""
    return (holder for _, holder in enclosing_blocks(op, within))


def enclosing_nests(op: Operation) -> Iterator[Nest]:
    """The nests around an operation, from the inside out."""
    return (holder for holder in enclosing(op) if isinstance(holder, Nest))


def enclosing_parallels(op: Operation) -> Iterator[Parallel]:
    """The parallel nests around an operation, from the inside out."""
    return (holder for holder in enclosing(op) if isinstance(holder, Parallel))


def nearest_parallel(op: Operation) -> Parallel | None:
    """The nest whose instances own what an operation makes, and wait for each other there; without
    one, that is the call."""
    return next(enclosing_parallels(op), None)


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


def captured_values(op: Operation) -> list[Value]:
    """Values that the op's regions use, defined outside of it, in order of use."""
    nested = (inner for region in op.regions for inner in region.walk())
    used = (value for inner in nested for value in inner.operands)
    return list(dict.fromkeys(value for value in used if is_defined_above(value, op)))


def induction_of(value: Value) -> Induction[Value] | None:
    """The bounds of a loop's index; None for any other value."""
    owner = value.block.parent_op if isinstance(value, BlockArgument) else None
    found = () if owner is None else owner.inductions()
    return found[value.index] if value.index < len(found) else None


def trip_counts(loop: Operation) -> tuple[int | None, ...]:
    """Iterations of each axis of a loop, None where they are known at run time only."""
    counts: list[int | None] = []
    for axis in loop.inductions():
        first, last, by = constant_of(axis.lower), constant_of(axis.upper), constant_of(axis.step)
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
