"""Bit matrices, forms and proofs, against NumPy modulo 2 and against every point of small boxes."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.corpus import random_maps
from tests.unit.layouts.judge import Truth, formula
from tilenest.errors import ShapeError
from tilenest.layouts import (
    Const,
    DimRef,
    IndexExpr,
    Sym,
    bit_and,
    bit_engine,
    shift_left,
    shift_right,
    xor,
)
from tilenest.layouts.answers import proven
from tilenest.layouts.bit_form import bit_expression, bit_form, packing_of
from tilenest.layouts.bit_matrix import BitMatrix
from tilenest.layouts.spaces import Constraint, IndexSet, Space

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)


@st.composite
def matrices(draw: st.DrawFn) -> BitMatrix:
    height, width = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    columns = st.integers(0, (1 << height) - 1)
    return BitMatrix(height, tuple(draw(columns) for _ in range(width)))


def dense(matrix: BitMatrix) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    entries = [[column >> row & 1 for column in matrix.columns] for row in range(matrix.height)]
    return np.array(entries, dtype=np.int64).reshape(matrix.height, matrix.width)


def values_of(matrix: BitMatrix) -> dict[int, list[int]]:
    """For each value, the vectors that go to it, by dense multiplication modulo 2."""
    found: dict[int, list[int]] = {}
    for vector in range(1 << matrix.width):
        bits = np.array([vector >> at & 1 for at in range(matrix.width)], dtype=np.int64)
        value = sum(int(bit) << at for at, bit in enumerate(dense(matrix) @ bits % 2))
        found.setdefault(value, []).append(vector)
    return found


def span(vectors: tuple[int, ...]) -> set[int]:
    total = {0}
    for vector in vectors:
        total |= {vector ^ other for other in total}
    return total


@given(matrices())
def test_matrix_image_kernel_and_solutions(matrix: BitMatrix) -> None:
    values = values_of(matrix)
    assert span(matrix.image_basis()) == set(values)
    assert 1 << matrix.rank() == len(values) == 1 << len(matrix.image_basis())
    assert span(matrix.kernel_basis()) == set(values[0])
    assert 1 << len(matrix.kernel_basis()) == len(values[0])
    solver, residual = matrix.solver()
    for target in range(1 << matrix.height):
        solution = matrix.solve(target)
        assert (solution in values[target]) if target in values else solution is None
        assert (residual.apply(target) == 0) == (target in values)
        assert target not in values or solver.apply(target) in values[target]


@given(matrices(), st.data())
def test_matrix_composition(first: BitMatrix, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 5))
    columns = st.integers(0, (1 << rows) - 1)
    second = BitMatrix(rows, tuple(data.draw(columns) for _ in range(first.height)))
    assert np.array_equal(dense(second.compose(first)), dense(second) @ dense(first) % 2)


def test_all_3x3_inverses() -> None:
    regular = 0
    for columns in product(range(8), repeat=3):
        matrix = BitMatrix(3, columns)
        inverse = matrix.inverse()
        is_regular = len(values_of(matrix)) == 8
        assert (inverse is not None) == is_regular
        if inverse is not None:
            assert inverse.compose(matrix) == matrix.compose(inverse) == BitMatrix.identity(3)
            regular += 1
    assert regular == 168


def test_matrices_beyond_64_bits() -> None:
    size = 200
    shear = BitMatrix(size, tuple((1 << at) | (1 << at) >> 1 for at in range(size)))
    inverse = shear.inverse()
    assert inverse is not None
    assert shear.compose(inverse) == BitMatrix.identity(size)
    assert BitMatrix(size, (*shear.columns, 1 << 7)).kernel_basis() == (0xFF | 1 << size,)


FORMS: list[IndexExpr] = [
    D0 // 4 + D0 % 4 * 16,
    D0 - D0 // 8 * 8,
    31 - D0,
    -1 - D0,
    D0 * 33,
    D0 % 2 * 11,
    xor(D0, -5),
    bit_and(D0, D0 // 1),
    bit_and(xor(D0, 3), xor(D0, 7)),
    shift_right(shift_left(D0, 60), 62),
    shift_left(D0, 63),
    shift_right(-1 - D0, 70),
    D0 // 40 + D0 % 40,
    D0 + D1 * 32,
    xor(D0 % 2 * 3, D1 // 2 * 5),
]


@pytest.mark.parametrize("expr", FORMS, ids=str)
def test_form_has_the_values_of_its_expression(expr: IndexExpr) -> None:
    packing = packing_of((32, 4))
    form = bit_form(expr, packing)
    assert form is not None
    values = []
    for point in product(range(32), range(4)):
        values.append(expr.evaluate(point))
        assert form.at(packing.pack(point)) == values[-1]
        assert packing.unpack(packing.pack(point)) == point
    assert form.interval() == (min(values), max(values))


@pytest.mark.parametrize(
    "expr",
    [D0 + 1, D0 + D1, D0 * D1, D0 // 3, D0 % 3, D0 - D1, bit_and(D0, D1), Sym(0) + D0, D0 * -1],
    ids=str,
)
def test_no_form_where_bits_depend_on_each_other(expr: IndexExpr) -> None:
    assert bit_form(expr, packing_of((32, 4))) is None


def test_a_formula_that_agrees_on_single_bits_is_no_form() -> None:
    basis_alike = D0 - bit_and(D0, D0 // 2) % 2
    points = [0, 1, 2, 4]
    assert [basis_alike.evaluate((x,)) for x in points] == points
    assert bit_form(basis_alike, packing_of((8,))) is None
    f = (formula([8], [8], [basis_alike]),)
    assert bit_engine.is_injective(f) is None
    assert bit_engine.equal(f, (formula([8], [8], [D0]),)) is None


@given(st.lists(st.integers(0, 255), min_size=5, max_size=5), st.integers(0, 255))
def test_expression_of_a_form(columns: list[int], constant: int) -> None:
    packing = packing_of((8, 4))
    bits = [D0 // (1 << at) % 2 for at in range(3)] + [D1 // (1 << at) % 2 for at in range(2)]
    expr: IndexExpr = Const(constant)
    for bit, column in zip(bits, columns, strict=True):
        expr = xor(expr, bit * column)
    form = bit_form(expr, packing)
    assert form is not None
    again = bit_expression(form, packing)
    for point in product(range(8), range(4)):
        assert again.evaluate(point) == expr.evaluate(point)


def test_swizzle_and_its_inverse() -> None:
    f = (formula([1024, 2048], [1024, 2048], [D0, xor(D1, D0 % 32 * 8)]),)
    built = bit_engine.inverse(f)
    assert built is not None
    assert built[0].is_proven
    (back,) = built[1]
    for point in ((0, 0), (1023, 2047), (17, 5), (512, 1033)):
        place = tuple(result.evaluate(point) for result in f[0].results)
        assert back.domain.holds(place)
        assert tuple(result.evaluate(place) for result in back.results) == point
    again = bit_engine.equal(f, built[1])
    assert again is not None
    assert again.is_proven, "this swizzle undoes itself"


@pytest.mark.parametrize("extent", [1, 31, 32, 2**21 - 1, 2**21, 2**63])
def test_gray_code_and_its_inverse(extent: int) -> None:
    room = 1 << (extent - 1).bit_length()
    built = bit_engine.inverse((formula([extent], [room], [xor(D0, D0 // 2)]),))
    assert built is not None
    (back,) = built[1]
    for x in {0, 1, extent // 3, extent - 2, extent - 1}:
        if 0 <= x < extent:
            assert back.domain.holds((x ^ x >> 1,))
            assert back.results[0].evaluate((x ^ x >> 1,)) == x
    for y in {0, 1, room // 3, room - 2, room - 1}:
        source = y
        for step in range(6):
            source ^= source >> (1 << step)
        if 0 <= y < room:
            assert back.domain.holds((y,)) == (source < extent)


@given(st.integers(0, 2**32))
def test_image_inverse_and_fibre_of_random_maps(seed: int) -> None:
    try:
        (f, _) = random_maps(Random(seed), "bits")
    except ShapeError:
        return
    truth = Truth(f, {})
    places = truth.places & set(truth.value.values())
    built = bit_engine.image(f)
    if built is not None and built[0].is_proven:
        assert {place for part in built[1] for place in part.points()} == places
    back = bit_engine.inverse(f)
    if back is not None and back[0].is_proven:
        inverted = Truth(back[1], {}).value
        assert inverted == {y: x for x, y in truth.value.items() if y in places}
    for place in sorted(truth.places)[:4]:
        found = bit_engine.fibre(f, place, 64)
        if found is not None and found[0].is_proven:
            assert list(found[1]) == [x for x, y in truth.value.items() if y == place]


def test_fibre_of_a_box_too_large_to_enumerate() -> None:
    f = (formula([2**40, 2**8], [2**40], [xor(D0, D1 // 2)]),)
    found = bit_engine.fibre(f, (5,), 1 << 8)
    assert found is not None
    assert found[0].is_proven
    assert len(found[1]) == 2**8
    assert all(x ^ y // 2 == 5 for x, y in found[1])
    few = bit_engine.fibre(f, (5,), 255)
    assert few is not None
    assert not few[0].is_proven
    assert bit_engine.fibre((formula([8], [64], [D0 * 8]),), (4,), 8) == (
        proven("bits", "no bits go there"),
        (),
    )


def test_ragged_boxes_are_exact() -> None:
    # The largest value of all bit patterns is 7 ^ 8 at 7, which the box does not hold.
    f = (formula([7], [15], [xor(D0, 8)]),)
    answer = bit_engine.is_bounded(f)
    assert answer is not None
    assert answer.is_proven
    tight = bit_engine.is_bounded((formula([7], [14], [xor(D0, 8)]),))
    assert tight is not None
    assert tight.witness is not None
    assert tight.witness.points == ((6,),)


def test_collision_inside_a_ragged_box() -> None:
    f = (formula([5, 3], [8], [xor(D0, D1 * 2)]),)
    answer = bit_engine.is_injective(f)
    assert answer is not None
    assert answer.witness is not None
    first, second = answer.witness.points
    assert first != second
    assert f[0].results[0].evaluate(first) == f[0].results[0].evaluate(second)


def test_disjoint_images() -> None:
    even, odd = (formula([8], [32], [xor(D0 * 2, bit)]) for bit in (0, 1))
    assert bit_engine.are_disjoint((even,), (odd,)) is not None
    apart = bit_engine.are_disjoint((even,), (odd,))
    assert apart is not None
    assert apart.is_proven
    # All bit patterns meet at 12, of which the boxes hold no source.
    low, high = formula([6], [32], [D0 * 2]), formula([3], [32], [12 + D0 % 4])
    near = bit_engine.are_disjoint((low,), (high,))
    assert near is not None
    assert near.is_proven
    met = bit_engine.are_disjoint((low,), (formula([2], [32], [D0 * 8]),))
    assert met is not None
    assert met.is_disproven


def test_a_part_is_covered_that_the_whole_is_not() -> None:
    f = (formula([4], [16], [xor(D0, D0 // 2)]),)
    part = bit_engine.covers(f, IndexSet(Space.box(4)))
    whole = bit_engine.covers(f, IndexSet(Space.box(5)))
    assert part is not None
    assert part.is_proven
    assert whole is not None
    assert whole.witness is not None
    assert whole.witness.points == ((4,),)


def test_not_my_kind() -> None:
    piece = formula([8], [8], [D0], [Constraint(D0 - 3)])
    for f in ((piece,), (formula(["n"], ["n"], [D0]),), (formula([8], [8], [D0 + 1]),)):
        assert bit_engine.is_total(f) is None
        assert bit_engine.is_injective(f) is None
        assert bit_engine.image(f) is None
