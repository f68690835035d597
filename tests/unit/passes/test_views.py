"""Random chains of views, built by the constructors, against NumPy after every pass.

A chain is made twice: as `view.remap`s of an argument, and as a NumPy array of element numbers, -1
for what is outside and less for padding. Reading copies a tile of the view; writing puts a tile
into it; what is outside reads as the access says, is dropped, or raises where that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilenest.analysis import shows_elements_once
from tilenest.dialects import Constant, Load, Return, Store, chain_of, registry, views
from tilenest.errors import OutOfBounds
from tilenest.interp import interpret
from tilenest.ir import (
    INDEX,
    Builder,
    Function,
    Module,
    Rewriter,
    ScalarType,
    TileType,
    Value,
    ViewType,
    float32,
    parse_module,
    print_module,
)
from tilenest.layouts import Dim, positional_dim
from tilenest.machine import AVX512, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine
from tilenest.verify import verify_module

Array = np.ndarray[Any, Any]
SHAPE = (4, 6)


class Chain:
    """A view under construction, and the number of the argument's element at each of its places."""

    def __init__(self, is_open: bool) -> None:
        extents: tuple[int | None, ...] = (None, None) if is_open else SHAPE
        self.module = Module("candidate")
        types = [
            ViewType(float32, extents, (None, 1)),
            ViewType(float32, (None, None), (None, None)),
        ]
        self.function = self.module.add(
            Function("main", types, attributes={"alias_groups": (0, 1)})
        )
        self.builder = Builder(self.function.body)
        self.view: Value = self.function.arguments[0]
        self.numbers: Array = np.arange(24).reshape(SHAPE)
        self.fills = [0.0]

    def constant(self, value: int) -> Value:
        return self.builder.insert(Constant(value=value, result_types=[INDEX])).result

    def size(self, value: int, is_open: bool) -> int | Value:
        return self.constant(value) if is_open else value

    def expected(self, a: Array) -> Array:
        """What the view shows of an array; fill number f stands as -1 - f."""
        flat = np.concatenate([a.reshape(-1), self.fills[::-1]]).astype(np.float32)
        return flat[np.where(self.numbers >= 0, self.numbers, len(flat) + self.numbers)]


Step = Callable[[Chain, Any], None]


def add_transpose(chain: Chain, _: Any) -> None:
    chain.view = views.transpose(chain.builder.insert, chain.view).result
    chain.numbers = chain.numbers.T


def add_slice(chain: Chain, draw: Any) -> None:
    starts, counts, steps, picks = [], [], [], []
    for extent in chain.numbers.shape:
        step = draw(st.sampled_from([1, 1, 2, -1, -2]))
        first = draw(st.integers(0, max(extent - 1, 0)))
        room = (extent - 1 - first) // step if step > 0 else first // -step
        count = draw(st.integers(0, room + 1)) if extent else 0
        starts.append(chain.size(first, draw(st.booleans())))
        counts.append(chain.size(count, draw(st.booleans())))
        steps.append(step)
        picks.append(first + step * np.arange(count))
    insert = chain.builder.insert
    chain.view = views.strided_slice(insert, chain.view, starts, counts, steps).result
    chain.numbers = chain.numbers[np.ix_(*picks)]


def add_loose_slice(chain: Chain, draw: Any) -> None:
    """A slice that may leave the view."""
    starts, counts, steps = [], [], []
    numbers = chain.numbers
    for axis, extent in enumerate(numbers.shape):
        step = draw(st.sampled_from([1, 1, 2, -1]))
        first, count = draw(st.integers(-2, extent + 1)), draw(st.integers(1, 4))
        starts.append(chain.size(first, draw(st.booleans())))
        counts.append(chain.size(count, draw(st.booleans())))
        steps.append(step)
        places = first + step * np.arange(count)
        is_inside = (places >= 0) & (places < extent)
        numbers = np.insert(numbers, extent, -1, axis=axis)
        numbers = numbers.take(np.where(is_inside, places, extent), axis=axis)
    insert = chain.builder.insert
    chain.view = views.strided_slice(insert, chain.view, starts, counts, steps).result
    chain.numbers = numbers


def add_padding(chain: Chain, draw: Any) -> None:
    before = [draw(st.integers(0, 2)) for _ in chain.numbers.shape]
    behind = [draw(st.integers(0, 2)) for _ in chain.numbers.shape]
    fill = draw(st.sampled_from([0.0, 7.0, -2.0]))
    number = -1 - len(chain.fills)
    chain.fills.append(fill)
    widths = list(zip(before, behind, strict=True))
    chain.numbers = np.pad(chain.numbers, widths, constant_values=number)
    given = [chain.size(width, draw(st.booleans())) for width in before]
    sizes = list(chain.numbers.shape)
    chain.view = views.pad(chain.builder.insert, chain.view, given, sizes, fill).result


