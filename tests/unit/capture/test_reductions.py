"""Contracts of reductions as capture writes them and passes hand them on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import numbers, only, poisoned, run, tn
from tilenest import library
from tilenest.dialects import OrderingContract, Reduce, ReductionContract, StateLaw, registry
from tilenest.ir import Rewriter, ScalarType, float32, parse_module
from tilenest.passes import canonicalize
from tilenest.verify import verify_module


@pytest.mark.parametrize("policy", list(tn.ReductionPolicy), ids=lambda policy: policy.value)
def test_a_builtin_reducer_brings_its_contract(policy: Any) -> None:
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 6)
        Y.at(0).store(tn.reduce(X[0, n], n, tn.add, policy=policy))

    x, y = numbers(6), poisoned(1)
    contract = only(run(kernel, x, y), Reduce).contract
    side = "element_first" if policy.value == "fold_right" else "state_first"
    law = StateLaw("add")
    assert contract == ReductionContract(policy.value, (law,), side, provenance="builtin")
    np.testing.assert_allclose(y, x.sum(), rtol=1e-6)


def test_a_body_that_shows_its_laws_gets_them() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total, largest = tn.scalar(0.0, tn.float32), X.at(0).load()
        for c in tn.root().reduce(6, policy=tn.reduction.fold_left):
            element = X.at(c.index()).load()
            total = total - element
            largest = tn.maximum(largest, element)
        Y.at(0).store(total)
        Y.at(1).store(largest)

    x, y = numbers(6), poisoned(2)
    contract = only(run(kernel, x, y), Reduce).contract
    assert contract.laws == (StateLaw(), StateLaw("maximum", is_exact=True))
    assert (contract.policy, contract.provenance) == ("fold_left", "derived")


def test_a_chain_that_shows_nothing_claims_nothing() -> None:
    def kernel(X: Any, Y: Any) -> None:
        total = tn.scalar(0.0, tn.float32)
        for c in tn.root().reduce(6, policy=tn.reduction.fold_left):
            total = total * 0.5 + X.at(c.index()).load()
        Y.at(0).store(total)

    contract = only(run(kernel, numbers(6), poisoned(1)), Reduce).contract
    assert contract == ReductionContract("fold_left")


@pytest.mark.parametrize(
    ("find", "order"), [(library.argmax, "descending"), (library.argmin, "ascending")]
)
def test_tn10_positions_keep_the_ordering_of_their_elements(find: Any, order: str) -> None:
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 6)
        Y.at(0).store(find(X[0, n], n))

    x, y = np.array([1, -0.0, 0.0, np.nan, 7, np.nan], np.float32), np.full(1, -1, np.int64)
    result = run(kernel, x, y)
    kept = [op.ordering for op in result.module.walk() if isinstance(op, Reduce)]
    wanted = OrderingContract(ScalarType(float32), order, nan="first", selected=1)
    assert kept == [None, wanted]
    assert y[0] == 3
    verify_module(result.module)


def test_a_body_that_leaves_nan_out_shows_its_law() -> None:
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", 6)
        x = X[0, n]
        least, most = tn.scalar(np.nan, tn.float32), tn.scalar(-np.inf, tn.float32)
        for c in tn.root().reduce(n):
            least = tn.fmin(x.at(c), least)
            most = tn.maximum(most, x.at(c), propagate_nan=False)
        Y.at(0).store(least)
        Y.at(1).store(most)

    x, y = np.array([3, np.nan, -2, 5, np.nan, 4], np.float32), poisoned(2)
    contract = only(run(kernel, x, y), Reduce).contract
    exact = [StateLaw(merge, is_exact=True) for merge in ("fmin", "fmax")]
    assert contract == ReductionContract("unordered_tree", tuple(exact))
    assert y.tolist() == [-2, 5]


DEAD = """
module "candidate"

func @main(%A: view<f32, [?], [1]>, %x: f32, %n: index) -> f32 {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %dead, %total = exec.reduce(
      lower = [%zero], upper = [%n], step = [%one], initial = [%x, %x],
      contract = #reduction_contract<laws = [#state_law<merge = "mul">, #state_law<merge = "add">]>
  ) : (f32, f32) { |%i: index, %product: f32, %sum: f32|
    %element = tile.load(%A, [%i]) : f32
    %more = scalar.apply "mul"(%product, %element) : f32
    %next = scalar.apply "add"(%sum, %element) : f32
    exec.yield(%more, %next)
  }
  func.return(%total)
}
"""


def test_a_state_that_goes_takes_its_law_along() -> None:
    module = parse_module(DEAD, registry())
    canonicalize(next(iter(module.functions)), Rewriter())
    (op,) = [op for op in module.walk() if isinstance(op, Reduce)]
    assert op.contract.laws == (StateLaw("add"),)
    verify_module(module)
