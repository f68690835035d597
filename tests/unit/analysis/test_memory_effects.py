"""Effects of operations with regions, what may be dropped or moved, and writes in between."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from tilenest.analysis import (
    MemoryEffects,
    effects_of,
    induction_of,
    is_computation,
    is_pure,
    may_overlap,
    stored_by,
    trip_counts,
)
from tilenest.dialects import (
    AtomCall,
    Constant,
    Parallel,
    Store,
    chain_of,
    view_type,
    views,
)
from tilenest.driver import parse
from tilenest.ir import (
    INDEX,
    Builder,
    EffectKind,
    Function,
    Operation,
    Rewriter,
    Value,
    ViewType,
    float32,
    fresh,
)

PROGRAM = """
module "candidate"
dim %d0 "n" = 8

func @kernel(
    %A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %C: view<f32, [?], [1]>, %p: bool
) with (alias_groups = [0, 1, 0]) {
  %zero = scalar.constant 0 : index
  %four = scalar.constant 4 : index
  %two = scalar.constant 2 : index
  %first = tile.load(%A, [%zero]) : tile<f32, %d0>
  %tile = tile.map(%first) : tile<f32, %d0> { |%0: index, %e: f32|
    exec.yield(%e)
  }
  %checked = tile.load(%B, [%zero], bounds = "check") : tile<f32, %d0>
  exec.parallel(lower = [%zero], upper = [%four], step = [%two]) { |%i: index|
    %inner = tile.load(%A, [%i]) : tile<f32, %d0>
    exec.if(%p) {
      tile.store(%C, [%i], %inner, dims = [%d0])
      exec.yield
    } {
      exec.yield
    }
    exec.yield
  }
  %last = tile.load(%A, [%zero]) : tile<f32, %d0>
  %other = tile.load(%B, [%zero]) : tile<f32, %d0>
  func.return
}
"""

CALL = """
module "candidate"
func @f(%A: view<f32, [?], [1]>, %x: f32) {
  %zero = scalar.constant 0 : index
  %first = tile.load(%A, [%zero]) : f32
  %y = atom.call "any"(%xTOUCHES) : f32
  %last = tile.load(%A, [%zero]) : f32
  func.return
}
"""


@pytest.fixture(scope="module")
def function() -> Function:
    return parse(PROGRAM).function("kernel")


def op(function: Function, name: str) -> Operation:
    return next(op for op in function.walk() if any(r.name == name for r in op.results))


def nest(function: Function) -> Operation:
    return next(op for op in function.walk() if isinstance(op, Parallel))


def test_memory_effects_of_regions_are_walked(function: Function) -> None:
    view, _, coinciding, _ = function.arguments
    found = effects_of(nest(function))
    assert found.reads == frozenset([view]) and found.writes == frozenset([coinciding])
    assert found.kinds == {EffectKind.READ, EffectKind.WRITE}
    assert not found.reads_anything and not found.writes_anything
    assert nest(function).effects() == () and stored_by(nest(function)) == frozenset()


@pytest.mark.parametrize(
    ("name", "pure", "computation"),
    [
        ("zero", True, True),
        ("tile", True, False),  # has a region
        ("first", True, False),  # may go, but not move
        ("checked", False, False),
    ],
)
def test_memory_effects_decide_what_may_go_and_move(
    function: Function, name: str, pure: bool, computation: bool
) -> None:
    found = op(function, name)
    assert (is_pure(found), is_computation(found)) == (pure, computation)


def test_memory_effects_keep_stores_and_terminators(function: Function) -> None:
    assert not is_pure(nest(function))
    end = function.body.terminator
    assert not is_pure(end) and not is_computation(end)


def test_memory_effects_between_two_operations(function: Function) -> None:
    a, b = function.arguments[:2]
    first, last, other = (op(function, name) for name in ("first", "last", "other"))
    found = fresh(MemoryEffects, function)
    assert found.is_written_between(a, first, last)  # through C, which coincides with A
    assert not found.is_written_between(b, first, other)
    inner = op(function, "inner")
    assert found.is_written_between(a, first, inner)  # by an earlier instance
    assert not found.is_written_between(b, first, inner)


@pytest.mark.parametrize(
    ("touches", "kinds", "is_written"),
    [
        ("", set(), False),
        (', touches = [#atom_effect<kind = "read">]', {EffectKind.READ}, False),
        (', touches = [#atom_effect<kind = "write">]', {EffectKind.WRITE}, True),
        (', touches = [#atom_effect<kind = "fault">]', {EffectKind.FAULT}, False),
        (', touches = [#atom_effect<kind = "synchronize">]', {EffectKind.SYNCHRONIZE}, True),
        (', touches = [#atom_effect<kind = "call">]', {EffectKind.CALL}, True),
    ],
)
def test_memory_effects_on_no_named_memory(
    touches: str, kinds: set[EffectKind], is_written: bool
) -> None:
    text = CALL.replace("TOUCHES", touches)
    function = parse(text).function("f")
    (call,) = [op for op in function.walk() if isinstance(op, AtomCall)]
    found = effects_of(call)
    assert found.kinds == kinds and found.writes_anything == is_written
    first, last = op(function, "first"), op(function, "last")
    memory = fresh(MemoryEffects, function)
    assert memory.is_written_between(function.arguments[0], first, last) == is_written
    assert is_computation(call) == (not kinds)
    assert is_pure(call) == (kinds <= {EffectKind.READ})


def test_inductions_of_indices_only(function: Function) -> None:
    index = nest(function).body.arguments[0]
    found = induction_of(index)
    assert found is not None and found.upper.name == "four"
    assert induction_of(function.arguments[0]) is None
    assert induction_of(op(function, "zero").result) is None
    assert trip_counts(nest(function)) == (2,)
    assert trip_counts(op(function, "zero")) == ()


# Views of views --------------------------------------------------------------------------------

SHAPE = (6, 5)


def random_view(chance: random.Random, builder: Builder, view: Value) -> Value:
    """A view of a view, of static extents."""
    shape = [extent for extent in view_type(view).shape if extent is not None]
    match chance.randrange(5):
        case 0 if min(shape) > 0:
            starts = [chance.randrange(extent) for extent in shape]
            steps = [chance.choice([-1, 1, 2, 3]) for _ in shape]
            counts = [chance.randrange(1, 4) for _ in shape]
            return views.strided_slice(builder.insert, view, starts, counts, steps).result
        case 1:
            return views.permute(
                builder.insert, view, chance.sample(range(len(shape)), len(shape))
            ).result
        case 2:
            sizes = [math.prod(shape)]
            return views.reshape(builder.insert, view, shape, sizes).result
        case 3:
            before = [chance.randrange(-1, 3) for _ in shape]
            sizes = [max(0, extent + chance.randrange(-2, 3)) for extent in shape]
            return views.pad(builder.insert, view, before, sizes).result
        case _:
            starts = [0] * len(shape)
            starts[0] = chance.randrange(max(1, shape[0]))
            counts = [max(0, shape[0] - starts[0]) // 2, *shape[1:]]
            return views.strided_slice(
                builder.insert, view, starts, counts, [1] * len(shape)
            ).result


def elements(view: Value) -> set[tuple[int, ...]]:
    """The elements of the storage that a view shows."""
    extents = [extent for extent in view_type(view).shape if extent is not None]
    found = set()
    for start in product(*map(range, extents)):
        point: tuple[int, ...] = start
        is_inside = True
        for op in chain_of(view):
            point = op.map.evaluate(point)
            below = view_type(op.view).shape
            is_inside &= all(0 <= x < n for x, n in zip(point, below, strict=True) if n is not None)
        if is_inside:
            found.add(point)
    return found


@pytest.mark.parametrize("is_one_argument", [True, False])
def test_memory_effects_of_views_that_are_apart(is_one_argument: bool) -> None:
    """Whatever is said to be apart shares no element; much of what is apart is known to be."""
    chance = random.Random(5)
    apart = known = 0
    for _ in range(300):
        type_ = ViewType(float32, SHAPE, (SHAPE[1], 1))
        function = Function("f", [type_, type_], attributes={"alias_groups": (0, 0)})
        builder = Builder(function.body)
        one: Value = function.arguments[0]
        other: Value = function.arguments[not is_one_argument]
        for _ in range(chance.randrange(1, 3)):
            one = random_view(chance, builder, one)
        for _ in range(chance.randrange(3)):
            other = random_view(chance, builder, other)
        shared = elements(one) & elements(other)
        assert may_overlap(one, other) or not shared
        apart += not shared
        known += not may_overlap(one, other)
    assert known > apart / 3 > 10


MOVING = """
module "candidate"
func @f(%A: view<f32, [64], [1]>, %n: index, %B: view<f32, [?], [1]>) {
  %zero = scalar.constant 0 : index
  %four = scalar.constant 4 : index
  %one = scalar.constant 1 : index
  %here = view.remap(%A, symbols = [%n], map = (d0)[s0] -> (d0 + s0)) : view<f32, [4], [1]>
  %next = view.remap(%A, symbols = [%n], map = (d0)[s0] -> (d0 + s0 + 4)) : view<f32, [4], [1]>
  %even = view.remap(%A, map = (d0) -> (d0*2)) : view<f32, [4], [1]>
  %odd = view.remap(%A, symbols = [%n], map = (d0)[s0] -> (d0*2 + s0*4 + 1)) : view<f32, [4], [1]>
  exec.serial(lower = [%zero], upper = [%four], step = [%one]) { |%i: index|
    %now = view.remap(%A, symbols = [%i], map = (d0)[s0] -> (d0 + s0*4)) : view<f32, [4], [1]>
    %then = view.remap(%A, symbols = [%i], map = (d0)[s0] -> (d0 + s0*4 + 4)) : view<f32, [4], [1]>
    %far = view.remap(%A, symbols = [%i], map = (d0)[s0] -> (d0 + s0*4 + 32)) : view<f32, [4], [1]>
    %x = tile.load(%then, [%zero]) : f32
    tile.store(%now, [%zero], %x)
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("here", "next", False),  # one number throughout the call
        ("even", "odd", False),
        ("even", "here", True),
        ("now", "then", True),  # of another iteration
        ("now", "far", False),
        ("now", "A", True),
        ("now", "B", True),  # without groups, any two arguments
    ],
)
def test_memory_effects_of_views_that_move(one: str, other: str, overlap: bool) -> None:
    function = parse(MOVING).function("f")
    named: dict[str | None, Value] = {r.name: r for op in function.walk() for r in op.results}
    named |= {argument.name: argument for argument in function.arguments}
    assert may_overlap(named[one], named[other]) == overlap
    assert may_overlap(named[other], named[one]) == overlap
    found = fresh(MemoryEffects, function)
    store = next(op for op in function.walk() if isinstance(op, Store))
    assert found.may_write(store, named["now"]) and not found.may_write(store, named["far"])
    (together,) = found.alias_sets
    assert {named[one], named[other]} <= together


