"""What is said of nests beyond their levels: it goes where it holds, or the remap is refused.

The judge of results is NumPy in whole numbers: a law that is said of the wrong steps shows as soon
as the compiler makes use of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.ir.photograph import photograph
from tests.unit.passes.lowering import lowered
from tests.unit.passes.remapped import same_instances
from tilenest.dialects import (
    Nest,
    OrderingContract,
    Parallel,
    Pipeline,
    PipelineSchedule,
    Reduce,
    ReductionContract,
    Serial,
    StateLaw,
)
from tilenest.errors import RemapError
from tilenest.execution import ExecStructure
from tilenest.interp import interpret
from tilenest.ir import INDEX, Module, Rewriter, Variable, print_module
from tilenest.machine import AVX2
from tilenest.passes import Remapping, remap
from tilenest.records import replace

Step = Callable[[Remapping], Remapping]
TRUSTED = (
    'laws = [#state_law<merge = "@join", identity = 0, is_exact = true>], provenance = "trusted"'
)
ROWS = 72


def program(outer: str, inner: str, body: str = "sub", columns: int = 2) -> Module:
    """Two nests without anything between. Two steps of `x - s` are one of `s + (y - x)`, so that a
    sum is a law of the outer steps alone."""
    module: Module = tn.parse(f"""module "candidate"

func @f(%A: view<i32, [{ROWS}, {columns}], [{columns}, 1]>, %B: view<i32, [1], [1]>) with (
    alias_groups = [0, 1]
) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %end = scalar.constant {columns} : index
  %rows = scalar.constant {ROWS} : index
  %z = scalar.constant 0 : i32
  %r = exec.{nest_of("rows", "%z", outer)} : i32 {{ |%i: index, %s: i32|
    %q = exec.{nest_of("end", "%s", inner)} : i32 {{ |%j: index, %t: i32|
      %x = tile.load(%A, [%i, %j]) : i32
      %b = scalar.apply "{body}"(%x, %t) : i32
      exec.yield(%b)
    }}
    exec.yield(%q)
  }}
  tile.store(%B, [%c0], %r)
  func.return
}}

