"""Quasi-affine maps with run-time extents: proofs for all of them, witnesses, sets, limits."""

import threading
import time
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.corpus import random_maps
from tests.unit.layouts.judge import Truth, formula, value_at
from tilenest.errors import ShapeError
from tilenest.layouts import DimRef, IndexExpr, Sym, bit_and, isl_engine, isl_sets, xor
from tilenest.layouts.answers import Answer, Verdict
from tilenest.layouts.formula import Formula
from tilenest.layouts.spaces import Constraint, IndexSet, Space
from tilenest.layouts.witnesses import collision_at, missed_at

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)
SEVERAL = tuple({"n": n} for n in (0, 1, 2, 5, 9))


def verdict(answer: Answer | None) -> Verdict | None:
    return None if answer is None else answer.verdict


def places_of(sets: tuple[IndexSet, ...], values: dict[str, int]) -> set[tuple[int, ...]]:
    return {point for part in sets for point in part.points(values)}


@given(st.sampled_from(["quotients", "run-time", "bits"]), st.integers(0, 2**32))
def test_image_and_inverse(kind: str, seed: int) -> None:
    try:
        f, _ = random_maps(Random(seed), kind)
    except ShapeError:
        return
    image, inverse = isl_engine.image(f), isl_engine.inverse(f)
    for values in SEVERAL if kind == "run-time" else ({},):
        truth = Truth(f, values)
        inside = {y: x for x, y in truth.value.items() if y in truth.places}
        if image is not None and image[0].is_proven:
            assert places_of(image[1], values) == set(inside)
        if inverse is not None and inverse[0].is_proven:
            assert (Truth(inverse[1], values).value if inverse[1] else {}) == inside


