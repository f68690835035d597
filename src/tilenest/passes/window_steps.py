"""What an access over a window may leave: its view, and every view below it, axis by axis.

In: a load, store or update, and the extents of its window (1 along each axis for one element).
Out: the steps down to the storage, each with the edges that are not proven to hold the window, as
formulas over its points. What leaves a step that is padded is inside, as padding of the view above.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import Ends, ends_of, is_inside, stays_inside
from tilenest.dialects import Access, Atomic, Extent, Load, Store
from tilenest.ir import INDEX, Builder, Value
from tilenest.layouts import Const, IndexExpr, Sym
from tilenest.passes.compose import Composer
from tilenest.passes.view_chains import levels_of
from tilenest.records import record


@record
class Edge:
    """An axis with the coordinate there, which is inside from 0 to below the extent. A condition
    of a padded view has no extent."""

    axis: int
    at: IndexExpr
    extent: Value | None


@record
class Step:
    """A view, `depth` views below the one that is accessed, and the edges that may be left."""

    view: Value
    depth: int
    edges: tuple[Edge, ...]
    is_padded: bool = False


def steps_of(
    composer: Composer,
    op: Load | Store | Atomic,
    asked: Sequence[IndexExpr],
    near: Sequence[IndexExpr],
    builder: Builder,
) -> list[Step]:
    """The steps that may be left. The coordinates are what is `asked` for in the view itself; on
    the way down they start `near` by, which is the same wherever the view is not left."""
    steps = [Step(op.view, 0, _edges(composer, op.view, asked, (), builder))]
    for depth, level in enumerate(levels_of(composer, op.view, near), 1):
        remap = level.remap
        kept = [axis for axis, is_kept in enumerate(stays_inside(remap)) if is_kept]
        edges = _edges(composer, remap.view, level.below, kept, builder)
        edges += tuple(Edge(0, slack, None) for slack in level.conditions)
        steps.append(Step(remap.view, depth, edges, remap.fill is not None))
    open_steps = [step for step in steps if step.edges]
    while open_steps and open_steps[-1].is_padded:
        open_steps.pop()
    return open_steps


def _edges(
    composer: Composer,
    view: Value,
    places: Sequence[IndexExpr],
    kept: Sequence[int],
    builder: Builder,
) -> tuple[Edge, ...]:
    known = is_inside(Access(composer.map(places)), view, composer.ranges, composer.symbols)
    return tuple(
        Edge(axis, place, _ask_extent(builder, view, axis))
        for axis, (place, is_proven) in enumerate(zip(places, known, strict=True))
        if not is_proven and axis not in kept
    )


def _ask_extent(builder: Builder, view: Value, axis: int) -> Value:
    return builder.insert(Extent(view=view, axis=axis, result_types=[INDEX])).result


@record
class Reach:
    """The coordinates of a window along an axis: two of them are its ends, and where it is dense it
    has all between."""

    low: IndexExpr
    high: IndexExpr
    span: int
    is_dense: bool


def reach_of(composer: Composer, at: IndexExpr) -> Reach | None:
    """None where the ends do not follow from those of the window."""
    steps = [at.coefficient(d) if count > 1 else 0 for d, count in enumerate(composer.extents)]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps):
        return None
    lengths = [abs(step) * (count - 1) for step, count in zip(known, composer.extents, strict=True)]
    symbols = [Sym(place) for place in range(len(composer.symbols))]
    first = [
        Const(0) if s >= 0 else Const(n - 1) for s, n in zip(known, composer.extents, strict=True)
    ]
    low = composer.simplified(at.substitute(first, symbols))
    span = sum(lengths)
    is_dense = span == max(lengths, default=0) and all(abs(step) <= 1 for step in known)
    return Reach(low, low + span, span, is_dense)


def limits_of(composer: Composer, at: IndexExpr) -> Ends | None:
    """Formulas that no coordinate of the window is below or above; None where none are known."""
    ranges = composer.ranges
    spans = {d: (Const(0), Const(n - 1)) for d, n in enumerate(composer.extents)}
    ends = ends_of(at, spans, ranges)
    return None if ends is None else (composer.simplified(ends[0]), composer.simplified(ends[1]))