func @join(%a: i32, %b: i32) -> (i32) {{
  %c = scalar.apply "add"(%a, %b) : i32
  func.return(%c)
}}
""")
    return module


def nest_of(end: str, initial: str, text: str) -> str:
    name, _, attributes = text.partition(" ")
    said = f", {attributes}" if attributes else ""
    return f"{name}(lower = [%c0], upper = [%{end}], step = [%c1], initial = [{initial}]{said})"


def reduce(policy: str, laws: str = "") -> str:
    return f'reduce contract = #reduction_contract<policy = "{policy}"{laws and ", " + laws}>'


def source_of(columns: int = 2) -> Any:
    return np.random.default_rng(3).integers(-100, 100, (ROWS, columns)).astype(np.int32)


def interpreted(module: Module, source: Any) -> int:
    target = np.full(3, 77, np.int32)
    interpret(module, [source, target[1:2]])
    assert target[0] == target[2] == 77
    return int(target[1])


def check_results(module: Module, expected: int, columns: int = 2) -> None:
    """The number that is expected, now and after each step of the compiler."""
    source = source_of(columns)
    assert interpreted(module, source) == expected
    for name, step in lowered(module, AVX2):
        assert interpreted(step, source) == expected, name


def folded(source: Any) -> int:
    total = 0
    for x in source.ravel():
        total = int(x) - total
    return total


def nests(module: Module) -> list[Nest]:
    return [op for op in module.walk() if isinstance(op, Nest)]


def refused(module: Module, step: Step, *words: str, leaf: str = "j") -> RemapError:
    before = photograph(module)
    with pytest.raises(RemapError) as caught:
        step(remap(module, leaf, function="f")).apply()
    for word in words:
        assert word in caught.value.message
    assert caught.value.remedy and caught.value.location is not None
    assert photograph(module) == before
    return caught.value


# Laws ------------------------------------------------------------------------------------------


def test_a_law_of_the_outer_steps_is_none_of_the_inner_ones() -> None:
    module = program(reduce("fold_left", TRUSTED), reduce("fold_left"))
    fused = lambda plan: plan.fuse("i", "j")  # noqa: E731  # one of several steps
    refused(module, fused, "exec.reduce of i", "exec.reduce of j", "`contract.laws`")
    refused(module, lambda plan: plan.unite("i", "j"), "`contract.laws`", "`contract.provenance`")
    check_results(module, folded(source_of()))


def test_a_law_of_all_steps_stays() -> None:
    source = source_of()
    steps: list[Step] = [
        lambda plan: plan.fuse("i", "j"),
        lambda plan: plan.unite("i", "j").split("j", 2),
    ]
    for step in steps:
        module = program(reduce("fold_left", TRUSTED), reduce("fold_left", TRUSTED), body="add")
        step(remap(module, "j", function="f")).apply()
        (nest,) = nests(module)
        assert isinstance(nest, Reduce) and nest.contract.functions == {"join"}
        check_results(module, int(source.sum()))


@pytest.mark.parametrize(
    "step",
    [
        lambda plan: plan.split("i", 8),
        lambda plan: plan.split("i", 7),
        lambda plan: plan.split("j", 2),
        lambda plan: plan.split("j", 1).split("i", 9),
    ],
)
@pytest.mark.parametrize("inner", ["serial", "reduce", "pipeline window = 3"])
def test_a_law_stays_with_the_steps_it_is_of(step: Step, inner: str) -> None:
    """What is inside of them may change, as long as it stays there."""
    kind = reduce("fold_left") if inner == "reduce" else inner
    module = program(reduce("fold_left", TRUSTED), kind)
    step(remap(module, "j", function="f")).apply()
    outer, within, *_ = nests(module)
    assert isinstance(outer, Reduce) and outer.contract.functions == {"join"}
    assert not (isinstance(within, Reduce) and within.contract.laws)
    assert not isinstance(within, Pipeline) or within.window == 3
    check_results(module, folded(source_of()))


def test_a_law_of_steps_is_none_of_their_parts() -> None:
    """The serial levels go around: what was one step are two, at two times."""
    module = program(reduce("unordered_tree", TRUSTED), "serial")
    around = lambda plan: plan.permute("j", "i")  # noqa: E731  # as above
    refused(module, around, "the steps of exec.reduce of i", "`contract.laws`")
    check_results(module, folded(source_of()))


def test_a_law_of_steps_is_one_of_several_together() -> None:
    module = program(
        reduce("unordered_tree", TRUSTED), reduce("unordered_tree", TRUSTED), body="add"
    )
    remap(module, "j", function="f").permute("j", "i").apply()
    assert [n.contract.functions for n in nests(module) if isinstance(n, Reduce)] == [
        {"join"},
        {"join"},
    ]
    check_results(module, int(source_of().sum()))


# Everything that a class of nests declares --------------------------------------------------------

SCHEDULE = PipelineSchedule(1, (0,), (0,))
DIFFERENT: dict[tuple[type[Nest], str], tuple[object, object]] = {
    (Parallel, "scope"): ("auto", "group"),
    (Serial, "schedule"): (None, SCHEDULE),
    (Reduce, "contract"): (
        ReductionContract("fold_left"),
        ReductionContract("fold_left", (StateLaw("@join", 0),), provenance="trusted"),
    ),
    (Reduce, "ordering"): (None, OrderingContract(INDEX, order="source")),
    (Pipeline, "window"): (2, 4),
    (Pipeline, "interval"): (1, 2),
    (Pipeline, "stage_names"): (("a",), ("b",)),
    (Pipeline, "dependences"): (None, ()),
    (Pipeline, "schedule"): (None, SCHEDULE),
}


def test_nothing_that_a_nest_declares_is_left_out() -> None:
    declared = {
        (cls, field.name)
        for cls in (Parallel, Serial, Reduce, Pipeline)
        for field in cls.SPEC.attributes
    }
    assert declared == set(DIFFERENT)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("cls", "name"), DIFFERENT, ids=[f"{cls.NAME} {name}" for cls, name in DIFFERENT]
)
def test_nests_that_differ_are_not_made_one(cls: type[Nest], name: str, is_first: bool) -> None:
    kind = reduce("fold_left") if cls is Reduce else cls.LEVELS
    if cls is Parallel:
        module: Module = tn.parse(GRID)
    else:
        module = program(kind, kind)
    pair = nests(module)
    one, other = DIFFERENT[cls, name]
    for nest, value in zip(pair if is_first else reversed(pair), (one, other), strict=True):
        Rewriter().set_attribute(nest, name, value)
    before, said = photograph(module), [nest.attributes[name] for nest in pair]
    with pytest.raises(RemapError) as caught:
        remap(module, "j", function="f").fuse("i", "j").apply()
    assert caught.value.remedy
    assert photograph(module) == before
    try:
        remap(module, "j", function="f").unite("i", "j").apply()
    except RemapError:
        assert photograph(module) == before
    # Where something holds them apart, they are two nests still.
    assert [nest.attributes[name] for nest in nests(module)] == said


GRID = """module "candidate"