def test_inverse_of_a_map_with_run_time_tiles() -> None:
    f = (formula(["n"], ["n", 8], [D0 // 8, D0 % 8]),)
    built = isl_engine.inverse(f)
    assert built is not None
    for n in (0, 1, 8, 21):
        inside = {y: x for x, y in Truth(f, {"n": n}).value.items()}
        assert Truth(built[1], {"n": n}).value == inside
    doubled = isl_engine.inverse((formula(["n"], ["n"], [D0 // 2]),))
    assert doubled is not None
    assert doubled[0].is_disproven
    assert doubled[1] == ()


def test_a_witness_names_the_extents() -> None:
    answer = isl_engine.is_bounded((formula(["rows"], [5], [D0]),))
    assert answer is not None
    assert answer.witness is not None
    values = dict(answer.witness.symbols)
    assert 5 < values["rows"] <= 64, "small values are preferred"
    assert answer.witness.points[0][0] >= 5


def test_extents_are_64_bit_and_never_negative() -> None:
    same: tuple[Formula, ...] = (formula(["n"], ["n"], [D0]),)
    assert verdict(isl_engine.is_total(same)) is Verdict.PROVEN
    doubled = isl_engine.is_total((formula(["n"], ["n"], [D0 * 2]),))
    assert doubled is not None
    assert doubled.witness is not None
    assert 2**62 < dict(doubled.witness.symbols)["n"] < 2**63
    not_negative = IndexSet(Space.box("n"), (Constraint(Sym(0)),))
    assert verdict(isl_engine.implies(IndexSet(Space.box("n")), not_negative)) is Verdict.PROVEN
    beyond = isl_engine.is_total((formula([2**63], [2**63], [D0 + 1]),))
    assert beyond is not None
    assert beyond.witness is not None
    assert beyond.witness.points == ((2**63 - 1,),)


def test_order() -> None:
    rows = (formula(["n", 4], ["n", 4], [D0, D1]),)
    assert verdict(isl_engine.is_monotone(rows)) is Verdict.PROVEN
    split = (formula(["n"], ["n", 4], [D0 // 4, D0 % 4]),)
    assert verdict(isl_engine.is_monotone(split)) is Verdict.PROVEN
    swapped = (formula(["n", 4], [4, "n"], [D1, D0]),)
    answer = isl_engine.is_monotone(swapped)
    assert answer is not None
    assert answer.witness is not None
    first, second = answer.witness.points
    values = dict(answer.witness.symbols)
    assert first < second
    left, right = value_at(swapped, first, values), value_at(swapped, second, values)
    assert left is not None
    assert right is not None
    assert left >= right
    assert verdict(isl_engine.is_monotone((formula([3], [3], [0]),))) is Verdict.DISPROVEN


def test_implication() -> None:
    space = Space.box("n", 8)
    tail = IndexSet(space, (Constraint(D0 - Sym(0) + 4),))
    both = IndexSet(space, (*tail.constraints, Constraint(3 - D1)))
    assert verdict(isl_engine.implies(both, tail)) is Verdict.PROVEN
    answer = isl_engine.implies(tail, both)
    assert answer is not None
    assert answer.witness is not None
    values = dict(answer.witness.symbols)
    assert tail.holds(answer.witness.points[0], values)
    assert not both.holds(answer.witness.points[0], values)
    of_two = IndexSet(space, (Constraint(Sym(0) - 1 - D0),), ("k",))
    assert verdict(isl_engine.implies(of_two, IndexSet(space))) is Verdict.PROVEN


def test_meeting_pairs() -> None:
    store = (formula(["n"], ["n"], [D0]),)
    load = (formula(["n"], ["n"], [D0 - 1], [Constraint(D0 - 1)]),)
    pairs = Space.box("n").product(Space.box("n", prefix="y"))
    same_step = IndexSet(pairs, (Constraint(D0 - D1, is_equality=True),))
    earlier = IndexSet(pairs, (Constraint(D0 - D1 - 1),))
    assert verdict(isl_engine.never_coincide(store, load, same_step)) is Verdict.PROVEN
    assert verdict(isl_engine.never_coincide(store, load, earlier)) is Verdict.PROVEN
    met = isl_engine.never_coincide(store, load, IndexSet(pairs))
    assert met is not None
    assert met.witness is not None
    (x,), (y,) = met.witness.points
    assert x == y - 1


def test_pieces() -> None:
    pieces = (
        formula(["n"], ["n"], [D0 + 1], [Constraint(Sym(0) - 2 - D0)]),
        formula(["n"], ["n"], [0], [Constraint(D0 - Sym(0) + 1)]),
    )
    for question in ("is_total", "is_bounded", "is_injective", "is_surjective"):
        assert verdict(getattr(isl_engine, question)(pieces)) is Verdict.PROVEN
    assert verdict(isl_engine.is_total(pieces[:1])) is Verdict.DISPROVEN
    whole = (formula(["n"], ["n"], [(D0 + 1)]),)
    assert verdict(isl_engine.equal(pieces, whole)) is Verdict.DISPROVEN


@pytest.mark.parametrize(
    "result",
    [D0 * D1, D0 // Sym(0), D0 % Sym(0), D0 * Sym(0), xor(D0, D1)],
    ids=str,
)
def test_not_quasi_affine(result: IndexExpr) -> None:
    f = (formula(["n", "n"], [64], [result]),)
    for question in ("is_total", "is_bounded", "is_injective", "is_surjective", "image"):
        assert getattr(isl_engine, question)(f) is None
    assert isl_engine.equal(f, f) is None


def test_bits_as_quotients() -> None:
    for result in (xor(D0, 5), xor(D0, -6), bit_and(D0, 10), bit_and(D0, -3), xor(D0, D1 % 4)):
        f = (formula([9, 3], [16], [result]),)
        same = tuple(
            formula([9, 3], [16], [result.evaluate((x, y))], [at(D0, x), at(D1, y)])
            for x, y in product(range(9), range(3))
        )
        assert verdict(isl_engine.equal(f, same)) is Verdict.PROVEN


def at(coordinate: IndexExpr, value: int) -> Constraint:
    return Constraint(coordinate - value, is_equality=True)


def test_beyond_the_budget_the_answer_is_unknown() -> None:
    gray = xor(D0 % 16, D0 % 16 // 2)
    twisted = [xor(gray, D1 % 16), xor(D1 % 16, gray // 4), xor(D0 // 16 % 8, D1 // 3 % 8)]
    f = (formula(["n", "m"], [16, 16, 8], twisted),)
    start = time.perf_counter()
    answer = isl_engine.is_surjective(f)
    assert answer is not None
    assert answer.verdict is Verdict.UNKNOWN
    assert "steps" in answer.reason
    assert time.perf_counter() - start < 10
    assert verdict(isl_engine.is_injective((formula([7], [7], [D0]),))) is Verdict.PROVEN


def test_a_formula_too_long_is_left_alone() -> None:
    result: IndexExpr = D0
    while result.size < 500:
        result = (result + D1) // 3 + result % (result.size + 1)
    assert isl_engine.is_total((formula(["n", "n"], [64], [result]),)) is None


def test_a_witness_that_does_not_evaluate_is_unknown() -> None:
    f = (formula([4], [4], [D0]),)
    assert collision_at("isl", f, ((0,), (1,)), {}, "two points").verdict is Verdict.UNKNOWN
    assert collision_at("isl", f, ((1,), (1,)), {}, "two points").verdict is Verdict.UNKNOWN
    assert missed_at("isl", IndexSet(f[0].codomain), (4,), {}, "a place").verdict is Verdict.UNKNOWN


def test_threads_have_their_own_contexts() -> None:
    f = (formula(["n"], ["n", 8], [D0 // 8, D0 % 8]),)
    found: list[Verdict | None] = []

    def work() -> None:
        for _ in range(20):
            found.append(verdict(isl_engine.is_injective(f)))
            found.append(verdict(isl_engine.is_surjective(f)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(Verdict.PROVEN) == found.count(Verdict.DISPROVEN) == 80


def test_translations_are_kept_and_few() -> None:
    first = formula([5], [9], [D0 * 2])
    isl_engine.is_total((first,))
    assert isl_sets.isl_map((first,)) is isl_sets.isl_map((first,))
    for extent in range(600):
        isl_engine.is_total((formula([extent], [9], [D0]),))
    assert len(isl_sets._translator().known) <= 512
