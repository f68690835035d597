"""Rules `OP01` to `OP05`: functions' returns, nests and conditionals.

In: operations of the exec dialect. Out: findings about domains, the arguments and yields of
regions, and policies.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import (
    REDUCTION_POLICIES,
    CarryingNest,
    CondBranch,
    If,
    Nest,
    Parallel,
    Pipeline,
    Reduce,
    Return,
    Yield,
    YieldUpdates,
)
from tilenest.ir import BOOL, INDEX, Fault, Rule, Subject
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    exits,
    expect_bodies,
    expect_choice,
    expect_index,
    expect_reached,
    expect_region,
    expect_types,
    op_rule,
    types_of,
)


def _returns(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        for message, remedy in expect_reached(f"@{function.name}", function.region):
            yield Fault(None, message, remedy, function)
        for last in exits(function.region):
            if not isinstance(last, Return):
                fact = f"@{function.name} does not end with func.return"
                yield Fault(last, fact, "return from it")
    for op in subject.of(Return):
        owner = op.parent_function
        if op.parent_op is not None or owner is None:
            yield Fault(op, "returns from inside a region", "return at the end of the function")
            continue
        types = types_of(op.values)
        if types != list(owner.result_types):
            found, wanted = describe_types(types), describe_types(owner.result_types)
            yield Fault(
                op,
                f"returns {found}, but @{owner.name} declares {wanted}",
                "return the declared results",
            )


def _domain(op: Nest) -> Findings:
    sizes = {len(op.lower), len(op.upper), len(op.step)}
    if len(sizes) != 1 or 0 in sizes:
        yield (
            f"has {len(op.lower)} lower bounds, {len(op.upper)} upper bounds and "
            f"{len(op.step)} steps",
            "give one of each per axis, for one axis at least",
        )
    for name in ("lower", "upper", "step"):
        yield from expect_index(f"`{name}`", getattr(op, name))


def _regions(op: Nest) -> Findings:
    assert isinstance(op, Parallel | CarryingNest)
    states = types_of(op.initial)
    yield from expect_types("results", types_of(op.results), states)
    if isinstance(op, Pipeline) or (isinstance(op, Reduce) and len(op.regions) == 2):
        yield from _stages(op)
        return
    wrong = list(expect_bodies(op, 1))
    yield from wrong
    if wrong:
        return
    arguments = [INDEX] * op.rank + states
    if isinstance(op, Parallel) and states:
        yield from expect_region(op, 0, arguments, None, YieldUpdates)
    else:
        yield from expect_region(op, 0, arguments, states, Yield)


def _stages(op: Pipeline | Reduce) -> Findings:
    wrong = list(expect_bodies(op, max(len(op.regions), 1)))
    yield from wrong
    if wrong:
        return
    states = types_of(op.initial)
    arguments = [INDEX] * op.rank + states
    last = len(op.regions) - 1
    for place, region in enumerate(op.regions):
        handed = types_of(exits(region)[0].operands)
        yield from expect_region(op, place, arguments, states if place == last else handed)
        arguments = arguments + handed


def _policies(op: Nest) -> Findings:
    if isinstance(op, Reduce):
        yield from expect_choice("`policy`", op.policy, REDUCTION_POLICIES)
    if isinstance(op, Pipeline):
        if op.window < 0:
            yield f"`window` is {op.window}", "use 0 (open) or a number of iterations in flight"
        if op.interval < 1:
            yield f"`interval` is {op.interval}", "use at least 1"


def _conditions(subject: Subject) -> Iterator[Fault]:
    deciding: list[If | CondBranch] = [*subject.of(If), *subject.of(CondBranch)]
    for op in deciding:
        findings = expect_types("conditions", [op.condition.type], [BOOL])
        for message, remedy in (*findings, *(_branches(op) if isinstance(op, If) else ())):
            yield Fault(op, message, remedy)


def _branches(op: If) -> Findings:
    wrong = list(expect_bodies(op, 2))
    yield from wrong
    if not wrong:
        results = types_of(op.results)
        yield from expect_region(op, 0, [], results)
        yield from expect_region(op, 1, [], results)


EXECUTION_RULES = (
    Rule("OP01", "functions end by returning their declared results", _returns),
    op_rule("OP02", "nests have an index domain", Nest, _domain),
    op_rule("OP03", "nests hand indices and states to regions that yield states", Nest, _regions),
    op_rule("OP04", "nests have known policies", Nest, _policies),
    Rule("OP05", "conditionals have a bool and ways that hand out equal types", _conditions),
)