def add_reshape(chain: Chain, draw: Any) -> None:
    total = chain.numbers.size
    divisors = [n for n in range(1, total + 1) if total % n == 0] or [1]
    rows = draw(st.sampled_from(divisors))
    sizes = [rows, total // rows]
    source = list(chain.numbers.shape)
    chain.view = views.reshape(chain.builder.insert, chain.view, source, sizes).result
    chain.numbers = chain.numbers.reshape(sizes)


def add_broadcast(chain: Chain, draw: Any) -> None:
    rows = draw(st.integers(0, 3))
    column = draw(st.integers(0, max(chain.numbers.shape[1] - 1, 0)))
    if not chain.numbers.shape[1]:
        return
    height = chain.numbers.shape[0]
    insert = chain.builder.insert
    chain.view = views.subview(insert, chain.view, (0, column), (height, 1)).result
    chain.view = views.broadcast(insert, chain.view, [height, rows], [0, None]).result
    chain.numbers = np.repeat(chain.numbers[:, column : column + 1], rows, axis=1)


def add_swizzle(chain: Chain, _: Any) -> None:
    rows, columns = chain.numbers.shape
    if columns % 2:
        return
    chain.view = views.swizzle(chain.builder.insert, chain.view, axis=1, by=0, bits=1).result
    i, j = np.indices((rows, columns))
    chain.numbers = chain.numbers[i, j ^ (i & 1)]


STEPS: tuple[Step, ...] = (
    add_transpose,
    add_slice,
    add_padding,
    add_reshape,
    add_broadcast,
    add_swizzle,
)


@st.composite
def chains(draw: Any, steps: tuple[Step, ...] = STEPS) -> Chain:
    chain = Chain(draw(st.booleans()))
    for step in draw(st.lists(st.sampled_from(steps), min_size=1, max_size=4)):
        step(chain, draw)
    return chain


def tile_type(shape: tuple[int, ...]) -> tuple[TileType, tuple[Dim, ...]]:
    dims = tuple(positional_dim(1 - axis, extent) for axis, extent in enumerate(shape))
    return TileType(float32, dims), dims


def compare(chain: Chain, arrays: list[Array], expected: list[Array] | None) -> None:
    """After every pass, and as machine code in the interpreter, the arrays become as expected; None
    where it raises, and no array changes."""
    chain.builder.insert(Return(values=[]))
    module = parse_module(print_module(chain.module), registry())
    assert print_module(module) == print_module(chain.module)

    def check(module: Module, step: str) -> None:
        verify_module(module)
        given = [array.copy() for array in arrays]
        if expected is None:
            with pytest.raises(OutOfBounds):
                interpret(module, given)
        else:
            interpret(module, given)
        for found, wanted in zip(given, expected or arrays, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=step)

    check(module, "as built")
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX512), rewriter)
        check(module, name)
    machine = lower_machine(module)
    simplify_machine(machine)
    check(machine, "machine")


@settings(max_examples=20)
@given(chains(), st.integers(-1, 1))
def test_views_are_read(chain: Chain, origin: int) -> None:
    a = np.arange(10, 34, dtype=np.float32).reshape(SHAPE)
    rows, columns = chain.numbers.shape
    shape = (rows + 1, columns + 1)
    type_, dims = tile_type(shape)
    at, zero = chain.constant(origin), chain.constant(0)
    load = Load(view=chain.view, origins=[at, zero], result_types=[type_])
    tile = chain.builder.insert(load).result
    out = chain.function.arguments[1]
    chain.builder.insert(Store(view=out, origins=[zero, zero], value=tile, dims=dims))
    wanted = np.zeros((rows + 4, columns + 4), np.float32)
    wanted[1 : 1 + rows, :columns] = chain.expected(a)
    wanted = wanted[1 + origin :][: shape[0], : shape[1]]
    compare(chain, [a, np.full(shape, np.nan, np.float32)], [a, wanted])


