"""Two points with one value in sums of strides: found, or shown not to be, and never for long."""

import time
from functools import partial
from itertools import product
from random import Random

import pytest

from tests.unit.layouts.judge import Extent, formula
from tilenest.layouts import (
    Const,
    DimRef,
    IndexExpr,
    are_disjoint,
    is_injective,
    is_surjective,
    mixed_engine,
    parse_layout,
    strided,
)
from tilenest.layouts.affine_engine import SumMap, sum_map
from tilenest.layouts.answers import Verdict
from tilenest.layouts.spaces import Space
from tilenest.layouts.stride_search import meeting_points

# A question takes milliseconds, and this much on a busy machine.
MOST_SECONDS = 2.5
Strides = tuple[int, ...]


def sums_of(extents: Strides, rows: list[Strides]) -> SumMap:
    results: list[IndexExpr] = []
    for row in rows:
        terms = (DimRef(at) * step for at, step in enumerate(row))
        results.append(sum(terms, start=Const(0)))
    found = sum_map(formula([*extents], [1 << 40] * len(rows), results))
    assert found is not None
    return found


def value(rows: list[Strides], point: Strides) -> Strides:
    return tuple(sum(s * x for s, x in zip(row, point, strict=True)) for row in rows)


@pytest.mark.parametrize("seed", range(300))
def test_search_agrees_with_every_point(seed: int) -> None:
    random = Random(seed)
    rank = random.randrange(1, 6)
    extents = tuple(random.choice([1, 2, 2, 3, 5]) for _ in range(rank))
    most = random.choice([3, 12, 60])
    rows = [
        tuple(random.randint(-most, most) for _ in range(rank))
        for _ in range(random.choice([1, 1, 2]))
    ]
    points = list(product(*map(range, extents)))
    found = meeting_points(sums_of(extents, rows))
    is_apart = len({value(rows, point) for point in points}) == len(points)
    if found.pair is not None:
        left, right = found.pair
        assert left != right and {left, right} <= set(points)
        assert value(rows, left) == value(rows, right)
    assert found.is_whole
    assert is_apart == (found.pair is None)


def awkward(rank: int, base: int = 10**8) -> Strides:
    return tuple(base + 7919 * at * at + at * 31 for at in range(rank))


@pytest.mark.parametrize("rank", [10, 12, 16, 20, 26, 30])
def test_many_binary_digits_that_meet(rank: int) -> None:
    start = time.process_time()
    answer = is_injective(strided(Space.box(*[2] * rank), awkward(rank)))
    assert time.process_time() - start < MOST_SECONDS
    assert answer.is_disproven and answer.witness is not None
    left, right = answer.witness.points
    assert left != right
    assert value([awkward(rank)], left) == value([awkward(rank)], right)


def test_no_steps_outrun_all_and_still_none_meet() -> None:
    # 6, 10 and 15 overlap; what they share tells them apart.
    f = strided(Space.box(5, 3, 2), (6, 10, 15)).formulas()
    assert f is not None
    answer = mixed_engine.is_injective(f)
    assert answer is not None and answer.is_proven


@pytest.mark.parametrize("seed", range(12))
def test_no_question_about_up_to_20_axes_takes_long(seed: int) -> None:
    random = Random(seed)
    rank, bits = random.randrange(12, 21), random.choice([8, 20, 55])
    extents: list[Extent] = [2, 2, 3, "m"]
    space = Space.box(*(random.choice(extents) for _ in range(rank)))
    places = Space.box(random.choice([*extents[3:], 1 << 60]), prefix="y")
    f, g = (
        strided(space, tuple(random.randrange(1 << bits) for _ in range(rank)), places)
        for _ in range(2)
    )
    asks = partial(is_injective, f), partial(is_surjective, f), partial(are_disjoint, f, g)
    for ask in asks:
        start = time.process_time()
        ask()
        assert time.process_time() - start < MOST_SECONDS


def test_long_strides_over_run_time_extents() -> None:
    text = "strides([x0=m, x1=m, x2=2] -> [x0=m], ((8, 2305843009213693952, 3)))"
    start = time.process_time()
    answer = is_surjective(parse_layout(text))
    assert time.process_time() - start < MOST_SECONDS
    assert answer.verdict is Verdict.DISPROVEN


def test_places_of_many_long_strides() -> None:
    strides = (354726054, 8388608, -7, 20451593, -4, 3, 160588)
    f = strided(Space.box(*[2] * 7), strides, Space.box(1000))
    start = time.process_time()
    answer = is_surjective(f)
    assert time.process_time() - start < MOST_SECONDS
    assert answer.is_disproven
