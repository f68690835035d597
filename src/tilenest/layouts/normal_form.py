"""Normal forms: maps of a common shape that are equal become equal nodes.

In: a layout map. Out: an equal one, defined at the same points, written with the plainest node that
says it: identity, permutation, projection, offset, strides, bits, formulas; constraints of a domain
in sorted order. What has no single formula keeps its node with normal parts. Equal normal forms
prove equality; different ones say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.layouts.engines import engines
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Scope, operands_of
from tilenest.layouts.index_expr import BitExpr, Const, DimRef, IndexExpr
from tilenest.layouts.kinds import check_kind
from tilenest.layouts.layout_leaves import (
    BitLinear,
    Expressions,
    MixedRadix,
    Translate,
    bit_widths,
    pack_bits,
)
from tilenest.layouts.layout_map import (
    Compose,
    Identity,
    LayoutMap,
    Permute,
    Piecewise,
    Product,
    Project,
)
from tilenest.layouts.linear_form import LinearForm
from tilenest.layouts.spaces import Constraint, IndexSet, Space


def normalise(layout: LayoutMap) -> LayoutMap:
    """An equal map in normal form."""
    check_kind(layout, LayoutMap, "what is normalised")
    if layout.domain.size == 0:
        return _of_no_point(layout.domain, layout.codomain)
    single = _from_single_formula(layout)
    if single is not None:
        return single
    found = _of_normal_parts(layout)
    # Parts that are no longer a choice may give the whole one formula.
    return _from_single_formula(found) or found


def _from_single_formula(layout: LayoutMap) -> LayoutMap | None:
    formulas = layout.formulas()
    return None if formulas is None or len(formulas) != 1 else from_formula(formulas[0])


def _of_normal_parts(layout: LayoutMap) -> LayoutMap:
    match layout:
        case Compose(first, second):
            return _joined_chain([*_chain(normalise(first)), *_chain(normalise(second))])
        case Product(left, right):
            return Product(normalise(left), normalise(right))
        case Piecewise():
            return _normal_choice(layout)
    return layout


def from_formula(formula: Formula) -> LayoutMap:
    """The plainest map that a formula says."""
    space, codomain = formula.domain.space, formula.codomain
    if space.size == 0:
        return _of_no_point(space, codomain)
    used = {formula.symbols[i] for result in formula.results for i in result.used_syms()}
    extra = tuple(sorted(used.difference(space.symbols, codomain.symbols)))
    target = tuple(sorted({*space.symbols, *codomain.symbols, *extra}))
    # Names that no result uses need a place as well; it is never read.
    scope = Scope(space, tuple(sorted({*target, *formula.symbols})))
    names = [name if name in target else None for name in scope.symbols]
    results = tuple(
        _renumbered(scope.respelled(result, formula.symbols), names, target, space.rank)
        for result in formula.results
    )
    plain = _plainest(space, codomain, results, extra)
    if not formula.domain.constraints:
        return plain
    return Piecewise(space, codomain, ((sorted_set(formula.domain), plain),))


def from_formulas(formulas: Sequence[Formula]) -> LayoutMap:
    """One map of pieces with disjoint domains."""
    if len(formulas) == 1:
        return from_formula(formulas[0])
    first = formulas[0]
    pieces = tuple((sorted_set(f.domain), _without_domain(f)) for f in formulas)
    return Piecewise(first.domain.space, first.codomain, pieces)


def sorted_set(index_set: IndexSet) -> IndexSet:
    """A set with simplified constraints, in order."""
    scope = Scope(index_set.space, index_set.symbols)
    simpler = scope.set_of(index_set.constraints)
    ordered = sorted(simpler.constraints, key=_constraint_order)
    return IndexSet(simpler.space, tuple(ordered), simpler.extra)


def _of_no_point(domain: Space, codomain: Space) -> LayoutMap:
    zeros = ((0,) * domain.rank,) * codomain.rank
    return Identity(domain) if domain == codomain else MixedRadix(domain, codomain, zeros)


def _without_domain(formula: Formula) -> LayoutMap:
    whole = IndexSet(formula.domain.space)
    return from_formula(Formula(whole, formula.codomain, formula.results, formula.symbols))


def _renumbered(
    expr: IndexExpr, names: Sequence[str | None], target: tuple[str, ...], rank: int
) -> IndexExpr:
    from_target = Scope(Space(), target)
    places = [Const(0) if name is None else from_target.symbol(name) for name in names]
    return expr.substitute([DimRef(i) for i in range(rank)], places)


def _plainest(
    domain: Space, codomain: Space, results: tuple[IndexExpr, ...], extra: tuple[str, ...]
) -> LayoutMap:
    selection = _selected(domain, codomain, results)
    if selection is not None:
        return selection
    linear = [result.linear() for result in results]
    rows = [form for form in linear if form is not None and not form.syms]
    if len(rows) == len(results):
        found = _linear_map(domain, codomain, rows)
        if found is not None:
            return found
    if any(_has_bits(result) for result in results) and not extra:
        bits = _bit_linear(domain, codomain, results)
        own = None if bits is None else bits.formulas()
        if bits is not None and own is not None:
            # Bits that were taken apart may add up without any exclusive or.
            (plainer,) = own
            is_plain = not any(map(_has_bits, plainer.results))
            return _plainest(domain, codomain, plainer.results, ()) if is_plain else bits
    return Expressions(domain, codomain, results, extra)


def _selected(
    domain: Space, codomain: Space, results: Sequence[IndexExpr]
) -> Identity | Permute | Project | None:
    """The map that only picks coordinates; one of extent 1 reads as 0 wherever it goes."""
    places: list[int] = []
    named = {result.position for result in results if isinstance(result, DimRef)}
    free = [i for i, axis in enumerate(domain.axes) if axis.extent == 1 and i not in named]
    for result, axis in zip(results, codomain.axes, strict=True):
        candidates = [result.position] if isinstance(result, DimRef) else []
        if result == Const(0):
            candidates = [i for i in free if i not in places]
        fitting = [i for i in candidates if domain.axes[i] == axis and i not in places]
        if not fitting:
            return None
        places.append(fitting[0])
    if places == list(range(domain.rank)):
        return Identity(domain)
    kind = Permute if len(places) == domain.rank else Project
    return kind(domain, tuple(places))


def _linear_map(
    domain: Space, codomain: Space, rows: Sequence[LinearForm]
) -> Translate | MixedRadix | None:
    offsets = tuple(row.const for row in rows)
    strides = tuple(
        tuple(dict(row.dims).get(axis, 0) for axis in range(domain.rank)) for row in rows
    )
    if not any(offsets):
        return MixedRadix(domain, codomain, strides)
    units = tuple(
        tuple(int(axis == row and domain.axes[axis].extent != 1) for axis in range(domain.rank))
        for row in range(len(rows))
    )
    if len(rows) == domain.rank and strides == units:
        return Translate(domain, codomain, offsets)
    return None


def _bit_linear(domain: Space, codomain: Space, results: tuple[IndexExpr, ...]) -> BitLinear | None:
    """Results that are exclusive ors of bits by their structure, and fit the codomain's bits."""
    if not domain.is_static or not codomain.is_static:
        return None
    found = engines().bits.bit_map(Formula(IndexSet(domain), codomain, results))
    if found is None:
        return None
    widths = bit_widths(codomain)
    ends = zip(found.intervals, widths, strict=True)
    if not all(low >= 0 and high >> width == 0 for (low, high), width in ends):
        return None
    origin = pack_bits(codomain, [r.evaluate((0,) * domain.rank) for r in results])
    bases: list[int] = []
    for axis, width in reversed(list(enumerate(bit_widths(domain)))):
        for bit in range(width):
            point = [(1 << bit) * (place == axis) for place in range(domain.rank)]
            bases.append(pack_bits(codomain, [r.evaluate(point) for r in results]) ^ origin)
    return BitLinear(domain, codomain, tuple(bases), origin)


