"""Rules `OP80` to `OP82`: calls and tuples.

In: operations of the func and value dialects. Out: findings about callees and items.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import call_circles
from tilenest.dialects import Aggregate, Call, Extract
from tilenest.ir import Fault, Rule, Subject, TupleType, describe_type
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    expect_types,
    op_rule,
    types_of,
)


def _calls(subject: Subject) -> Iterator[Fault]:
    functions = {function.name: function for function in subject.module.functions}
    for op in subject.of(Call):
        callee = functions.get(op.callee)
        if callee is None:
            yield Fault(op, f"no function @{op.callee} is in the module", "add the function")
            continue
        groups = (
            ("takes", types_of(op.arguments), types_of(callee.arguments)),
            ("returns", types_of(op.results), list(callee.result_types)),
        )
        for verb, given, declared in groups:
            if given != declared:
                yield Fault(
                    op,
                    f"@{op.callee} {verb} {describe_types(declared)}, not {describe_types(given)}",
                    f"make them {describe_types(declared)}",
                )
    for circle in call_circles(subject.module):
        names = " calls ".join(f"@{name}" for name in circle.names)
        yield Fault(circle.call, f"{names}: functions in a circle", "break the circle")


def _aggregate(op: Aggregate) -> Findings:
    yield from expect_types("results", types_of(op.results), [TupleType(tuple(types_of(op.items)))])


def _extract(op: Extract) -> Findings:
    type_ = op.aggregate.type
    if not isinstance(type_, TupleType):
        yield f"takes an item of a {describe_type(type_)}", "take one of a tuple"
    elif op.index not in range(len(type_.items)):
        yield f"takes item {op.index} of {len(type_.items)}", "name an item the tuple has"
    else:
        yield from expect_types("results", types_of(op.results), [type_.items[op.index]])


CONTROL_RULES = (
    Rule("OP80", "calls fit the functions they name, and end", _calls),
    op_rule("OP81", "tuples are made of their items", Aggregate, _aggregate),
    op_rule("OP82", "items are taken from tuples that have them", Extract, _extract),
)
