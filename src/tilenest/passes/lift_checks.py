"""Accesses that check their bounds: the check becomes an op of its own, the access is bounded.

In: a load, store or update with bounds 'check'. Out: the same access with bounds 'zero', which need
not stay behind its checks, and an `address.check` in front for each axis that it may leave, of its
view and of the views below: a window is inside when its ends are. Only where that does not say it
(elements are masked or padding, a map is no plain sum) the window is searched for the first element
that is asked for and lies outside.

    tile.load %v[%o] {bounds = 'check'}     becomes   address.check %o, %extent {count = 64}
                                                      tile.load %v[%o]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilenest.dialects import (
    Access,
    Atomic,
    Check,
    If,
    Load,
    ReductionContract,
    Store,
    Yield,
    law_of,
    view_name,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    Region,
    Rewriter,
    TileType,
    Value,
)
from tilenest.layouts import Const, DimRef, IndexExpr, Sym
from tilenest.passes.compose import Composer
from tilenest.passes.index_ops import apply_scalar, emit_index, index_number
from tilenest.passes.limit_origins import limit_origins_of
from tilenest.passes.pieces import FoldedResult, insert_fold
from tilenest.passes.window_steps import Edge, Step, limits_of, reach_of, steps_of
from tilenest.records import record

ElementOf = Callable[[Composer, Value], Value]
"""The element of a mask at a point of the window."""


def lift_checks(
    op: Load | Store | Atomic, extents: Sequence[int], mask_element: ElementOf, rewriter: Rewriter
) -> None:
    """Put the checks of an access over a window of these extents (none: one element) before it."""
    if op.bounds != "check":
        return
    rewriter.set_attribute(op, "bounds", "zero")
    asked = list(op.origins)
    if op.mask is not None:
        # What is masked may be far outside, and is not asked for.
        limit_origins_of(op, rewriter)
    counts = tuple(extents) or (1,) * len(asked)
    if 0 in counts:
        return
    composer = Composer(counts)
    composer.location(op.location)
    window = _Window(op, rewriter.builder_before(op), composer)
    places, near = (
        [composer.symbol(origin) + DimRef(d) for d, origin in enumerate(origins)]
        for origins in (asked, op.origins)
    )
    steps = steps_of(composer, op, places, near, window.builder)
    has_masked_elements = op.mask is not None and isinstance(op.mask.type, TileType)
    if prod(counts) == 1 and not has_masked_elements:
        _check_point(window, steps, [Const(0)] * len(counts), [], op.mask)
        return
    rest = steps if has_masked_elements else _check_ends(window, steps)
    if rest:
        _insert_search(window, rest, mask_element)


@record
class _Window:
    """An access, where its checks go, and the space of its points."""

    op: Load | Store | Atomic
    builder: Builder
    composer: Composer

    def emit(self, expr: IndexExpr) -> Value:
        """What does not vary over the window."""
        return emit_index(self.builder, expr, self.composer.symbols)

    def check(
        self, step: Step, edge: Edge, first: Value, count: int, condition: Value | None
    ) -> None:
        assert edge.extent is not None, "conditions are of padding"
        self.builder.insert(
            Check(
                first=first,
                extent=edge.extent,
                condition=condition,
                access=f"{self.op.ACTION} of {view_name(step.view)}",
                axis=edge.axis,
                count=count,
                site=self.op.site,
                depth=step.depth,
            )
        )


def _check_ends(window: _Window, steps: Sequence[Step]) -> Sequence[Step]:
    """Check whole windows of one step after the other; gives the steps from that on which is not
    inside when the ends of the window are."""
    for place, step in enumerate(steps):
        reaches = [reach_of(window.composer, edge.at) for edge in step.edges]
        if step.is_padded or None in reaches:
            return steps[place:]
        for edge, reach in zip(step.edges, reaches, strict=True):
            assert reach is not None
            ends = [reach.low] if reach.is_dense else [reach.low, reach.high]
            for end in ends:
                count = reach.span + 1 if reach.is_dense else 1
                window.check(step, edge, window.emit(end), count, window.op.mask)
    return []


def _check_point(
    window: _Window,
    steps: Sequence[Step],
    point: Sequence[IndexExpr],
    symbols: Sequence[Value],
    condition: Value | None,
) -> None:
    """Check one point of the window, over further symbols, where it is asked for."""
    builder, own = window.builder, window.composer.symbols
    values = [*own, *symbols]
    known = [Sym(place) for place in range(len(own))]
    for step in steps:
        for edge in step.edges:
            place = emit_index(builder, edge.at.substitute(point, known), values)
            if not step.is_padded:
                window.check(step, edge, place, 1, condition)
                continue
            is_inside = _compute_inside(builder, edge, place, 0)
            condition = is_inside if condition is None else _both(builder, condition, is_inside)


# Searches --------------------------------------------------------------------------------------


def _insert_search(window: _Window, steps: Sequence[Step], mask_element: ElementOf) -> None:
    """If the window may leave a step: the first element that does and is asked for."""
    condition = _compute_window_inside(window, steps)
    if condition is None:
        _check_element(window, steps, _first_outside(window, steps, mask_element))
        return
    builder = window.builder
    nothing, search = Block([]), Block([])
    regions = [Region([nothing]), Region([search])]
    builder.insert(If(condition=condition, regions=regions))
    with builder.at_end(nothing):
        builder.insert(Yield(values=[]))
    with builder.at_end(search):
        _check_element(window, steps, _first_outside(window, steps, mask_element))
        builder.insert(Yield(values=[]))


def _compute_window_inside(window: _Window, steps: Sequence[Step]) -> Value | None:
    """Whether the ends of the window are inside everywhere; None where nothing tells the ends."""
    builder = window.builder
    together: Value | None = None
    for edge in (edge for step in steps for edge in step.edges):
        reach = reach_of(window.composer, edge.at)
        ends = None if reach is not None else limits_of(window.composer, edge.at)
        if reach is not None:
            parts = [_compute_inside(builder, edge, window.emit(reach.low), reach.span)]
        elif ends is not None:
            parts = [_compute_inside(builder, edge, window.emit(end), 0) for end in ends]
        else:
            return None
        for part in parts:
            together = part if together is None else _both(builder, together, part)
    return together


def _check_element(window: _Window, steps: Sequence[Step], number: Value) -> None:
    """Check the element of this number, if the window has it."""
    builder, counts = window.builder, window.composer.extents
    stride = prod(counts)
    is_there = apply_scalar(builder, "lt", number, index_number(builder, stride), result_type=BOOL)
    digits: list[Value] = []
    for count in counts:
        stride //= count
        place = apply_scalar(builder, "floordiv", number, index_number(builder, stride))
        digits.append(apply_scalar(builder, "mod", place, index_number(builder, count)))
    first = len(window.composer.symbols)
    point = [Sym(first + d) for d in range(len(digits))]
    _check_point(window, steps, point, digits, is_there)


def _first_outside(window: _Window, steps: Sequence[Step], mask_element: ElementOf) -> Value:
    """Its number in the order of the window, or how many elements the window has."""
    composer, mask = window.composer, window.op.mask
    asked = None if mask is None else mask_element(composer, mask)
    is_fault = _compute_outside(composer, steps, asked)
    number: IndexExpr = Const(0)
    for d, count in enumerate(composer.extents):
        number = number * count + DimRef(d)
    size = prod(composer.extents)
    here = composer.index(composer.simplified(number))
    candidate = composer.apply("where", [is_fault, here, composer.constant(size, INDEX)], INDEX)
    state = composer.state(INDEX)
    least = composer.apply("minimum", [state, candidate], INDEX)
    seed = index_number(window.builder, size)
    contract = ReductionContract(laws=(law_of("minimum", INDEX.dtype),))
    result = FoldedResult((), contract, seed, Access(composer.map(())))
    return insert_fold(window.builder, composer, [least], [result], [INDEX]).results[0]


def _compute_outside(composer: Composer, steps: Sequence[Step], asked: Value | None) -> Value:
    """Whether a point that is asked for leaves a step before it is padding."""
    found: Value | None = None
    for step in steps:
        outside = _any(composer, [p for edge in step.edges for p in _leaves(composer, edge)])
        if step.is_padded:
            stays = composer.apply("not", [outside], BOOL)
            asked = stays if asked is None else composer.apply("and", [asked, stays], BOOL)
            continue
        here = outside if asked is None else composer.apply("and", [asked, outside], BOOL)
        found = here if found is None else composer.apply("or", [found, here], BOOL)
    assert found is not None, "padding alone is no fault"
    return found


def _leaves(composer: Composer, edge: Edge) -> list[Value]:
    at = composer.index(composer.simplified(edge.at))
    below = composer.apply("lt", [at, composer.constant(0, INDEX)], BOOL)
    if edge.extent is None:
        return [below]
    return [below, composer.apply("ge", [at, composer.element(edge.extent, ())], BOOL)]


def _any(composer: Composer, parts: Sequence[Value]) -> Value:
    together = parts[0]
    for part in parts[1:]:
        together = composer.apply("or", [together, part], BOOL)
    return together


def _compute_inside(builder: Builder, edge: Edge, low: Value, span: int) -> Value:
    """Whether all from `low` to `span` more are inside, without wrapping."""
    inside = apply_scalar(builder, "ge", low, index_number(builder, 0), result_type=BOOL)
    if edge.extent is None:
        return inside
    latest = apply_scalar(builder, "sub", edge.extent, index_number(builder, span + 1))
    return _both(builder, inside, apply_scalar(builder, "le", low, latest, result_type=BOOL))


def _both(builder: Builder, a: Value, b: Value) -> Value:
    return apply_scalar(builder, "and", a, b, result_type=BOOL)
