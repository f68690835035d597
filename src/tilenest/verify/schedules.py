"""Rules `OP40` to `OP44`: what the nest builder takes.

In: scheduled map_reduce_posts that `OP17` to `OP21` accept. Out: findings about the order and the
sizes of loops. What a schedule may do to the contributions of a cell is `TN09b` and `TN09c`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from tilenest.dialects import Loop, MapReducePost, Sched
from tilenest.ir import MOST_LANES, Rule
from tilenest.verify.expectations import Findings, op_rule

ScheduleCheck = Callable[[MapReducePost, Sequence[Loop]], Findings]
COPIES = ("unrolled", "vector")
MOST_BODIES = 4096
"""Code does not grow with tiles; this is far more than registers hold."""


def _schedule_rule(id_: str, title: str, check: ScheduleCheck) -> Rule:
    """A rule about every schedule."""

    def findings(op: MapReducePost) -> Findings:
        if isinstance(op.sched, Sched):
            yield from check(op, op.sched.loops)

    return op_rule(id_, title, MapReducePost, findings)


def folded_dims(op: MapReducePost) -> frozenset[int]:
    """Loop dims that some folded result drops."""
    kept = [op.spec(result).dims for result in op.folded_results]
    return frozenset(dim for dims in kept for dim in range(op.rank) if dim not in dims)


def outer_loop(loops: Sequence[Loop], position: int) -> Loop | None:
    """The next loop of the same dim outside."""
    dim = loops[position].dim
    return next((loop for loop in reversed(loops[:position]) if loop.dim == dim), None)


# What the nest builder takes -------------------------------------------------------------------


def _cells(op: MapReducePost, loops: Sequence[Loop]) -> Findings:
    if not op.folded_results:
        return
    kept = {frozenset(op.spec(result).dims) for result in op.folded_results}
    if len(kept) > 1:
        listed = sorted(map(sorted, kept))
        yield f"its folds keep different dims, {listed}", "schedule them as one op each"
        return
    folded = folded_dims(op)
    first = next((i for i, loop in enumerate(loops) if loop.dim in folded), len(loops))
    for loop in loops[first:]:
        if loop.dim in folded:
            continue
        if loop.policy not in COPIES:
            yield (
                f"a {loop.policy} loop over the kept dim {loop.dim} runs inside the fold",
                "run it outside the first folded loop, or make it unrolled or vector",
            )
        elif all(outer.dim != loop.dim for outer in loops[:first]):
            yield (
                f"the kept dim {loop.dim} has its first loop inside the fold",
                "tile it outside the first folded loop",
            )


def _division(op: MapReducePost, loops: Sequence[Loop]) -> Findings:
    kept = frozenset(range(op.rank)) - folded_dims(op)
    for loop, outer in overhanging(loops):
        if loop.dim in kept:
            yield (
                f"copies of {loop.step} points do not fill the step {outer.step} of dim {loop.dim}",
                "copy a divisor of the step outside",
            )


def overhanging(loops: Sequence[Loop]) -> Iterator[tuple[Loop, Loop]]:
    """Copies that reach over the step outside, and the loop with that step."""
    for position, loop in enumerate(loops):
        outer = outer_loop(loops, position)
        if loop.policy in COPIES and outer is not None and outer.step % loop.step:
            yield loop, outer


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
    outer = outer_loop(loops, places[0])
    if outer is None or outer.step > lanes.step:
        yield (
            f"a transposed loop over dim {loops[-1].dim} has more rows than the {lanes.step} lanes",
            "tile its dim outside by at most a vector",
        )


def _size(_: MapReducePost, loops: Sequence[Loop]) -> Findings:
    for loop in loops:
        if loop.policy == "vector" and loop.step > MOST_LANES:
            yield f"a vector loop has {loop.step} lanes", f"use at most {MOST_LANES}"
    bodies = prod(_times_written(loops, position) for position in range(len(loops)))
    if bodies > MOST_BODIES:
        yield f"its body is written out {bodies} times", f"unroll to at most {MOST_BODIES} copies"


def _times_written(loops: Sequence[Loop], position: int) -> int:
    """How often a loop makes what is inside it stand in the code: once a copy, or once for every
    step in which the rest of its dim is done."""
    loop, outer = loops[position], outer_loop(loops, position)
    if loop.policy in COPIES and outer is not None:
        return max(1, outer.step // loop.step)
    return len({later.step for later in loops[position:] if later.dim == loop.dim})


_CHECKS: tuple[tuple[str, str, ScheduleCheck], ...] = (
    ("OP40", "kept dims are tiled outside the fold", _cells),
    ("OP41", "copies divide the step outside", _division),
    ("OP42", "one loop runs along lanes", _lanes),
    ("OP43", "squares are transposed innermost", _squares),
    ("OP44", "a nest is written out a bounded number of times", _size),
)
SCHEDULE_RULES = tuple(_schedule_rule(*row) for row in _CHECKS)
