"""Reductions whose states meet by a function of the module: in parts, compiled, against a chain.

In: contributions, seeds and contracts as text. Out: the composition of affine maps, which does not
commute, has the bits of a chain in whichever parts a contract allows; mean and deviation by the
merge of Chan agree with NumPy in double precision.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.passes.lowering import lowered
from tilenest.dialects import MapReducePost, Reduce
from tilenest.driver import Captured, capture_kernel
from tilenest.errors import VerifyError
from tilenest.interp import interpret
from tilenest.ir import Module, clone_module
from tilenest.machine import AVX2
from tilenest.records import replace
from tilenest.runtime import Variant
from tilenest.verify import verify_module

AFFINE = """
module "candidate"

func @main(%A: view<i32, [{n}], [1]>, %B: view<i32, [{n}], [1]>, %Y: view<i32, [2], [1]>) {{
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %n = scalar.constant {n} : index
  %x = scalar.constant 5 : i32
  %y = scalar.constant -7 : i32
  %scale, %shift = exec.reduce(
      lower = [%zero], upper = [%n], step = [%one], initial = [%x, %y],
      contract = #reduction_contract<
        policy = "{policy}",
        laws = [#state_law<merge = "@{merge}", {one}is_exact = {exact}>,
                #state_law<merge = "@{merge}", {zero}is_exact = {exact}>],
        orientation = "{orientation}", provenance = "trusted">
  ) : (i32, i32) {regions}
  tile.store(%Y, [%zero], %scale)
  tile.store(%Y, [%one], %shift)
  func.return
}}

func @{merge}({arguments}) -> (i32, i32) {{
  %s = scalar.apply "mul"(%s0, %s1) : i32
  %t = scalar.apply "mul"(%t0, %s1) : i32
  %u = scalar.apply "add"(%t, %t1) : i32
  func.return(%s, %u)
}}
"""
WHOLE = """{ |%i: index, %s: i32, %t: i32|
    %a = tile.load(%A, [%i]) : i32
    %b = tile.load(%B, [%i]) : i32
    %s1 = scalar.apply "mul"(%s, %a) : i32
    %t1 = scalar.apply "mul"(%t, %a) : i32
    %t2 = scalar.apply "add"(%t1, %b) : i32
    exec.yield(%s1, %t2)
  }"""
LIFTED = """{ |%i: index, %s: i32, %t: i32|
    %a = tile.load(%A, [%i]) : i32
    %b = tile.load(%B, [%i]) : i32
    exec.yield(%a, %b)
  } { |%i: index, %s: i32, %t: i32, %a: i32, %b: i32|
    %s1 = scalar.apply "mul"(%s, %a) : i32
    %t1 = scalar.apply "mul"(%t, %a) : i32
    %t2 = scalar.apply "add"(%t1, %b) : i32
    exec.yield(%s1, %t2)
  }"""
STARTS = {
    "identity": {"one": "identity = 1, ", "zero": "identity = 0, ", "regions": WHOLE},
    "lift": {"one": "", "zero": "", "regions": LIFTED},
    "both": {"one": "identity = 1, ", "zero": "identity = 0, ", "regions": LIFTED},
}
SIDES = {
    "state_first": "%s0: i32, %t0: i32, %s1: i32, %t1: i32",
    "element_first": "%s1: i32, %t1: i32, %s0: i32, %t0: i32",
}


def affine(
    n: int, policy: str, orientation: str, exact: bool, sides: str = "", start: str = "identity"
) -> Module:
    text = AFFINE.format(
        **STARTS[start],
        n=n,
        policy=policy,
        merge="then",
        orientation=orientation,
        exact=str(exact).lower(),
        arguments=SIDES[sides or orientation],
    )
    module = tn.parse(text)
    verify_module(module)
    return module


def composed(a: Any, b: Any) -> list[int]:
    scale, shift = 5, -7
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        scale, shift = scale * x, shift * x + y
    return [(value + 2**31) % 2**32 - 2**31 for value in (scale, shift)]


def two_inputs(A: Any, B: Any, Y: Any) -> None:
    Y(0, 1).store(A[0, 1] + B[0, 1])


def compiled(module: Module, arrays: Sequence[Any]) -> Any:
    """What machine code for the module leaves in the last array."""
    specs = [tn.spec(array.shape, tn.int32) for array in arrays]
    assert isinstance(two_inputs, FunctionType)
    shell: Captured = capture_kernel(two_inputs, specs, {})
    variant = Variant(replace(shell, name="main", module=module, text=str(module)))
    assert variant.loaded().function(*arrays) == 0
    return arrays[-1]


def folds(module: Module) -> list[int]:
    """How many cells each fold has."""
    works = [op for op in module.walk() if isinstance(op, MapReducePost) and op.folded_results]
    return [math.prod(op.extents[dim] for dim in op.spec(0).dims) for op in works]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILENEST_CACHE", "0")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("n", "orientation"),
    [(63, "state_first"), (64, "element_first"), (200, "state_first"), (200, "element_first")],
)
def test_tn09_parts_that_do_not_commute_meet_in_source_order(
    n: int, orientation: str, start: str
) -> None:
    chance = np.random.default_rng(n)
    a, b = (chance.integers(-(2**31), 2**31, n, dtype=np.int32) for _ in range(2))
    wanted = composed(a, b)
    for policy, exact in (("ordered_tree", False), ("fold_left", True)):
        module = affine(n, policy, orientation, exact, start=start)
        steps = itertools.chain([("capture", module)], lowered(clone_module(module), AVX2))
        for name, state in steps:
            y = np.zeros(2, np.int32)
            if state.form != "machine":
                interpret(state, [a, b, y])
                assert y.tolist() == wanted, (policy, name)
            if name == "lift":
                assert folds(state) == ([1, 1] if n < 64 else [16, 1] if n == 64 else [16, 1, 1])
                assert [f.name for f in state.functions] == ["main"]
        y = np.zeros(2, np.int32)
        assert compiled(module, [a, b, y]).tolist() == wanted


def test_tn09_parts_meet_on_the_side_that_the_contract_says() -> None:
    """A merge that takes its sides the other way round gives something else."""
    a = np.arange(3, 3 + 64, dtype=np.int32)
    b = np.arange(64, dtype=np.int32)
    module = affine(64, "ordered_tree", "state_first", False, "element_first")
    y = np.zeros(2, np.int32)
    assert compiled(module, [a, b, y]).tolist() != composed(a, b)


@pytest.mark.parametrize("policy", ["fold_left", "fold_right"])
def test_tn09_a_chain_never_folds_in_parts(policy: str) -> None:
    module = affine(200, policy, "state_first", False)
    (state,) = (m for name, m in itertools.islice(lowered(module, AVX2), 20) if name == "lift")
    assert folds(state) == [1, 1]


CHAN = """
module "candidate"

func @main(%A: view<f32, [{n}, {m}], [{m}, 1]>, %Y: view<f32, [2], [1]>) {{
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %n = scalar.constant {n} : index
  %m = scalar.constant {m} : index
  %none = scalar.constant 0.0 : f32
  %count, %mean, %square = exec.reduce(
      lower = [%zero, %zero], upper = [%n, %m], step = [%one, %one],
      initial = [%none, %none, %none],
      contract = #reduction_contract<
        policy = "{policy}",
        laws = [#state_law<merge = "@chan", identity = 0.0>,
                #state_law<merge = "@chan", identity = 0.0>,
                #state_law<merge = "@chan", identity = 0.0>],
        provenance = "trusted">
  ) : (f32, f32, f32) {{ |%i: index, %j: index, %c: f32, %u: f32, %s: f32|
    %x = tile.load(%A, [%i, %j]) : f32
    %unit = scalar.constant 1.0 : f32
    %c1 = scalar.apply "add"(%c, %unit) : f32
    %d = scalar.apply "sub"(%x, %u) : f32
    %q = scalar.apply "div"(%d, %c1) : f32
    %u1 = scalar.apply "add"(%u, %q) : f32
    %e = scalar.apply "sub"(%x, %u1) : f32
    %p = scalar.apply "mul"(%d, %e) : f32
    %s1 = scalar.apply "add"(%s, %p) : f32
    exec.yield(%c1, %u1, %s1)
  }}
  tile.store(%Y, [%zero], %mean)
  tile.store(%Y, [%one], %square)
  func.return
}}

func @chan(%c: f32, %u: f32, %s: f32, %d: f32, %v: f32, %t: f32) -> (f32, f32, f32) {{
  %unit = scalar.constant 1.0 : f32
  %n = scalar.apply "add"(%c, %d) : f32
  %least = scalar.apply "maximum"(%n, %unit) : f32
  %delta = scalar.apply "sub"(%v, %u) : f32
  %share = scalar.apply "div"(%d, %least) : f32
  %move = scalar.apply "mul"(%delta, %share) : f32
  %w = scalar.apply "add"(%u, %move) : f32
  %a = scalar.apply "mul"(%delta, %delta) : f32
  %b = scalar.apply "mul"(%a, %c) : f32
  %g = scalar.apply "mul"(%b, %share) : f32
  %h = scalar.apply "add"(%s, %t) : f32
  %r = scalar.apply "add"(%h, %g) : f32
  func.return(%n, %w, %r)
}}
"""


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree"])
@pytest.mark.parametrize("shape", [(1, 1000), (70, 37), (3, 5)])
def test_tn09_means_meet_by_the_merge_of_chan(shape: tuple[int, int], policy: str) -> None:
    n, m = shape
    module = tn.parse(CHAN.format(n=n, m=m, policy=policy))
    verify_module(module)
    values = np.random.default_rng(m).normal(3, 2, shape).astype(np.float32)
    exact = values.astype(np.float64)
    wanted = [exact.mean(), ((exact - exact.mean()) ** 2).sum()]
    for name, state in lowered(clone_module(module), AVX2):
        if state.form != "machine":
            y = np.full(2, np.nan, np.float32)
            interpret(state, [values, y])
            assert np.allclose(y, wanted, rtol=2e-5), name
        is_long = (m if policy == "unordered_tree" else n) >= 64
        if name == "lift":
            assert not any(isinstance(op, Reduce) for op in state.walk())
            assert (16 in folds(state)) == is_long


def test_tn09_a_merge_without_an_identity_or_a_lift_is_refused() -> None:
    text = CHAN.format(n=4, m=4, policy="ordered_tree").replace(", identity = 0.0", "")
    with pytest.raises(VerifyError, match="@chan has no identity"):
        verify_module(tn.parse(text))


def test_tn09_a_lift_is_of_elements_alone_and_gives_states() -> None:
    text = str(affine(64, "ordered_tree", "state_first", False, start="lift"))
    assert "exec.yield(%a, %b)" in text
    with pytest.raises(VerifyError, match="the lift uses the states before"):
        verify_module(tn.parse(text.replace("exec.yield(%a, %b)", "exec.yield(%a, %t)")))
