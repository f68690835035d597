"""What op classes say of themselves, judged by hand-written lists and by NumPy.

Iteration spaces are run point by point: whatever the maps touch, combined as the operation says,
has to be what NumPy computes from the same arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tilenest.dialects import (
    FORMS,
    OPERATIONS,
    Check,
    Load,
    MapReducePost,
    ReductionContract,
    ResultSpec,
    StateLaw,
    Store,
)
from tilenest.driver import parse
from tilenest.ir import (
    COMBINE,
    MOVE,
    AtomRequest,
    Effect,
    EffectKind,
    Iteration,
    IterationDim,
    Operation,
    RegionUse,
    Rewriter,
    Value,
    float32,
)
from tilenest.layouts import AffineMap, DimRef

Array = np.ndarray[Any, np.dtype[Any]]

TILES = """
module "candidate"
dim %d0 "b" = 2
dim %d1 "m" = 3
dim %d2 "n" = 4
dim %d3 "k" = 5

func @tiles(%A: view<f32, [?, ?], [?, 1]>, %x: f32, %i: index, %j: index, %p: bool) {
  %window = tile.load(%A, [%i, %j], other = %x, mask = %p) : tile<f32, %d1, %d2>
  %one = tile.load(%A, [%i, %j], bounds = "check") : f32
  %row = tile.reindex(%window, [%i], map = (d0)[s0] -> (s0, d0)) : tile<f32, %d2>
  %cell = tile.reindex(%window, [%i, %j], map = ()[s0, s1] -> (s0, s1)) : f32
  %turned = tile.reindex(%window, map = (d0, d1) -> (d1, d0)) : tile<f32, %d2, %d1>
  %sum = tile.map(%turned, %row, %x) : tile<f32, %d1, %d2> {
  |%0: index, %1: index, %e: f32, %f: f32, %g: f32|
    %h = scalar.apply "fma"(%e, %f, %g) : f32
    exec.yield(%h)
  }
  %left = tile.map : tile<f32, %d3, %d0, %d1> { |%0: index, %1: index, %2: index|
    exec.yield(%x)
  }
  %right = tile.map : tile<f32, %d0, %d2, %d3> { |%0: index, %1: index, %2: index|
    exec.yield(%x)
  }
  %start = tile.map : tile<f32, %d1, %d0, %d2> { |%0: index, %1: index, %2: index|
    exec.yield(%x)
  }
  %product = tile.mma(%left, %right, %start) : tile<f32, %d1, %d0, %d2>
  %inorder = tile.mma(%left, %right, %start, ordered = true) : tile<f32, %d1, %d0, %d2>
  tile.store(%A, [%i, %j], %row, mask = %p, dims = [%d1, %d2])
  tile.store(%A, [%i, %j], %x, bounds = "check")
  func.return
}
"""

WORK = """
module "scheduled"

