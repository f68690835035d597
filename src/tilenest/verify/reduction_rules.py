"""Rules `TN09`, `TN09b`, `TN09c`: reductions keep their contracts.

In: reductions of a program, and folds with the schedules that were chosen for them; all rules about
single ops hold. Out: faults, where a contract claims a law that the body does not show, where a
tree is asked for that no merge makes possible, where a schedule regroups more than the contract
permits, and where a seed or a contribution would count several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import copysign

from tilenest.analysis import (
    Reductions,
    Regrouping,
    StateAnswer,
    has_plain_body,
    lacking_merges,
)
from tilenest.dialects import (
    MERGES,
    ORIENTATIONS,
    PROVENANCES,
    SCALAR_FUNCTIONS,
    Loop,
    MapReducePost,
    Reduce,
    ReductionContract,
    StateLaw,
    identity_of,
    law_of,
)
from tilenest.ir import (
    DType,
    Fault,
    Module,
    Rule,
    Subject,
    Type,
    describe_type,
)
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    exits,
    expect_choice,
    op_rule,
    place_rule,
    types_of,
)
from tilenest.verify.schedules import folded_dims, outer_loop, overhanging

# Contracts -------------------------------------------------------------------------------------


def _laws(subject: Subject) -> Iterator[Fault]:
    for nest in subject.of(Reduce):
        states = types_of(nest.initial)
        findings = [*_contract(nest.contract, states, subject.module), *_lift(nest, states)]
        answers = subject.analyses.get(Reductions, nest)
        yield from (Fault(nest, *finding) for finding in findings or _tree(nest, answers))
    for op in subject.of(MapReducePost):
        for place, seed in zip(op.folded_results, op.seeds, strict=True):
            contract = op.spec(place).contract
            assert contract is not None
            findings = [
                *_contract(contract, [seed.type], subject.module),
                *_scalar_only(contract),
            ]
            for message, remedy in findings:
                yield Fault(op, f"result {place}: {message}", remedy)
        answers = subject.analyses.get(Reductions, op)
        yield from (Fault(op, *finding) for finding in _work(op, answers))


def _contract(contract: ReductionContract, states: Sequence[Type], module: Module) -> Findings:
    yield from expect_choice("`orientation`", contract.orientation, ORIENTATIONS)
    yield from expect_choice("`provenance`", contract.provenance, PROVENANCES)
    if not contract.laws:
        return
    if len(contract.laws) != len(states):
        yield (
            f"{len(contract.laws)} laws for {len(states)} states",
            "give every state its law, or none any",
        )
        return
    for law, state in zip(contract.laws, states, strict=True):
        if law.merge is not None and not law.merge.startswith("@"):
            yield from _scalar_law(law, state)
    if contract.functions:
        yield from _function_law(contract, states, module)


def _scalar_law(law: StateLaw, state: Type) -> Findings:
    merge = law.merge
    if merge not in MERGES:
        yield f"merges by {merge!r}", f"use one of {', '.join(sorted(MERGES))}"
        return
    dtype = getattr(state, "dtype", None)
    if not isinstance(dtype, DType) or dtype.kind not in SCALAR_FUNCTIONS[merge].domain:
        yield f"merges {describe_type(state)} by `{merge}`", "use a function of its type"
        return
    if law.identity is not None and not _is_identity(law.identity, merge, dtype):
        yield (
            f"{law.identity!r} changes numbers of {dtype.text} under `{merge}`",
            f"start partial states from {identity_of(merge, dtype)!r}",
        )
    if law.is_exact and not law_of(merge, dtype).is_exact:
        yield f"`{merge}` on {dtype.text} rounds, so it is not exact", "say is_exact = false"


def _is_identity(number: bool | float, merge: str, dtype: DType) -> bool:
    """0 adds to -0 as 0, so of the zeros only -0 leaves every float as it is."""
    known = identity_of(merge, dtype)
    if known != known:
        return number != number
    is_zero = dtype.is_float and known == 0
    return number == known and not (is_zero and copysign(1, number) != copysign(1, known))


def _function_law(contract: ReductionContract, states: Sequence[Type], module: Module) -> Findings:
    """A function of the module from both sides' states to those of both together."""
    if contract.provenance != "trusted":
        yield (
            f"{contract.provenance} laws name a function, which no body proves",
            'say provenance = "trusted", or name a scalar function',
        )
    if len({law.merge for law in contract.laws}) != 1:
        yield "its states merge by several functions", "merge all states by one function"
        return
    (name,) = contract.functions
    yield from _signature(name, states, module)


def _lift(nest: Reduce, states: Sequence[Type]) -> Findings:
    """What partial states start from: a state is lifted from elements alone."""
    functions = nest.contract.functions
    if nest.lift is None:
        if functions and any(law.identity is None for law in nest.contract.laws):
            yield (
                f"@{min(functions)} has no identity, and nothing lifts a contribution",
                "say what partial states start from, or give the nest a lift",
            )
        return
    lifted = types_of(exits(nest.regions[0])[0].operands)
    if lifted != list(states):
        yield (
            f"the lift gives {describe_types(lifted)}",
            f"give the states of one contribution, {describe_types(states)}",
        )
    if any(argument.has_uses for argument in nest.lift.arguments[nest.rank :]):
        yield "the lift uses the states before", "lift the elements of a contribution alone"


