"""Orderings: where every pair of values is ordered, sorts and searches find one permutation."""

from __future__ import annotations

import itertools
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.capture.kernels import run, tn
from tilenest import library
from tilenest.analysis import OrderingAnswer, Orderings
from tilenest.dialects import Call, OrderingContract, Reduce, ReductionContract, law_of
from tilenest.ir import (
    AnalysisManager,
    DType,
    Function,
    Module,
    Rewriter,
    ScalarType,
    TileType,
    bfloat16,
    float16,
    float32,
    fresh,
    int8,
    int32,
)
from tilenest.layouts import AffineMap, Dim, DimRef
from tilenest.records import replace
from tilenest.verify import verify_module

ORDERS = ("ascending", "descending")
TIES = ("first", "last", "any")
ENDS = ("first", "last", "unordered")
FORMATS = {float16: np.float16, bfloat16: ml_dtypes.bfloat16, int8: np.int8}


def contract_of(dtype: DType, order: str, ties: str, nan: str) -> OrderingContract:
    return OrderingContract(ScalarType(dtype), order, ties=ties, nan=nan)


def answer_of(contract: OrderingContract, extent: int) -> OrderingAnswer:
    """The answer for a call that orders so many elements."""
    row = TileType(contract.element.dtype, (Dim("n", extent),))
    function = Function("main", [row])
    call = Call(arguments=function.arguments, callee="f", ordering=contract, result_types=[row])
    answer = fresh(Orderings, call)
    assert answer is not None
    return answer


def some_values(dtype: DType) -> Any:
    """Numbers of a format, drawn from all of its bit patterns, many of them twice and NaN too."""
    patterns = np.random.default_rng(5).integers(0, 1 << dtype.bits, 300)
    patterns = np.concatenate([patterns, patterns[::2], [0, 1 << (dtype.bits - 1)]])
    with np.errstate(invalid="ignore"):
        values = patterns.astype(f"u{dtype.bytes}").view(FORMATS[dtype]).astype(np.float64)
    return np.concatenate([values, [np.nan, np.nan]]) if dtype.is_float else values


def is_before(values: Any, order: str, ties: str, nan: str) -> Any:
    """Of every pair, whether the one comes before the other, by what NumPy compares."""
    one, other = values[:, None], values[None, :]
    places = np.arange(len(values))
    earlier = {
        "first": places[:, None] < places,
        "last": places[:, None] > places,
        "any": np.zeros((len(values), len(values)), bool),
    }[ties]
    less = one > other if order == "descending" else one < other
    both = np.isnan(one) & np.isnan(other)
    found = less | ((one == other) & earlier)
    if nan == "unordered":
        return found
    ahead, behind = (one, other) if nan == "first" else (other, one)
    return found | (np.isnan(ahead) & ~np.isnan(behind)) | (both & earlier)


def by_numpy(values: Any, order: str, ties: str, nan: str) -> Any:
    """The permutation that a stable sort of NumPy gives."""
    places = np.arange(len(values))
    is_nan = np.isnan(values)
    numbers = np.where(is_nan, 0.0, values) + 0.0
    keys = -numbers if order == "descending" else numbers
    end = ~is_nan if nan == "first" else is_nan
    return np.lexsort((places if ties == "first" else -places, keys, end))


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.text)
@pytest.mark.parametrize(("order", "ties", "nan"), list(itertools.product(ORDERS, TIES, ENDS)))
def test_tn10_orderings_are_total_where_every_pair_is_ordered(
    dtype: DType, order: str, ties: str, nan: str
) -> None:
    """Where they are, the places that comparisons give are those of a sort."""
    values = some_values(dtype)
    answer = answer_of(contract_of(dtype, order, ties, nan), len(values))
    before = is_before(values, order, ties, nan)
    ordered = (before ^ before.T) | np.eye(len(values), dtype=bool)
    assert answer.total.is_proven == ordered.all() == answer.permutation.is_proven
    if answer.total.is_proven:
        ranks = before.sum(axis=0)
        assert np.array_equal(np.argsort(ranks), by_numpy(values, order, ties, nan))


