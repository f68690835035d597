"""Rules `OP01` to `OP05`: functions' returns, nests and conditionals.

In: operations of the exec dialect. Out: findings about domains, the arguments and yields of
regions, and policies.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import If, Nest, Parallel, Pipeline, Reduce, Return, Serial
from tilenest.ir import BOOL, INDEX, Fault, Rule, Subject, Value
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    expect_choice,
    expect_index,
    expect_region,
    expect_regions,
    expect_types,
    op_rule,
    types_of,
)

REDUCTION_POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")
SCOPES = ("auto", "device", "group", "subgroup", "worker", "vector")


def _returns(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        last = function.body.operations.last
        if not isinstance(last, Return):
            yield Fault(last, f"@{function.name} does not end with func.return", "return from it")
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


def _initial(op: Nest) -> list[Value]:
    return op.initial if isinstance(op, Serial | Reduce | Pipeline) else []


def _regions(op: Nest) -> Findings:
    states = types_of(_initial(op))
    yield from expect_types("results", types_of(op.results), states)
    if isinstance(op, Pipeline):
        yield from _stages(op)
        return
    wrong = list(expect_regions(op, 1))
    yield from wrong
    if not wrong:
        yield from expect_region(op, 0, [INDEX] * op.rank + states, states)


def _stages(op: Pipeline) -> Findings:
    wrong = list(expect_regions(op, max(len(op.regions), 1)))
    yield from wrong
    if wrong:
        return
    states = types_of(op.initial)
    arguments = [INDEX] * op.rank + states
    last = len(op.regions) - 1
    for place, region in enumerate(op.regions):
        yield from expect_region(op, place, arguments, states if place == last else None)
        arguments = arguments + types_of(region.block.terminator.operands)


def _policies(op: Nest) -> Findings:
    if isinstance(op, Parallel):
        yield from expect_choice("`scope`", op.scope, SCOPES)
    if isinstance(op, Reduce):
        yield from expect_choice("`policy`", op.policy, REDUCTION_POLICIES)
    if isinstance(op, Pipeline):
        if op.window < 0:
            yield f"`window` is {op.window}", "use 0 (open) or a number of iterations in flight"
        if op.interval < 1:
            yield f"`interval` is {op.interval}", "use at least 1"
        names = [name for name in op.stage_names if name is not None]
        if len(op.stage_names) not in (0, len(op.regions)) or len(set(names)) != len(names):
            yield (
                f"`stage_names` is {op.stage_names} for {len(op.regions)} stages",
                "give every stage None or a name of its own",
            )


def _conditional(op: If) -> Findings:
    if op.condition.type is not BOOL:
        yield from expect_types("conditions", [op.condition.type], [BOOL])
    wrong = list(expect_regions(op, 2))
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
    op_rule("OP05", "conditionals have a bool and two regions of equal types", If, _conditional),
)