@settings(max_examples=20)
@given(chains(steps=tuple(step for step in STEPS if step is not add_broadcast)))
def test_views_are_written(chain: Chain) -> None:
    shape = chain.numbers.shape
    type_, dims = tile_type(shape)
    zero = chain.constant(0)
    source = chain.function.arguments[1]
    load = Load(view=source, origins=[zero, zero], result_types=[type_])
    tile = chain.builder.insert(load).result
    chain.builder.insert(Store(view=chain.view, origins=[zero, zero], value=tile, dims=dims))
    assert all(shows_elements_once(op).is_proven for op in chain_of(chain.view))
    values = np.arange(100, 100 + chain.numbers.size, dtype=np.float32).reshape(shape)
    wanted = np.zeros(24, np.float32)
    hit = chain.numbers >= 0
    wanted[chain.numbers[hit]] = values[hit]
    a = np.zeros(SHAPE, np.float32)
    compare(chain, [a, values], [wanted.reshape(SHAPE), values])


LOOSE_STEPS = (*STEPS, add_loose_slice, add_loose_slice)


@settings(max_examples=30)
@given(
    chains(LOOSE_STEPS) | chains((add_loose_slice, add_padding)),
    st.integers(-1, 1),
    st.sampled_from(["zero", "check"]),
    st.data(),
)
def test_what_is_outside_is_what_the_access_says(
    chain: Chain, origin: int, bounds: str, data: Any
) -> None:
    a = np.arange(10, 34, dtype=np.float32).reshape(SHAPE)
    chain.fills[0] = 5.0
    rows, columns = chain.numbers.shape
    shape = (data.draw(st.integers(1, rows + 1)), data.draw(st.integers(1, columns + 1)))
    type_, dims = tile_type(shape)
    at, zero = chain.constant(origin), chain.constant(0)
    five = Constant(value=5.0, result_types=[ScalarType(float32)])
    other = chain.builder.insert(five).result
    load = Load(
        view=chain.view, origins=[at, zero], other=other, bounds=bounds, result_types=[type_]
    )
    tile = chain.builder.insert(load).result
    out = chain.function.arguments[1]
    chain.builder.insert(Store(view=out, origins=[zero, zero], value=tile, dims=dims))
    around = np.pad(chain.numbers, 2, constant_values=-1)[2 + origin :, 2:][: shape[0], : shape[1]]
    chain.numbers = around
    fails = bounds == "check" and bool((around == -1).any())
    wanted = None if fails else [a, chain.expected(a)]
    compare(chain, [a, np.full(shape, np.nan, np.float32)], wanted)


@pytest.mark.parametrize("rows", [1, 3])
def test_padding_is_inside_and_hides_nothing_behind_it(rows: int) -> None:
    """One row of padding, then one that is outside of the argument."""
    chain = Chain(is_open=False)
    insert = chain.builder.insert
    chain.view = views.subview(insert, chain.view, (chain.constant(-1), 0), (4, 6)).result
    chain.view = views.pad(insert, chain.view, (1, 0), (5, 6), 7.0).result
    type_, dims = tile_type((rows, 6))
    zero = chain.constant(0)
    load = Load(view=chain.view, origins=[zero, zero], bounds="check", result_types=[type_])
    tile = chain.builder.insert(load).result
    out = chain.function.arguments[1]
    chain.builder.insert(Store(view=out, origins=[zero, zero], value=tile, dims=dims))
    a = np.ones(SHAPE, np.float32)
    given = [a, np.full((rows, 6), np.nan, np.float32)]
    compare(chain, given, [a, np.full((1, 6), 7, np.float32)] if rows == 1 else None)


@settings(max_examples=60)
@given(chains())
def test_elements_shown_twice_are_told(chain: Chain) -> None:
    """Proven means that no element of the argument has two places; disproven that one view's map
    gives two points one place, which padding or a later slice may hide."""
    answers = [shows_elements_once(op) for op in chain_of(chain.view)]
    shown = chain.numbers[chain.numbers >= 0]
    if all(answer.is_proven for answer in answers):
        assert len(set(shown.tolist())) == shown.size


@pytest.mark.parametrize("strides", [(None, 1), (None, None)])
def test_strides_are_known_where_the_map_moves_evenly(strides: tuple[int | None, ...]) -> None:
    function = Function("main", [ViewType(float32, (4, 6), strides)])
    insert, view = Builder(function.body).insert, function.arguments[0]
    turned = views.transpose(insert, view).result
    assert views.view_type(turned).strides == strides[::-1]
    every = views.strided_slice(insert, view, (0, 5), (4, 3), (1, -2)).result
    known = None if strides[1] is None else -2
    assert views.view_type(every).strides == (strides[0], known)
    folded = views.reshape(insert, view, (4, 6), (6, 4)).result
    assert None in views.view_type(folded).strides
