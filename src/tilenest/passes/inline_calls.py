"""Put the bodies of functions in the place of their calls.

In: Candidate form whose functions are one block each. Out: no calls; a function that only calls
named is gone, and so is one that nobody calls and no host can: it takes or gives tiles. One that a
reduction's states meet by stays until it is lifted. Functions that call each other in a circle are
refused: no body would be the last.
"""

from __future__ import annotations

from tilenest.analysis import call_circles, callees_first
from tilenest.dialects import Call, Reduce
from tilenest.errors import ControlFlowError, SourceLocation
from tilenest.ir import (
    Function,
    Module,
    Rewriter,
    ScalarType,
    Value,
    ValueMap,
    ViewType,
    clone_operation,
)
from tilenest.passes.remap_places import enter_levels
from tilenest.records import replace


def inline_calls(module: Module, rewriter: Rewriter) -> tuple[()]:
    """Rewrite a module in place; there is nothing to decide."""
    for circle in call_circles(module):
        names = " calls ".join(f"@{name}" for name in circle.names)
        raise ControlFlowError(
            f"functions call each other in a circle: {names}",
            "write the repetition as a nest",
            circle.call.location,
        )
    gone = {function.name for function in module.functions if not _is_for_hosts(function)}
    for function in callees_first(module):
        for op in [op for op in function.walk() if isinstance(op, Call)]:
            gone.add(op.callee)
            rewriter.replace_op(op, _inline(op, module, rewriter))
    merges = [op.contract.functions for op in module.walk() if isinstance(op, Reduce)]
    for name in gone.difference(*merges):
        rewriter.remove_function(module.function(name))
    return ()


def _is_for_hosts(function: Function) -> bool:
    types = [*(argument.type for argument in function.arguments), *function.result_types]
    return all(isinstance(type_, ViewType | ScalarType) for type_ in types)


def _inline(op: Call, module: Module, rewriter: Rewriter) -> list[Value]:
    """The callee's operations in front of the call; what they return."""
    body = module.function(op.callee).region.block
    values: ValueMap = dict(zip(body.arguments, op.arguments, strict=True))
    builder = rewriter.builder_before(op)
    for operation in body.operations:
        if operation.TERMINATOR:
            break
        copy = builder.insert(clone_operation(operation, values))
        enter_levels(copy, rewriter)
        for inner in copy.walk():
            rewriter.set_location(inner, [_called_from(inner.location, op.location)])
    return [values.get(value, value) for value in body.terminator.operands]


def _called_from(
    place: SourceLocation | None, call: SourceLocation | None
) -> SourceLocation | None:
    """A place in the callee, as a reader finds it by way of the call."""
    if place is None or call is None:
        return place or call
    return replace(place, caller=_called_from(place.caller, call) if place.caller else call)
