"""Maps and sets that multiply and divide by run-time extents, tried at small extents, 0 and 1 among
them: what is proven holds at all of them, digits of any radix are proven, and changed ones are not.

Formulas are made by functions that are called with plain numbers as well; these are the judge.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.layouts.oracle import N_DIMS, N_SYMS, Tree, any_tree, build, value_of
from tilenest.layouts import Constraint, DimRef, IndexExpr, IndexSet, Space, Sym, product_engine
from tilenest.layouts.answers import Answer
from tilenest.layouts.formula import Formula
from tilenest.layouts.index_expr import Const, FloorDiv, Mod
from tilenest.layouts.product_sets import Budget, are_never_met
from tilenest.records import record

NAMES = ("K", "L", "M", "N")
VALUES = (0, 1, 2, 3)
RADICES: list[int | str] = ["M", "N", "K", 2, 3]
# Works on numbers and on expressions.
Number = Any
Digits = Callable[[Number, Mapping[str, Number]], tuple[Number, ...]]


def quotient(x: Number, by: Number) -> Number:
    return x // by if isinstance(x, IndexExpr) or isinstance(by, IndexExpr) or by else 0


def remainder(x: Number, by: Number) -> Number:
    return x % by if isinstance(x, IndexExpr) or isinstance(by, IndexExpr) or by else 0


def is_proven(answer: Answer | None) -> bool:
    assert answer is None or not answer.is_disproven, "nothing is disproven here"
    return answer is not None and answer.is_proven


@record
class Radix:
    """A coordinate below `total` as digits below some extents; each is a number or a name."""

    extents: tuple[int | str, ...]
    total: Callable[[Mapping[str, Number]], Number]
    digits: Digits

    @property
    def law(self) -> Constraint:
        return Constraint(Sym(1) - self.total(symbols()), is_equality=True)

    @property
    def codomain(self) -> Space:
        return Space.box(*self.extents)

    def formula(self, *further: Constraint) -> Formula:
        line = IndexSet(Space.box("L"), (self.law, *further), NAMES)
        results = tuple(self.digits(DimRef(0), symbols()))
        return Formula(line, self.codomain, results, NAMES, NAMES)

    @property
    def wanted(self) -> IndexSet:
        return IndexSet(self.codomain, (self.law,), NAMES)

    def truths(self) -> Iterator[tuple[list[tuple[int, ...]], set[tuple[int, ...]]]]:
        """At each choice of the extents, the values in order, and all places."""
        for chosen in product(VALUES, repeat=3):
            values = dict(zip(("K", "M", "N"), chosen, strict=True))
            size = self.total(values)
            shape = [values[n] if isinstance(n, str) else n for n in self.extents]
            found = [self.digits(d, values | {"L": size}) for d in range(size)]
            yield found, set(product(*map(range, shape)))


def symbols() -> dict[str, IndexExpr]:
    return {name: Sym(place) for place, name in enumerate(NAMES)}


def number(extent: int | str, values: Mapping[str, Number]) -> Number:
    return values[extent] if isinstance(extent, str) else extent


def radix_of(extents: Sequence[int | str], divisors: Sequence[int | str], off: int = 0) -> Radix:
    """Digits by some divisors, the last fastest; the first digit is what is left."""

    def total(values: Mapping[str, Number]) -> Number:
        size: Number = 1
        for extent in extents:
            size = size * number(extent, values)
        return size

    def digits(d: Number, values: Mapping[str, Number]) -> tuple[Number, ...]:
        found: list[Number] = []
        for by in reversed(divisors):
            found.insert(0, remainder(d, number(by, values)))
            d = quotient(d, number(by, values))
        return d, *found[:-1], *(last + off for last in found[-1:])

    return Radix(tuple(extents), total, digits)


def extents(most: int) -> st.SearchStrategy[list[int | str]]:
    """Without a product of names, isl decides."""
    named = st.lists(st.sampled_from(RADICES), min_size=2, max_size=most)
    return named.filter(lambda found: sum(isinstance(extent, str) for extent in found) > 1)


def check_answers(radix: Radix) -> dict[str, bool]:
    """What is proven of a radix, each of it true at every choice of the extents."""
    f = (radix.formula(),)
    proven = {
        "is_bounded": is_proven(product_engine.is_bounded(f)),
        "is_injective": is_proven(product_engine.is_injective(f)),
        "covers": is_proven(product_engine.covers(f, radix.wanted)),
    }
    for found, places in radix.truths():
        assert not proven["is_bounded"] or places.issuperset(found)
        assert not proven["is_injective"] or len(set(found)) == len(found)
        assert not proven["covers"] or places.issubset(found)
    return proven


def test_a_search_that_is_given_up_says_so() -> None:
    """At six digits of run-time radices, which are too many."""
    found: list[int | str] = ["M", "N", "K", "M", "N", "K"]
    radix = radix_of(found, found[1:])
    f = (radix.formula(),)
    for answer in (product_engine.is_bounded(f), product_engine.covers(f, radix.wanted)):
        assert answer is not None and not answer.is_proven
        assert "given up" in answer.reason and "of all cases" in answer.reason


@given(extents(3))
@settings(max_examples=6, deadline=None)
def test_digits_of_any_radix_are_proven(found: list[int | str]) -> None:
    assert all(check_answers(radix_of(found, found[1:])).values())


@pytest.mark.slow
@given(extents(4))
@settings(max_examples=40, deadline=None)
def test_digits_of_many_radices_are_proven(found: list[int | str]) -> None:
    assert all(check_answers(radix_of(found, found[1:])).values())


def changed(data: st.DataObject, most: int) -> Radix:
    """Digits by other divisors, the last of which may be off by one."""
    found = data.draw(extents(most))
    divisors = data.draw(st.permutations(found))[1:]
    place = data.draw(st.integers(0, len(divisors) - 1))
    another = data.draw(st.sampled_from([*RADICES, "L", 1]))
    divisors = [*divisors[:place], another, *divisors[place + 1 :]]
    return radix_of(found, divisors, data.draw(st.sampled_from([-1, 0, 0, 1])))


def count_proofs(most: int, examples: int) -> tuple[Counter[str], Counter[str]]:
    """How often each claim is proven of changed digits, and how often it is not."""
    proven, others = Counter[str](), Counter[str]()

    @given(st.data())
    @settings(max_examples=examples, deadline=None)
    def count(data: st.DataObject) -> None:
        for claim, is_proven_here in check_answers(changed(data, most)).items():
            (proven if is_proven_here else others)[claim] += 1

    count()
    return proven, others


def test_what_is_proven_of_changed_digits_is_true() -> None:
    proven, others = count_proofs(3, 8)
    assert proven["is_injective"] >= 4 and others["is_bounded"] and others["covers"]


@pytest.mark.slow
def test_what_is_proven_of_many_changed_digits_is_true() -> None:
    """Some changes change nothing, or not what is claimed."""
    proven, others = count_proofs(4, 60)
    assert set(proven) == set(others) == {"is_bounded", "is_injective", "covers"}


@pytest.mark.parametrize(
    ("extents", "divisors", "off", "false"),
    [
        ("MN", "M", 0, {"is_bounded", "covers"}),
        ("MN", "N", 1, {"is_bounded", "covers"}),
        ("MN", "N", -1, {"is_bounded", "covers"}),
        ("MNK", "KN", 0, {"is_bounded", "covers"}),
        ("MNK", "NN", 0, {"is_bounded", "covers"}),
        ("NN", "L", 0, {"is_bounded", "covers"}),
    ],
)
def test_swapped_factors_and_one_too_many_are_not_proven(
    extents: str, divisors: str, off: int, false: set[str]
) -> None:
    radix = radix_of(tuple(extents), tuple(divisors), off)
    proven = check_answers(radix)
    assert not any(proven[claim] for claim in false)


def test_a_total_that_is_off_is_not_proven() -> None:
    right = radix_of(("M", "N"), ("N",))

    def totals(off: int) -> Radix:
        return Radix(right.extents, lambda values: right.total(values) + off, right.digits)

    more, less = check_answers(totals(1)), check_answers(totals(-1))
    assert more["covers"] and not more["is_bounded"]
    assert less["is_bounded"] and not less["covers"]


def test_the_sign_of_a_divisor_matters() -> None:
    """1 // -3 is -1, and 1 // 0 is 0: a quotient is a digit where its divisor is at least 1."""
    d, (_, size, rows, columns) = DimRef(0), (Sym(place) for place in range(4))
    line = [Constraint(d), Constraint(size - 1 - d), Constraint(size - rows * columns, True)]
    breaks = [Constraint(-(d // columns) - 1), Constraint(d // columns - rows)]
    natural = [Constraint(rows), Constraint(columns)]
    for broken in breaks:
        assert are_never_met([*line, *natural, broken], 1, 4, {}, Budget())
        assert not are_never_met([*line, broken], 1, 4, {}, Budget())
        assert any(
            all(c.is_met((x,), (0, m * n, m, n)) for c in (*line, broken))
            for m, n in product((-2, -3), repeat=2)
            for x in range(m * n)
        )


signs = st.lists(st.tuples(any_tree, st.booleans()), min_size=1, max_size=2)


def test_what_is_never_met_has_no_point() -> None:
    """A number at least 0 and at most -gap, written in two ways, beside any further conditions.
    With a gap there is no such number, which is proven nearly always."""
    proven, unproven = Counter[int](), Counter[int]()

    @given(any_tree, st.integers(-1, 2), signs)
    @settings(max_examples=40, deadline=None)
    def judge(tree: Tree, gap: int, others: list[tuple[Tree, bool]]) -> None:
        opposite: Tree = ("-", ("-", 0, tree), gap)
        conditions = [(tree, False), (opposite, False), *others]
        constraints = [Constraint(build(one), is_equality) for one, is_equality in conditions]
        if not are_never_met(constraints, N_DIMS, N_SYMS, {}, Budget()):
            unproven[gap] += 1
            return
        proven[gap] += 1
        for point in product(range(-2, 3), repeat=N_DIMS + N_SYMS):
            values = [
                (value_of(one, point[:N_DIMS], point[N_DIMS:]), is_equality)
                for one, is_equality in conditions
            ]
            assert not all(v == 0 if is_equality else v >= 0 for v, is_equality in values)

    judge()
    assert proven[1] and proven[2] and (proven[0] or proven[-1])
    assert unproven[1] + unproven[2] <= (proven[1] + proven[2]) // 10


def divisors_in(expr: IndexExpr) -> set[IndexExpr]:
    """Each may be negative, 0 or positive, but for numbers."""
    found: set[IndexExpr] = set()
    if isinstance(expr, FloorDiv | Mod) and not isinstance(expr.divisor, Const):
        found.add(expr.divisor)
    names = ("left", "right", "dividend", "divisor")
    parts = [getattr(expr, name) for name in names if hasattr(expr, name)]
    return found.union(*map(divisors_in, (*parts, *getattr(expr, "operands", ()))))


@given(any_tree, any_tree)
@settings(max_examples=30, deadline=None)
def test_quotient_and_remainder_make_what_was_divided(left: Tree, right: Tree) -> None:
    """By any divisor but 0, which is proven of up to four divisors: of five, each with three signs,
    there are more cases than are tried."""
    dividend, divisor = build(left), build(right)
    whole = dividend // divisor * divisor + dividend % divisor
    for broken in (whole - dividend - 1, dividend - whole - 1):
        for sign in (1, -1):
            given = [Constraint(divisor * sign - 1), Constraint(broken)]
            is_proven_here = are_never_met(given, N_DIMS, N_SYMS, {}, Budget())
            assert is_proven_here or len(divisors_in(broken) | divisors_in(divisor)) > 4


def test_maps_of_one_domain_are_compared() -> None:
    names = ("M", "N")
    box = IndexSet(Space.box("M", "N"))
    row, column = DimRef(0), DimRef(1)
    linear = row * Sym(1) + column

    def line(*results: IndexExpr) -> tuple[Formula]:
        return (Formula(box, Space.box(*[1 << 62] * len(results)), results, names),)

    digits, plain = line(linear // Sym(1), linear % Sym(1)), line(row, column)
    assert is_proven(product_engine.equal(digits, plain))
    assert product_engine.equal(line(linear // Sym(0), linear % Sym(0)), plain) is None
    assert is_proven(product_engine.are_disjoint(line(linear), line(-linear - 1)))
    assert product_engine.are_disjoint(line(linear), line(-linear)) is None
    # Without a product, and for more than one piece, the others are asked.
    assert product_engine.equal(plain, plain) is None
    assert product_engine.is_injective(plain) is None
    assert product_engine.is_bounded((*digits, *digits)) is None
    assert product_engine.is_total(digits) is None
