"""The loop nest of each op: which dim runs along vectors, what is unrolled, in which order.

In: a bufferized op, a target. Out: a `Sched` and why, with proofs of the atoms it leans on.

    pointwise       the dim along which stores are contiguous runs along vectors, several at once;
                    where the inputs are contiguous along another one, squares are transposed
    fold, kept v    accumulators of neighbouring cells in vectors; the folded loops run outside
                    the vector loop, so each cell folds in order
    fold, folded v  partial accumulators, one a lane and copy; only a tree policy with known merges
    classic         one point at a time, where nothing is contiguous or the order is a chain
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from tilenest.analysis import Reductions, Regrouping, atom_sites, offset_step
from tilenest.decisions import Decision
from tilenest.dialects import SCALAR_FUNCTIONS, Apply, AtomChoice, Loop, MapReducePost, Sched
from tilenest.ir import Analysis, Asker, Edit, EditKind, On, element_dtype, index
from tilenest.machine import Refusal, Selection, Target, select
from tilenest.records import record, replace

_COPIES = 4
_COPIES_OF_EXPENSIVE = 2
_SMALLEST_BYTES = 4
"""Narrower elements are widened in registers before anything is computed."""


@record
class NestPlan:
    """The loops of one op, and why these."""

    sched: Sched
    runner_up: str
    reason: str
    atoms: tuple[Selection, ...] = ()
    """what finishes the steps that the loops leave to atoms"""


class NestPlans(Analysis[On[MapReducePost, Target], NestPlan]):
    """The plan of one op, whatever schedule it has."""

    __slots__ = ()
    NAME = "nest plans"
    DEPENDS_ON: ClassVar = (Reductions,)

    @classmethod
    def compute(cls, subject: On[MapReducePost, Target], ask: Asker, /) -> NestPlan:
        return _plan(subject.place, subject.given, ask)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        # The proofs of atoms say where in the source they are needed, so that labels count.
        return edit.kind is not EditKind.ATTRIBUTE or edit.detail != "sched"


def plan_schedule(
    op: MapReducePost, target: Target, ask: Asker
) -> tuple[Sched, tuple[Decision, ...]]:
    """The schedule of one op, and the decisions that led to it."""
    plan = ask.get(NestPlans, On(op, target))
    output = op.outputs[0].name if op.outputs else None
    subject = f"nest that writes %{output}" if output else f"nest of {op.NAME}"
    own = Decision(subject, plan.sched.preset, plan.runner_up, plan.reason, op.location)
    return plan.sched, (own, *(selection.decision for selection in plan.atoms))


def _plan(op: MapReducePost, target: Target, ask: Asker) -> NestPlan:
    lanes = target.machine.lanes(_widest_bytes(op))
    folded = _folded_dims(op)
    if not folded:
        return _pointwise(op, lanes, target)
    steps = {d: _contiguity(op, d) for d in range(op.rank)}
    kept = [d for d in range(op.rank) if d not in folded]
    best_folded = max(sorted(folded), key=lambda d: (steps[d], d))
    best_kept = max(kept, key=lambda d: (steps[d], d)) if kept else None
    chain = _chain(op, ask)
    if best_kept is None or steps[best_folded] >= steps[best_kept]:
        split = None if chain else _split_fold(op, best_folded, folded, lanes, target)
        if split is not None:
            return split
    if best_kept is not None and op.extents[best_kept] >= 2:
        return _kept_vectors(op, best_kept, folded, lanes)
    sched = Sched(tuple(Loop(d, 1) for d in range(op.rank)), "classic")
    reason = f"only a folded dim is long, and {chain or 'no atom combines its lanes'}"
    return NestPlan(sched, "vectorized", reason)


def _with_atoms(
    op: MapReducePost, sched: Sched, target: Target
) -> tuple[Sched, tuple[Selection, ...]] | Refusal:
    """The schedule with an atom for each step it leaves to one, or the first that has none."""
    found: list[Selection] = []
    for site in atom_sites(op, sched.loops).values():
        selection = select(site, target)
        if isinstance(selection, Refusal):
            return selection
        found.append(selection)
    contracts = [selection.contract for selection in found]
    atoms = tuple(AtomChoice(contract.id, contract.version) for contract in contracts)
    return replace(sched, atoms=atoms), tuple(found)


def _pointwise(op: MapReducePost, lanes: int, target: Target) -> NestPlan:
    if all(extent == 1 for extent in op.extents):
        sched = Sched(tuple(Loop(d, 1) for d in range(op.rank)), "classic")
        return NestPlan(sched, "vectorized", "it is one point")
    dim = max(range(op.rank), key=lambda d: (_stores_along(op, d), _contiguity(op, d), d))
    reason = f"stores are contiguous along loop {dim}"
    if _stores_along(op, dim) < 2:
        reason = f"loop {dim} is the best of dims without contiguous stores"
    along = _transposing_dim(op, dim, lanes)
    if along is not None:
        found = _with_atoms(op, _transposed(op, dim, along, lanes), target)
        if not isinstance(found, Refusal):
            why = f"inputs are contiguous along loop {along}, stores along loop {dim}"
            return NestPlan(found[0], "vectorized", why, found[1])
        reason = f"{reason}; {found}"
    outer = [Loop(d, 1) for d in range(op.rank) if d != dim]
    sched = Sched((*outer, *_vectors(op, dim, lanes)), "vectorized")
    return NestPlan(sched, "classic", reason)


def _transposing_dim(op: MapReducePost, dim: int, lanes: int) -> int | None:
    """Another dim along which the inputs are contiguous, where along the stores' dim they jump."""
    is_plain = len(op.specs) == 1 and not op.spec(0).is_masked and op.extents[dim] > 1
    if not is_plain or _stores_along(op, dim) < 2 or _contiguity(op, dim) >= 0:
        return None
    others = [d for d in range(op.rank) if d != dim and op.extents[d] >= lanes]
    return next((d for d in others if _contiguity(op, d) > 0), None)