def _signature(name: str, states: Sequence[Type], module: Module) -> Findings:
    function = next((f for f in module.functions if f.name == name), None)
    if function is None:
        yield f"no function @{name} is in the module", "define the merge"
        return
    taken, wanted = types_of(function.region.block.arguments), [*states, *states]
    if taken != wanted:
        yield (
            f"the merge @{name} takes {describe_types(taken)}",
            f"take both sides' states, {describe_types(wanted)}",
        )
    if list(function.result_types) != list(states):
        yield (
            f"the merge @{name} returns {describe_types(function.result_types)}",
            f"return the states, {describe_types(states)}",
        )


# Laws ------------------------------------------------------------------------------------------


def _tree(op: Reduce, answers: Sequence[StateAnswer]) -> Findings:
    """What a nest claims is shown by its body, and a tree has a merge for every state."""
    if op.contract.provenance != "trusted":
        pairs = zip(op.contract.laws, answers, strict=False)
        for place, (claimed, answer) in enumerate(pairs):
            if claimed.merge is not None and answer.law.merge is None:
                yield (
                    f"state {place} claims to merge by `{claimed.merge}`, and its body does not "
                    "show it",
                    f"make the step `{claimed.merge}` of the state and the elements, or claim no "
                    "law",
                )
                return
    reason, remedy = "", "make each state `state (+) elements` with a known (+), or fold in order"
    if not has_plain_body(op):
        reason = ", as its body stores, calls or has several blocks"
        remedy = "let the body read and compute only, or fold in order"
    for place in lacking_merges(op, answers):
        what = f"{op.policy} regroups contributions, but state {place} has no known merge"
        yield what + reason, remedy


def _work(op: MapReducePost, answers: Sequence[StateAnswer]) -> Findings:
    """What a fold claims is shown by its step; nests know scalar functions only."""
    for place, answer in zip(op.folded_results, answers, strict=True):
        claimed = op.spec(place).merge
        if claimed in MERGES and answer.law.merge is None:
            yield (
                f"result {place} claims to merge by `{claimed}`, and its step does not show it",
                f"make the step `{claimed}` of the state and the elements, or claim no law",
            )


def _scalar_only(contract: ReductionContract) -> Findings:
    for law in contract.laws:
        if law.merge is not None and law.merge.startswith("@"):
            yield f"merges by {law.merge}", "merge by a scalar function, or fold in order"


# Schedules -------------------------------------------------------------------------------------


def regrouping(op: MapReducePost, subject: Subject) -> Findings:
    """Loops that split or reorder a fold need permission."""
    loops = _loops(op)
    answers = subject.analyses.get(Reductions, op)
    refused = [
        (result, answer.permission(Regrouping.LANES))
        for result, answer in zip(op.folded_results, answers, strict=True)
        if not answer.allows(Regrouping.LANES)
    ]
    if not loops or not refused or any(_work(op, answers)):
        return
    folded, (result, verdict) = folded_dims(op), refused[0]
    fold = f"the fold of result {result}, where {verdict.reason}"
    remedy = "split a kept dim, or allow unordered_tree with a known merge"
    for position, loop in enumerate(loops):
        if loop.dim in folded and _splits(loops, position):
            yield f"the {loop.policy} loop over dim {loop.dim} splits {fold}", remedy
    order = [loop.dim for loop in loops if loop.dim in folded and op.extents[loop.dim] > 1]
    if order != sorted(order):
        yield (
            f"loops over the dims {order} reorder {fold}",
            "end the loops of a folded dim before those of the next, or allow unordered_tree with "
            "a known merge",
        )


def _loops(op: MapReducePost) -> tuple[Loop, ...]:
    return op.schedule().loops if op.sched is not None else ()


def _splits(loops: Sequence[Loop], position: int) -> bool:
    """Whether a loop over a folded dim makes several accumulators."""
    loop, outer = loops[position], outer_loop(loops, position)
    is_copied = loop.policy == "unrolled" and outer is not None and outer.step > loop.step
    return is_copied or loop.policy == "vector"


# Counting --------------------------------------------------------------------------------------


def _repeated(op: MapReducePost) -> Findings:
    """Copies of a folded dim that overlap would count contributions twice."""
    folded = folded_dims(op)
    for loop, outer in overhanging(_loops(op)):
        if loop.dim in folded:
            yield (
                f"copies of {loop.step} points of the folded dim {loop.dim} reach over the step "
                f"{outer.step}, so contributions count twice",
                "copy a divisor of the step outside",
            )


def _counting(op: MapReducePost) -> Findings:
    for folded, place in enumerate(op.folded_results):
        spec = op.spec(place)
        results = op.access("seed", folded).map.results
        used = set[int]().union(*(result.used_dims() for result in results))
        if not used <= set(spec.dims):
            yield (
                f"seed {folded} moves with a folded dim, so a cell has several seeds",
                f"use the kept dims {spec.dims} only",
            )
    yield from _repeated(op)


REDUCTION_RULES = (
    Rule("TN09", "reductions have laws that their bodies show", _laws),
    place_rule(
        "TN09b", "schedules regroup only what a contract permits", MapReducePost, regrouping
    ),
    op_rule("TN09c", "seeds and contributions count once", MapReducePost, _counting),
)
