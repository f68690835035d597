"""Machine form: loops, branches, launches, addresses, vector memory and lane operations.

Scalars and lanes use the ops of `scalar`; a VectorType operand makes them lane-wise (all vector
operands have the same lane count; scalars are splatted explicitly by `vector.splat`). Function
arguments of a kernel's main function: per view parameter one pointer, then its extents, then its
strides (index each); per scalar parameter one scalar.
"""

from __future__ import annotations

from tilenest.ir import Operation, attribute, operand, optional, variadic


class For(Operation):
    """for i in range(lower, upper, step): region (i, states...) -> next states. step > 0."""

    NAME = "loop.for"
    lower = operand()
    upper = operand()
    step = operand()
    initial = variadic()


class Branch(Operation):
    """Two regions without arguments yielding the results; the condition is a scalar bool."""

    NAME = "loop.if"
    condition = operand()


class LoopYield(Operation):
    NAME = "loop.yield"
    TERMINATOR = True
    values = variadic()


class Launch(Operation):
    """Run function `callee` over [0, total) in chunks, on the pool. Its arguments are
    (begin: index, end: index, scratch: pointer, captured...). `cost_ns` estimates one item."""

    NAME = "loop.launch"
    total = operand()
    captured = variadic()
    callee = attribute(str, leading=True)
    scratch_bytes = attribute(int, default=0)
    cost_ns = attribute(float, default=1000.0)


class Offset(Operation):
    """pointer + index * scale + constant, in bytes."""

    NAME = "memory.offset"
    pointer = operand()
    index = operand()
    scale = attribute(int)
    constant = attribute(int, default=0)


class Check(Operation):
    """End the call with a fault unless `first` .. `first + count - 1` lie in [0, extent).

    Nothing is checked where `condition` is false. It stands in front of an access with bounds
    'check', from the lifted form on: `access` says what the access does, `site` is its number.
    """

    NAME = "memory.check"
    first = operand()
    extent = operand()
    condition = optional()
    access = attribute(str, leading=True)
    axis = attribute(int)
    count = attribute(int, default=1)
    site = attribute(int, default=0)


class MemoryLoad(Operation):
    """A scalar or contiguous vector at `pointer` (the first element's address). With a mask, lanes
    that are false are not read and give `otherwise` (a value of the result type)."""

    NAME = "memory.load"
    pointer = operand()
    mask = optional()
    otherwise = optional()
    align = attribute(int)


class MemoryStore(Operation):
    """Write a scalar or contiguous vector; masked lanes are not written."""

    NAME = "memory.store"
    value = operand()
    pointer = operand()
    mask = optional()
    align = attribute(int)


class Gather(Operation):
    """Lane l is the element at pointer + offsets[l] * scale bytes."""

    NAME = "memory.gather"
    pointer = operand()
    offsets = operand()
    mask = optional()
    otherwise = optional()
    scale = attribute(int)


class Scatter(Operation):
    """Write lane l at pointer + offsets[l] * scale bytes, in lane order."""

    NAME = "memory.scatter"
    value = operand()
    pointer = operand()
    offsets = operand()
    mask = optional()
    scale = attribute(int)


class Splat(Operation):
    """The scalar in every lane."""

    NAME = "vector.splat"
    value = operand()


class Lanes(Operation):
    """0, 1, 2, ... in the result's dtype."""

    NAME = "vector.lanes"


class LaneMask(Operation):
    """Lane l is true when l < count (an index, any value)."""

    NAME = "vector.lane_mask"
    count = operand()


class ReduceLanes(Operation):
    """Combine the lanes with a scalar function by halving: lane l with l + lanes/2, repeated."""

    NAME = "vector.reduce"
    value = operand()
    function = attribute(str, leading=True)


class Transpose(Operation):
    """A square of lanes: element j of result i is element i of row j; as many rows as lanes."""

    NAME = "vector.transpose"
    rows = variadic()
