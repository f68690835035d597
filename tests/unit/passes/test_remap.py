"""Rearranged nests: the interpreter gives the same bits, or nothing has changed."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import product

import numpy as np
import pytest

import tilenest as tn
from tests.unit.ir.photograph import photograph
from tests.unit.passes.remapped import CASES, captured, results
from tilenest.analysis import ExecutionStructure, chain_along, chain_to, remaps_of
from tilenest.dialects import Load, Nest, Parallel, Pipeline, Placement
from tilenest.errors import ArgumentTypeError, RemapError, TileError
from tilenest.execution import identity
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, Transaction, print_module
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES, Remapping, remap
from tilenest.passes.remap import forget_remaps
from tilenest.verify import verify_module

POINTS = list(product(range(4), repeat=3))
SEEDS = 15
STEPS = ("split", "fuse", "unite", "permute", "permute", "reshape", "coalesce", "insert", "remove")


def step(random_: random.Random, plan: Remapping) -> Remapping:
    """One random step; a step that is none leaves the plan as it is."""
    names = [level.identity for level in plan.levels.levels]
    at = random_.randrange(len(names)) if names else 0
    run = names[at : at + random_.randint(1, 3)]
    match random_.choice(STEPS):
        case "split" if names:
            return plan.split(names[at], random_.randint(1, 4))
        case "fuse" if names:
            return plan.fuse(*run)
        case "unite" if names:
            return plan.unite(*run)
        case "permute" if names:
            return plan.permute(*random_.sample(names, random_.randint(1, len(names))))
        case "reshape" if names:
            return plan.reshape(tuple(run), (random_.randint(1, 3), random_.randint(1, 8)))
        case "coalesce":
            return plan.coalesce()
        case "insert":
            depth = random_.randint(0, len(names))
            kind = random_.choice(["serial", "parallel", "pipeline", "reduce"])
            policy = "fold_left" if kind == "reduce" else ""
            name = f"u{random_.random()}"[:6].replace(".", "")
            return plan.insert_unit(depth, name, kind, policy=policy)
        case "remove" if names:
            return plan.remove_unit(names[at])
    return plan


def planned(random_: random.Random, module: Module, leaf: str) -> Remapping:
    plan = remap(module, leaf)
    for _ in range(random_.randint(1, 4)):
        try:
            plan = step(random_, plan)
        except TileError:
            continue
    return plan


@pytest.mark.parametrize("name", CASES)
def test_execution_remaps_keep_results(name: str) -> None:
    """What a remap leaves gives the same bits, whatever the order of instances; a remap that is
    refused has changed nothing."""
    case, applied, refused = CASES[name], 0, []
    expected = results(case, captured(case))
    for seed in range(SEEDS):
        random_ = random.Random(f"{name} {seed}")
        module = captured(case)
        before = photograph(module)
        plan = planned(random_, module, case.leaf)
        try:
            plan.apply()
        except RemapError as error:
            assert photograph(module) == before, str(plan)
            refused.append(error)
            continue
        applied += 1
        verify_module(module)
        assert print_module(tn.parse(print_module(module))) == print_module(module)
        for shuffle in (None, seed):
            found = results(case, module, shuffle)
            np.testing.assert_array_equal(found, expected, err_msg=f"{plan}\n{module}")
    assert applied, refused
    assert all(error.remedy for error in refused)


class InjectedError(Exception):
    """Not an error of the package."""


class WatchedRewriter(Rewriter):
    """Calls a function before every primitive change of a transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.watch: Callable[[], None] | None = None

    def transaction(
        self, before_step: Callable[[], None] | None = None
    ) -> AbstractContextManager[Transaction]:
        return super().transaction(before_step or self.watch)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        (
            "gemm",
            lambda plan: plan.split("step", 2).fuse("block_0", "block_1"),
        ),
        ("run_time", lambda plan: plan.split("step", 2).split("block", 4)),
        ("passages", lambda plan: plan.fuse("outer", "inner").fuse("first", "second")),
        ("units", lambda plan: plan.coalesce()),
        ("patched", lambda plan: plan.permute("j", "i")),
    ],
)
def test_execution_remaps_are_undone_whole(name: str, steps: Callable[..., Remapping]) -> None:
    """A failure before any one of the primitive changes leaves text, uses and answers as they
    were; then the same remap goes through."""
    module = captured(CASES[name])
    function = module.functions.first
    assert function is not None
    rewriter = WatchedRewriter()
    rewriter.analyses.get(ExecutionStructure, function)
    before = photograph(module)
    n_changes = 0

    def count() -> None:
        nonlocal n_changes
        n_changes += 1

    counting = WatchedRewriter()
    counting.watch = count
    steps(remap(captured(CASES[name]), CASES[name].leaf)).apply(counting)
    assert n_changes > 10
    for allowed in range(n_changes):
        left = iter(range(allowed))

        def fail(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise InjectedError

        rewriter.watch = fail
        with pytest.raises(InjectedError):
            steps(remap(module, CASES[name].leaf)).apply(rewriter)
        assert photograph(module) == before
        rewriter.analyses.check()
    rewriter.watch = None
    steps(remap(module, CASES[name].leaf)).apply(rewriter)
    rewriter.analyses.check()
    assert photograph(module) != before


def test_execution_remaps_follow_each_other() -> None:
    """A remap begins at the levels that the one before it left; the function remembers both."""
    case = CASES["gemm"]
    expected = results(case, captured(case))
    module = captured(case)
    remap(module, "step").split("step", 2).apply()
    remap(module, "step_inner").split("step_outer", 2).permute("block_1", "block_0").apply()
    np.testing.assert_array_equal(results(case, module), expected)
    function = module.functions.first
    assert function is not None
    assert [applied.steps[0] for applied in remaps_of(function)] == [
        "split step by 2 into step.0, step.1",
        "split step_outer by 2 into step_outer.0, step_outer.1",
    ]


@pytest.mark.parametrize(
    "turns",
    [
        (
            lambda module: remap(module, "outer").split("outer", 3),
            lambda module: remap(module, "inner").split("inner", 2),
        ),
        (
            lambda module: remap(module, "inner").split("inner", 2),
            lambda module: remap(module, "outer").split("outer", 3),
        ),
        (
            lambda module: remap(module, "second").split("second", 2),
            lambda module: remap(module, "outer").split("outer", 2),
            lambda module: remap(module, "inner").split("inner", 3),
        ),
        (
            lambda module: remap(module, "first").insert_unit(1, "once"),
            lambda module: remap(module, "once").remove_unit("once"),
            lambda module: remap(module, "first").split("first", 1),
        ),
    ],
)
def test_execution_remaps_of_nests_around_and_inside_follow_each_other(
    turns: tuple[Callable[[Module], Remapping], ...],
) -> None:
    case = CASES["passages"]
    module = captured(case)
    expected = results(case, module)
    for turn in turns:
        turn(module).apply()
        np.testing.assert_array_equal(results(case, module), expected)
    (function,) = module.functions
    assert len(remaps_of(function)) == len(turns)
    verify_module(tn.parse(print_module(module)))


def test_execution_remaps_are_forgotten_by_whoever_changes_the_nests() -> None:
    module = captured(CASES["gemm"])
    before = print_module(module)
    (function,) = module.functions
    forget_remaps(function, Rewriter())
    assert print_module(module) == before
    remap(module, "step").split("step", 2).apply()
    forget_remaps(function, Rewriter())
    assert not remaps_of(function)
    # The compiler is the first of these.
    remap(module, "step_inner").apply()
    (_, first), *_ = SCHEDULE_PASSES
    list(first(module, cpu_target(AVX2), Rewriter()))
    assert not remaps_of(function)


def test_execution_remaps_of_nests_that_changed_are_refused() -> None:
    module = captured(CASES["gemm"])
    first, second = remap(module, "step"), remap(module, "step")
    first.split("step", 2).apply()
    with pytest.raises(RemapError, match="nests have changed"):
        second.split("step", 5).apply()


@pytest.mark.parametrize(
    ("name", "steps", "message"),
    [
        ("gemm", lambda plan: plan.permute("step", "block_0"), "'prefix once' of anchor 'tile.map"),
        ("ordered", lambda plan: plan.permute("column", "step"), "'owner order' of owner 'what"),
        ("owned", lambda plan: plan.fuse("row", "step"), "different kinds cannot be fused"),
        ("staged", lambda plan: plan.split("step", 2), "pipeline with stages"),
        ("patched", lambda plan: plan.split("i", 2), "one nest of its own"),
        ("folded", lambda plan: plan.insert_unit(2, "u", "parallel"), "states are handed on"),
    ],
)
def test_execution_remaps_are_refused(
    name: str, steps: Callable[..., Remapping], message: str
) -> None:
    """With the law and whoever it protects, and a remedy."""
    module = captured(CASES[name])
    before = photograph(module)
    with pytest.raises(RemapError, match=message) as refused:
        steps(remap(module, CASES[name].leaf)).apply()
    assert refused.value.remedy
    assert photograph(module) == before


SYNC = """module "candidate"

func @sync(%A: view<i32, [?], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.parallel(lower = [%c0, %c0], upper = [%c1, %c4], step = [%c1, %c1]) {
  |%one: index, %i: index|
    exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%k: index|
      %x = tile.load(%A, [%i]) : i32
      exec.sync
      tile.store(%A, [%i], %x)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("steps", "is_legal"),
    [
        (lambda plan: plan.permute("i", "one"), True),
        (lambda plan: plan.remove_unit("one"), True),
        (lambda plan: plan.split("k", 2), True),
        (lambda plan: plan.split("i", 2), True),
        (lambda plan: plan.split("i", 3), False),
        (lambda plan: plan.split("k", 3), False),
        (lambda plan: plan.insert_unit(3, "u", "parallel"), False),
        (lambda plan: plan.insert_unit(1, "u", "parallel"), False),
    ],
)
def test_execution_remaps_keep_who_waits(
    steps: Callable[[Remapping], Remapping], is_legal: bool
) -> None:
    """The instances that meet at a sync stay one group."""
    module = tn.parse(SYNC)
    plan = steps(remap(module, "k"))
    if is_legal:
        plan.apply()
        verify_module(module)
    else:
        with pytest.raises(RemapError):
            plan.apply()


@pytest.mark.parametrize(
    "steps",
    [
        lambda plan: plan.unite("row", "column"),
        lambda plan: plan.fuse("row", "column"),
        lambda plan: plan.permute("column", "row").split("row", 2),
        lambda plan: plan.insert_unit(0, "u"),
    ],
)
def test_execution_remaps_around_a_pipeline(steps: Callable[[Remapping], Remapping]) -> None:
    """The levels around a staged pipeline move, and the pipeline stays the one it is."""
    case = CASES["pipelined"]
    module = captured(case)
    expected = results(case, module)
    (pipeline,) = [op for op in module.walk() if isinstance(op, Pipeline)]
    steps(remap(module, case.leaf)).apply()
    verify_module(module)
    assert [op for op in module.walk() if isinstance(op, Pipeline)] == [pipeline]
    np.testing.assert_array_equal(results(case, module), expected)
    with pytest.raises(RemapError, match="pipeline with stages cannot be rearranged"):
        remap(module, case.leaf).split("step", 2).apply()


STATED = """module "candidate"

func @main(%A: view<i32, [4, 5], [5, 1]>, %C: view<i32, [4, 5], [5, 1]>) with (
    alias_groups = [0, 1]
) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  %c5 = scalar.constant 5 : index
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    exec.pipeline(
        lower = [%c0], upper = [%c5], step = [%c1], stage_names = ["copy"], dependences = []
    ) { |%k: index|
      %x = tile.load(%A, [%i, %k]) : i32
      tile.store(%C, [%i, %k], %x)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


def test_execution_remaps_around_a_stated_pipeline_of_one_stage() -> None:
    """It stays as well, where nothing else stands in the nest around it."""
    module = tn.parse(STATED)
    verify_module(module)
    (pipeline,) = [op for op in module.walk() if isinstance(op, Pipeline)]
    remap(module, "k").split("i", 2).apply()
    assert [op for op in module.walk() if isinstance(op, Pipeline)] == [pipeline]
    source, target = np.arange(20, dtype=np.int32).reshape(4, 5), np.full((4, 5), 77, np.int32)
    interpret(module, [source, target])
    np.testing.assert_array_equal(target, source)


def test_execution_remaps_repeat_what_may_be_repeated() -> None:
    """Two nests with a read between them become one where the read is re-anchored, and the record
    says so; without that they are refused."""
    case = CASES["scaled"]
    module = captured(case)
    expected = results(case, module)
    plan = remap(module, case.leaf).unite("row", "column")
    plan.apply()
    assert len([op for op in module.walk() if isinstance(op, Parallel)]) == 2
    module = captured(case)
    plan = remap(module, case.leaf).unite("row", "column")
    (repeatable,) = [one for one in plan.observers if one.is_repeatable]
    plan.reanchor(repeatable, 2).apply()
    (nest,) = [op for op in module.walk() if isinstance(op, Parallel)]
    assert nest.rank == 2
    np.testing.assert_array_equal(results(case, module), expected)
    (function,) = module.functions
    (applied,) = remaps_of(function)
    assert [one.moved for one in applied.observers if one.repeatable] == [2]
    assert print_module(tn.parse(print_module(module))) == print_module(module)
    verify_module(tn.parse(print_module(module)))


def test_execution_remaps_name_the_nests_there_are() -> None:
    module = captured(CASES["ordered"])
    with pytest.raises(RemapError, match="no runs of nests with a level 'k'") as refused:
        remap(module, "k")
    assert refused.value.remedy is not None and "column" in refused.value.remedy
    assert remap(module).levels == remap(module, "column").levels


def test_execution_remaps_name_the_functions_there_are() -> None:
    module = captured(CASES["ordered"])
    with pytest.raises(RemapError, match="no function 'g'") as refused:
        remap(module, function="g")
    (function,) = module.functions
    assert refused.value.remedy is not None and function.name in refused.value.remedy
    with pytest.raises(RemapError, match="has no function"):
        remap(Module())
    with pytest.raises(ArgumentTypeError, match="levels of a str"):
        remap("column")  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (remap, "the level of a nest is"),
        (lambda module, what: remap(module, function=what), "the name of a function is"),
        (lambda module, what: remap(module, "step").apply(what), "who applies a remap is"),
        (lambda module, what: remap(module, "step").reanchor(what, 1), "who runs deeper is"),
    ],
)
def test_execution_remaps_of_wrong_kinds_are_refused(
    misuse: Callable[[Module, object], object], message: str
) -> None:
    for what in (np.zeros(3), 1.5, ["step"]):
        with pytest.raises(ArgumentTypeError, match=message) as refused:
            misuse(captured(CASES["gemm"]), what)
        assert refused.value.remedy