# Keeping ---------------------------------------------------------------------------------------


def test_memory_effects_are_dropped_by_edits_of_memory_only() -> None:
    module = parse(PROGRAM)
    function = module.function("kernel")
    rewriter = Rewriter()
    analyses = rewriter.analyses
    kept = analyses.get(MemoryEffects, function)
    a, b, _, _ = function.arguments
    zero, tile = op(function, "zero"), op(function, "tile")
    two = rewriter.insert_before(Constant(value=2, result_types=[INDEX]), zero)
    rewriter.replace_all_uses(op(function, "two").result, two.result)
    rewriter.replace_all_uses(tile.result, op(function, "first").result)
    rewriter.erase(tile)
    rewriter.move_before(op(function, "other"), op(function, "last"))
    rewriter.set_attribute(two, "value", 1)
    rewriter.erase(op(function, "last"))
    assert analyses.get(MemoryEffects, function) is kept
    analyses.check()
    store = next(op for op in function.walk() if isinstance(op, Store))
    rewriter.set_operands(store, "view", [b])
    assert not analyses.is_known(MemoryEffects, function)
    assert analyses.get(MemoryEffects, function).may_write(nest(function), b)
    assert not analyses.get(MemoryEffects, function).may_write(nest(function), a)
    rewriter.set_function_attribute(function, "alias_groups", (0, 0, 1))
    assert analyses.get(MemoryEffects, function).may_write(nest(function), a)
