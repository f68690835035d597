"""What is proven of where accesses go.

In: operations of any form before Machine, with their accesses. Out: whether each axis stays in
range, whether coordinates are equal, the elements reached, and what a function relies on. Intervals
and the ends of nests answer first, and integer sets what they leave open, where a rule needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

from tilenest.analysis.composed_accesses import ComposedAccess, compose, inside
from tilenest.analysis.index_values import Leaves
from tilenest.analysis.structure import CONTRACTS
from tilenest.dialects import Access
from tilenest.errors import ShapeError
from tilenest.ir import (
    Analysis,
    Asker,
    BufType,
    Edit,
    EditKind,
    Function,
    Operation,
    TileType,
    Touch,
    Value,
)
from tilenest.layouts import (
    AffineMap,
    Answer,
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    IndexSet,
    Interval,
    Ranges,
    Space,
    Sym,
    bounds,
    image,
    implies,
    preimage,
    proven,
    simplify,
    unknown,
)
from tilenest.records import record, replace

_INTERVALS = "intervals"
_BUDGET = 1 << 10
"""Points tried where integer sets do not decide: a rule has to be quick."""


@record
class Obligation:
    """Something a program relies on: the access and axis it is about, and whether it is so."""

    operation: Operation
    touch: Touch[Value]
    axis: int
    answer: Answer

    def __str__(self) -> str:
        what = f"{self.touch.group} {self.touch.position}"
        return f"{what} stays in axis {self.axis}: {self.answer}"


def in_range(op: Operation, touch: Touch[Value]) -> tuple[Answer, ...]:
    """For each axis whether an access stays in the storage wherever it happens, and up to the
    extents of its box, since a nest of whole blocks runs on behind a bound."""
    touch = replace(touch, clips=())
    if 0 in touch.extents:
        return tuple(proven(_INTERVALS, "nothing happens") for _ in touch.map.results)
    shape: tuple[int | None, ...] = getattr(touch.memory.type, "shape", ())
    at_once = _in_box(touch.map, touch.extents, shape)
    if at_once is not None:
        return at_once
    try:
        access = compose(op, touch)
        found = [_by_intervals(access, axis) for axis in range(len(access.results))]
        if None in found:
            access = compose(op, touch, thoroughly=True)
        return tuple(answer or _by_sets(access, axis) for axis, answer in enumerate(found))
    except ShapeError as error:
        return tuple(unknown(_INTERVALS, error.message) for _ in touch.map.results)


def _in_box(
    map_: AffineMap, box: tuple[int, ...], shape: tuple[int | None, ...]
) -> tuple[Answer, ...] | None:
    """Proofs from the extents of the box alone; None where one axis needs more."""
    ranges: Ranges = {DimRef(place): (0, extent - 1) for place, extent in enumerate(box)}
    answers: list[Answer] = []
    for result, extent in zip(map_.results, shape, strict=True):
        found = bounds(result, ranges)
        if found is None or extent is None or not _lies_in(found, extent):
            return None
        answers.append(proven(_INTERVALS, f"{result} lies in {found[0]}..{found[1]}"))
    return tuple(answers)


def _by_intervals(access: ComposedAccess, axis: int) -> Answer | None:
    at, extent, ranges = access.results[axis], access.extents[axis], access.ranges
    known = access.leaves
    if known.is_never_negative(at, ranges) and known.is_never_negative(extent - 1 - at, ranges):
        return proven(_INTERVALS, f"{at} lies between 0 and {extent}")
    return None


def _by_sets(access: ComposedAccess, axis: int) -> Answer:
    at, extent = access.results[axis], access.extents[axis]
    answer = _stays_inside(access.box, at, extent, access.constraints, access.names)
    if answer.is_disproven and not access.is_exact:
        return unknown(answer.engine, f"{answer.reason}, if it happens there")
    return answer


# Formulas over a box, and no place in a program: with the same ones the answer is the same, and
# integer sets take long.
@lru_cache(maxsize=2048)
def _stays_inside(
    box: tuple[int, ...],
    at: IndexExpr,
    extent: IndexExpr,
    constraints: tuple[Constraint, ...],
    names: tuple[str, ...],
) -> Answer:
    space = Space.box(*box, prefix="d")
    wanted = IndexSet(space, tuple(inside([at], [extent])), names)
    return implies(IndexSet(space, constraints, names), wanted, _BUDGET)


def is_inside(
    access: Access, memory: Value, ranges: Ranges, symbols: Sequence[Value] = ()
) -> tuple[bool, ...]:
    """For each axis whether an access of work in the making provably stays within it, by what costs
    little: intervals, and the ends of nests where it is said what the symbols are."""
    shape: tuple[int | None, ...] = getattr(memory.type, "shape", ())
    known = [
        extent is not None and _lies_in(bounds(result, ranges), extent)
        for result, extent in zip(access.map.results, shape, strict=True)
    ]
    open_axes = [axis for axis, is_known in enumerate(known) if not is_known]
    uses_symbols = any(access.map.results[axis].sym_mask for axis in open_axes)
    if uses_symbols and len(symbols) >= access.map.n_syms:
        try:
            for axis in _within_nests(access.map, memory, ranges, symbols, open_axes):
                known[axis] = True
        except ShapeError:
            # A number on the way leaves 64 bits: the axis stays open.
            pass
    return tuple(known)


def _within_nests(
    map_: AffineMap,
    memory: Value,
    ranges: Ranges,
    symbols: Sequence[Value],
    open_axes: Sequence[int],
) -> Iterator[int]:
    """The axes that the ends of nests keep an access within."""
    used = {place for axis in open_axes for place in map_.results[axis].used_syms()}
    leaves = Leaves()
    formulas = [
        leaves.formula(value) if place in used else Const(0) for place, value in enumerate(symbols)
    ]
    extents = [leaves.extent(memory, axis) for axis in open_axes]
    facts = leaves.close()
    here: dict[DimRef | Sym, Interval] = dict(facts.ranges)
    here.update((key, found) for key, found in ranges.items() if isinstance(key, DimRef))
    dims = [DimRef(place) for place in range(map_.n_dims)]
    for axis, extent in zip(open_axes, extents, strict=True):
        at = map_.results[axis].substitute(dims, formulas)
        below = extent - 1 - at
        if facts.is_never_negative(at, here) and facts.is_never_negative(below, here):
            yield axis


def _lies_in(found: Interval | None, extent: int) -> bool:
    return found is not None and found[0] >= 0 and found[1] < extent


def is_same_place(a: Sequence[IndexExpr], b: Sequence[IndexExpr], extents: Sequence[int]) -> bool:
    """Whether two lists of coordinates are equal everywhere in a box, by what costs little."""
    ranges: Ranges = {DimRef(place): (0, max(0, n - 1)) for place, n in enumerate(extents)}
    return len(a) == len(b) and all(
        x == y or simplify(x, ranges) == simplify(y, ranges) or simplify(x - y, ranges) == Const(0)
        for x, y in zip(a, b, strict=True)
    )


def reached(access: ComposedAccess) -> tuple[IndexSet, ...] | None:
    """The elements of the storage that an access reaches; None where no engine can say."""
    layout = access.layout
    return None if layout is None else image(layout.restrict(access.events))[0]


def reaching(access: ComposedAccess, wanted: IndexSet) -> tuple[IndexSet, ...] | None:
    """The points at which an access reaches a set of elements; None where no engine can say."""
    layout = access.layout
    return None if layout is None else preimage(layout.restrict(access.events), wanted)[0]


@record
class LayoutFacts(Analysis[Function, "LayoutFacts"]):
    """Every proof that the accesses of a function rely on, with its answer, in program order."""

    NAME: ClassVar[str] = "layout facts"

    obligations: tuple[Obligation, ...]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> LayoutFacts:
        return cls(
            tuple(
                Obligation(op, touch, axis, answer)
                for op in subject.walk()
                for touch in op.accesses()
                if _needs_proof(touch)
                for axis, answer in enumerate(in_range(op, touch))
            )
        )

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        # The dims of a result are among its specs.
        is_apart = edit.detail in CONTRACTS and edit.detail != "specs"
        return edit.kind not in (EditKind.LABEL, EditKind.FUNCTION) and not is_apart


def _needs_proof(touch: Touch[Value]) -> bool:
    """Whether an access claims to stay in range, or has to: a caller's promise is about the
    caller's arrays, and no promise about storage of the compiler."""
    bounds = touch.bounds
    is_ours = isinstance(touch.memory.type, BufType | TileType)
    return bounds == "proven" or (is_ours and bounds != "zero")