PLACED = """module "candidate"
dim %d0 "m" = 4

func @main(%A: view<f32, [16], [1]>, %B: view<f32, [16], [1]>) with (alias_groups = [0, 1]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    %at = scalar.apply "mul"(%i, %c4) : index
    exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%k: index|
      %x = tile.load(
          %A,
          [%at],
          place = #placement<anchor = 1, frontier = 2, active = (d0, d1) -> (-d1 + 2)>
      ) : tile<f32, %d0>
      tile.store(%B, [%at], %x, dims = [%d0])
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("steps", "anchor", "frontier", "active"),
    [
        (lambda plan: plan.split("k", 2), 1, 3, {p for p in POINTS if 2 * p[1] + p[2] < 3}),
        (lambda plan: plan.split("i", 2), 2, 3, {p for p in POINTS if p[2] < 3}),
        (lambda plan: plan.insert_unit(0, "u"), 2, 3, {p for p in POINTS if p[2] < 3}),
    ],
)
def test_execution_remaps_move_places(
    steps: Callable[..., Remapping], anchor: int, frontier: int, active: set[tuple[int, ...]]
) -> None:
    """What says where it runs says so in the new levels: the same instances, and as deep."""
    module = tn.parse(PLACED)
    steps(remap(module)).apply()
    load = next(op for op in module.walk() if isinstance(op, Load))
    placement = load.place
    assert isinstance(placement, Placement)
    assert (placement.anchor, placement.frontier) == (anchor, frontier)
    assert placement.active is not None
    found = {point for point in POINTS if min(placement.active.evaluate(point)) >= 0}
    assert found == active


@pytest.mark.parametrize(("depth", "count"), [(1, 1), (2, 2)])
def test_execution_remaps_leave_places_in_other_nests(depth: int, count: int) -> None:
    module = tn.parse(PLACED)
    remap(module).insert_unit(depth, "u").apply()
    load = next(op for op in module.walk() if isinstance(op, Load))
    Rewriter().set_attribute(load, "place", Placement(1, 3))
    (steps,) = [n for n in module.walk() if isinstance(n, Nest) and n.body.arguments[0].name == "k"]
    chain = chain_along(chain_to(steps).nests[-count:])
    assert chain is not None
    Remapping(module, chain, identity(chain.structure)).split("k", 2).apply()
    assert load.place == Placement(1, 4)


def test_execution_remaps_keep_places_apart() -> None:
    """A load that runs once a row cannot run once for two of them."""
    module = tn.parse(PLACED)
    before = photograph(module)
    with pytest.raises(RemapError, match="anchor"):
        remap(module).permute("k", "i").apply()
    assert photograph(module) == before