@pytest.mark.parametrize("nan", ["first", "last"])
@pytest.mark.parametrize("ties", ["first", "last"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_tn10_orderings_are_what_a_selected_position_keeps(order: str, ties: str, nan: str) -> None:
    """Every field that a selection states is one that it is made by."""
    contract = OrderingContract(ScalarType(float32), order, ties=ties, nan=nan, selected=1)

    def kernel(X: Any, Y: Any) -> None:
        row, n = tn.axis("row", 40), tn.axis("n", 16)
        Y(0, row).store(tn.select_position(X[(0, 0), (row, n)], n, contract))

    chance = random.Random(f"{order} {ties} {nan}")
    specials = [0.0, -0.0, np.inf, -np.inf, 1.0, 1.0, -2.0]
    rows = [chance.choices(specials + [np.nan] * (row % 3), k=16) for row in range(39)]
    x, y = np.array([*rows, [np.nan] * 16], np.float32), np.full(40, -1, np.int64)
    verify_module(run(kernel, x, y).module)
    assert y.tolist() == [by_numpy(row, order, ties, nan)[0] for row in x]


@pytest.mark.parametrize("find", [library.argmax, library.argmin], ids=["argmax", "argmin"])
def test_tn10_orderings_put_first_what_the_interpreter_finds(find: Any) -> None:
    """The contract that a position keeps is one that NumPy's sort keeps too."""

    def kernel(X: Any, Y: Any) -> None:
        row, n = tn.axis("row", 1), tn.axis("n", 16)
        for i in tn.root().serial(40):
            Y.at(i.index()).store(find(X[(i.index(), 0), (row, n)], n).at(0))

    chance = random.Random(find.__name__)
    specials = [0.0, -0.0, np.inf, -np.inf, 1.0, 1.0, -2.0]
    rows = [chance.choices(specials + [np.nan] * (row % 3), k=16) for row in range(40)]
    x, y = np.array(rows, np.float32), np.full(40, -1, np.int64)
    result = run(kernel, x, y)
    contracts = [op.ordering for op in result.module.walk() if isinstance(op, Reduce)]
    (contract,) = [found for found in contracts if isinstance(found, OrderingContract)]
    assert answer_of(contract, 16).total.is_proven
    firsts = [by_numpy(row, contract.order, contract.ties, contract.nan)[0] for row in x]
    assert y.tolist() == firsts
    with np.errstate(invalid="ignore"):
        assert np.array_equal(y, getattr(np, find.__name__)(x, axis=1))


def test_orderings_without_a_place_for_nan_show_one() -> None:
    for dtype in (float16, bfloat16):
        total = answer_of(contract_of(dtype, "ascending", "first", "unordered"), 4).total
        assert total.is_disproven and total.witness is not None
        (nan, _), (number, _) = total.witness.points
        one = np.array([nan, number], f"u{dtype.bytes}").view(FORMATS[dtype]).astype(float)
        assert not (one[0] < one[1] or one[1] < one[0] or one[0] == one[1])


def scan_contract(policy: str, merge: str | None, dtype: DType = float32) -> OrderingContract:
    laws = () if merge is None else (law_of(merge, dtype),)
    return OrderingContract(ScalarType(dtype), "source", reduction=ReductionContract(policy, laws))


def test_tn10_orderings_of_scans() -> None:
    cases = [
        ("ordered_tree", "add", float32, True),
        ("ordered_tree", None, float32, False),
        ("fold_left", "add", float32, False),
        ("fold_left", "add", int32, True),
        ("fold_left", "maximum", float32, True),
    ]
    for policy, merge, dtype, is_legal in cases:
        answer = answer_of(scan_contract(policy, merge, dtype), 12)
        assert answer.blocks.is_legal == is_legal and answer.permutation.is_proven
    sort = answer_of(contract_of(float32, "ascending", "first", "last"), 12)
    assert not sort.blocks.is_legal and "change places" in sort.blocks.reason
    values = np.random.default_rng(0).integers(-9, 9, 12)
    for cut in range(1, 12):
        head = np.cumsum(values[:cut])
        blocks = np.concatenate([head, head[-1] + np.cumsum(values[cut:])])
        assert np.array_equal(blocks, np.cumsum(values))


PLACE = DimRef(0)


@pytest.mark.parametrize(
    ("result", "selected", "is_sound"),
    [
        (PLACE, None, True),
        (PLACE * -1 + 11, None, True),
        (PLACE * 5 % 12, None, True),
        (PLACE * 4 % 12, None, False),
        (PLACE // 2, None, False),
        (PLACE + 1, None, False),
        (PLACE + 1, 11, True),
        (PLACE * 4, 3, True),
    ],
    ids=str,
)
def test_tn10_orderings_stated_permutations(
    result: Any, selected: int | None, is_sound: bool
) -> None:
    contract = OrderingContract(
        ScalarType(int32), permutation=AffineMap(1, 0, (result,)), selected=selected
    )
    answer = answer_of(contract, 12).permutation
    places = [
        result.evaluate((place,), ()) for place in range(12 if selected is None else selected)
    ]
    assert (len(set(places)) == len(places) and all(0 <= p < 12 for p in places)) == is_sound
    assert answer.is_proven == is_sound and answer.is_disproven != is_sound


def test_orderings_are_kept_until_their_contract_changes() -> None:
    row = TileType(float32, (Dim("n", 8),))
    module = Module()
    function = module.add(Function("main", [row]))
    contract = contract_of(float32, "ascending", "first", "last")
    call = Call(arguments=function.arguments, callee="sort", ordering=contract, result_types=[row])
    rewriter = Rewriter()
    rewriter.builder_at_end(function.body).insert(call)
    manager: AnalysisManager = rewriter.analyses
    assert manager.get(Orderings, call) == answer_of(contract, 8)
    rewriter.set_attribute(call, "callee", "other")
    assert manager.is_known(Orderings, call)
    rewriter.set_attribute(call, "ordering", replace(contract, nan="unordered"))
    assert not manager.is_known(Orderings, call)
    answer = manager.get(Orderings, call)
    assert answer is not None and answer.total.is_disproven
    assert answer == fresh(Orderings, call)
