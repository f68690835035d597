"""Rules `OP24` to `OP37`: loops, branches, launches, memory and lanes of Machine form.

In: operations of the loop dialect. Out: findings about types, lanes, alignment and callees.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import (
    AddressLoad,
    AddressStore,
    Check,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopIf,
    LoopYield,
    Offset,
    Scatter,
    Splat,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    POINTER,
    Fault,
    Operation,
    Rule,
    ScalarType,
    Subject,
    Type,
    Value,
    VectorType,
    bool_,
    describe_type,
)
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    expect_index,
    expect_region,
    expect_regions,
    expect_types,
    lanes_of,
    op_rule,
    types_of,
)


def _for(op: For) -> Findings:
    yield from expect_index("bound", [op.lower, op.upper, op.step])
    states = types_of(op.initial)
    yield from expect_types("results", types_of(op.results), states)
    wrong = list(expect_regions(op, 1))
    yield from wrong
    if not wrong:
        yield from expect_region(op, 0, [INDEX, *states], states, LoopYield)


def _branch(op: LoopIf) -> Findings:
    yield from expect_types("conditions", [op.condition.type], [BOOL])
    wrong = list(expect_regions(op, 2))
    yield from wrong
    if not wrong:
        results = types_of(op.results)
        yield from expect_region(op, 0, [], results, LoopYield)
        yield from expect_region(op, 1, [], results, LoopYield)


def _launches(subject: Subject) -> Iterator[Fault]:
    functions = {function.name: function for function in subject.module.functions}
    for op in subject.of(Launch):
        for message, remedy in expect_index("total", [op.total]):
            yield Fault(op, message, remedy)
        if op.results or op.scratch_bytes < 0 or not op.cost_ns >= 0:
            yield Fault(op, "has results, or negative facts", "give no results and facts from 0")
        callee = functions.get(op.callee)
        if callee is None:
            yield Fault(op, f"no function @{op.callee} is in the module", "add the body function")
            continue
        expected = [INDEX, INDEX, POINTER, *types_of(op.captured)]
        actual = types_of(callee.arguments)
        if actual != expected:
            yield Fault(
                op,
                f"@{op.callee} takes {describe_types(actual)}",
                f"let it take (begin, end, scratch, captured...): {describe_types(expected)}",
            )


def _offset(op: Offset) -> Findings:
    yield from _pointer(op.pointer)
    yield from expect_index("`index`", [op.index])
    yield from expect_types("results", types_of(op.results), [POINTER])


def _check(op: Check) -> Findings:
    yield from expect_index("coordinate", [op.first, op.extent])
    yield from expect_types("results", types_of(op.results), [])
    if op.condition is not None:
        yield from expect_types("conditions", [op.condition.type], [BOOL])
    if min(op.axis, op.site, op.depth) < 0 or op.count < 1:
        yield (
            f"checks {op.count} coordinates of axis {op.axis} at site {op.site}, depth {op.depth}",
            "count axes, sites and depths from 0 and check at least one coordinate",
        )


def _pointer(value: Value) -> Findings:
    if value.type is not POINTER:
        yield f"the address is a {describe_type(value.type)}", "use a pointer"


def _alignment(align: int) -> Findings:
    if align < 1 or align & (align - 1):
        yield f"`align` is {align}", "use a power of two"


def _mask(mask: Value | None, type_: Type) -> Findings:
    """One bool per element that is accessed."""
    lanes = lanes_of(type_)
    wanted = VectorType(bool_, lanes) if lanes else BOOL
    if mask is not None and mask.type is not wanted:
        yield f"the mask is a {describe_type(mask.type)}", f"use {describe_type(wanted)}"


def _element(what: str, type_: Type) -> Findings:
    if lanes_of(type_) is None:
        yield f"{what} a {describe_type(type_)}", "move scalars and vectors"


def _otherwise(op: AddressLoad | Gather) -> Findings:
    if op.otherwise is None:
        return
    if op.mask is None:
        yield "has `otherwise` without a mask", "give the mask too"
    yield from expect_types("`otherwise`", [op.otherwise.type], types_of(op.results))


def _memory(op: AddressLoad | AddressStore) -> Findings:
    yield from _pointer(op.pointer)
    yield from _alignment(op.align)
    if isinstance(op, AddressStore):
        yield from expect_types("results", types_of(op.results), [])
        yield from _element("stores", op.value.type)
        yield from _mask(op.mask, op.value.type)
        return
    if len(op.results) != 1:
        yield f"gives {describe_types(types_of(op.results))}", "load one scalar or vector"
        return
    yield from _element("loads", op.result.type)
    yield from _mask(op.mask, op.result.type)
    yield from _otherwise(op)


def _gather(op: Gather | Scatter) -> Findings:
    yield from _pointer(op.pointer)
    moved = [op.value.type] if isinstance(op, Scatter) else types_of(op.results)
    offsets = op.offsets.type
    if len(moved) != 1 or not isinstance(moved[0], VectorType):
        yield f"moves {describe_types(moved)}", "move one vector"
        return
    is_counted = isinstance(offsets, VectorType) and offsets.dtype.is_integer
    if not is_counted or lanes_of(offsets) != moved[0].lanes:
        yield f"the offsets are {describe_type(offsets)}", "use one integer per lane"
    yield from _mask(op.mask, moved[0])
    if isinstance(op, Gather):
        yield from _otherwise(op)
    else:
        yield from expect_types("results", types_of(op.results), [])


def _lane_ops(op: Operation) -> Findings:
    types = types_of(op.results)
    if len(types) != 1 or not isinstance(types[0], VectorType):
        yield f"gives {describe_types(types)}", "give one vector"
        return
    vector = types[0]
    if isinstance(op, Splat):
        yield from expect_types("values", [op.value.type], [ScalarType(vector.dtype)])
    elif isinstance(op, LaneMask):
        yield from expect_index("`count`", [op.count])
        yield from expect_types("results", types, [VectorType(bool_, vector.lanes)])
    elif vector.dtype.is_bool:
        yield "counts lanes in bool", "count in a number type"


LOOP_RULES = (
    op_rule("OP24", "loops count by index and carry states", For, _for),
    op_rule("OP25", "branches have a bool and two regions of equal types", LoopIf, _branch),
    Rule("OP26", "launches call a body function of the module", _launches),
    op_rule("OP27", "offsets go from a pointer to a pointer", Offset, _offset),
    op_rule("OP28", "loads move elements at an aligned address", AddressLoad, _memory),
    op_rule("OP29", "stores move elements to an aligned address", AddressStore, _memory),
    op_rule("OP30", "gathers have one offset per lane", Gather, _gather),
    op_rule("OP31", "scatters have one offset per lane", Scatter, _gather),
    op_rule("OP32", "splats fill a vector of their dtype", Splat, _lane_ops),
    op_rule("OP33", "lane numbers fill a vector", Lanes, _lane_ops),
    op_rule("OP34", "lane masks are bool", LaneMask, _lane_ops),
    op_rule("OP37", "checks compare index values", Check, _check),
)
