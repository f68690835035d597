"""Accesses composed down to the storage.

In: touches of operations, and views. Out: one map from the points of a box to the coordinates of a
storage: view chains, origins and symbols are one formula an axis, over leaves (indices of nests,
extents of views, arguments) of which it is known where they lie, with the constraints under which
the access happens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest import layouts
from tilenest.analysis.clips import output_clips
from tilenest.analysis.index_ranges import ANY_INDEX, range_of
from tilenest.analysis.index_values import KnownLeaves, Leaves
from tilenest.dialects import Check, If, MapReducePost, Remap, chain_of
from tilenest.ir import LARGEST_EXTENT, EffectKind, Operation, OpResult, Touch, Value
from tilenest.layouts import (
    AffineMap,
    Constraint,
    DimRef,
    IndexExpr,
    IndexSet,
    Interval,
    Ranges,
    Space,
    Sym,
)
from tilenest.records import record


@record
class ComposedAccess:
    """One access, from the points of a box to the coordinates of a storage.

    `results`, `constraints` and `extents` are over the dims of the box and over `Sym(i)`, the
    leaves, which are named in `names` and lie in `ranges`. The access happens at the points that
    all constraints hold at, and where it `is_exact` at all of them.
    """

    touch: Touch[Value]
    storage: Value
    box: tuple[int, ...]
    results: tuple[IndexExpr, ...]
    extents: tuple[IndexExpr, ...]
    constraints: tuple[Constraint, ...]
    ranges: Ranges
    leaves: KnownLeaves
    is_exact: bool

    @property
    def names(self) -> tuple[str, ...]:
        return self.leaves.names

    @property
    def events(self) -> IndexSet:
        """The points at which it happens."""
        return IndexSet(Space.box(*self.box, prefix="d"), self.constraints, self.names)

    @property
    def layout(self) -> layouts.Expressions | None:
        """The map, where the extents of the storage are numbers."""
        sizes = [e.evaluate(()) for e in self.extents if not e.sym_mask]
        if len(sizes) != len(self.extents):
            return None
        domain, codomain = Space.box(*self.box, prefix="d"), Space.box(*sizes, prefix="at")
        return layouts.Expressions(domain, codomain, self.results, self.names)


def compose(op: Operation, touch: Touch[Value], *, thoroughly: bool = False) -> ComposedAccess:
    """An access down to its storage; `thoroughly` with what conditions and checks say."""
    leaves = Leaves()
    read = leaves.coordinate if _are_origins(touch) else leaves.formula
    symbols = [read(value) for value in touch.symbols]
    dims = [DimRef(place) for place in range(len(touch.extents))]
    results = tuple(r.substitute(dims, symbols) for r in touch.map.results)
    for dim, end in touch.clips:
        leaves.hold(Constraint(leaves.formula(end) - DimRef(dim) - 1))
    if thoroughly:
        _conditions(op, leaves)
        _clips(op, touch, symbols, leaves)
    return _composed(touch, results, leaves, is_exact=thoroughly and not touch.is_masked)


def _are_origins(touch: Touch[Value]) -> bool:
    """Whether each symbol is no more than added to a coordinate, of storage no larger than arrays
    are."""
    shape: tuple[int | None, ...] = getattr(touch.memory.type, "shape", ())
    is_view = bool(chain_of(touch.memory))
    if any(is_view if extent is None else extent > LARGEST_EXTENT for extent in shape):
        return False
    linear = [result.linear() for result in touch.map.results]
    return all(
        found is not None and [step for _, step in found.syms] in ([], [1]) for found in linear
    )


def compose_view(view: Value) -> ComposedAccess:
    """All elements that a view shows."""
    shape: tuple[int | None, ...] = getattr(view.type, "shape", ())
    box = tuple(_most(view, axis) if size is None else size for axis, size in enumerate(shape))
    everything = AffineMap.identity(len(box))
    touch = Touch("view", 0, view, EffectKind.READ, everything, "zero", box)
    return _composed(touch, everything.results, Leaves(), is_exact=False)


def _most(view: Value, axis: int) -> int:
    """The largest that an extent known at run time may be: a view may show more than it holds."""
    remap = view.owner if isinstance(view, OpResult) else None
    size = remap.extent(axis) if isinstance(remap, Remap) else None
    if not isinstance(size, Value):
        return LARGEST_EXTENT
    return max(0, (range_of(size) or ANY_INDEX)[1])


def _composed(
    touch: Touch[Value], results: tuple[IndexExpr, ...], leaves: Leaves, *, is_exact: bool
) -> ComposedAccess:
    storage = touch.memory
    for remap in chain_of(storage):
        below = [leaves.formula(value) for value in remap.symbols]
        leaves.hold(*(Constraint(c.substitute(results, below)) for c in remap.conditions))
        leaves.hold(*inside(results, [leaves.extent(storage, a) for a in range(len(results))]))
        results = tuple(r.substitute(results, below) for r in remap.map.results)
        storage = remap.view
    extents = tuple(leaves.extent(storage, axis) for axis in range(len(results)))
    known = leaves.close()
    ranges: dict[DimRef | Sym, Interval] = {
        DimRef(dim): (0, max(0, extent - 1)) for dim, extent in enumerate(touch.extents)
    }
    ranges.update(known.ranges)
    return ComposedAccess(
        touch,
        storage,
        touch.extents,
        results,
        extents,
        known.constraints,
        ranges,
        known,
        is_exact and known.is_exact,
    )


def inside(at: Sequence[IndexExpr], extents: Sequence[IndexExpr]) -> list[Constraint]:
    """That coordinates lie within extents."""
    pairs = zip(at, extents, strict=True)
    return [c for x, end in pairs for c in (Constraint(x), Constraint(end - 1 - x))]


def _conditions(op: Operation, leaves: Leaves) -> None:
    """What branches around an operation are taken for, which instances of the nests there are, and
    what was checked before it."""
    inner: Operation | None = op
    while inner is not None:
        before = inner.previous
        while before is not None:
            if isinstance(before, Check) and before.condition is None:
                first, extent = leaves.formula(before.first), leaves.formula(before.extent)
                leaves.hold(Constraint(first), Constraint(extent - first - before.count))
            before = before.previous
        block, inner = inner.parent, inner.parent_op
        if isinstance(inner, If):
            leaves.when(inner.condition, block is inner.regions[0].block)
        elif inner is not None and block is not None:
            for index in block.arguments[: len(inner.inductions())]:
                leaves.formula(index)


def _clips(
    op: Operation, touch: Touch[Value], symbols: Sequence[IndexExpr], leaves: Leaves
) -> None:
    """Work runs only where its output keeps something."""
    if isinstance(op, MapReducePost) and touch.group == "input":
        dims = [DimRef(place) for place in range(op.rank)]
        for clip in output_clips(op):
            at = dims[clip.dim] + clip.offset.substitute(dims, symbols)
            leaves.hold(*inside([at], [leaves.extent(op.outputs[0], clip.axis)]))
