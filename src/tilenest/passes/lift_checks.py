"""Accesses that check their bounds: the check becomes an op of its own, the access is bounded.

In: a load or store with bounds 'check'. Out: the same access with bounds 'zero', which need not
stay behind its check, and an `address.check` in front for each axis that it may leave: a window
is inside when its first and its last coordinate are. Only a window that is not, and has a mask of
elements, is searched for the first one that is asked for and lies outside.

    tile.load %v[%o] {bounds = 'check'}     becomes   address.check %o, %extent {count = 64}
                                                      tile.load %v[%o]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilenest.analysis import effects_of, is_inside
from tilenest.dialects import (
    Access,
    Apply,
    Atomic,
    Check,
    Constant,
    Extent,
    If,
    Load,
    Reduce,
    ReductionContract,
    Serial,
    Store,
    Yield,
    base_of,
    law_of,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    EffectKind,
    Operation,
    Region,
    RegionUse,
    Rewriter,
    TileType,
    Type,
    Value,
    clone_operation,
)
from tilenest.layouts import Const, DimRef, IndexExpr
from tilenest.passes.compose import Composer
from tilenest.passes.pieces import FoldedResult, insert_fold
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
    window = _window(op, extents, rewriter.builder_before(op))
    if window is None:
        return
    if op.mask is not None and isinstance(op.mask.type, TileType):
        _insert_search(window, op.mask, mask_element)
        return
    for axis, extent in window.open_axes.items():
        window.check(axis, op.origins[axis], extent, window.counts[axis], op.mask)


@record
class _Window:
    """The coordinates an access covers, and the extents of the axes it may leave."""

    op: Load | Store | Atomic
    builder: Builder
    counts: tuple[int, ...]
    open_axes: Mapping[int, Value]

    def check(
        self, axis: int, first: Value, extent: Value, count: int, condition: Value | None
    ) -> None:
        self.builder.insert(
            Check(
                first=first,
                extent=extent,
                condition=condition,
                access=f"{self.op.ACTION} of {base_of(self.op.view).name}",
                axis=axis,
                count=count,
                site=self.op.site,
            )
        )

    def composer(self) -> tuple[Composer, list[IndexExpr]]:
        """A domain of the window's points, and the coordinates there."""
        composer = Composer(self.counts)
        composer.location(self.op.location)
        return composer, _coordinates(composer, self.op)


def _window(op: Load | Store | Atomic, extents: Sequence[int], builder: Builder) -> _Window | None:
    """None when nothing can be outside."""
    counts = tuple(extents) or (1,) * len(op.origins)
    if 0 in counts:
        return None
    composer = Composer(counts)
    access = Access(composer.map(_coordinates(composer, op)))
    known = is_inside(access, op.view, composer.ranges, composer.symbols)
    open_axes = {
        axis: builder.insert(Extent(view=op.view, axis=axis, result_types=[INDEX])).result
        for axis, proven in enumerate(known)
        if not proven
    }
    return _Window(op, builder, counts, open_axes) if open_axes else None


def _coordinates(composer: Composer, op: Load | Store | Atomic) -> list[IndexExpr]:
    return [composer.symbol(origin) + DimRef(d) for d, origin in enumerate(op.origins)]


# Masks of elements -----------------------------------------------------------------------------


def _insert_search(window: _Window, mask: Value, mask_element: ElementOf) -> None:
    """If the window leaves its view: the first element that does and is asked for."""
    builder = window.builder
    nothing, search = Block([]), Block([])
    regions = [Region([nothing]), Region([search])]
    builder.insert(If(condition=_is_window_inside(window), regions=regions))
    with builder.at_end(nothing):
        builder.insert(Yield(values=[]))
    with builder.at_end(search):
        _check_element(window, _first_outside(window, mask, mask_element))
        builder.insert(Yield(values=[]))


def _check_element(window: _Window, number: Value) -> None:
    """Check the element of this number, if the window has it."""
    builder, stride = window.builder, _size(window.counts)
    is_there = _apply(builder, "lt", number, _number(builder, stride), BOOL)
    for axis, count in enumerate(window.counts):
        stride //= count
        if axis in window.open_axes:
            place = _apply(builder, "floordiv", number, _number(builder, stride))
            digit = _apply(builder, "mod", place, _number(builder, count))
            coordinate = _apply(builder, "add", window.op.origins[axis], digit)
            window.check(axis, coordinate, window.open_axes[axis], 1, is_there)