func @f(%A: view<i32, [4, 3], [3, 1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c3 = scalar.constant 3 : index
  %c4 = scalar.constant 4 : index
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    exec.parallel(lower = [%c0], upper = [%c3], step = [%c1]) { |%j: index|
      %x = tile.load(%A, [%i, %j]) : i32
      %y = scalar.apply "add"(%x, %x) : i32
      tile.store(%A, [%i, %j], %y)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize("windows", [(2, 2), (0, 0)])
def test_pipelines_of_one_window_become_one_of_it(windows: tuple[int, int]) -> None:
    one, other = (f"pipeline window = {window}" for window in windows)
    module = program(one, other)
    remap(module, "j", function="f").fuse("i", "j").apply()
    (nest,) = nests(module)
    assert isinstance(nest, Pipeline) and nest.window == windows[0]
    check_results(module, folded(source_of()))


def test_what_is_left_open_stays_open() -> None:
    """A variable says nothing of any steps yet, but two of them are not one."""
    module = program("pipeline", "pipeline")
    outer, inner = nests(module)
    for nest in (outer, inner):
        Rewriter().set_attribute(nest, "window", Variable("w"))
    remap(module, "j", function="f").split("i", 8).fuse("i.1", "j").apply()
    assert [nest.attributes["window"] for nest in nests(module)] == [Variable("w")]
    module = program("pipeline", "pipeline")
    Rewriter().set_attribute(nests(module)[0], "window", Variable("w"))
    refused(module, lambda plan: plan.fuse("i", "j"), "`window`")
    module = tn.parse(GRID)
    Rewriter().set_attribute(nests(module)[0], "scope", Variable("s"))
    remap(module, "j").permute("j", "i").apply()
    assert [nest.attributes["scope"] for nest in nests(module)] == ["auto", Variable("s")]


@pytest.mark.parametrize("kind", ["serial", "pipeline"])
def test_iterations_that_a_schedule_counts_stay(kind: str) -> None:
    module = program(kind, kind)
    Rewriter().set_attribute(nests(module)[1], "schedule", SCHEDULE)
    refused(module, lambda plan: plan.split("j", 2), "dependences of its stages count iterations")


def test_zeros_of_both_signs_are_different_laws() -> None:
    module = program(reduce("fold_left"), reduce("fold_left"))
    for nest, zero in zip(nests(module), (0.0, -0.0), strict=True):
        law = StateLaw("@join", zero)
        contract = ReductionContract("fold_left", (law,), provenance="trusted")
        Rewriter().set_attribute(nest, "contract", contract)
    refused(module, lambda plan: plan.fuse("i", "j"), "`contract.laws`")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pipeline window = 2", Serial),
        ("serial", Pipeline),
        (reduce("fold_left", TRUSTED), Serial),
    ],
)
def test_a_level_of_one_instance_that_becomes_another_kind_says_nothing(
    before: str, after: type[Serial | Pipeline]
) -> None:
    module = program("serial", before, columns=1)
    plan = remap(module, "j", function="f")
    outer, inner = plan.levels.levels
    levels = (outer, replace(inner, kind=after.LEVELS, policy="", nest="own"))
    plan.then(same_instances(plan.levels, ExecStructure(levels))).apply()
    assert [type(nest) for nest in nests(module)] == [Serial, after]
    check_results(module, folded(source_of(1)), columns=1)


# Scopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scopes", [("group", "group"), ("group", "worker"), ("auto", "worker")])
def test_scopes_stay_with_their_levels(scopes: tuple[str, str]) -> None:
    module = tn.parse(GRID)
    for nest, scope in zip(nests(module), scopes, strict=True):
        Rewriter().set_attribute(nest, "scope", scope)
    remap(module, "j").split("i", 2).split("j", 2).apply()
    outer, inner = (n for n in nests(module) if isinstance(n, Parallel))
    assert (outer.scope, inner.scope) == scopes
    plan = remap(module, "j_inner")
    if scopes[0] != scopes[1]:
        with pytest.raises(RemapError, match="of different kinds cannot be fused"):
            plan.fuse("i_inner", "j_outer")
        return
    plan.fuse("i_inner", "j_outer").apply()
    assert {n.scope for n in nests(module) if isinstance(n, Parallel)} == {scopes[0]}


def test_a_step_cannot_change_a_scope() -> None:
    module = tn.parse(GRID)
    plan = remap(module, "j")
    for place in range(2):
        levels = list(plan.levels.levels)
        levels[place] = replace(levels[place], scope="group")
        step = same_instances(plan.levels, ExecStructure(tuple(levels)))
        before = print_module(module)
        with pytest.raises(RemapError, match="breaks the law 'kind' of the levels") as caught:
            plan.then(step).apply()
        assert caught.value.remedy and "scope" in caught.value.remedy
        assert print_module(module) == before