func @work(%A: view<f32, [?, 4], [4, 1]>, %S: view<f32, [?], [1]>, %i: index, %x: f32) {
  %b = buf.alloc : buf<f32, 3>
  %total = buf.alloc : buf<f32>
  tensor.map_reduce_post(
      inputs = [%A, %x],
      seeds = [%x, %b],
      outputs = [%total, %b],
      symbols = [%i],
      extents = [3, 4],
      input_access = [
          #access<map = (d0, d1)[s0] -> (s0 + d0, d1)>, #access<map = (d0, d1)[s0] -> ()>
      ],
      seed_access = [#access<map = (d0, d1)[s0] -> ()>, #access<map = (d0, d1)[s0] -> (d0)>],
      output_access = [#access<map = (d0, d1)[s0] -> ()>, #access<map = (d0, d1)[s0] -> (d0)>],
      specs = [
          #result_spec<
              dims = [], contract = #reduction_contract<laws = [#state_law<merge = "add">]>
          >,
          #result_spec<dims = [0], contract = #reduction_contract<policy = "fold_left">>
      ]
  ) { |%0: index, %1: index, %a: f32, %y: f32, %s: f32, %t: f32|
    %n = scalar.apply "add"(%s, %a) : f32
    %m = scalar.apply "mul"(%t, %y) : f32
    exec.yield(%n, %m)
  } { |%0: index, %1: index, %s: f32|
    exec.yield(%s)
  } { |%0: index, %1: index, %s: f32|
    exec.yield(%s)
  }
  %whole = buf.read(%total) : f32
  func.return
}
"""

LOOPS = """
module "candidate"

func @loops(%x: f32, %n: index) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  exec.parallel(lower = [%zero, %one], upper = [%n, %n], step = [%one, %one]) {
  |%i: index, %j: index|
    exec.yield
  }
  %a, %b = exec.serial(lower = [%zero], upper = [%n], step = [%one], initial = [%x, %x])
      : (f32, f32) { |%i: index, %s: f32, %t: f32|
    exec.yield(%t, %s)
  }
  %c = exec.pipeline(lower = [%zero], upper = [%n], step = [%one], initial = [%a]) : f32 {
  |%i: index, %s: f32|
    %u = scalar.apply "neg"(%s) : f32
    exec.yield(%u)
  } { |%i: index, %s: f32, %u: f32|
    %v = scalar.apply "add"(%s, %u) : f32
    exec.yield(%v)
  }
  func.return
}
"""


@pytest.fixture(scope="module")
def tiles() -> dict[str, Operation]:
    return named(TILES)


def named(text: str) -> dict[str, Operation]:
    """The operations by the name of their first result."""
    return {op.results[0].name or "": op for op in parse(text).walk() if op.results}


def operations_of(text: str, kind: type[Operation]) -> list[Any]:
    return [op for op in parse(text).walk() if isinstance(op, kind)]


# The registry ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.NAME)
def test_every_operation_declares_effects_and_forms(kind: type[Operation]) -> None:
    declaring = next(cls for cls in kind.__mro__ if "effects" in vars(cls))
    assert issubclass(declaring, Operation) and declaring is not Operation
    assert kind.FORMS and set(kind.FORMS) <= set(FORMS)
    assert len(set(kind.FORMS)) == len(kind.FORMS)


def test_an_undeclared_effect_is_our_own_fault() -> None:
    class Silent(Operation):
        NAME = "test.silent"

    with pytest.raises(NotImplementedError, match="Silent"):
        Silent().effects()


def test_forms_hold_the_operations_that_name_them() -> None:
    for name, form in FORMS.items():
        assert form.operations == {kind for kind in OPERATIONS if name in kind.FORMS}
    names = {kind.NAME for kind in FORMS["machine"].operations}
    assert {"loop.for", "scalar.apply", "vector.splat", "func.return"} <= names
    assert not {"tile.load", "exec.serial", "buf.alloc", "tensor.map_reduce_post"} & names
    assert Load in FORMS["scheduled"].operations and Store not in FORMS["scheduled"].operations
    assert Check not in FORMS["candidate"].operations


REGIONS = {
    "exec.parallel": RegionUse.REPEATED,
    "exec.serial": RegionUse.REPEATED,
    "exec.reduce": RegionUse.REPEATED,
    "exec.pipeline": RegionUse.REPEATED,
    "loop.for": RegionUse.REPEATED,
    "exec.if": RegionUse.ALTERNATIVE,
    "loop.if": RegionUse.ALTERNATIVE,
    "tile.map": RegionUse.ELEMENTWISE,
    "tensor.map_reduce_post": RegionUse.ELEMENTWISE,
}


def test_region_uses() -> None:
    found = {kind.NAME: kind.REGION_USE for kind in OPERATIONS if kind.NAME in REGIONS}
    assert found == REGIONS
    others = [kind for kind in OPERATIONS if kind.NAME not in REGIONS]
    assert all(kind.REGION_USE is RegionUse.IN_TURN for kind in others)


# Effects ---------------------------------------------------------------------------------------


def test_effects_of_tile_operations(tiles: dict[str, Operation]) -> None:
    view = tiles["window"].operands[0]
    fault: Effect[Value] = Effect(EffectKind.FAULT)
    assert tiles["window"].effects() == (Effect(EffectKind.READ, view),)
    assert tiles["one"].effects() == (Effect(EffectKind.READ, tiles["one"].operands[0]), fault)
    for name in ("row", "sum", "left", "product"):
        assert tiles[name].effects() == ()
    plain, checked = operations_of(TILES, Store)
    assert plain.effects() == (Effect(EffectKind.WRITE, plain.view),)
    assert checked.effects() == (Effect(EffectKind.WRITE, checked.view), fault)


def test_effects_of_work_name_memory_only() -> None:
    (work,) = operations_of(WORK, MapReducePost)
    reads = [(e.kind, e.resource) for e in work.effects() if e.kind is EffectKind.READ]
    writes = [(e.kind, e.resource) for e in work.effects() if e.kind is EffectKind.WRITE]
    assert [resource for _, resource in reads] == [work.inputs[0], work.seeds[1]]
    assert [resource for _, resource in writes] == work.outputs
    found = named(WORK)
    assert found["b"].effects() == (Effect(EffectKind.ALLOCATE, found["b"].result),)
    assert found["whole"].effects() == (Effect(EffectKind.READ, found["whole"].operands[0]),)


# Loops -----------------------------------------------------------------------------------------


def test_inductions_and_carries() -> None:
    module = parse(LOOPS)
    parallel, serial, pipeline = [op for op in module.walk() if op.inductions()]
    names = [[v.name for v in (i.lower, i.upper, i.step)] for i in parallel.inductions()]
    assert names == [["zero", "n", "one"], ["one", "n", "one"]]
    assert parallel.carries() == ()

    first, second = serial.carries()
    assert (first.initial.name, first.result, first.arguments) == (
        "x",
        serial.results[0],
        (serial.body.arguments[1],),
    )
    assert first.yielded is second.arguments[0] and second.yielded is first.arguments[0]

    (carry,) = pipeline.carries()
    stages = [region.block for region in pipeline.regions]
    assert carry.arguments == (stages[0].arguments[1], stages[1].arguments[1])
    assert carry.yielded.name == "v"


def test_a_machine_loop_carries_too() -> None:
    loop = named("""
module "machine"
func @f(%n: index, %x: f32) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %end = loop.for(%zero, %n, %one, [%x]) : f32 { |%i: index, %s: f32|
    loop.yield(%s)
  }
  func.return
}
""")["end"]
    (induction,), (carry,) = loop.inductions(), loop.carries()
    assert induction.upper.name == "n"
    assert carry.arguments == (loop.body.arguments[1],) == (carry.yielded,)


# Iteration spaces ------------------------------------------------------------------------------


def points(iteration: Iteration) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(extent) for extent in iteration.extents))


def run(
    op: Operation,
    arrays: list[Array | None],
    result: Array,
    combine: Callable[..., Any],
    symbols: tuple[int, ...] = (),
) -> Array:
    """The result after combining at every point what the maps touch; outside of an array is 0."""
    iteration = op.iteration()
    assert iteration is not None and len(iteration.symbols) == len(symbols)
    (written,) = iteration.results
    for point in points(iteration):
        place = written.evaluate(point, symbols)
        read = [
            element(array, map_.evaluate(point, symbols))
            for array, map_ in zip(arrays, iteration.operands, strict=True)
            if array is not None and map_ is not None
        ]
        result[place] = combine(result[place], *read)
    return result


def element(array: Array, place: tuple[int, ...]) -> Any:
    is_inside = all(0 <= i < extent for i, extent in zip(place, array.shape, strict=True))
    return array[place] if is_inside else 0


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(np.float64)


def poison(*shape: int) -> Array:
    return np.full(shape, np.nan)


def test_iteration_of_a_load(tiles: dict[str, Operation]) -> None:
    view = numbers(9, 9)
    arrays = [view, None, None, numbers(), numbers()]
    found = run(
        tiles["window"], arrays, poison(3, 4), lambda _, e, *rest: e + 0 * sum(rest), (2, 7)
    )
    expected = np.zeros((3, 4))
    expected[:, :2] = view[2:5, 7:9]
    np.testing.assert_array_equal(found, expected)
    one = run(tiles["one"], [view, None, None], poison(), lambda _, e: e, (2, 7))
    assert one == view[2, 7]


def test_iteration_of_a_store() -> None:
    tile_store, cell_store = operations_of(TILES, Store)
    iteration = tile_store.iteration()
    assert iteration.results == () and iteration.symbols == (1, 2)
    stored, row = poison(9, 9), numbers(4)
    for point in points(iteration):
        destination, _, _, value, mask = iteration.operands
        assert mask.evaluate(point, (2, 5)) == ()
        stored[destination.evaluate(point, (2, 5))] = row[value.evaluate(point, (2, 5))]
    expected = poison(9, 9)
    expected[2:5, 5:9] = row
    np.testing.assert_array_equal(stored, expected)
    assert cell_store.iteration().dims == ()
    assert cell_store.iteration().operands[0].evaluate((), (2, 5)) == (2, 5)


def test_iteration_of_reindexing(tiles: dict[str, Operation]) -> None:
    window = numbers(3, 4)

    def take(_: Any, element: Any) -> Any:
        return element

    row = run(tiles["row"], [window, None], poison(4), take, (1,))
    np.testing.assert_array_equal(row, window[1])
    outside = run(tiles["row"], [window, None], poison(4), take, (3,))
    np.testing.assert_array_equal(outside, np.zeros(4))
    cell = run(tiles["cell"], [window, None, None], poison(), take, (2, 3))
    assert cell == window[2, 3]
    turned = run(tiles["turned"], [window], poison(4, 3), take)
    np.testing.assert_array_equal(turned, window.T)


def test_iteration_of_a_map_broadcasts_by_dims(tiles: dict[str, Operation]) -> None:
    turned, row, x = numbers(4, 3), numbers(4), numbers()
    found = run(tiles["sum"], [turned, row, x], poison(3, 4), lambda _, e, f, g: e * f + g)
    np.testing.assert_array_equal(found, turned.T * row + x)
    assert all(dim.policy is None for dim in tiles["sum"].iteration().dims)  # type: ignore[union-attr]  # asserted by run


def test_iteration_of_a_product(tiles: dict[str, Operation]) -> None:
    left, right, start = numbers(5, 2, 3), numbers(2, 4, 5), numbers(3, 2, 4)
    product = tiles["product"]
    found = run(product, [left, right, None], start.copy(), lambda state, a, b: state + a * b)
    np.testing.assert_array_equal(found, start + np.einsum("kbm,bnk->mbn", left, right))
    iteration = product.iteration()
    assert iteration is not None
    assert iteration.reduced == (3,) and iteration.dims[3] == IterationDim(5, "unordered_tree")
    seed, written = iteration.operands[2], iteration.results[0]
    assert seed == written
    ordered = tiles["inorder"].iteration()
    assert ordered is not None and ordered.dims[3] == IterationDim(5, "fold_left")


def test_iteration_of_work() -> None:
    (work,) = operations_of(WORK, MapReducePost)
    iteration = work.iteration()
    # Dim 0 is folded by the total alone, dim 1 first by the total.
    assert iteration.dims == (
        IterationDim(3, "unordered_tree"),
        IterationDim(4, "unordered_tree"),
    )
    assert iteration.results == ()
    assert [work.operands[i] for i in iteration.symbols] == work.symbols
    maps = dict(zip(work.operands, iteration.operands, strict=True))
    assert maps[work.symbols[0]] is None
    view, sums = numbers(9, 4), np.zeros(3)
    for point in points(iteration):
        first = iteration.operands[0]
        out = iteration.operands[work.SPEC.group_range(work.segments, "outputs")[0] + 1]
        sums[out.evaluate(point, (2,))] += view[first.evaluate(point, (2,))]
    np.testing.assert_array_equal(sums, view[2:5].sum(axis=1))


# Atoms -----------------------------------------------------------------------------------------


def test_requests_for_atoms(tiles: dict[str, Operation]) -> None:
    (work,) = operations_of(WORK, MapReducePost)
    whole = AffineMap.projection(2, ())
    first, second = work.atom_requests()
    assert first == AtomRequest(f"{COMBINE}add", float32, "unordered_tree", "each", whole)
    assert second is None, "no merge is known"
    assert tiles["product"].atom_requests() == ()


@pytest.mark.parametrize(
    ("law", "policy", "expected"),
    [
        (StateLaw("add"), "fold_left", (f"{COMBINE}add", "fold_left")),
        (StateLaw("maximum"), "ordered_tree", (f"{COMBINE}maximum", "ordered_tree")),
        (StateLaw("xor", is_exact=True), "fold_left", (f"{COMBINE}xor", "unordered_tree")),
    ],
)
def test_requests_for_atoms_have_the_order_of_the_contract(
    law: StateLaw, policy: str, expected: tuple[str, str]
) -> None:
    spec = ResultSpec((0,), ReductionContract(policy, (law,)))
    _, request = work_with(spec).atom_requests()
    assert request is not None
    assert (request.semantic, request.policy) == expected
    assert request.result == AffineMap.projection(2, (0,))


def test_requests_for_atoms_of_what_is_not_folded() -> None:
    _, request = work_with(ResultSpec((1, 0))).atom_requests()
    turned = AffineMap(2, 0, (DimRef(1), DimRef(0)))
    assert request == AtomRequest(MOVE, float32, None, "exact", turned)


def work_with(spec: ResultSpec) -> MapReducePost:
    """The work, with another specification of its second result."""
    work: MapReducePost
    (work,) = operations_of(WORK, MapReducePost)
    specs = (work.spec(0), spec)
    Rewriter().set_attribute(work, "specs", specs)
    return work