def _chain(layout: LayoutMap) -> list[LayoutMap]:
    if isinstance(layout, Compose):
        return [*_chain(layout.first), *_chain(layout.second)]
    return [layout]


def _joined_chain(chain: Sequence[LayoutMap]) -> LayoutMap:
    """The steps joined from the left where two have one formula, nested to the right."""
    kept: list[LayoutMap] = []
    for step in chain:
        last = kept.pop() if kept else Identity(step.domain)
        kept += _joined_pair(last, step)
    result = kept.pop()
    while kept:
        result = Compose(kept.pop(), result)
    return result


def _joined_pair(first: LayoutMap, second: LayoutMap) -> list[LayoutMap]:
    if isinstance(first, Identity):
        return [second]
    if isinstance(second, Identity) and _stays_inside(first):
        return [first]
    single = _from_single_formula(Compose(first, second))
    return [first, second] if single is None else [single]


def _stays_inside(layout: LayoutMap) -> bool:
    """Whether no identity behind the map can leave a value out."""
    return isinstance(layout, Identity | Permute | Project)


def _normal_choice(layout: Piecewise) -> LayoutMap:
    """The same choice with normal parts, without what comes after a set of all points."""
    pieces: list[tuple[IndexSet, LayoutMap]] = []
    for index_set, chosen in layout.pieces:
        simpler = sorted_set(index_set)
        pieces.append((simpler, normalise(chosen)))
        if not simpler.constraints:
            break
    if len(pieces) == 1 and not pieces[0][0].constraints:
        return pieces[0][1]
    return Piecewise(layout.domain, layout.codomain, tuple(pieces))


def _constraint_order(constraint: Constraint) -> tuple[object, ...]:
    return constraint.is_equality, constraint.expression.order


def _has_bits(expr: IndexExpr) -> bool:
    return isinstance(expr, BitExpr) or any(map(_has_bits, operands_of(expr)))
