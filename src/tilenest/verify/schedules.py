"""Rules `OP38` to `OP43`: what the nest builder takes, and what may regroup contributions.

In: scheduled map_reduce_posts that `OP17` to `OP21` accept, and the reductions of a Candidate
program. Out: findings. A policy is a promise about the order in which one cell's contributions
meet: only `unordered_tree` with a known merge, or exact arithmetic with one, lets a schedule split
or reorder them; a tree over a body without a known merge could not be kept at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tilenest.analysis import TREE_POLICIES, unmerged_reductions
from tilenest.dialects import Loop, MapReducePost, Reduce
from tilenest.ir import Fault, Rule, Subject, element_dtype
from tilenest.verify.execution import EXECUTION_RULES
from tilenest.verify.expectations import Findings, op_rule
from tilenest.verify.scalars import SCALAR_RULES
from tilenest.verify.tensors import sound_schedule
from tilenest.verify.tiles import TILE_RULES

ScheduleCheck = Callable[[MapReducePost, Sequence[Loop]], Findings]
_GROUNDS = (*EXECUTION_RULES, *SCALAR_RULES, *TILE_RULES)
"""what must hold before the body of a reduction can be read"""
_COPIES = ("unrolled", "vector")


def _schedule_rule(id_: str, title: str, check: ScheduleCheck) -> Rule:
    """A rule about every schedule in which no other rule finds a fault."""

    def findings(op: MapReducePost) -> Findings:
        sched = sound_schedule(op)
        if sched is not None:
            yield from check(op, sched.loops)

    return op_rule(id_, title, MapReducePost, findings)


def _folded(op: MapReducePost) -> frozenset[int]:
    """Loop dims that some folded result drops."""
    kept = [op.spec(result).dims for result in op.folded_results]
    return frozenset(dim for dims in kept for dim in range(op.rank) if dim not in dims)


def _outer(loops: Sequence[Loop], position: int) -> Loop | None:
    """The next loop of the same dim outside."""
    dim = loops[position].dim
    return next((loop for loop in reversed(loops[:position]) if loop.dim == dim), None)


# The order of contributions --------------------------------------------------------------------


def _regrouping(op: MapReducePost, loops: Sequence[Loop]) -> Findings:
    chains = [result for result in op.folded_results if not _may_regroup(op, result)]
    if not chains:
        return
    folded, chain = _folded(op), chains[0]
    fold = f"the fold of result {chain} ({op.spec(chain).policy})"
    for position, loop in enumerate(loops):
        if loop.dim in folded and _splits(loops, position):
            yield (
                f"the {loop.policy} loop over dim {loop.dim} splits {fold} into partial ones",
                "split a kept dim, or allow unordered_tree with a known merge",
            )
    order = [loop.dim for loop in loops if loop.dim in folded and op.extents[loop.dim] > 1]
    if order != sorted(order):
        yield (
            f"loops over the dims {order} reorder {fold}",
            "end the loops of a folded dim before those of the next, or allow unordered_tree with "
            "a known merge",
        )


def _may_regroup(op: MapReducePost, result: int) -> bool:
    spec = op.spec(result)
    seed = op.seeds[op.folded_results.index(result)]
    is_free = spec.policy == "unordered_tree" or element_dtype(seed.type).is_integer
    return is_free and spec.merge is not None


def _splits(loops: Sequence[Loop], position: int) -> bool:
    """Whether a loop over a folded dim makes several accumulators."""
    loop, outer = loops[position], _outer(loops, position)
    is_copied = loop.policy == "unrolled" and outer is not None and outer.step > loop.step
    return is_copied or loop.policy == "vector"


def _unmerged(subject: Subject) -> Iterator[Fault]:
    is_asked = subject.module.form == "candidate" and any(
        op.policy in TREE_POLICIES for op in subject.of(Reduce)
    )
    if not is_asked or any(fault for rule in _GROUNDS for fault in rule.check(subject)):
        return
    for op in unmerged_reductions(subject.module):
        yield Fault(
            op,
            f"{op.policy} regroups contributions, but a state of its body has no known merge",
            "make each state `state (+) elements` with a known (+), or fold in order",
        )


# What the nest builder takes -------------------------------------------------------------------


def _cells(op: MapReducePost, loops: Sequence[Loop]) -> Findings:
    if not op.folded_results:
        return
    kept = {frozenset(op.spec(result).dims) for result in op.folded_results}
    if len(kept) > 1:
        listed = sorted(map(sorted, kept))
        yield f"its folds keep different dims, {listed}", "schedule them as one op each"
        return
    folded = _folded(op)
    first = next((i for i, loop in enumerate(loops) if loop.dim in folded), len(loops))
    for loop in loops[first:]:
        if loop.dim in folded:
            continue
        if loop.policy not in _COPIES:
            yield (
                f"a {loop.policy} loop over the kept dim {loop.dim} runs inside the fold",
                "run it outside the first folded loop, or make it unrolled or vector",
            )
        elif all(outer.dim != loop.dim for outer in loops[:first]):
            yield (
                f"the kept dim {loop.dim} has its first loop inside the fold",
                "tile it outside the first folded loop",
            )


def _division(_: MapReducePost, loops: Sequence[Loop]) -> Findings:
    for position, loop in enumerate(loops):
        outer = _outer(loops, position)
        if loop.policy in _COPIES and outer is not None and outer.step % loop.step:
            yield (
                f"copies of {loop.step} points do not fill the step {outer.step} of dim {loop.dim}",
                "copy a divisor of the step outside",
            )


def _lanes(_: MapReducePost, loops: Sequence[Loop]) -> Findings:
    vectors = [loop.dim for loop in loops if loop.policy == "vector"]
    if len(vectors) > 1:
        yield f"the dims {vectors} all run along lanes", "use one vector loop"


def _squares(op: MapReducePost, loops: Sequence[Loop]) -> Findings:
    places = [i for i, loop in enumerate(loops) if loop.policy == "transposed"]
    if not places:
        return
    lanes = next((loop for loop in loops if loop.policy == "vector"), None)
    if len(op.specs) != 1 or op.folded_results or op.spec(0).is_masked:
        yield (
            "a transposed loop stores more than squares",
            "transpose one pointwise unmasked result",
        )
    if lanes is None or places != [len(loops) - 1]:
        yield "a transposed loop is not the innermost", "end with it, after the vector loop"
        return
    outer = _outer(loops, places[0])
    if outer is None or outer.step > lanes.step:
        yield (
            f"a transposed loop over dim {loops[-1].dim} has more rows than the {lanes.step} lanes",
            "tile its dim outside by at most a vector",
        )


SCHEDULE_RULES = (
    _schedule_rule("OP38", "schedules keep the order of chains", _regrouping),
    Rule("OP39", "reductions by trees have known merges", _unmerged),
    _schedule_rule("OP40", "kept dims are tiled outside the fold", _cells),
    _schedule_rule("OP41", "copies divide the step outside", _division),
    _schedule_rule("OP42", "one loop runs along lanes", _lanes),
    _schedule_rule("OP43", "squares are transposed innermost", _squares),
)
