"""Accesses of views of views, followed down to the storage below.

In: a load or store of a `view.remap`. Out: where it lands in the storage, and what must hold on the
way there: inside every view of the chain. A read that leaves one gives the fill of the view above,
or what the access says where that does not pad; a write is dropped. Afterwards no access asks a
remapped view.

    %v = view.remap(%A, map = (d0) -> (d0 - 2), fill = 7.0)
    tile.load %v[%o]     becomes   inside %v ? (%A[%o + d0 - 2] else 7.0) : 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tilenest.analysis import constant_of, is_inside
from tilenest.dialects import (
    Access,
    Atomic,
    Extent,
    Load,
    Remap,
    Stride,
    base_of,
    chain_of,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    Builder,
    Function,
    Rewriter,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import IndexExpr, bounds
from tilenest.passes.compose import Composer
from tilenest.passes.index_ops import (
    apply_scalar,
    emit_index,
    index_number,
    scalar_constant,
)
from tilenest.records import record


class Emitter(Protocol):
    """Where conditions and choices are computed: in a region, or between operations."""

    def index(self, expr: IndexExpr) -> Value: ...
    def apply(self, function: str, arguments: Sequence[Value], type_: Type) -> Value: ...
    def constant(self, value: bool | int | float, type_: Type) -> Value: ...
    def element(self, value: Value, coordinates: tuple[IndexExpr, ...]) -> Value: ...


@record
class Condition:
    """`expression >= 0`, or `expression < limit` where there is a limit."""

    expression: IndexExpr
    limit: int | Value | None = None


@record
class Layer:
    """What has to hold on the way down, and what a read gives where it does not: None is what the
    access itself says."""

    conditions: tuple[Condition, ...]
    fill: bool | int | float | None


@record
class Landing:
    """Where an access lands in the storage; `layers` are met in order, then the storage's bounds,
    outside of which a read gives `fill`, or what the access itself says."""

    base: Value
    results: tuple[IndexExpr, ...]
    layers: tuple[Layer, ...]
    fill: bool | int | float | None

    def access(self, composer: Composer, fill: bool | int | float = 0) -> Access:
        return composer.access(self.base, self.results, "zero", fill)

    def is_there(self, emitter: Emitter) -> list[Value]:
        """All conditions, as bools."""
        conditions = [each for layer in self.layers for each in layer.conditions]
        return [_holds(emitter, condition) for condition in conditions]

    def choose(self, emitter: Emitter, element: Value, other: Callable[[], Value]) -> Value:
        """The element where all conditions hold, else what the layer says."""
        for layer in reversed(self.layers):
            fill = layer.fill
            instead = other() if fill is None else emitter.constant(fill, element.type)
            holds = all_of(emitter, [_holds(emitter, each) for each in layer.conditions])
            element = emitter.apply("where", [holds, element, instead], element.type)
        return element


def all_of(emitter: Emitter, conditions: Sequence[Value]) -> Value:
    """Their conjunction; there is one at least."""
    together = conditions[0]
    for further in conditions[1:]:
        together = emitter.apply("and", [together, further], BOOL)
    return together


def _holds(emitter: Emitter, condition: Condition) -> Value:
    place = emitter.index(condition.expression)
    match condition.limit:
        case None:
            return emitter.apply("ge", [place, emitter.constant(0, INDEX)], BOOL)
        case int(limit):
            return emitter.apply("lt", [place, emitter.constant(limit, INDEX)], BOOL)
        case limit:
            return emitter.apply("lt", [place, emitter.element(limit, ())], BOOL)


# Following a chain -----------------------------------------------------------------------------


@record
class Level:
    """A remap on the way down a chain, over the points of a composer: the coordinates in the view
    that it gives and in the one below, and those of its conditions that are not proven."""

    remap: Remap
    at: tuple[IndexExpr, ...]
    below: tuple[IndexExpr, ...]
    conditions: tuple[IndexExpr, ...]


def levels_of(composer: Composer, view: Value, coordinates: Sequence[IndexExpr]) -> Iterator[Level]:
    """The remaps below a view, from the coordinates in the view on."""
    here = tuple(composer.simplified(place) for place in coordinates)
    for remap in chain_of(view):
        symbols = [composer.symbol(value) for value in remap.symbols]
        slacks, below = (
            tuple(composer.simplified(each.substitute(here, symbols)) for each in formulas)
            for formulas in (remap.conditions, remap.map.results)
        )
        unmet = tuple(slack for slack in slacks if not _is_met(composer, slack))
        yield Level(remap, here, below, unmet)
        here = below


def landing_of(
    composer: Composer, view: Value, coordinates: Sequence[IndexExpr], is_promised: bool
) -> Landing:
    """Follow a remapped view; `is_promised` says that the coordinates are inside of it."""
    layers: list[Layer] = []
    fill: bool | int | float | None = None
    levels = list(levels_of(composer, view, coordinates))
    for level in levels:
        is_free = is_promised and level.remap.result is view
        layers.append(Layer(() if is_free else _open_conditions(composer, level), fill))
        fill = level.remap.fill_number
        layers.append(Layer(tuple(map(Condition, level.conditions)), fill))
    needed = tuple(layer for layer in layers if layer.conditions)
    return Landing(base_of(view), levels[-1].below, needed, fill)


def _is_met(composer: Composer, slack: IndexExpr) -> bool:
    known = bounds(slack, composer.ranges)
    return known is not None and known[0] >= 0


def _open_conditions(composer: Composer, level: Level) -> tuple[Condition, ...]:
    """What is not proven of the coordinates being inside the view."""
    op, access = level.remap, Access(composer.map(level.at))
    proven = is_inside(access, op.result, composer.ranges, composer.symbols)
    conditions: list[Condition] = []
    for axis, (place, is_proven) in enumerate(zip(level.at, proven, strict=True)):
        if is_proven:
            continue
        if not _is_met(composer, place):
            conditions.append(Condition(place))
        size = op.extent(axis)
        constant = constant_of(size) if isinstance(size, Value) else size
        extent = size if constant is None else int(constant)
        known = bounds(place, composer.ranges)
        if not (isinstance(extent, int) and known is not None and known[1] < extent):
            conditions.append(Condition(place, extent))
    return tuple(conditions)


# Single elements and facts ---------------------------------------------------------------------


class _BetweenOperations:
    """Index expressions and choices as operations of their own."""

    def __init__(self, builder: Builder, symbols: Sequence[Value]) -> None:
        self._builder = builder
        self._symbols = symbols

    def index(self, expr: IndexExpr) -> Value:
        return emit_index(self._builder, expr, self._symbols)

    def apply(self, function: str, arguments: Sequence[Value], type_: Type) -> Value:
        return apply_scalar(self._builder, function, *arguments, result_type=type_)

    def constant(self, value: bool | int | float, type_: Type) -> Value:
        return scalar_constant(self._builder, value, type_)

    def element(self, value: Value, coordinates: tuple[IndexExpr, ...]) -> Value:
        assert not coordinates, "between operations there are no tiles"
        return value


def lower_element_load(op: Load, rewriter: Rewriter) -> None:
    """A load of one element of a remapped view becomes one of the storage."""
    composer = Composer(())
    places = [composer.symbol(origin) for origin in op.origins]
    landing = landing_of(composer, op.view, places, op.bounds == "assume")
    builder = rewriter.builder_before(op)
    emitter = _BetweenOperations(builder, composer.symbols)
    type_ = op.result.type

    def other() -> Value:
        return emitter.constant(zero_of(type_), type_) if op.other is None else op.other

    fill = landing.fill
    wanted = landing.is_there(emitter) + ([] if op.mask is None else [op.mask])
    loaded = builder.insert(
        Load(
            view=landing.base,
            origins=[emitter.index(place) for place in landing.results],
            other=other() if fill is None else emitter.constant(fill, type_),
            mask=all_of(emitter, wanted) if wanted else None,
            result_types=[type_],
        )
    ).result
    element = landing.choose(emitter, loaded, other)
    if op.mask is not None:
        element = emitter.apply("where", [op.mask, element, other()], type_)
    rewriter.replace_op(op, [element])


def lower_element_update(op: Atomic, rewriter: Rewriter) -> None:
    """An atomic update of one element of a remapped view becomes one of the storage."""
    composer = Composer(())
    places = [composer.symbol(origin) for origin in op.origins]
    landing = landing_of(composer, op.view, places, op.bounds == "assume")
    builder = rewriter.builder_before(op)
    emitter = _BetweenOperations(builder, composer.symbols)
    wanted = landing.is_there(emitter) + ([] if op.mask is None else [op.mask])
    update = Atomic(
        view=landing.base,
        origins=[emitter.index(place) for place in landing.results],
        value=op.value,
        expected=op.expected,
        mask=all_of(emitter, wanted) if wanted else None,
        function=op.function,
        result_types=[result.type for result in op.results],
    )
    builder.insert(update)
    rewriter.replace_op(op, update.results)


def zero_of(type_: Type) -> bool | int | float:
    """The 0 of an element type."""
    dtype = element_dtype(type_)
    if dtype.is_bool:
        return False
    return 0.0 if dtype.is_float else 0


def drop_remapped_views(function: Function, rewriter: Rewriter) -> None:
    """Answer what is asked of remapped views, and erase them: nothing accesses them any more."""
    remaps = [op for op in function.walk() if isinstance(op, Remap)]
    for op in list(function.walk()):
        if isinstance(op, Extent | Stride) and chain_of(op.view):
            builder = rewriter.builder_before(op)
            answer = _extent_of if isinstance(op, Extent) else _stride_of
            rewriter.replace_op(op, [answer(builder, op.view, op.axis)])
    for remap in reversed(remaps):
        rewriter.erase(remap)


def _extent_of(builder: Builder, view: Value, axis: int) -> Value:
    (op, *_) = chain_of(view)
    size = op.extent(axis)
    if isinstance(size, Value):
        return size
    return index_number(builder, size)


def _stride_of(builder: Builder, view: Value, axis: int) -> Value:
    """The steps of the map times the strides below it."""
    chain = chain_of(view)
    if not chain:
        op = Stride(view=view, axis=axis, result_types=[INDEX])
        return builder.insert(op).result
    total: Value = index_number(builder, 0)
    for below, result in enumerate(chain[0].map.results):
        step = result.coefficient(axis)
        assert step is not None, "a stride is asked of a view that moves unevenly"
        if step:
            stride = _stride_of(builder, chain[0].view, below)
            part = apply_scalar(builder, "mul", stride, index_number(builder, step))
            total = apply_scalar(builder, "add", total, part)
    return total
