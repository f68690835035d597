"""Maps that mix strides, bits and run-time extents, judged where they are small enough."""

from itertools import product

import pytest

from tests.unit.layouts.judge import Extent, Truth, check, formula
from tilenest.layouts import DimRef, IndexExpr, Sym, mixed_engine, xor
from tilenest.layouts.answers import Answer
from tilenest.layouts.spaces import Constraint, IndexSet, Space

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)
SEVERAL = tuple({"m": m, "n": n, "k": 2} for m, n in product((0, 1, 2, 5), repeat=2))


def is_proven(answer: Answer | None) -> bool:
    return answer is not None and answer.is_proven


def swizzled(columns: int) -> IndexExpr:
    """Eights of a row moved by the row's number, in rows of any number of 64s."""
    moved = xor(D1 % 64 // 8, D0 % 8)
    return D0 * columns + D1 // 64 * 64 + moved * 8 + D1 % 8


@pytest.mark.parametrize(("rows", "columns"), [(3, 64), (5, 192), (9, 320)])
def test_swizzle_in_rows_of_any_length(rows: int, columns: int) -> None:
    f = (formula([rows, columns], [rows * columns], [swizzled(columns)]),)
    for question in ("is_total", "is_bounded", "is_injective", "is_surjective"):
        answer = getattr(mixed_engine, question)(f)
        assert is_proven(answer)
        assert check(answer, question, (f,), ({},)) == "proven"


def test_run_time_rows_and_strides() -> None:
    strided = formula(["m", "n"], ["k"], [D0 * Sym(2) + D1])
    assert is_proven(mixed_engine.is_injective((strided,)))
    assert all(Truth((strided,), values).is_injective() for values in SEVERAL)
    nested = D0 * Sym(0) * Sym(2) + D1 * Sym(2) + D2
    assert is_proven(mixed_engine.is_injective((formula([7, "k", "n"], ["m"], [nested]),)))
    # The stride has to be the extent of the coordinate that it steps over.
    wrong = formula(["m", "n"], ["k"], [D0 * Sym(1) + D1])
    assert mixed_engine.is_injective((wrong,)) is None
    assert not all(Truth((wrong,), values).is_injective() for values in SEVERAL)


def test_a_swizzle_that_loses_a_bit_is_not_proven() -> None:
    lost = D0 * 64 + xor(D1 // 8, D1 // 8 % 2) * 8 + D1 % 8
    f = (formula([3, 64], [192], [lost]),)
    assert mixed_engine.is_injective(f) is None
    assert mixed_engine.is_surjective(f) is None
    assert not Truth(f, {}).is_injective()


def test_bounds_by_digits_are_tight() -> None:
    rows: list[Extent] = ["n", 64]
    f = formula(rows, rows, [D0, xor(D1 // 8, D0 % 8) * 8 + D1 % 8])
    assert is_proven(mixed_engine.is_bounded((f,)))
    assert is_proven(mixed_engine.covers((f,), IndexSet(f.codomain)))
    short = formula(rows, ["n", 63], f.results)
    assert mixed_engine.is_bounded((short,)) is None
    assert mixed_engine.covers((f,), IndexSet(Space.box(4, 4))) is None


def test_disjoint_digits() -> None:
    def lane(number: int) -> IndexExpr:
        return D0 * 64 + xor(D1, number * 8)

    f, g = (formula(["n", 8], ["m"], [lane(number)]) for number in (2, 5))
    answer = mixed_engine.are_disjoint((f,), (g,))
    assert is_proven(answer)
    check(answer, "are_disjoint", ((f,), (g,)), SEVERAL)
    assert mixed_engine.are_disjoint((f,), (f,)) is None
    overlapping = formula(["n", 8], ["m"], [D0 * 64 + xor(D1, 20)])
    assert mixed_engine.are_disjoint((f,), (overlapping,)) is None


def test_equal_once_simplified() -> None:
    f = formula(["n", 8], ["n", 8], [(D0 * 8 + D1) // 8, (D0 * 8 + D1) % 8])
    g = formula(["n", 8], ["n", 8], [D0, D1])
    assert is_proven(mixed_engine.equal((f,), (g,)))
    assert mixed_engine.equal((f,), (formula(["n", 8], ["n", 8], [D0, D1 // 2]),)) is None
    part = formula(["n", 8], ["n", 8], [D0, D1], [Constraint(D0 - 3)])
    assert mixed_engine.equal((f,), (part,)) is None
    assert mixed_engine.is_total((part,)) is None
    assert mixed_engine.is_injective((f, g)) is None
