"""Reductions in every legal grouping, executed by the interpreter and judged by exact arithmetic.

In: random contributions, a seed, and what `Reductions` permits. Out: a straight-line program that
folds pieces from the identity, merges them and meets the seed once gives the reference result bit
for bit where the law is exact, and within the rounding of that many operations elsewhere.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.interp.programs import Program
from tilenest.analysis import Reductions, Regrouping, StateAnswer, proven_laws
from tilenest.dialects import Extent, Load, Reduce, ReductionContract, StateLaw, law_of
from tilenest.interp import interpret
from tilenest.ir import (
    INDEX,
    DType,
    Module,
    ScalarType,
    Value,
    ViewType,
    float16,
    float32,
    float64,
    fresh,
    int8,
    int32,
    int64,
    uint16,
)

POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")
INTEGERS = (int8, uint16, int32, int64)
FLOATS = (float16, float32, float64)
CASES = [
    *((merge, dtype) for dtype in INTEGERS for merge in ("add", "mul", "minimum", "maximum")),
    *((merge, dtype) for dtype in INTEGERS for merge in ("and", "or", "xor")),
    *((merge, dtype) for dtype in FLOATS for merge in ("add", "mul", "minimum", "maximum")),
    *((merge, dtype) for dtype in FLOATS for merge in ("fmin", "fmax")),
]
SELECTIONS = ("minimum", "maximum", "fmin", "fmax")
Tree = Any
"""a list of contributions to fold in order, or a pair of trees"""


def reference(merge: str, dtype: DType, policy: str) -> tuple[Module, StateAnswer]:
    """(contributions, seed) -> their reduction, and what is permitted."""
    type_ = ScalarType(dtype)
    program = Program(ViewType(dtype, (None,), (None,)), type_)
    a, seed = program.arguments
    contract = ReductionContract(policy, (law_of(merge, dtype),))
    extent = program.value(Extent(view=a, axis=0, result_types=[INDEX]))
    nest = program.nest(Reduce, [extent], [seed], contract=contract)
    with program.inside(nest) as (i, state):
        x = program.value(Load(view=a, origins=[i], result_types=[type_]))
        program.yields(program.apply(merge, state, x))
    (answer,) = fresh(Reductions, nest)
    return program.finish(nest.result), answer


def regrouped(answer: StateAnswer, dtype: DType, tree: Tree) -> Module:
    """The same reduction as a tree, whose total meets the seed."""
    type_ = ScalarType(dtype)
    merge, identity = answer.law.merge, answer.law.identity
    assert merge is not None and identity is not None
    program = Program(ViewType(dtype, (None,), (None,)), type_)
    a, seed = program.arguments

    def total(part: Tree) -> Value:
        if isinstance(part, tuple):
            return program.apply(merge, *(total(inner) for inner in part))
        state = program.constant(identity, type_)
        for place in part:
            (at,) = program.indices(place)
            x = program.value(Load(view=a, origins=[at], result_types=[type_]))
            state = program.apply(merge, state, x)
        return state

    return program.finish(program.apply(merge, seed, total(tree)))


def pieces(items: Sequence[int], chance: random.Random) -> Tree:
    """Any tree over contiguous pieces."""
    if len(items) < 2 or chance.random() < 0.3:
        return list(items)
    cut = chance.randrange(1, len(items))
    return pieces(items[:cut], chance), pieces(items[cut:], chance)


def lanes(count: int, chance: random.Random) -> Tree:
    """Every n-th contribution in a lane, and lanes that meet pairwise."""
    width = chance.choice((2, 4, 8))
    level: list[Tree] = [list(range(lane, count, width)) for lane in range(width)]
    while len(level) > 1:
        level = list(zip(level[::2], level[1::2], strict=True))
    return level[0]


def workers(count: int, chance: random.Random) -> Tree:
    """Pieces that meet in whichever order they are finished."""
    order = list(range(count))
    chance.shuffle(order)
    return pieces(order, chance)


def trees(regrouping: Regrouping, count: int, chance: random.Random) -> Tree:
    match regrouping:
        case Regrouping.SERIAL:
            return list(range(count))
        case Regrouping.PIECES:
            return pieces(range(count), chance)
        case Regrouping.LANES:
            return lanes(count, chance)
    return workers(count, chance)


def contributions(dtype: DType, count: int, chance: np.random.Generator) -> Any:
    if dtype.is_float:
        found = chance.normal(size=count) * 2.0 ** chance.integers(-4, 4, count)
        found[chance.random(count) < 0.1] = 0.0
        found[chance.random(count) < 0.1] = -0.0
        return found.astype(dtype.name)
    info = np.iinfo(dtype.name)
    return chance.integers(info.min, info.max, count, dtype=dtype.name, endpoint=True)


def bits(value: Any) -> Any:
    return "nan" if value != value else np.asarray(value).tobytes()


def deviation(merge: str, values: Any, dtype: DType) -> float:
    """How far rounding may carry one result from the exact one."""
    steps, unit = len(values) + 1, float(np.finfo(dtype.name).eps)
    exact = [Fraction(float(value)) for value in values]
    size = sum(map(abs, exact)) if merge == "add" else abs(math.prod(exact))
    smallest = float(np.finfo(dtype.name).smallest_subnormal)
    return float(size) * (1 + unit) ** steps * steps * unit + steps * 256 * smallest


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("merge", "dtype"), CASES, ids=lambda case: getattr(case, "text", case))
def test_reductions_keep_their_contract_in_every_legal_grouping(
    merge: str, dtype: DType, policy: str
) -> None:
    chance = random.Random(f"{merge} {dtype.text} {policy}")
    numbers = np.random.default_rng(chance.randrange(1 << 30))
    module, answer = reference(merge, dtype, policy)
    assert answer.law.is_exact == (not dtype.is_float or merge in SELECTIONS)
    for count in (0, 1, 2, 5, 9, 16):
        values = contributions(dtype, count, numbers)
        seed = contributions(dtype, 1, numbers)[0]
        (expected,) = interpret(module, [values, seed])
        for regrouping in Regrouping:
            if not answer.allows(regrouping):
                continue
            program = regrouped(answer, dtype, trees(regrouping, count, chance))
            (found,) = interpret(program, [values, seed])
            if answer.law.is_exact:
                assert bits(found) == bits(expected), regrouping
            else:
                bound = 2 * deviation(merge, [*values, seed], dtype)
                assert abs(float(found) - float(expected)) <= bound, regrouping


def every_tree(items: Sequence[int]) -> Iterator[Tree]:
    """All trees whose leaves are single contributions in this order."""
    if len(items) == 1:
        yield list(items)
    for cut in range(1, len(items)):
        yield from itertools.product(every_tree(items[:cut]), every_tree(items[cut:]))


@pytest.mark.parametrize("merge", ["add", "mul", "minimum", "maximum", "xor"])
def test_reductions_are_one_number_in_all_groupings_and_orders(merge: str) -> None:
    module, answer = reference(merge, int8, "fold_left")
    values = np.array([127, -128, 3, -7], np.int8)
    (expected,) = interpret(module, [values, np.int8(99)])
    assert all(answer.allows(regrouping) for regrouping in Regrouping)
    for order in itertools.permutations(range(4)):
        for tree in every_tree(order):
            (found,) = interpret(regrouped(answer, int8, tree), [values, np.int8(99)])
            assert found == expected, tree


@pytest.mark.parametrize("merge", SELECTIONS)
def test_reductions_select_the_same_number_among_specials(merge: str) -> None:
    module, answer = reference(merge, float32, "fold_left")
    chance = random.Random(merge)
    specials = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0]
    for _ in range(60):
        values = np.array(chance.choices(specials, k=6), np.float32)
        seed = np.float32(chance.choice(specials))
        (expected,) = interpret(module, [values, seed])
        for regrouping in (Regrouping.PIECES, Regrouping.LANES, Regrouping.WORKERS):
            program = regrouped(answer, float32, trees(regrouping, 6, chance))
            (found,) = interpret(program, [values, seed])
            assert bits(found) == bits(expected)


@pytest.mark.parametrize("policy", ["ordered_tree", "fold_left"])
def test_reductions_forbid_lanes_where_they_would_show(policy: str) -> None:
    """Sums of floats: lanes give other bits, so a contract that keeps the order excludes them."""
    module, answer = reference("add", float32, policy)
    assert not answer.allows(Regrouping.LANES) and not answer.allows(Regrouping.WORKERS)
    assert answer.allows(Regrouping.PIECES) == (policy == "ordered_tree")
    values = np.array([1e8, 1.0, -1e8, 1.0], np.float32)
    (expected,) = interpret(module, [values, np.float32(0)])
    _, free = reference("add", float32, "unordered_tree")
    program = regrouped(free, float32, ([0, 2], [1, 3]))
    (found,) = interpret(program, [values, np.float32(0)])
    assert found != expected


def test_reductions_of_a_product_state_have_no_scalar_law() -> None:
    """A state whose step reads another one is a chain; trusted, its pieces may meet, its lanes not.

    The state is an affine map modulo 2^32; composition is associative and does not commute.
    """
    chance = random.Random(7)
    maps = [(chance.randrange(1 << 32), chance.randrange(1 << 32)) for _ in range(12)]

    def compose(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return left[0] * right[0] % 2**32, (left[1] * right[0] + right[1]) % 2**32

    def total(part: Tree) -> tuple[int, int]:
        if isinstance(part, tuple):
            return compose(total(part[0]), total(part[1]))
        state = (1, 0)
        for place in part:
            state = compose(state, maps[place])
        return state

    program = Program(ScalarType(int32), ScalarType(int32))
    a, b = program.arguments
    trusted = ReductionContract(
        "ordered_tree",
        tuple(StateLaw("@compose", identity, is_exact=True) for identity in (1, 0)),
        provenance="trusted",
    )
    nest = program.nest(Reduce, [4], [a, b], contract=trusted)
    with program.inside(nest) as (_, scale, shift):
        nexts = (
            program.apply("mul", scale, a),
            program.apply("add", program.apply("mul", shift, a), b),
        )
        shown = proven_laws(nest.body, [scale, shift], nexts)
        program.yields(*nexts)
    assert [found.merge for found in shown] == ["mul", None]
    for answer in fresh(Reductions, nest):
        assert answer.allows(Regrouping.PIECES) and not answer.allows(Regrouping.LANES)
    expected = total(list(range(12)))
    assert all(total(pieces(range(12), chance)) == expected for _ in range(50))
    assert total(lanes(12, chance)) != expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["fmin", "fmax"])
def test_reductions_that_leave_nan_out_are_those_of_numpy(name: str, dtype: Any) -> None:
    chance = np.random.default_rng(5)
    x = chance.normal(size=(9, 83)).astype(dtype)
    x[chance.random(x.shape) < 0.4] = math.nan
    x[3], x[4, 5:] = math.nan, math.nan
    y = np.zeros(9, dtype)
    extreme_of_rows(y, x, reducer=getattr(tn, name), policy=tn.reduction.unordered_tree)
    assert np.array_equal(y, getattr(np, name).reduce(x, axis=1), equal_nan=True)


@tn.kernel
def extreme_of_rows(Y, X, *, reducer, policy):
    n = tn.axis("n", X.shape[1])
    for row in tn.parallel(X.extent(0)):
        Y(row.index(), 1).store(tn.reduce(X[(row.index(), 0), (1, n)], n, reducer, policy=policy))


@pytest.mark.parametrize("policy", list(tn.reduction), ids=lambda policy: policy.value)
@pytest.mark.parametrize("name", SELECTIONS)
def test_reductions_by_lanes_select_what_the_chain_selects(name: str, policy) -> None:
    """Compiled, where a fold that is exact runs along lanes, against the chain in order."""
    module, answer = reference(name, float32, "fold_left")
    reducer = getattr(tn, name)
    chance = random.Random(f"{name} {policy}")
    specials = [0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 1e-40]
    rows = [chance.choices(specials, k=71) for _ in range(20)]
    rows += [[chance.choice([0.0, -0.0]) for _ in range(71)] for _ in range(5)]
    for row in rows[:4]:
        row[chance.randrange(71)] = math.nan
    rows[4] = [math.nan] * 71
    x, y = np.array(rows, np.float32), np.full(25, np.nan, np.float32)
    y[:5] = 0
    extreme_of_rows(y, x, reducer=reducer, policy=policy)
    seed = np.float32(answer.law.identity)
    assert [bits(v) for v in y] == [bits(interpret(module, [row, seed])[0]) for row in x]
    compiled = extreme_of_rows.compile(y, x, reducer=reducer, policy=policy)
    assert 'preset = "reduction_vectorized"' in compiled.ir("scheduled")
