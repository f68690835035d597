"""The analysis of distributions: facts and costs of random spreads, counted place by place."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod

import pytest

import tilenest as tn
from tilenest.analysis import (
    Distributions,
    distribution_facts,
    enclosing_parallels,
    held_by_each,
    lie_alike,
    panels,
    repartition_cost,
    spread_of,
    whole,
)
from tilenest.decisions import Decision
from tilenest.dialects import Alloc, MapReducePost, Repartition, Spread, registry
from tilenest.ir import BufType, Module, Rewriter, fresh, parse_module, print_module
from tilenest.layouts import AffineMap, DimRef, IndexExpr
from tilenest.machine import AVX512, cpu_target
from tilenest.passes import SCHEDULE_PASSES

Point = tuple[int, ...]


def holdings(spread: Spread) -> Iterator[tuple[Point, Point, Point]]:
    """(participant, place, element) for every place that holds one."""
    n = len(spread.participants)
    for place in product(*map(range, (*spread.participants, *spread.fragment))):
        element = spread.placement.evaluate(place)
        if all(0 <= x < extent for x, extent in zip(element, spread.logical, strict=True)):
            yield place[:n], place, element


def expected(spread: Spread) -> dict[str, bool]:
    held = list(holdings(spread))
    counts = Counter(element for _, _, element in held)
    places = prod((*spread.participants, *spread.fragment))
    facts = {"place": True, "covers": len(counts) == prod(spread.logical)}
    if not spread.replicated:
        # Places without an element are told apart from each other as well.
        images = Counter(
            spread.placement.evaluate(place)
            for place in product(*map(range, (*spread.participants, *spread.fragment)))
        )
        facts["once"] = max(images.values(), default=0) <= 1
    if not spread.masked:
        facts["full"] = len(held) == places
    return facts


def random_spread(source: random.Random, logical: Point) -> Spread:
    participants = tuple(source.randint(1, 4) for _ in range(source.randint(0, 2)))
    fragment = tuple(source.randint(1, 4) for _ in range(source.randint(1, 2)))
    dims = [DimRef(place) for place in range(len(participants) + len(fragment))]
    results: list[IndexExpr] = []
    for _ in logical:
        first, second = source.sample(dims, 2) if len(dims) > 1 else (dims[0], dims[0])
        result = first * source.choice([1, 1, 2, 3, 4]) + second * source.choice([0, 1, 1])
        results.append(result % 4 if source.random() < 0.15 else result)
    placement = AffineMap(len(dims), 0, tuple(results))
    replicated, masked = source.random() < 0.3, source.random() < 0.3
    return Spread(logical, fragment, placement, participants, replicated, masked)


@pytest.mark.parametrize("seed", range(150))
def test_distributions_have_the_facts_that_counting_finds(seed: int) -> None:
    source = random.Random(seed)
    spread = random_spread(source, tuple(source.randint(1, 8) for _ in range(source.randint(1, 2))))
    wanted = expected(spread)
    found = {fact.law: fact.answer for fact in distribution_facts(spread)}
    assert found.keys() == wanted.keys()
    for law, answer in found.items():
        assert answer.is_proven == wanted[law], f"{law}: {answer}"
        assert answer.is_disproven or answer.is_proven or law == "full"


@pytest.mark.parametrize("seed", range(100))
def test_distributions_cost_what_is_moved(seed: int) -> None:
    source = random.Random(seed)
    logical = (source.randint(1, 6),)
    one, other = random_spread(source, logical), random_spread(source, logical)
    cost = repartition_cost(one, other)
    shared = range(min(len(one.participants), len(other.participants)))
    held: dict[Point, set[Point]] = {}
    for who, _, element in holdings(one):
        held.setdefault(element, set()).add(tuple(who[level] for level in shared))
    needs = {(who, element) for who, _, element in holdings(other)}
    kept = sum(
        tuple(who[level] for level in shared) in held.get(element, set()) for who, element in needs
    )
    assert cost == (len(needs) - kept, kept)


@pytest.mark.parametrize("seed", range(60))
def test_distributions_that_lie_alike_need_no_repartition(seed: int) -> None:
    source = random.Random(seed)
    one, other = random_spread(source, (4,)), random_spread(source, (4,))
    answer = lie_alike(one, other)
    if answer.is_proven:
        assert list(holdings(one)) == list(holdings(other))
    assert lie_alike(one, one).is_proven


@pytest.mark.parametrize("extents", [(12, 5), (13, 5), (4, 4), (1, 7)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("block", [1, 4, 6])
def test_distributions_in_panels_hold_every_element_once(
    extents: Point, axis: int, block: int
) -> None:
    spread = panels(extents, axis, 1 - axis, block)
    assert all(fact.answer.is_proven for fact in distribution_facts(spread))
    held = Counter(element for _, _, element in holdings(spread))
    assert held == Counter(product(*map(range, extents)))
    assert repartition_cost(whole(extents), spread) == (0, prod(extents))


@tn.kernel
def product_of(A, B, C):
    for root in tn.parallel(1):
        m, k, n = tn.axis("m", 100), tn.axis("k", 40), tn.axis("n", 70)
        c = tn.zeros((m, n), tn.float32)
        for _step in root.serial(1):
            c = tn.mma(A[(0, 0), (m, k)], B[(0, 0), (k, n)], c)
        C((0, 0), (m, n)).store(c)


@pytest.mark.parametrize("participants", [(), (3,), (2, 4)])
@pytest.mark.parametrize("extents", [(4, 3), (5, 3)])
def test_distributions_held_by_each_are_counted_for_each(
    extents: Point, participants: Point
) -> None:
    spread = held_by_each(panels(extents, 0, 1, 4), participants)
    assert all(fact.answer.is_proven for fact in distribution_facts(spread))
    held = Counter((who, element) for who, _, element in holdings(spread))
    holders = product(*map(range, participants))
    assert held == Counter(product(holders, product(*map(range, extents))))
    assert repartition_cost(whole(extents), spread) == (0, len(held))


@tn.kernel
def products_for_known_instances(A, B, C):
    m, k, n = tn.axis("m", 100), tn.axis("k", 40), tn.axis("n", 70)
    one, p, q = tn.axis("one", 1), tn.axis("p", 3), tn.axis("q", 2)
    for root in tn.parallel(2):
        a = A[(root.index() * 100, 0), (m, k)] * 2.0
        for part in root.parallel(one, p, q):
            column = part.index(p) * 140 + part.index(q) * 70
            c = tn.mma(a, B[(0, column), (k, n)], tn.zeros((m, n), tn.float32))
            C((root.index() * 100, column), (m, n)).store(c)


@tn.kernel
def products_for_counted_instances(A, B, C):
    m, k, n = tn.axis("m", 100), tn.axis("k", 40), tn.axis("n", 70)
    for root in tn.parallel(2):
        a = A[(root.index() * 100, 0), (m, k)] * 2.0
        for part in root.parallel(C.extent(1) // 70):
            c = tn.mma(a, B[(0, part.index() * 70), (k, n)], tn.zeros((m, n), tn.float32))
            C((root.index() * 100, part.index() * 70), (m, n)).store(c)


@pytest.mark.parametrize(
    ("kernel", "participants"),
    [(products_for_known_instances, (3, 2)), (products_for_counted_instances, ())],
    ids=["known", "counted"],
)
def test_distributions_of_an_owners_tile_have_the_instances_inside_take_part(
    kernel: tn.Kernel, participants: Point
) -> None:
    specs = [tn.spec(shape, tn.float32) for shape in ((200, 40), (40, 420), (200, 420))]
    module = kernel.capture(*specs)
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX512), rewriter)
    (function,) = module.functions
    held = fresh(Distributions, function).held
    works = [op for op in module.walk() if isinstance(op, MapReducePost)]
    changes = [(op, op.repartition) for op in works if isinstance(op.repartition, Repartition)]
    ((work, change),) = [(op, one) for op, one in changes if one.source == whole((100, 40))]
    assert change.target.participants == participants
    assert (change.moved, change.kept) == (0, 4000 * prod(participants))
    around = sum(nest.rank for nest in enclosing_parallels(work))
    assert held[work.outputs[0]].depth == around - len(participants)


def scheduled() -> tuple[Module, list[Decision]]:
    specs = [tn.spec(shape, tn.float32) for shape in ((100, 40), (40, 70), (100, 70))]
    module = product_of.capture(*specs)
    decisions: list[Decision] = []
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        decisions += step(module, cpu_target(AVX512), rewriter)
    return module, decisions


def test_distributions_of_a_packed_product_are_in_the_text() -> None:
    module, decisions = scheduled()
    works = [op for op in module.walk() if isinstance(op, MapReducePost)]
    changes = [op.repartition for op in works if isinstance(op.repartition, Repartition)]
    assert changes
    (function,) = module.functions
    by_value = fresh(Distributions, function).held
    for op in works:
        if isinstance(op.repartition, Repartition):
            held = by_value[op.outputs[0]]
            assert held.spread == op.repartition.target
            assert held.depth == 1
            wanted = repartition_cost(op.repartition.source, op.repartition.target)
            assert (op.repartition.moved, op.repartition.kept) == wanted
    said = [d.reason for d in decisions if d.choice == "panels"]
    assert len(said) == len(changes)
    assert all(
        f"{c.kept} elements are copied" in text for c, text in zip(changes, said, strict=True)
    )
    text = print_module(module)
    assert print_module(parse_module(text, registry())) == text


def test_distributions_without_a_word_are_whole() -> None:
    module, _ = scheduled()
    plain = [op for op in module.walk() if isinstance(op, Alloc) and op.spread is None]
    assert plain
    for op in plain:
        type_ = op.result.type
        assert isinstance(type_, BufType)
        assert spread_of(op) == whole(type_.shape)
        assert len(list(holdings(spread_of(op)))) == prod(type_.shape)
