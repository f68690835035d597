"""Whether a view of a view shows each element of its base at one place only.

In: a `view.remap`. Out: an answer of the layout algebra. Where it does, what is stored through the
view has one meaning; where it does not, or nobody knows, stores through it are refused. A map in
which one dim after another follows from a plain sum is judged here; all else is asked of `layouts`,
for all values of the run-time extents and symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest import layouts
from tilenest.dialects import Remap
from tilenest.ir import Value, ViewType
from tilenest.layouts import (
    Answer,
    Constraint,
    DimRef,
    IndexExpr,
    IndexSet,
    Space,
    Sym,
    proven,
)


def shows_elements_once(op: Remap) -> Answer:
    """Whether no two points of the view are one element of its base."""
    sizes = [op.extent(axis) for axis in range(op.map.n_dims)]
    open_dims = {axis for axis, size in enumerate(sizes) if size not in (0, 1)}
    if 0 in sizes or _are_told_apart(op.map.results, open_dims):
        return proven("structure", "every dim follows from the coordinates")
    return layouts.is_injective(remap_layout(op))


def remap_layout(op: Remap) -> layouts.LayoutMap:
    """The map of a view of a view, on the points that have an element."""
    names = {value: f"v{place:03}" for place, value in enumerate(_values(op))}
    domain = Space.box(*(_named(op.extent(axis), names) for axis in range(op.map.n_dims)))
    below = op.view.type
    assert isinstance(below, ViewType)
    codomain = Space.box(
        *(f"w{axis:03}" if size is None else size for axis, size in enumerate(below.shape))
    )
    extents = {*domain.symbols, *codomain.symbols}
    extra = tuple(name for name in names.values() if name not in extents)
    dims = [DimRef(axis) for axis in range(op.map.n_dims)]
    used = [names[value] for value in op.symbols]

    def spelled(expressions: Sequence[IndexExpr], known: Sequence[str]) -> tuple[IndexExpr, ...]:
        symbols = [Sym(known.index(name)) for name in used]
        return tuple(expression.substitute(dims, symbols) for expression in expressions)

    known = sorted({*extents, *extra})
    layout = layouts.Expressions(domain, codomain, spelled(op.map.results, known), extra)
    if not op.conditions:
        return layout
    of_set = sorted({*domain.symbols, *used})
    constraints = tuple(Constraint(slack) for slack in spelled(op.conditions, of_set))
    further = tuple(sorted(set(used) - set(domain.symbols)))
    return layout.restrict(IndexSet(domain, constraints, further))


def _values(op: Remap) -> list[Value]:
    """The run-time values of the map and its extents, each once."""
    return list(dict.fromkeys([*op.symbols, *op.extents]))


def _named(size: int | Value, names: dict[Value, str]) -> int | str:
    return size if isinstance(size, int) else names[size]


def _are_told_apart(results: Sequence[IndexExpr], dims: set[int]) -> bool:
    """Whether each dim follows from a result in which it is the only unknown left."""
    unknown = set(dims)
    while unknown:
        told = {
            dim
            for result in results
            if (linear := result.linear()) is not None
            and len(own := [d for d, _ in linear.dims if d in unknown]) == 1
            for dim in own
        }
        if not told:
            return False
        unknown -= told
    return True