def _transposed(op: MapReducePost, dim: int, along: int, lanes: int) -> Sched:
    """Squares: read with lanes along `along`, stored with lanes along `dim`."""
    outer = [Loop(d, 1) for d in range(op.rank) if d not in (dim, along)]
    square = [
        Loop(dim, min(lanes, op.extents[dim])),
        Loop(along, lanes, "vector"),
        Loop(dim, 1, "transposed"),
    ]
    return Sched((*outer, *square), "transposed")


def _vectors(op: MapReducePost, dim: int, lanes: int) -> Iterator[Loop]:
    """A loop of whole vectors, several a step where the extent has as many."""
    copies = min(_copies(op), max(1, op.extents[dim] // lanes))
    if copies > 1:
        yield Loop(dim, copies * lanes)
    yield Loop(dim, lanes, "vector")


def _split_fold(
    op: MapReducePost, dim: int, folded: set[int], lanes: int, target: Target
) -> NestPlan | None:
    """Partial folds, where an atom may combine their lanes."""
    kept = [Loop(d, 1) for d in range(op.rank) if d not in folded]
    others = [Loop(d, 1) for d in sorted(folded) if d != dim]
    sched = Sched((*kept, *others, *_vectors(op, dim, lanes)), "reduction_vectorized")
    found = _with_atoms(op, sched, target)
    if isinstance(found, Refusal):
        return None
    reason = f"inputs are contiguous along folded loop {dim} and partial folds may be combined"
    return NestPlan(found[0], "vectorized", reason, found[1])


def _chain(op: MapReducePost, ask: Asker) -> str | None:
    """Why some fold may not be split over lanes."""
    lanes = [answer.permission(Regrouping.LANES) for answer in ask.get(Reductions, op)]
    return next((verdict.reason for verdict in lanes if not verdict.is_legal), None)


def _kept_vectors(op: MapReducePost, dim: int, folded: set[int], lanes: int) -> NestPlan:
    kept = [Loop(d, 1) for d in range(op.rank) if d not in folded and d != dim]
    inner = [Loop(d, 1) for d in sorted(folded)]
    outer, vector = [Loop(dim, lanes)], Loop(dim, lanes, "vector")
    copies = min(_copies(op), max(1, op.extents[dim] // lanes))
    if copies > 1:
        outer = [Loop(dim, copies * lanes)]
    sched = Sched((*kept, *outer, *inner, vector), "vectorized")
    reason = f"cells along kept loop {dim} are independent, each folds in order"
    return NestPlan(sched, "reduction_vectorized", reason)


def _folded_dims(op: MapReducePost) -> set[int]:
    dims: set[int] = set()
    for j in op.folded_results:
        dims |= set(range(op.rank)) - set(op.spec(j).dims)
    return dims


def _widest_bytes(op: MapReducePost) -> int:
    """Bytes of the widest element the op touches; coordinates don't count beside other elements."""
    dtypes = {element_dtype(v.type) for v in (*op.inputs, *op.seeds, *op.posts, *op.outputs)}
    sizes = [dtype.bytes for dtype in dtypes if dtype is not index]
    return max(_SMALLEST_BYTES, *sizes) if sizes else index.bytes


def _copies(op: MapReducePost) -> int:
    ops = op.fold_block.operations
    if any(isinstance(o, Apply) and SCALAR_FUNCTIONS[o.function].is_expensive for o in ops):
        return _COPIES_OF_EXPENSIVE
    return _COPIES


def _stores_along(op: MapReducePost, dim: int) -> int:
    """2 when every store is contiguous along the dim, 0 when one stays in place, else 1."""
    steps = [
        offset_step(value.type, op.access("output", j).map, dim, op.extents)
        for j, value in enumerate(op.outputs)
    ]
    if all(step == 1 for step in steps) and op.extents[dim] > 1:
        return 2
    return 0 if op.extents[dim] == 1 or 0 in steps else 1


def _contiguity(op: MapReducePost, dim: int) -> int:
    """How many inputs are contiguous along the dim, less those that jump; -100 for a unit dim."""
    if op.extents[dim] == 1:
        return -100
    score = 0
    for i, value in enumerate(op.inputs):
        step = offset_step(value.type, op.access("input", i).map, dim, op.extents)
        score += 1 if step == 1 else 0 if step == 0 else -1
    return score