def _is_window_inside(window: _Window) -> Value:
    builder = window.builder
    conditions: list[Value] = []
    for axis, extent in window.open_axes.items():
        origin = window.op.origins[axis]
        latest = _apply(builder, "sub", extent, _number(builder, window.counts[axis]))
        conditions.append(_apply(builder, "ge", origin, _number(builder, 0), BOOL))
        conditions.append(_apply(builder, "le", origin, latest, BOOL))
    condition = conditions[0]
    for further in conditions[1:]:
        condition = _apply(builder, "and", condition, further, BOOL)
    return condition


def _first_outside(window: _Window, mask: Value, mask_element: ElementOf) -> Value:
    """Its number in the order of the window, or how many elements the window has."""
    composer, coordinates = window.composer()
    zero = composer.constant(0, INDEX)
    is_wanted = mask_element(composer, mask)
    is_outside: Value | None = None
    for axis, extent in window.open_axes.items():
        coordinate = composer.index(composer.simplified(coordinates[axis]))
        for function, bound in (("lt", zero), ("ge", composer.element(extent, ()))):
            part = composer.apply(function, [coordinate, bound], BOOL)
            is_outside = (
                part if is_outside is None else composer.apply("or", [is_outside, part], BOOL)
            )
    assert is_outside is not None
    number: IndexExpr = Const(0)
    for d, count in enumerate(window.counts):
        number = number * count + DimRef(d)
    is_fault = composer.apply("and", [is_wanted, is_outside], BOOL)
    size = _size(window.counts)
    here = composer.index(composer.simplified(number))
    candidate = composer.apply("where", [is_fault, here, composer.constant(size, INDEX)], INDEX)
    state = composer.state(INDEX)
    least = composer.apply("minimum", [state, candidate], INDEX)
    seed = _number(window.builder, size)
    contract = ReductionContract(laws=(law_of("minimum", INDEX.dtype),))
    result = FoldedResult((), contract, seed, Access(composer.map(())))
    return insert_fold(window.builder, composer, [least], [result], [INDEX]).results[0]


def _size(counts: Sequence[int]) -> int:
    size = 1
    for count in counts:
        size *= count
    return size


def _number(builder: Builder, value: int) -> Value:
    return builder.insert(Constant(value=value, result_types=[INDEX])).result


def _apply(builder: Builder, function: str, a: Value, b: Value, type_: Type = INDEX) -> Value:
    return builder.insert(Apply(arguments=[a, b], function=function, result_types=[type_])).result


# Reductions ------------------------------------------------------------------------------------


def hoist_checks(op: Reduce, rewriter: Rewriter) -> None:
    """Move the checks of a fold's body into a loop in front of it: which accesses are made depends
    on no state, and what remains can be a fold."""
    body = op.body
    checks = [inner for inner in body.operations if _only_checks(inner)]
    others = [inner for inner in body.operations if inner not in checks and not inner.TERMINATOR]
    if not checks or not all(_is_plain(inner) for inner in others):
        return
    needed: list[Operation] = []
    wanted: set[Value] = set()
    for inner in reversed(body.operations):
        if inner in checks or any(result in wanted for result in inner.results):
            needed.insert(0, inner)
            wanted.update(value for nested in inner.walk() for value in nested.operands)
    if any(state in wanted for state in body.arguments[op.rank :]):
        return
    block = Block([INDEX] * op.rank)
    values = dict[Value, Value](zip(body.arguments, block.arguments, strict=False))
    builder = Builder(block)
    for inner in needed:
        builder.insert(clone_operation(inner, values))
    builder.insert(Yield(values=[]))
    loop = Serial(
        lower=op.lower, upper=op.upper, step=op.step, initial=[], regions=[Region([block])]
    )
    rewriter.insert_before(loop, op)
    for inner in reversed(needed):
        if inner in checks or not any(result.has_uses for result in inner.results):
            rewriter.erase(inner)


def _is_plain(op: Operation) -> bool:
    """Whether an operation only computes, in no loop."""
    is_straight = not op.regions or op.REGION_USE is RegionUse.ELEMENTWISE
    return is_straight and effects_of(op).kinds <= {EffectKind.READ}


def _only_checks(op: Operation) -> bool:
    """Whether an operation does nothing but raise, in no loop."""
    kinds = effects_of(op).kinds
    is_check = EffectKind.FAULT in kinds and kinds <= {EffectKind.READ, EffectKind.FAULT}
    has_loop = any(inner.REGION_USE is RegionUse.REPEATED for inner in op.walk())
    return is_check and not op.results and not has_loop
