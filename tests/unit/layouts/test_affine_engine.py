"""Sums of scaled coordinates: each argument the engine has, and what it leaves to others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.judge import Extent, Truth, check, formula, value_at
from tilenest.layouts import DimRef, IndexExpr, affine_engine, bit_and
from tilenest.layouts.answers import Answer
from tilenest.layouts.spaces import Constraint, IndexSet, Space

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)
SIDE = 1048577


def sure(answer: Answer | None) -> Answer:
    assert answer is not None
    assert answer.is_proven or answer.witness is not None
    return answer


def test_joint_rank_of_a_box_too_large_to_enumerate() -> None:
    f = (formula([SIDE, SIDE], [2**22, 2**22], [D0 * 2 + D1, D0 + D1 * 2]),)
    answer = sure(affine_engine.is_injective(f))
    assert answer.is_proven
    assert "independent" in answer.reason


def test_peeled_and_then_rank() -> None:
    f = formula([SIDE] * 3, [2**63, 2**22], [D0 * (4 * SIDE) + D1 * 2 + D2, D1 + D2 * 2])
    assert sure(affine_engine.is_injective((f,))).is_proven


def test_columns_that_vanish_modulo_the_prime_are_left_open() -> None:
    prime = 2**31 - 1
    steps = [D0 * prime + D1 * (2 * prime), D0 * (2 * prime) + D1 * prime]
    assert affine_engine.is_injective((formula([4, 4], [2**40, 2**40], steps),)) is None


def test_steps_of_two_and_four_collide() -> None:
    f = (formula([5, 5], [30], [D0 * 2 + D1 * 4]),)
    answer = sure(affine_engine.is_injective(f))
    assert answer.witness is not None
    first, second = answer.witness.points
    assert first != second
    assert value_at(f, first, {}) == value_at(f, second, {})
    # The step from one to the other needs two moves along the first axis.
    assert sure(affine_engine.is_injective((formula([2, 5], [30], f[0].results),))).is_proven


def test_an_unused_coordinate_collides_unless_it_cannot_move() -> None:
    assert sure(affine_engine.is_injective((formula([2, 3], [3], [D1]),))).is_disproven
    assert sure(affine_engine.is_injective((formula([1, 3], [3], [D1]),))).is_proven


@pytest.mark.parametrize("extent", [0, 1, 2**40, 2**63])
def test_identity(extent: int) -> None:
    f = (formula([extent], [extent], [D0]),)
    for question in ("is_total", "is_bounded", "is_injective", "is_surjective"):
        assert sure(getattr(affine_engine, question)(f)).is_proven


def test_one_beyond_64_bits() -> None:
    f = (formula([2**63], [2**63], [D0 + 1]),)
    answer = sure(affine_engine.is_total(f))
    assert answer.witness is not None
    assert answer.witness.points == ((2**63 - 1,),)
    # Where a sum may be undefined, nothing else is claimed of it.
    assert affine_engine.is_injective(f) is None
    assert affine_engine.is_surjective(f) is None


def test_an_empty_box_beside_overflow_and_run_time_extents() -> None:
    extents: list[list[Extent]] = [[0, 2**63, 2**63], ["n", 0, 2**63]]
    for box in extents:
        f = (formula(box, [4], [D0 * 2**62 + D1 * D2]),)
        for question in ("is_total", "is_bounded", "is_injective"):
            assert sure(getattr(affine_engine, question)(f)).is_proven
        assert sure(affine_engine.is_surjective(f)).is_disproven
        assert sure(affine_engine.equal(f, (formula(box, [4], [D2]),))).is_proven
        assert sure(affine_engine.are_disjoint(f, f)).is_proven
        assert affine_engine.image(f) == (sure(affine_engine.is_total(f)), ())


def test_coverage_with_gaps_and_remainders() -> None:
    contiguous = (formula([3, 4], [12], [D0 * 4 + D1]),)
    assert sure(affine_engine.is_surjective(contiguous)).is_proven
    assert sure(affine_engine.covers(contiguous, IndexSet(Space.box(7)))).is_proven
    for results, missed in (
        ([D0 * 4 + D1 * 2], (1,)),
        ([D0 * 5 + D1], (4,)),
        ([D0 * 4 + D1 + 2], (0,)),
        ([D0 + D1], (11,)),
    ):
        answer = sure(affine_engine.is_surjective((formula([3, 4], [12], results),)))
        assert answer.witness is not None
        assert answer.witness.points == (missed,)
    shared = (formula([3, 4], [3, 6], [D0, D0 + D1]),)
    assert affine_engine.is_surjective(shared) is None


def test_disjoint_by_interval_and_by_remainder() -> None:
    f = (formula([8], [64], [D0 * 4]),)
    for result, is_apart in ((D0 + 29, True), (D0 * 2 + 1, True), (D0 * 3, False)):
        answer = sure(affine_engine.are_disjoint(f, (formula([8], [64], [result]),)))
        assert answer.is_proven == is_apart
    assert affine_engine.are_disjoint(f, (formula([8], [64], [D0 * 3 + 1]),)) is None


def test_constraints_keep_proofs_and_stop_disproofs() -> None:
    inside = [Constraint(2 - D0)]
    half = formula([5], [4], [D0 + 1], inside)
    assert sure(affine_engine.is_injective((half,))).is_proven
    assert affine_engine.is_bounded((half,)) is None
    assert affine_engine.is_total((half,)) is None
    assert sure(affine_engine.is_bounded((formula([5], [6], [D0 + 1], inside),))).is_proven
    assert sure(affine_engine.equal((half,), (half,))).is_proven
    assert affine_engine.equal((half,), (formula([5], [4], [D0 + 1]),)) is None


def test_not_my_kind() -> None:
    for result in (D0 // 2, D0 * D0, bit_and(D0, 5)):
        f = (formula([7], [7], [result]),)
        assert sure(affine_engine.is_total(f)).is_proven, "bounds are enough for this"
        assert affine_engine.is_injective(f) is None
        assert affine_engine.inverse(f) is None
    assert affine_engine.is_injective((formula(["n"], ["n"], [D0]),)) is None


steps = st.integers(-9, 9)
extents = st.integers(0, 5)


@given(st.lists(st.tuples(steps, steps, steps, steps), min_size=1, max_size=3), extents, extents)
def test_image_and_inverse(rows: list[tuple[int, int, int, int]], first: int, second: int) -> None:
    results: list[IndexExpr] = [D0 * a + D1 * b + D2 * c + d for a, b, c, d in rows]
    f = (formula([first, second, 2], [12] * len(rows), results),)
    truth = Truth(f, {})
    places = truth.places & set(truth.value.values())
    built = affine_engine.image(f)
    if built is not None:
        assert {place for part in built[1] for place in part.points()} == places
    back = affine_engine.inverse(f)
    if back is not None and back[0].is_proven and back[1]:
        inverted = Truth(back[1], {}).value
        assert inverted == {y: x for x, y in truth.value.items() if y in places}
    for question in ("is_total", "is_bounded", "is_injective", "is_surjective"):
        check(getattr(affine_engine, question)(f), question, (f,), ({},))


def test_inverse_of_strides_with_padding_and_reversal() -> None:
    f = (formula([3, 4, 2], [64], [D0 * 20 + (3 - D1) * 4 + D2 + 1]),)
    built = affine_engine.inverse(f)
    assert built is not None
    assert Truth(built[1], {}).value == {y: x for x, y in Truth(f, {}).value.items()}


def test_the_lowest_integer_cannot_be_counted_from() -> None:
    f = (formula([2], [4], [D0 * -(2**63)]),)
    assert sure(affine_engine.is_total(f)).is_proven
    assert affine_engine.image(f) is None
    assert affine_engine.inverse(f) is None
